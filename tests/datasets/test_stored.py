import pickle
import sys
import zlib
from dataclasses import replace

import numpy as np
import pytest

from tuckermix._sandbox import LIMITS
from tuckermix.datasets import ReadError, read

h5py = pytest.importorskip("h5py", reason="h5py is not installed")


@pytest.fixture
def stored(tmp_path):
    X = np.random.default_rng(0).integers(0, 99, (11, 4, 3)).astype(">i4")
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file.create_dataset("part/images", data=X, chunks=(2, 4, 3), compression="gzip")
        file.create_dataset("part/labels", data=[f"class {i % 3}" for i in range(11)])
        file.create_dataset("other/weights", data=np.zeros(5))
    return tmp_path / "a.h5", X


def test_arrays_in_groups(stored):
    path, X = stored
    data = read(path, key="part/images")
    assert np.array_equal(data.X, X)
    assert data.X.dtype.isnative
    assert data.labels.tolist() == [i % 3 for i in range(11)]
    assert data.class_names == ["class 0", "class 1", "class 2"]
    assert np.array_equal(read(path).X, X)


def test_out_of_core(stored):
    da = pytest.importorskip("dask.array", reason="Dask is not installed")
    path, X = stored
    for options in ({"lazy": True}, {"chunks": 5}, {"lazy": "auto", "max_bytes": 400}):
        lazy = read(path, **options).X
        assert isinstance(lazy, da.Array)
        assert lazy.dtype.isnative
        assert np.array_equal(lazy.compute(scheduler="synchronous"), X)
    assert read(path, chunks=5).X.chunks == ((5, 5, 1), (4,), (3,))
    assert not isinstance(read(path, lazy="auto").X, da.Array)


def test_values_in_other_files_are_not_read(tmp_path):
    (tmp_path / "secret").write_bytes(b"x" * 64)
    with h5py.File(tmp_path / "b.h5", "w") as file:
        file.create_dataset("X", data=np.ones((4, 4)))
    with h5py.File(tmp_path / "a.h5", "w") as file:
        outside = [(str(tmp_path / "secret"), 0, 64)]
        file.create_dataset("raw", (8, 8), dtype="u1", external=outside)
        layout = h5py.VirtualLayout(shape=(4, 4), dtype="f8")
        layout[:] = h5py.VirtualSource(str(tmp_path / "b.h5"), "X", shape=(4, 4))
        file.create_virtual_dataset("virtual", layout)
        file["link"] = h5py.ExternalLink(str(tmp_path / "b.h5"), "X")
    for name in ("raw", "virtual"):
        for lazy in (False, True):
            with pytest.raises(ReadError, match=f"values of '/{name}' lie in other files. Copy"):
                read(tmp_path / "a.h5", key=name, lazy=lazy)
    with pytest.raises(ReadError, match="holds no array named 'link'"):
        read(tmp_path / "a.h5", key="link")


def test_a_declared_size_without_content(tmp_path):
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file.create_dataset("X", (10**6, 10**6), dtype="f8", chunks=(100, 100))
    with pytest.raises(ReadError, match=r"would take 8000000000000 bytes .* pass lazy=True"):
        read(tmp_path / "a.h5")


