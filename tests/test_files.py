import csv
import errno
import io
import os
import resource
import signal
import stat
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest
from tests.cases import each

from tuckermix import _files
from tuckermix._files import (
    FULL_DISK,
    atomic_open,
    atomic_path,
    atomic_paths,
    csv_text,
    from_csv_cell,
    made_folder,
    write_text,
)


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def test_content_appears_whole_and_nothing_else_stays(tmp_path):
    with atomic_open(tmp_path / "a.bin") as stream:
        stream.write(b"\x00\r\n\xff")
    write_text(tmp_path / "b.txt", "naïve\r\nline\n")
    assert (tmp_path / "a.bin").read_bytes() == b"\x00\r\n\xff"
    assert (tmp_path / "b.txt").read_bytes() == "naïve\r\nline\n".encode()
    assert names(tmp_path) == ["a.bin", "b.txt"]


def test_old_content_stays_until_the_block_ends(tmp_path):
    target = tmp_path / "a.txt"
    target.write_text("old")
    with atomic_open(target, "w") as stream:
        stream.write("new")
        stream.flush()
        assert target.read_text() == "old"
    assert target.read_text() == "new"


@pytest.mark.parametrize("error", [OSError("disk full"), KeyboardInterrupt(), MemoryError()])
@pytest.mark.parametrize("existed", [True, False])
def test_failure_leaves_what_was_there(tmp_path, error, existed):
    target = tmp_path / "a.txt"
    if existed:
        target.write_text("old")

    def write():
        with atomic_open(target, "w") as stream:
            stream.write("half")
            raise error

    with pytest.raises(type(error)):
        write()
    assert names(tmp_path) == (["a.txt"] if existed else [])
    assert not existed or target.read_text() == "old"


@pytest.mark.parametrize("place", ["fsync", "write"])
@pytest.mark.parametrize("code", sorted(FULL_DISK))
def test_a_full_disk_is_named_and_leaves_what_was_there(tmp_path, monkeypatch, place, code):
    def full(*args):
        raise OSError(code, "the words of the system")

    if place == "fsync":
        monkeypatch.setattr(os, "fsync", full)
    write = full if place == "write" else (lambda: None)

    def attempt():
        with atomic_paths(tmp_path / "a.txt", tmp_path / "b.txt") as temporaries:
            temporaries[0].write_text("half")
            write()

    (tmp_path / "b.txt").write_text("old")
    with pytest.raises(OSError, match=r"a\.txt, .*b\.txt") as caught:
        attempt()
    assert caught.value.errno == code
    assert names(tmp_path) == ["b.txt"]
    assert (tmp_path / "b.txt").read_text() == "old"


@pytest.mark.skipif(os.name != "posix", reason="limits as on POSIX systems")
def test_a_disk_that_is_really_full(tmp_path):
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (10_000, limits[1]))
    try:
        with pytest.raises(OSError, match=r"File too large: .*a\.txt"):
            write_text(tmp_path / "a.txt", "x" * 20_000)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        signal.signal(signal.SIGXFSZ, handler)
    assert names(tmp_path) == []


def test_other_errors_stay_as_they_are(tmp_path):
    def attempt(error):
        with atomic_path(tmp_path / "a.txt"):
            raise error

    elsewhere = OSError(errno.ENOSPC, "full", "elsewhere")
    for error in (elsewhere, OSError(errno.EIO, "broken")):
        with pytest.raises(OSError, match=r"full|broken") as caught:
            attempt(error)
        assert caught.value is error


STEPS = ("_create", "_flush", "_rename")


@pytest.mark.parametrize("existed", [True, False])
@pytest.mark.parametrize("after", [True, False])
@pytest.mark.parametrize("step", STEPS)
def test_an_interrupt_in_any_step_leaves_no_temporary_file(
    tmp_path, monkeypatch, step, after, existed
):
    # Where the signal struck is where the exception comes from: just before or after the work.
    target, work = tmp_path / "a.txt", getattr(_files, step)
    if existed:
        target.write_text("old")

    def interrupted(*args):
        if after:
            work(*args)
        raise KeyboardInterrupt

    monkeypatch.setattr(_files, step, interrupted)
    with pytest.raises(KeyboardInterrupt):
        write_text(target, "new")
    renamed = step == "_rename" and after
    assert names(tmp_path) == (["a.txt"] if existed or renamed else [])
    assert not target.exists() or target.read_text() == ("new" if renamed else "old")


