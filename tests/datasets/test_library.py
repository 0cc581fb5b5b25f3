import os
import sys

import numpy as np
import pytest

from tuckermix._hdf5_child import LENGTHS, MAX_ANSWER
from tuckermix._reading import ReadError
from tuckermix.datasets import _library
from tuckermix.datasets._library import Library

h5py = pytest.importorskip("h5py", reason="h5py is not installed")

LIMIT = 2**20


@pytest.fixture
def path(tmp_path):
    with h5py.File(tmp_path / "a.h5", "w", userblock_size=512) as file:
        file.create_dataset("X", data=np.arange(24.0).reshape(6, 4), chunks=(4, 4))
        file.create_dataset("large", (2 * 10**7,), "f8")
        file.create_dataset("names", data=["a", "", "äö"])
        file.create_dataset("codes", data=np.array([b"x", b"yz"]))
        file.create_dataset("pairs", data=np.zeros(2, [("a", "i4"), ("b", "f8")]))
    return tmp_path / "a.h5"


def test_answers(path):
    with Library(path, LIMIT) as library:
        listed = {name: (shape, *kind) for name, shape, *kind in library.arrays(10, False)}
        assert listed["X"] == ([6, 4], "number", 0, "<f8", "")
        assert listed["names"] == ([3], "string", 0, "", "")
        assert listed["codes"] == ([2], "text", 2, "", "")
        assert listed["pairs"][1] == "other"
        said, table = library.describe("X")
        assert (said["shape"], said["chunks"], said["plain"]) == ([6, 4], [4, 4], True)
        content = path.read_bytes()
        for row, (first, second, start, size, mask) in enumerate(table.tolist()):
            assert (first, second, size, mask) == (row, 0, 128, 0)
            values = np.frombuffer(content[start : start + size]).reshape(4, 4)
            rest = np.arange(24.0).reshape(6, 4)[4 * row : 4 * row + 4]
            assert np.array_equal(values[: len(rest)], rest)
        assert library.strings("names", ((1, 3),)) == ["", "äö"]
        codes = library.read("codes", ((0, 2),), np.dtype("S2"))
        assert codes.tolist() == [b"x", b"yz"]


def test_faults_and_refusals(path):
    with Library(path, LIMIT) as library:
        with pytest.raises(ReadError, match=r"it holds more than 3 objects\. Store fewer arrays"):
            library.arrays(3, False)
        with pytest.raises(ReadError, match=r"damaged or not what its name says \(KeyError"):
            library.describe("absent")
        with pytest.raises(ReadError, match=r"TypeError: values of type .* are not read"):
            library.read("pairs", ((0, 2),), np.dtype("f8"))
        with pytest.raises(ValueError, match="8 bytes of <f8 came, not 8 of >f8"):
            library.read("X", ((0, 1), (0, 1)), np.dtype(">f8"))
        assert library.read("X", ((0, 1), (0, 1)), np.dtype("f8")) == 0  # it goes on


@pytest.mark.skipif(sys.platform != "linux", reason="memory is limited on Linux only")
def test_memory_has_a_limit(path):
    region = ((0, 2 * 10**7),)
    message = "libhdf5 needs more memory for it than max_bytes=1048"
    with Library(path, LIMIT) as library, pytest.raises(ReadError, match=message):
        library.read("large", region, np.dtype("f8"))
    with Library(path, 2**30) as library:
        assert not library.read("large", region, np.dtype("f8")).any()


def test_a_process_that_does_not_start(path, monkeypatch):
    monkeypatch.setattr(_library, "START", "import os; os._exit(3)")
    message = r"does not start \(exit code 3\)\. Check that h5py"
    with Library(path, LIMIT) as library, pytest.raises(ReadError, match=message):
        library.arrays(10, False)


def answer(*lengths, then="pass"):
    """Code of a process that says that it is ready, then sends two lengths."""
    ready, bad = LENGTHS.pack(2, 0) + b"{}", LENGTHS.pack(*lengths)
    return (
        f"import sys, os, time; out = sys.stdout.buffer; out.write({ready!r}); out.flush(); "
        f"sys.stdin.buffer.readline(); {then}; out.write({bad!r}); out.flush(); time.sleep(60)"
    )


def test_a_process_that_dies(path, monkeypatch):
    monkeypatch.setattr(_library, "START", answer(0, 0, then="os.abort()"))
    with Library(path, LIMIT) as library:
        with pytest.raises(ReadError, match=r"end the process that reads them \(exit code -?\d+"):
            library.arrays(10, False)
        with pytest.raises(ReadError, match="end the process"):
            library.arrays(10, False)


def test_a_process_that_takes_too_long(path, monkeypatch):
    monkeypatch.setattr(_library, "START", answer(0, 0, then="time.sleep(60)"))
    monkeypatch.setattr(_library, "SECONDS", 0.5)
    with Library(path, LIMIT) as library:
        with pytest.raises(ReadError, match="libhdf5 finds no end in its structures"):
            library.arrays(10, False)
        process = library._process
    assert process.returncode is not None


@pytest.mark.parametrize("lengths", [(MAX_ANSWER + 1, 0), (2, 1), (2**63, 2**63)])
def test_answers_that_are_too_long(path, monkeypatch, lengths):
    monkeypatch.setattr(_library, "START", answer(*lengths))
    message = r"libhdf5 gave \d+ bytes where 0 were expected"
    with Library(path, LIMIT) as library, pytest.raises(ReadError, match=message):
        library.arrays(10, False)


def test_nothing_starts_before_the_first_question(path):
    with Library(path, LIMIT) as library:
        assert library._process is None
        library.arrays(10, False)
        process = library._process
        assert process.poll() is None
    assert process.returncode is not None


def test_modules_of_the_working_directory_are_not_run(path, monkeypatch, tmp_path):
    """A folder from a stranger may hold a file with the name of a module."""
    for name in ("h5py", "numpy", "json"):
        (tmp_path / f"{name}.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'w')")
    monkeypatch.setattr(sys, "path", [one for one in sys.path if one])
    monkeypatch.chdir(tmp_path)
    with Library(path, LIMIT) as library:
        assert len(library.arrays(10, False)) == 5
    assert not (tmp_path / "ran").exists()


def test_what_is_no_file(tmp_path):
    if hasattr(os, "mkfifo"):
        os.mkfifo(tmp_path / "pipe")
        message = "it is no regular file"
        with Library(tmp_path / "pipe", LIMIT) as library, pytest.raises(ReadError, match=message):
            library.arrays(10, False)
    with Library(tmp_path / "absent", LIMIT) as library, pytest.raises(FileNotFoundError):
        library.arrays(10, False)
