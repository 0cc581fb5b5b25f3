import os
import random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tuckermix.datasets import ReadError, read


@pytest.mark.parametrize("kind", ["npy", "npz"])
def test_the_first_bytes_tell_where_the_name_does_not(tmp_path, kind):
    X = np.random.default_rng(0).random((4, 3))
    with open(tmp_path / "data", "wb") as stream:
        (np.save if kind == "npy" else np.savez)(stream, X)
    assert np.array_equal(read(tmp_path / "data").X, X)
    assert np.array_equal(read(str(tmp_path / "data")).X, X)


def test_refused(tmp_path):
    with pytest.raises(
        ReadError, match=r"Cannot read .*none.npz: it does not exist. Check the path"
    ):
        read(tmp_path / "none.npz")
    with pytest.raises(ReadError, match=r"the folder holds no images or videos, no scans"):
        read(tmp_path)
    (tmp_path / "empty.npy").touch()
    with pytest.raises(ReadError, match=r"empty.npy: it is empty. Get the file again"):
        read(tmp_path / "empty.npy")
    (tmp_path / "a.doc").write_text("some text that is long enough")
    with pytest.raises(ReadError, match=r"a.doc: its kind is not known. Name one of these: .npy"):
        read(tmp_path / "a.doc")
    (tmp_path / "a.png").write_bytes(b"x")
    with pytest.raises(ReadError, match=r"a.png: it holds one image, .* Name the folder"):
        read(tmp_path / "a.png")
    for options in ({"key": "x"}, {"sample_axis": 1}, {"chunks": 3}, {"lazy": True}):
        with pytest.raises(ReadError, match=f"{next(iter(options))} cannot be applied to a folder"):
            read(tmp_path, **options)


@pytest.mark.skipif(os.name != "posix", reason="special files as on POSIX systems")
def test_special_files_are_not_opened(tmp_path):
    os.mkfifo(tmp_path / "pipe.npy")  # opening it would wait for ever
    with pytest.raises(ReadError, match=r"pipe.npy: it is no regular file. Pipes"):
        read(tmp_path / "pipe.npy")


def samples_of_every_kind(folder):
    """Write one small valid dataset of every kind; return what to read and which file to spoil."""
    import gzip
    import struct

    import scipy.io

    rng = np.random.default_rng(0)
    X, y = rng.integers(0, 256, (6, 5, 4), dtype=np.uint8), np.arange(6) % 2
    np.save(folder / "a.npy", X)
    np.savez(folder / "plain.npz", images=X, labels=y)
    np.savez_compressed(folder / "packed.npz", images=X, labels=y)
    scipy.io.savemat(folder / "five.mat", {"fea": X.reshape(6, 20), "gnd": y})
    scipy.io.savemat(folder / "seven.mat", {"fea": X.reshape(6, 20), "gnd": y}, do_compression=True)
    idx = struct.pack(">HBB3I", 0, 8, 3, *X.shape) + X.tobytes()
    (folder / "a-images-idx3-ubyte").write_bytes(idx)
    (folder / "b-images-idx3-ubyte.gz").write_bytes(gzip.compress(idx, mtime=0))
    tifffile = pytest.importorskip("tifffile", reason="tifffile is not installed")
    tifffile.imwrite(folder / "a.tif", X, photometric="minisblack")
    h5py = pytest.importorskip("h5py", reason="h5py is not installed")
    with h5py.File(folder / "a.h5", "w") as file:
        file.create_dataset("images", data=X, chunks=(2, 5, 4), compression="gzip")
    av = pytest.importorskip("av", reason="av is not installed")
    with av.open(str(folder / "a.avi"), "w") as container:
        stream = container.add_stream("ffv1", rate=25)
        stream.height, stream.width, stream.pix_fmt = 5, 4, "gray"
        for image in X:
            container.mux(stream.encode(av.VideoFrame.from_ndarray(image, format="gray")))
        container.mux(stream.encode())
    files = [(path, path) for path in sorted(folder.iterdir())]
    image_module = pytest.importorskip("PIL.Image", reason="pillow is not installed")
    for suffix in ("png", "jpg", "bmp", "pgm"):
        (folder / suffix).mkdir()
        image_module.fromarray(X[0]).save(folder / suffix / f"a.{suffix}")
        files.append((folder / suffix, folder / suffix / f"a.{suffix}"))
    zarr = pytest.importorskip("zarr", reason="zarr is not installed")
    zarr.create_array(folder / "a.zarr", data=X, chunks=(6, 5, 4))
    files += [(folder / "a.zarr", folder / "a.zarr" / name) for name in ("zarr.json", "c/0/0/0")]
    return files


def try_to_read(path):
    """Return the dataset or the error; any other exception is a failure of the test."""
    try:
        return read(path, max_bytes=10_000_000)
    except ReadError as error:
        return error


@pytest.mark.slow  # `tests/fuzz` has a short run of the same for every reader
@pytest.mark.parametrize("seed", range(1))
def test_spoilt_files_are_read_or_refused_and_nothing_else(tmp_path, seed):
    """Truncate files and turn over bytes: the answer is a dataset or a `ReadError`."""
    rng = random.Random(seed)
    outcomes = {}
    for target, path in samples_of_every_kind(tmp_path):
        whole = path.read_bytes()
        assert read(target).n_samples > 0
        refused = 0
        for trial in range(8):
            content = bytearray(whole)
            if trial % 4 == 0:
                del content[rng.randrange(len(content)) :]
            elif trial % 4 == 1:
                content[rng.randrange(len(content))] = rng.choice([0, 1, 0x7F, 0x80, 0xFF])
            else:
                # The first bytes are the headers, where most can go wrong.
                for _ in range(rng.randint(1, 8)):
                    content[rng.randrange(min(len(content), 200))] ^= 1 << rng.randrange(8)
            path.write_bytes(content)
            outcome = try_to_read(target)
            refused += isinstance(outcome, ReadError)
            assert target.name in str(outcome)
        outcomes[path.name] = refused
        path.write_bytes(whole)
    assert sum(outcomes.values()) > len(outcomes), outcomes


STARTS = {
    ".npy": [b"\x93NUMPY\x01\x00v\x00{'descr': '<f8', 'fortran_order': False, 'shape': ("],
    ".npz": [b"PK\x03\x04\x14\x00\x00\x00\x08\x00"],
    ".mat": [b"MATLAB 5.0 MAT-file".ljust(124) + b"\x00\x01IM", b"MATLAB 7.3 MAT-file"],
    ".h5": [b"\x89HDF\r\n\x1a\n"],
    ".tif": [b"II*\x00\x08\x00\x00\x00", b"MM\x00*\x00\x00\x00\x08"],
    ".avi": [b"RIFF\xff\x00\x00\x00AVI LIST", b"#EXTM3U\n", b"ffconcat version 1.0\n"],
    "-idx3-ubyte": [b"\x00\x00\x08\x03"],
    "-idx3-ubyte.gz": [b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\x03"],
    "": [b""],
}


@settings(max_examples=20, deadline=None)
@given(
    kind=st.sampled_from([(suffix, head) for suffix in STARTS for head in STARTS[suffix]]),
    with_head=st.booleans(),
    content=st.binary(min_size=1, max_size=300),
)
def test_invented_files_are_read_or_refused_and_nothing_else(
    tmp_path_factory, kind, with_head, content
):
    suffix, head = kind
    path = tmp_path_factory.mktemp("invented") / f"file{suffix}"
    path.write_bytes(head + content if with_head else content)
    assert path.name in str(try_to_read(path))