@pytest.mark.parametrize("step", ["mkdir", "open"])
def test_an_interrupt_right_after_something_is_made_leaves_nothing(tmp_path, monkeypatch, step):
    def interrupted(*args, **options):
        made = work(*args, **options)
        if made is not None:
            made.close()
        raise KeyboardInterrupt

    if step == "mkdir":
        work = os.mkdir
        monkeypatch.setattr(os, "mkdir", interrupted)
    else:
        work = open
        monkeypatch.setattr(_files, "open", interrupted, raising=False)

    def attempt():
        with made_folder(tmp_path / "a" / "b") if step == "mkdir" else atomic_path(tmp_path / "c"):
            pass

    with pytest.raises(KeyboardInterrupt):
        attempt()
    assert names(tmp_path) == []


def interrupted_at(place, work):
    """Raise KeyboardInterrupt on the way into a function of `_files`, or behind a call in it."""
    seen = 0

    def strike(frame, event, _):
        nonlocal seen
        if frame.f_code.co_filename == _files.__file__ and event in ("call", "c_return"):
            seen += 1
            if seen == place:
                sys.setprofile(None)
                raise KeyboardInterrupt

    sys.setprofile(strike)
    try:
        work()
    except KeyboardInterrupt:
        return True
    finally:
        sys.setprofile(None)
    return False


@pytest.mark.parametrize("existed", [True, False])
def test_ctrl_c_wherever_python_handles_it_leaves_whole_files_only(tmp_path, existed):
    # A file that nobody closes would be a warning, and a descriptor more than before.
    target = tmp_path / "a.txt"
    for place in range(1, 1000):
        target.unlink(missing_ok=True)
        if existed:
            target.write_text("old")
        before = descriptors()
        cut = interrupted_at(place, lambda: write_text(target, "new"))
        assert descriptors() == before, place
        assert names(tmp_path) in ([], ["a.txt"]), place
        assert not target.exists() or target.read_text() in ("old", "new"), place
        assert target.exists() or not existed, place
        if not cut:
            break
    assert target.read_text() == "new"
    assert place > 30


def descriptors():
    folder = Path("/proc/self/fd")
    return len(os.listdir(folder)) if folder.exists() else 0


def test_files_that_belong_together_appear_together(tmp_path):
    targets = [tmp_path / name for name in ("a.txt", "b.txt", "c.txt")]
    targets[1].write_text("old")

    def attempt(fails):
        with atomic_paths(*targets) as temporaries:
            for number, temporary in enumerate(temporaries):
                temporary.write_text(str(number))
                assert names_without_hidden(tmp_path) == ["b.txt"]
                assert targets[1].read_text() == "old"
            if fails:
                raise RuntimeError("no")

    with pytest.raises(RuntimeError):
        attempt(True)
    assert names(tmp_path) == ["b.txt"]
    attempt(False)
    assert [target.read_text() for target in targets] == ["0", "1", "2"]
    assert names(tmp_path) == ["a.txt", "b.txt", "c.txt"]


def names_without_hidden(folder):
    return [name for name in names(folder) if not name.startswith(".")]


def test_ctrl_c_waits_until_all_files_are_renamed(tmp_path, monkeypatch):
    replace = os.replace

    def interrupted(*args):
        replace(*args)
        signal.raise_signal(signal.SIGINT)

    monkeypatch.setattr(os, "replace", interrupted)
    handler = signal.getsignal(signal.SIGINT)

    def attempt():
        with atomic_paths(tmp_path / "a", tmp_path / "b"):
            pass

    with pytest.raises(KeyboardInterrupt):
        attempt()
    assert names(tmp_path) == ["a", "b"]
    assert signal.getsignal(signal.SIGINT) is handler


def test_folders_are_made_and_empty_ones_taken_away(tmp_path):
    with made_folder(tmp_path / "a" / "b") as folder:
        assert folder.is_dir()
    assert names(tmp_path) == []
    with made_folder(tmp_path / "a" / "b") as folder:
        (folder / "x").write_text("kept")
    with made_folder(tmp_path / "a"):
        pass
    assert (tmp_path / "a" / "b" / "x").read_text() == "kept"
    (tmp_path / "empty").mkdir()
    with made_folder(tmp_path / "empty"):
        pass
    assert names(tmp_path) == ["a", "empty"]  # what was there before stays


def test_temporary_file_keeps_suffix_and_folder(tmp_path):
    with atomic_path(tmp_path / "model.npz") as temporary:
        assert temporary.suffix == ".npz"
        assert temporary.parent == tmp_path.resolve()
        np.savez(temporary, a=np.arange(3))
    with np.load(tmp_path / "model.npz") as stored:
        assert stored["a"].tolist() == [0, 1, 2]


@pytest.mark.skipif(os.name != "posix", reason="permissions as on POSIX systems")
def test_permissions_are_those_of_any_new_file(tmp_path):
    (tmp_path / "plain").write_text("")
    write_text(tmp_path / "ours", "")
    modes = {stat.S_IMODE((tmp_path / name).stat().st_mode) for name in ("plain", "ours")}
    assert len(modes) == 1


