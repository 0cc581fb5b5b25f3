import errno
import gzip
import os
import pickle
import tracemalloc
from contextlib import suppress

import numpy as np
import pytest

from tuckermix._reading import (
    Refusal,
    check_fits,
    check_regular,
    open_regular,
    open_unpacked,
    reading,
)
from tuckermix.datasets import DatasetNotFound, ReadError, read


def test_errors_of_the_system(tmp_path, monkeypatch):
    np.save(tmp_path / "a.npy", np.zeros((3, 3)))
    for error, message in (
        (PermissionError(), "permission is denied. Check who may read it"),
        (MemoryError(), "its content does not fit into memory. Pass chunks=100, to read it in p"),
        (OSError(errno.ENOMEM, "none"), "its content does not fit into memory. Pass chunks=100"),
        (FileNotFoundError(), "it does not exist. Check the path"),
        (
            RecursionError("deep\n\n" + 400 * "x"),
            r"\(RecursionError: deep x+\). Get the file again",
        ),
    ):

        def fail(*args, error=error, **kwargs):
            raise error

        monkeypatch.setattr("tuckermix.datasets._arrays.array_header", fail)
        with pytest.raises(ReadError, match=f"a.npy: .*{message}") as caught:
            read(tmp_path / "a.npy")
        assert len(str(caught.value)) < 600
        assert caught.value.__cause__ is error


def test_errors_travel_between_processes():
    for error in (ReadError("Cannot read a: b. C."), DatasetNotFound("The dataset is not here.")):
        again = pickle.loads(pickle.dumps(error))
        assert type(again) is type(error)
        assert str(again) == str(error)


def test_only_regular_files_are_opened(tmp_path):
    (tmp_path / "a").write_bytes(b"content")
    with open_regular(tmp_path / "a") as stream:
        assert stream.read() == b"content"
    (tmp_path / "link").symlink_to(tmp_path / "a")
    with open_regular(tmp_path / "link") as stream:
        assert stream.read() == b"content"
    with pytest.raises(IsADirectoryError):
        open_regular(tmp_path)
    with pytest.raises(FileNotFoundError):
        open_regular(tmp_path / "none")
    message = "it is no regular file. Pipes, sockets and devices may block"
    for path in ("/dev/zero", "/dev/null"):
        if os.path.exists(path):
            with pytest.raises(ReadError, match=f"{path}: {message}"):
                open_regular(path)
            with pytest.raises(ReadError, match=f"{path}: {message}"):
                check_regular(path, os.stat(path).st_mode)
            with pytest.raises(ReadError, match=f"{path}: {message}"):
                read(path)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no named pipes here")
@pytest.mark.parametrize("name", ["c.png", "c.tif", "c.mp4", "c.npy", "c.h5", "c.mat"])
def test_a_pipe_does_not_block(tmp_path, name):
    os.mkfifo(tmp_path / name)
    message = f"{name}: it is no regular file. Pipes"
    with pytest.raises(ReadError, match=message):
        read(tmp_path / name)
    if name in ("c.png", "c.tif", "c.mp4"):
        with pytest.raises(ReadError, match=message):
            read(tmp_path)


def test_a_read_takes_no_more_memory_than_the_file_has(tmp_path):
    content = bytes(range(256)) * 8
    (tmp_path / "a").write_bytes(content)
    with open_regular(tmp_path / "a") as stream:
        tracemalloc.start()
        try:
            stream.seek(1024)
            assert stream.read(2**31) == content[1024:]
            assert stream.read(2**31) == b""
            stream.seek(9999)
            assert stream.read(2**31) == b""
            _, peak = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
        assert peak < 2**20
        stream.seek(0)
        assert [stream.read(3), stream.read(0), stream.read(None)] == [b"\0\1\2", b"", content[3:]]


def test_a_chunk_of_an_image_that_claims_gigabytes(tmp_path):
    image = pytest.importorskip("PIL.Image", reason="pillow is not installed")
    image.fromarray(np.arange(72, dtype=np.uint8).reshape(8, 9)).save(tmp_path / "a.png")
    valid = (tmp_path / "a.png").read_bytes()
    # Pillow asks for what is left of a chunk once it has all pixels.
    length = valid.index(b"IDAT") - 4
    (tmp_path / "a.png").write_bytes(valid[:length] + b"\xff" + valid[length + 1 :])
    tracemalloc.start()
    try:
        with suppress(ReadError):
            read(tmp_path, max_bytes=2**24)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 2**24 + 2**26


def test_a_refusal_gets_the_name_of_the_file(tmp_path):
    """Parsers need not know which file they read: whoever opens it adds its name."""
    refusal = Refusal("it is odd", "Get it again")
    assert str(refusal) == "it is odd. Get it again."
    message = r"^Cannot read .*a: it is odd\. Get it again\.$"
    with pytest.raises(ReadError, match=message) as caught, reading(tmp_path / "a"):
        raise refusal
    assert caught.value.__cause__ is refusal


def test_what_fits_is_taken():
    check_fits("all", 10, 10)
    with pytest.raises(ReadError, match=r"all would take 11 bytes .* max_bytes=10\. If you"):
        check_fits("all", 11, 10)
    with pytest.raises(ReadError, match=r"it could take 3 bytes .* max_bytes=2\. Cut it\."):
        check_fits("it", 3, 2, "Cut it", verb="could take")


@pytest.mark.parametrize("pack", [bytes, gzip.compress])
def test_gzipped_files_are_unpacked_on_the_way(tmp_path, pack):
    (tmp_path / "a").write_bytes(pack(b"content"))
    with open_unpacked(tmp_path / "a") as stream:
        assert stream.read() == b"content"