def test_truncated_and_foreign(stored):
    path, _ = stored
    whole = path.read_bytes()
    for content in (whole[: len(whole) // 2], b"no HDF5 at all"):
        path.write_bytes(content)
        with pytest.raises(ReadError, match=r"a\.h5: it is damaged or not what its name says"):
            read(path)


def plant(path, chunk, **options):
    """Store one chunk of bytes as they are under an array of ten by eight doubles."""
    with h5py.File(path, "w") as file:
        item = file.create_dataset("X", (10, 8), "f8", chunks=(10, 8), **options)
        item.id.write_direct_chunk((0, 0), chunk)


LIMIT = 64 * 2**20


@pytest.mark.skipif(sys.platform != "linux", reason="memory is limited on Linux only")
def test_a_chunk_that_unpacks_to_more_is_refused(tmp_path):
    X = np.arange(80.0).reshape(10, 8)
    plant(tmp_path / "a.h5", zlib.compress(X.tobytes()), compression="gzip")
    assert np.array_equal(read(tmp_path / "a.h5").X, X)
    plant(tmp_path / "a.h5", zlib.compress(bytes(2**27)), compression="gzip")
    with pytest.raises(ReadError, match=r"a\.h5: "):
        read(tmp_path / "a.h5", max_bytes=LIMIT)


def test_damage_and_plugins_are_refused(tmp_path):
    with h5py.File(tmp_path / "a.h5", "w") as file:
        item = file.create_dataset("X", data=np.ones((4, 4)), chunks=(4, 4), fletcher32=True)
        _, content = item.id.read_direct_chunk((0, 0))
        item.id.write_direct_chunk((0, 0), content[:3] + b"!" + content[4:])
    with pytest.raises(ReadError, match="damaged"):
        read(tmp_path / "a.h5")
    with h5py.File(tmp_path / "b.h5", "w") as file:
        plist = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
        plist.set_chunk((10, 8))
        plist.set_filter(32015, h5py.h5z.FLAG_OPTIONAL, ())
        space = h5py.h5s.create_simple((10, 8))
        h5py.h5d.create(file.id, b"X", h5py.h5t.IEEE_F64LE, space, plist)
    with pytest.raises(ReadError, match=r"'/X' is packed with the filter number 32015, which"):
        read(tmp_path / "b.h5")


def test_a_chunk_beyond_the_limit_is_refused_unread(tmp_path):
    pytest.importorskip("dask", reason="Dask is not installed")
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file.create_dataset("X", (10, 8), "f8", chunks=(2**25, 8), maxshape=(None, 8))
    for lazy in (False, True):
        with pytest.raises(ReadError, match=r"one chunk of '/X' .* would take 2147483648 bytes"):
            read(tmp_path / "a.h5", max_bytes=LIMIT, lazy=lazy)


@pytest.mark.parametrize(
    ("dtype", "length"), [("<i2", 8), (">f4", 9), ("f8", 8), ("?", 9), ("u1", 8), ("f2", 9)]
)
def test_chunks_are_unpacked_as_the_library_does(tmp_path, dtype, length):
    X = np.random.default_rng(0).integers(0, 2, (30, 7, length)).astype(dtype)
    settings = [
        {},
        {"compression": "gzip"},
        {"compression": "gzip", "shuffle": True, "fletcher32": True},
        {"fletcher32": True},
        {"compression": "lzf", "fletcher32": True},
    ]
    for options in settings:
        with h5py.File(tmp_path / "a.h5", "w") as file:
            file.create_dataset("X", data=X, chunks=(4, 3, 5), **options)
        found = read(tmp_path / "a.h5").X
        assert np.array_equal(found, X)
        assert found.dtype == np.dtype(dtype).newbyteorder("=")


def test_chunks_that_are_not_stored(tmp_path):
    with h5py.File(tmp_path / "a.h5", "w") as file:
        X = file.create_dataset("X", (10**4, 8), "f4", chunks=(1, 1), fillvalue=7)
        X[3] = np.arange(8)
    values = read(tmp_path / "a.h5").X  # 80,000 chunks, of which eight are there
    assert np.array_equal(values[3], np.arange(8))
    assert (np.delete(values, 3, axis=0) == 7).all()


def test_numbers_of_odd_width_are_converted(tmp_path):
    X = np.arange(24).reshape(6, 4)
    with h5py.File(tmp_path / "a.h5", "w") as file:
        kind = h5py.h5t.STD_I32LE.copy()
        kind.set_precision(24)
        plist = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
        plist.set_chunk((4, 4))
        plist.set_deflate(4)
        space = h5py.h5s.create_simple((6, 4))
        item = h5py.h5d.create(file.id, b"X", kind, space, plist)
        item.write(h5py.h5s.ALL, h5py.h5s.ALL, X.astype("<i4"))
    assert np.array_equal(read(tmp_path / "a.h5").X, X)


def test_long_strings_count_with_their_length(tmp_path):
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file.create_dataset("X", data=np.ones((10, 8)))
        file.create_dataset("labels", (10,), "S200000000", chunks=(1,))
    with pytest.raises(ReadError, match=r"'labels' .* would take 8000000000 bytes in memory"):
        read(tmp_path / "a.h5", max_bytes=LIMIT)


@pytest.mark.parametrize("chunks", [None, (4,)])
def test_strings_of_any_length(tmp_path, chunks):
    names = ["apple", "päär", "fig"] * 4
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file.create_dataset("X", data=np.ones((12, 2)))
        file.create_dataset("labels", data=names, dtype=h5py.string_dtype(), chunks=chunks)
        file.create_dataset("table", data=np.array(names, object).reshape(6, 2))
    for limit in (LIMIT, 10**4):  # in one go, and a few at a time
        data = read(tmp_path / "a.h5", max_bytes=limit)
        assert data.class_names == ["apple", "fig", "päär"]
        assert data.labels.tolist() == [0, 2, 1] * 4
    with pytest.raises(ReadError, match=r"the labels 'table' have shape \(6, 2\)"):
        read(tmp_path / "a.h5", label_key="table")
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file.create_dataset("X", data=np.ones((12, 2)))
        file.create_dataset("labels", data=[*names[1:], 9000 * "x"], dtype=h5py.string_dtype())
    with pytest.raises(ReadError, match=r"the 12 strings of '/labels', one of 9000 characters"):
        read(tmp_path / "a.h5", max_bytes=10**5)


def names_in(path, chunks=None):
    with h5py.File(path, "w") as file:
        file.create_dataset("X", data=np.ones((12, 2)))
        names = ["apple", "pear", "fig"] * 4
        file.create_dataset("labels", data=names, dtype=h5py.string_dtype(), chunks=chunks)
    return bytearray(path.read_bytes())


@pytest.mark.parametrize("chunks", [None, (4,)])
def test_a_heap_without_end_is_refused(tmp_path, monkeypatch, chunks):
    """An empty object in the heap of strings: libhdf5 goes round it for ever."""
    content = names_in(tmp_path / "a.h5", chunks)
    start = content.index(b"pear\0")
    content[start - 16 : start] = bytes(16)
    (tmp_path / "a.h5").write_bytes(content)
    with monkeypatch.context() as patch:
        patch.setattr("tuckermix._sandbox.LIMITS", replace(LIMITS, seconds=1.0))
        with pytest.raises(ReadError, match=r"a\.h5: its parser finds no end .* Get the file"):
            read(tmp_path / "a.h5")
    assert read(tmp_path / "a.h5", label_key=False).X.shape == (12, 2)


@pytest.mark.skipif(sys.platform != "linux", reason="memory is limited on Linux only")
def test_a_string_that_claims_a_gigabyte_is_refused(tmp_path):
    content = names_in(tmp_path / "a.h5")
    heap = content.index(b"GCOL")
    reference = content.index(heap.to_bytes(8, "little") + (1).to_bytes(4, "little"))
    content[reference - 4 : reference] = (2**30).to_bytes(4, "little")
    (tmp_path / "a.h5").write_bytes(content)
    with pytest.raises(ReadError, match=r"a\.h5: its parser needs more memory .*raise max_bytes"):
        read(tmp_path / "a.h5", max_bytes=LIMIT)


@pytest.mark.parametrize("userblock", [0, 4096])
def test_values_in_one_piece_and_behind_a_block_of_the_user(tmp_path, userblock):
    pytest.importorskip("dask", reason="Dask is not installed")
    X = np.random.default_rng(0).random((7, 5, 3))
    with h5py.File(tmp_path / "a.h5", "w", userblock_size=userblock) as file:
        file.create_dataset("plain", data=X)
        file.create_dataset("packed", data=X, chunks=(2, 5, 2), compression="gzip")
        file.create_dataset("empty", (4, 3), "f4", fillvalue=2)
        plist = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
        plist.set_layout(h5py.h5d.COMPACT)
        space = h5py.h5s.create_simple(X.shape)
        item = h5py.h5d.create(file.id, b"inside", h5py.h5t.IEEE_F64LE, space, plist)
        item.write(h5py.h5s.ALL, h5py.h5s.ALL, X)
    for name, expected in (
        *(("plain", X), ("packed", X), ("inside", X)),
        ("empty", np.full((4, 3), 2, "f4")),
    ):
        assert np.array_equal(read(tmp_path / "a.h5", key=name).X, expected)
        for axis in range(expected.ndim if userblock == 0 else 1):
            lazy = read(tmp_path / "a.h5", key=name, chunks=2, sample_axis=axis).X
            moved = np.moveaxis(expected, axis, 0)
            assert np.array_equal(lazy.compute(scheduler="synchronous"), moved)


def test_values_beyond_the_end_of_the_file(tmp_path):
    for chunks in (None, (10, 8)):
        with h5py.File(tmp_path / "a.h5", "w") as file:
            item = file.create_dataset("X", data=np.ones((10, 8)), chunks=chunks)
            found = item.id.get_offset() if chunks is None else None
            found = found or item.id.get_chunk_info(0).byte_offset
        content = (tmp_path / "a.h5").read_bytes()
        for wrong in (len(content) - 8, 2**40, 2**63 - 1):
            moved = content.replace(found.to_bytes(8, "little"), wrong.to_bytes(8, "little"))
            assert moved != content
            (tmp_path / "a.h5").write_bytes(moved)
            with pytest.raises(ReadError, match=r"the file|damaged"):
                read(tmp_path / "a.h5")


def test_a_file_that_changes_between_pieces(tmp_path):
    pytest.importorskip("dask", reason="Dask is not installed")
    for chunks in (None, (2, 8)):
        X = np.random.default_rng(0).random((10, 8))
        for attempt in (X, np.ones((11, 8))):
            with h5py.File(tmp_path / "a.h5", "w") as file:
                file.create_dataset("X", data=attempt, chunks=chunks)
            if attempt is X:
                lazy = read(tmp_path / "a.h5", chunks=4).X
                assert np.array_equal(lazy.compute(scheduler="synchronous"), X)
        with pytest.raises(ReadError, match=r"it was changed after it was opened\. Read it again"):
            lazy.compute(scheduler="synchronous")


def test_lazy_arrays_travel_between_processes(stored):
    pytest.importorskip("dask", reason="Dask is not installed")
    path, X = stored
    lazy = pickle.loads(pickle.dumps(read(path, chunks=3).X))
    assert np.array_equal(lazy.compute(scheduler="synchronous"), X)