@pytest.mark.skipif(os.name != "posix", reason="permissions as on POSIX systems")
def test_a_file_that_is_replaced_keeps_its_permissions(tmp_path):
    target = tmp_path / "private"
    target.write_text("old")
    target.chmod(0o600)
    write_text(target, "new")
    assert stat.S_IMODE(target.stat().st_mode) == 0o600


@pytest.mark.skipif(os.name != "posix", reason="permissions as on POSIX systems")
def test_a_read_only_file_is_not_replaced(tmp_path):
    target = tmp_path / "a.txt"
    target.write_text("old")
    target.chmod(0o444)
    with pytest.raises(PermissionError, match=r"Cannot write .*a\.txt: the file is read-only"):
        write_text(target, "new")
    assert target.read_text() == "old"
    assert names(tmp_path) == ["a.txt"]


def test_a_read_only_folder(tmp_path, monkeypatch):
    def denied(*args, **options):
        raise PermissionError(errno.EACCES, "Permission denied")

    monkeypatch.setattr(_files, "open", denied, raising=False)  # root may write anywhere
    with pytest.raises(PermissionError, match=r"Cannot write .*a\.txt: permission is denied in"):
        write_text(tmp_path / "a.txt", "x")
    assert names(tmp_path) == []


@pytest.mark.skipif(os.name != "posix", reason="symbolic links as on POSIX systems")
def test_a_link_is_refused_wherever_it_leads(tmp_path):
    (tmp_path / "real.txt").write_text("mine")
    for target in ("real.txt", "nowhere.txt"):
        link = tmp_path / "link.txt"
        link.symlink_to(tmp_path / target)
        with pytest.raises(FileExistsError, match=r"Cannot write .*link\.txt: it is a link to"):
            write_text(link, "x")
        link.unlink()
    assert (tmp_path / "real.txt").read_text() == "mine"
    assert names(tmp_path) == ["real.txt"]


@pytest.mark.skipif(os.name != "posix", reason="processes as on POSIX systems")
def test_what_a_killed_writer_left_goes_and_nothing_else(tmp_path):
    left = "import os, sys\nfrom tuckermix._files import atomic_path\n"
    left += "with atomic_path(sys.argv[1]) as path:\n    os._exit(0)\n"
    subprocess.run([sys.executable, "-c", left, tmp_path / "a.txt"], check=True)
    (stale,) = names(tmp_path)
    mine = [".a.txt", ".a.0123.txt", stale.replace(".a.", ".b."), "a.txt"]
    for name in mine:
        (tmp_path / name).write_text("mine")
    (tmp_path / stale.replace(".txt", ".csv")).symlink_to(tmp_path / "a.txt")
    with _files.atomic_path(tmp_path / "a.txt") as at_work:
        _files.remove_stale(tmp_path, ["a.txt"])
        assert at_work.exists()
    assert names(tmp_path) == sorted([*mine, stale.replace(".txt", ".csv")])


def test_two_writers_never_mix(tmp_path):
    target = tmp_path / "a.txt"
    contents = [letter * 100_000 for letter in "abcd"]
    threads = [threading.Thread(target=write_text, args=(target, text)) for text in contents]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert target.read_text() in contents
    assert names(tmp_path) == ["a.txt"]


def test_missing_folder(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"Cannot write .*a\.txt: the folder .* Create it"):
        write_text(tmp_path / "none" / "a.txt", "x")


def test_target_is_a_folder(tmp_path):
    with pytest.raises(IsADirectoryError, match=r"Cannot write .*: it is a folder. Name a file"):
        write_text(tmp_path, "x")


def test_unknown_mode(tmp_path):
    with (
        pytest.raises(ValueError, match=r"mode of atomic_open must be 'w' or 'wb'\. Got 'r'"),
        atomic_open(tmp_path / "a", "r"),
    ):
        pass


FORMULAS = ["=1+1", "+1", "-1", "@SUM(A1)", "\t=1", "\r=1", "\n=1", "＝1", "'=1", "''-x"]


@each("text", FORMULAS)
def test_a_formula_is_written_as_text(text):
    (row,) = csv.reader(io.StringIO(csv_text([[text, 1]]), newline=""))
    assert row[0] == "'" + text
    assert from_csv_cell(row[0]) == text


@each("cell", ["a=1", "", "it's", "'quoted'", "5", "a-b", " =1"])
def test_other_texts_are_written_as_they_are(cell):
    (row,) = csv.reader(io.StringIO(csv_text([[cell, 1]]), newline=""))
    assert row == [cell, "1"]
    assert from_csv_cell(cell) == cell


def test_numbers_keep_their_sign():
    assert csv_text([["x"], [-1.5, None, -2]]) == "x\n-1.5,,-2\n"
