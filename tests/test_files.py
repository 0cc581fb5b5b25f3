import os
import stat
import threading

import numpy as np
import pytest

from tuckermix._files import atomic_open, atomic_path, write_bytes, write_text


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def test_content_appears_whole_and_nothing_else_stays(tmp_path):
    write_bytes(tmp_path / "a.bin", b"\x00\r\n\xff")
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


def test_failure_of_the_flush_leaves_what_was_there(tmp_path, monkeypatch):
    def full(handle):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space left"):
        write_text(tmp_path / "a.txt", "x")
    assert names(tmp_path) == []


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


@pytest.mark.skipif(os.name != "posix", reason="symbolic links as on POSIX systems")
def test_a_link_is_followed(tmp_path):
    (tmp_path / "real").mkdir()
    (tmp_path / "link.txt").symlink_to(tmp_path / "real" / "a.txt")
    write_text(tmp_path / "link.txt", "x")
    assert (tmp_path / "link.txt").is_symlink()
    assert (tmp_path / "real" / "a.txt").read_text() == "x"


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
