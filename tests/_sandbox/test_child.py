import os
import signal
import sys
import time
from dataclasses import replace

import numpy as np
import pytest

from tuckermix import _sandbox
from tuckermix._sandbox import LENGTHS, LIMITS, Sandbox, question
from tuckermix.datasets import ReadError, read

Image = pytest.importorskip("PIL.Image", reason="pillow is not installed")
ASKED = {"axes": None, "channels": None, "grey": None, "size": None}


@pytest.fixture
def sandbox():
    box = Sandbox(2**26)
    yield box
    box.close()


@pytest.fixture
def pictures(tmp_path):
    X = np.random.default_rng(0).integers(0, 256, (70, 5, 4), dtype=np.uint8)
    paths = [tmp_path / f"{number}.png" for number in range(len(X))]
    for path, picture in zip(paths, X, strict=True):
        Image.fromarray(picture).save(path)
    return paths, X


def asked(paths):
    return [question("picture", "read", path, **ASKED) for path in paths]


def test_answers_come_in_their_order(sandbox, pictures):
    paths, X = pictures
    paths[3].write_bytes(b"text")
    paths[40].unlink()
    answers = list(sandbox.each(asked(paths)))
    assert isinstance(answers[3], ReadError)
    assert isinstance(answers[40], ReadError)
    assert "does not exist" in str(answers[40])
    for number, answer in enumerate(answers):
        if number not in (3, 40):
            assert np.array_equal(answer[1], X[number])


def test_a_child_that_dies_takes_no_other_file_along(sandbox, pictures):
    paths, X = pictures
    found = []
    for answer in sandbox.each(asked(paths)):
        if len(found) == 5:
            (child,) = [one for one in _children() if one != os.getpid()]
            os.kill(child, signal.SIGKILL)
        found.append(answer)
    wrong = [number for number, one in enumerate(found) if isinstance(one, Exception)]
    assert len(wrong) <= 1
    for number, answer in enumerate(found):
        if number not in wrong:
            assert np.array_equal(answer[1], X[number])


def _children():
    with open(f"/proc/self/task/{os.getpid()}/children") as stream:
        return [int(one) for one in stream.read().split()]


def child(monkeypatch, then):
    """Let the child be code that says that it is ready, then does something else."""
    ready = LENGTHS.pack(2, 0) + b"{}"  # the library is loaded
    code = f"import os, sys, time; o = sys.stdout.buffer; o.write({ready!r}); o.flush(); {then}"
    monkeypatch.setattr(_sandbox, "START", code)


@pytest.mark.parametrize(
    ("then", "message"),
    [
        ("os.abort()", r"it ends the process that parses it \(exit code -?\d+\)"),
        ("time.sleep(60)", "its parser finds no end in it"),
        (f"o.write({LENGTHS.pack(2**40, 0)!r}); o.flush(); time.sleep(60)", r"where 671\d+ were"),
        (f"o.write({LENGTHS.pack(2, 2**40)!r}); o.flush(); time.sleep(60)", r"where 671\d+ were"),
    ],
)
def test_children_that_misbehave(monkeypatch, sandbox, tmp_path, then, message):
    child(monkeypatch, then)
    monkeypatch.setattr(_sandbox, "LIMITS", replace(LIMITS, seconds=0.5))
    for _ in range(2):
        with pytest.raises(ReadError, match=message):
            sandbox.ask("mat", "list", tmp_path)
    assert not sandbox._idle


def test_a_child_that_does_not_start(monkeypatch, sandbox, tmp_path):
    monkeypatch.setattr(_sandbox, "START", "import os; os._exit(3)")
    with pytest.raises(ReadError, match=r"the process that parses files does not start\. Check"):
        sandbox.ask("mat", "list", tmp_path)


@pytest.mark.skipif(not os.path.exists("/proc/self/statm"), reason="reads /proc")
def test_memory_that_no_limit_of_the_system_stops(monkeypatch, tmp_path):
    child(monkeypatch, "x = b'x' * 2**26; time.sleep(60)")
    monkeypatch.setattr(_sandbox, "LIMITS", replace(LIMITS, libraries=2**25))
    with pytest.raises(ReadError, match="its parser needs more memory"):
        Sandbox(2**20).ask("mat", "list", tmp_path)


def test_what_a_child_may_not_do(sandbox, pictures):
    pytest.importorskip("resource", reason="there are no limits of this kind here")
    list(sandbox.each(asked(pictures[0][:1])))
    (one,) = sandbox._idle
    with open(f"/proc/{one.process.pid}/limits") as stream:
        limits = {line[:26].strip(): line[26:].split()[0] for line in stream.readlines()[1:]}
    assert limits["Max file size"] == limits["Max core file size"] == "0"
    assert int(limits["Max open files"]) == LIMITS.files
    assert int(limits["Max cpu time"]) < 120
    assert int(limits["Max address space"]) < 2**31


def test_modules_of_the_working_directory_are_not_run(pictures, monkeypatch, tmp_path):
    """A folder from a stranger may hold a file with the name of a module."""
    for name in ("PIL", "numpy", "json"):
        (tmp_path / f"{name}.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'w')")
    monkeypatch.setattr(sys, "path", [one for one in sys.path if one])
    monkeypatch.chdir(tmp_path)
    assert read(tmp_path).n_samples == 70
    assert not (tmp_path / "ran").exists()


def test_children_end_with_their_reading(pictures):
    before = set(_children())
    for _ in range(2):
        read(pictures[0][0].parent)
    until = time.monotonic() + 20
    while set(_children()) - before and time.monotonic() < until:
        time.sleep(0.1)
    assert not set(_children()) - before


def test_absent_packages_are_named(monkeypatch, sandbox, tmp_path):
    """The child looks for packages where this process does, and says which one it lacks."""
    (tmp_path / "h5py.py").write_text("raise ImportError('h5py')")
    (tmp_path / "a.h5").write_bytes(b"x")
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    with pytest.raises(ImportError, match=r"Reading HDF5 needs h5py: install tuckermix\[io\]\."):
        sandbox.ask("hdf5", "list", tmp_path / "a.h5", matlab=False)
