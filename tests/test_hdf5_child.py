"""What runs in the process of libhdf5; how it is started and limited is tested with the reader."""

import io
import json

import numpy as np
import pytest

from tuckermix import _hdf5_child
from tuckermix._hdf5_child import ACTIONS, LENGTHS
from tuckermix._reading import Refusal

h5py = pytest.importorskip("h5py", reason="h5py is not installed")


@pytest.fixture
def file(tmp_path):
    with h5py.File(tmp_path / "a.h5", "w") as file:
        yield file


def test_a_table_of_chunks_has_a_limit(file):
    file.create_dataset("X", data=np.ones((100, 2)), chunks=(1, 2))
    _, table = ACTIONS["describe"](file, name="X", most=100 * 5 * 8)
    rows = np.frombuffer(table, np.int64).reshape(-1, 5)
    assert sorted(rows[:, 0].tolist()) == list(range(100))
    with pytest.raises(Refusal, match="table of the chunks of '/X' takes more than 3999 bytes"):
        ACTIONS["describe"](file, name="X", most=100 * 5 * 8 - 1)


def test_offsets_are_counted_from_the_start_of_the_file(tmp_path, monkeypatch):
    X = np.random.default_rng(0).random((4, 4))
    with h5py.File(tmp_path / "b.h5", "w", userblock_size=1024) as file:
        file.create_dataset("X", data=X, chunks=(4, 4))
    content = (tmp_path / "b.h5").read_bytes()
    with h5py.File(tmp_path / "b.h5", "r") as file:
        start = np.frombuffer(ACTIONS["describe"](file, name="X", most=1000)[1], np.int64)[2]
        assert content[start : start + X.nbytes] == X.tobytes()
        monkeypatch.setattr(_hdf5_child, "_shift", lambda: not SHIFTED)
        other = np.frombuffer(ACTIONS["describe"](file, name="X", most=1000)[1], np.int64)[2]
    assert abs(start - other) == 1024


SHIFTED = _hdf5_child._shift()


def test_names_have_a_limit(monkeypatch):
    monkeypatch.setattr(_hdf5_child, "MAX_ANSWER", 200)
    answers = io.BytesIO()
    _hdf5_child._send(answers, ["x" * 300], b"content")
    length, rest = LENGTHS.unpack(answers.getvalue()[: LENGTHS.size])
    assert rest == 0
    said = json.loads(answers.getvalue()[LENGTHS.size :])
    assert len(answers.getvalue()) == LENGTHS.size + length
    assert said["refusal"][0] == "the names of its arrays take too much memory"


def test_types_in_words(file):
    file.create_dataset("flags", data=np.array([True, False]))
    file.create_dataset("complex", data=np.ones(2, complex))
    file.create_dataset("rows", (2,), np.dtype(("i4", (3,))))
    file.create_dataset("reference", (2,), h5py.ref_dtype)
    file.create_dataset("enum", (2,), h5py.enum_dtype({"a": 1}, "i2"))
    found = {row[0]: row[2:5] for row in ACTIONS["list"](file, most=99, matlab=False)[0]}
    assert found["flags"] == ["number", 0, "|b1"]
    assert found["complex"] == ["other", 0, "complex128"]
    assert found["rows"][0] == "other"
    assert found["reference"] == ["other", 0, ""]
    assert found["enum"] == ["number", 0, "<i2"]
