"""Requests to the process that runs pyarrow; what its reader makes of them is tested there."""

import io
import json
import subprocess
import sys

import pytest

from tuckermix import _parquet_child
from tuckermix._hdf5_child import LENGTHS

pa = pytest.importorskip("pyarrow", reason="pyarrow is not installed")
parquet = pytest.importorskip("pyarrow.parquet", reason="pyarrow is not installed")


def ask(path, *requests, limit=2**26):
    """Ask in a process of its own, as its limits stay with it."""
    code = "import sys; from tuckermix._parquet_child import main; main()"
    done = subprocess.run(
        [sys.executable, "-c", code, str(path), str(limit), "60"],
        input=b"".join(json.dumps(request).encode() + b"\n" for request in requests),
        capture_output=True,
        check=True,
    )
    stream, answers = io.BytesIO(done.stdout), []
    while head := stream.read(LENGTHS.size):
        said, content = LENGTHS.unpack(head)
        answers.append((json.loads(stream.read(said)), stream.read(content)))
    return answers


def test_columns_and_values(tmp_path):
    table = pa.table({"n": [1, 2], "t": ["a", None], "l": [[[1.0], [2.0]]] * 2, "o": [b"x", b"y"]})
    parquet.write_table(table, tmp_path / "t.parquet")
    reads = [{"do": "read", "name": name} for name in "ntlo"]
    ready, columns, numbers, texts, lists, other = ask(
        tmp_path / "t.parquet", {"do": "columns"}, *reads
    )
    assert ready[0] == {"ready": True}
    assert columns[0] == {
        "rows": 2,
        "columns": [["n", "number"], ["t", "text"], ["l", "list"], ["o", "other"]],
    }
    assert numbers[0]["shape"] == [2]
    assert texts == ({"count": 2}, (1).to_bytes(8, "little") + bytes(8) + b"a")
    assert lists[0] == {"dtype": "<f8", "shape": [2, 2, 1]}
    assert "neither numbers nor texts" in other[0]["refusal"][0]


def test_what_is_declared_is_held_against_the_limit(tmp_path):
    parquet.write_table(pa.table({"a": list(range(5000))}), tmp_path / "t.parquet")
    _, (said, _) = ask(tmp_path / "t.parquet", {"do": "columns"}, limit=1000)
    assert "the limit is max_bytes=1000" in said["refusal"][0]


def test_columns_are_counted(monkeypatch):
    class File:
        schema_arrow = pa.schema([("a", pa.int8()), ("b", pa.int8())])

    monkeypatch.setattr(_parquet_child, "MAX_COLUMNS", 1)
    with pytest.raises(_parquet_child.Refusal, match="it has more than 1 columns"):
        _parquet_child._columns(File())
