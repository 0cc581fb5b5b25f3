import json
import os
import pickle

import numpy as np
import pytest

from tuckermix.datasets import ReadError, read

zarr = pytest.importorskip("zarr", reason="zarr is not installed")

FORMATS = pytest.mark.parametrize("zarr_format", [2, 3])


@pytest.fixture
def X():
    return np.random.default_rng(0).random((11, 4, 3)).astype("f4")


@FORMATS
def test_one_array(tmp_path, X, zarr_format):
    path = tmp_path / "a.zarr"
    zarr.create_array(path, data=X, chunks=(2, 4, 3), zarr_format=zarr_format)
    data = read(path)
    assert np.array_equal(data.X, X)
    assert data.labels is None
    assert data.name == "a.zarr"


@FORMATS
def test_a_group(tmp_path, X, zarr_format):
    root = zarr.open_group(tmp_path / "store", mode="w", zarr_format=zarr_format)
    root.create_array("images", data=X, chunks=(2, 4, 3))
    root.create_array("labels", data=np.arange(11) % 2)
    root.create_group("more").create_array("images", data=2 * X)
    data = read(tmp_path / "store")
    assert np.array_equal(data.X, X)
    assert data.labels.tolist() == [i % 2 for i in range(11)]
    assert np.array_equal(read(tmp_path / "store", key="more/images").X, 2 * X)


@FORMATS
def test_out_of_core(tmp_path, X, zarr_format):
    da = pytest.importorskip("dask.array", reason="Dask is not installed")
    zarr.create_array(tmp_path / "a", data=X, chunks=(2, 4, 3), zarr_format=zarr_format)
    for options in ({"chunks": 5}, {"lazy": "auto", "max_bytes": 400}):
        lazy = read(tmp_path / "a", **options).X
        assert isinstance(lazy, da.Array)
        assert np.array_equal(lazy.compute(scheduler="synchronous"), X)
    sent = pickle.loads(pickle.dumps(read(tmp_path / "a", chunks=4).X))
    assert np.array_equal(sent.compute(scheduler="synchronous"), X)


def test_shards(tmp_path, X):
    zarr.create_array(tmp_path / "a", data=X, chunks=(1, 4, 3), shards=(4, 4, 3))
    assert np.array_equal(read(tmp_path / "a").X, X)


def spoil(path, change):
    """Change the metadata of a stored array."""
    metadata = json.loads(path.read_text())
    change(metadata)
    path.write_text(json.dumps(metadata))


@pytest.mark.parametrize("where", ["compressor", "filters"])
def test_a_pickle_is_never_opened(tmp_path, where):
    zarr.create_array(tmp_path / "a", data=np.ones((4, 3)), zarr_format=2)
    codec = {"id": "pickle", "protocol": 5}
    spoil(
        tmp_path / "a" / ".zarray",
        lambda metadata: metadata.update({where: codec if where == "compressor" else [codec]}),
    )
    for lazy in (False, True):
        with pytest.raises(
            ReadError, match=r"it is stored with pickle, which is not decoded here: .* blosc"
        ):
            read(tmp_path / "a", lazy=lazy)


def test_a_pickle_within_a_shard(tmp_path):
    zarr.create_array(tmp_path / "a", data=np.ones((4, 3)), chunks=(1, 3), shards=(2, 3))

    def change(metadata):
        metadata["codecs"][0]["configuration"]["codecs"].append({"name": "numcodecs.pickle"})

    spoil(tmp_path / "a" / "zarr.json", change)
    with pytest.raises(ReadError, match="stored with pickle, which is not decoded here"):
        read(tmp_path / "a")


def test_a_declared_size_without_content(tmp_path):
    zarr.create_array(tmp_path / "a", shape=(10**6, 10**6), dtype="f8", chunks=(100, 100))
    with pytest.raises(ReadError, match=r"would take 8000000000000 bytes .* pass lazy=True"):
        read(tmp_path / "a")


@FORMATS
def test_damaged(tmp_path, zarr_format):
    zarr.create_array(
        tmp_path / "a", data=np.random.default_rng(0).random((4, 3)), zarr_format=zarr_format
    )
    marker = tmp_path / "a" / {2: ".zarray", 3: "zarr.json"}[zarr_format]
    chunk = tmp_path / "a" / {2: "0.0", 3: "c/0/0"}[zarr_format]
    chunk.write_bytes(b"nothing that can be unpacked")
    with pytest.raises(ReadError, match="a: it is damaged or not what its name says"):
        read(tmp_path / "a")
    marker.write_text(marker.read_text()[:-20])
    with pytest.raises(ReadError, match="a: it is damaged or not what its name says"):
        read(tmp_path / "a")


class Payload:
    """Unpickling this leaves a file behind."""

    def __init__(self, path):
        self.path = str(path)

    def __reduce__(self):
        return open, (self.path, "w")


def hostile_labels(folder, trace):
    """Write string labels of version 2 that are packed by pickle."""
    folder.mkdir(parents=True)
    metadata = {
        "zarr_format": 2,
        "shape": [4],
        "chunks": [4],
        "dtype": "|O",
        "fill_value": "",
        "order": "C",
        "filters": [{"id": "vlen-utf8"}],
        "compressor": {"id": "pickle"},
    }
    (folder / ".zarray").write_text(json.dumps(metadata))
    (folder / "0").write_bytes(pickle.dumps(Payload(trace)))


def store_with_images(path):
    zarr.create_array(path / "a" / "images", data=np.ones((4, 3)), zarr_format=2)
    for folder in (path, path / "a"):
        (folder / ".zgroup").write_text('{"zarr_format": 2}')


def test_a_decoy_beside_a_group_hides_nothing(tmp_path):
    store_with_images(tmp_path / "s")
    hostile_labels(tmp_path / "s" / "a" / "labels", tmp_path / "trace")
    with pytest.raises(ReadError, match="'a/labels' is stored with pickle, which is not decoded"):
        read(tmp_path / "s")
    (tmp_path / "s" / "a" / "zarr.json").write_text('{"node_type": "array"}')
    with pytest.raises(ReadError, match=r"'a' has zarr.json and .zgroup, and can be one of them"):
        read(tmp_path / "s")
    assert not (tmp_path / "trace").exists()


def test_a_link_to_an_array_is_refused(tmp_path):
    store_with_images(tmp_path / "s")
    hostile_labels(tmp_path / "s" / "b" / "hidden", tmp_path / "trace")
    (tmp_path / "s" / "a" / "labels").symlink_to(tmp_path / "s" / "b" / "hidden")
    with pytest.raises(ReadError, match="'a/labels' is a link, and links may lead out"):
        read(tmp_path / "s")
    assert not (tmp_path / "trace").exists()


@FORMATS
def test_a_chunk_linked_to_another_file_is_not_read(tmp_path, zarr_format):
    pytest.importorskip("dask", reason="Dask is not installed")
    (tmp_path / "secret").write_bytes(bytes(range(96)))
    for nested in (False, True):
        path = tmp_path / f"s{nested}"
        zarr.create_array(
            path, data=np.ones((4, 3)), zarr_format=zarr_format, compressors=None,
            chunk_key_encoding={"name": "v2", "separator": "/" if nested else "."},
        )  # fmt: skip
        chunk = path / ("0/0" if nested else "0.0")
        linked = chunk.parent if nested else chunk
        chunk.unlink()
        if nested:
            chunk.parent.rmdir()
            (tmp_path / "outside").mkdir()
            (tmp_path / "outside" / "0").write_bytes(bytes(range(96)))
            linked.symlink_to(tmp_path / "outside")
        else:
            linked.symlink_to(tmp_path / "secret")
        with pytest.raises(ReadError, match=r"'0[/.]?0?' is a link, and links may lead out"):
            read(path)
        with pytest.raises(ReadError, match=r"'0[/.]?0?' is a link, and links may lead out"):
            read(path, chunks=2).X.compute(scheduler="synchronous")


LIMIT = 64 * 2**20


@FORMATS
def test_a_chunk_beyond_the_limit_is_refused_unread(tmp_path, zarr_format):
    pytest.importorskip("dask", reason="Dask is not installed")
    zarr.create_array(
        tmp_path / "a", shape=(10, 8), dtype="f8", chunks=(2**25, 8), zarr_format=zarr_format
    )
    for lazy in (False, True):
        with pytest.raises(ReadError, match=r"one chunk of .* would take 2147483648 bytes .* max"):
            read(tmp_path / "a", max_bytes=LIMIT, lazy=lazy)


@pytest.mark.parametrize("name", ["gzip", "lzma", "blosc", "zstd", "lz4"])
def test_a_chunk_that_unpacks_to_more_is_stopped(tmp_path, name):
    numcodecs = pytest.importorskip("numcodecs")
    X = np.arange(80.0).reshape(10, 8)
    codec = numcodecs.get_codec({"id": name})
    path = tmp_path / "a"
    zarr.create_array(path, data=X, chunks=(10, 8), zarr_format=2, compressors=None)
    spoil(path / ".zarray", lambda metadata: metadata.update(compressor=codec.get_config()))
    (path / "0.0").write_bytes(codec.encode(X.tobytes()))
    assert np.array_equal(read(path, max_bytes=LIMIT).X, X)
    (path / "0.0").write_bytes(codec.encode(bytes(2**27)))
    with pytest.raises(ReadError, match=r"Cannot read .*a: "):
        read(path, max_bytes=LIMIT)


@pytest.mark.parametrize(
    "filters",
    [
        [{"id": "delta", "dtype": "<i4", "astype": "<i2"}],
        [{"id": "fixedscaleoffset", "dtype": "<i4", "astype": "<i2", "scale": 1, "offset": 3}],
        [{"id": "shuffle", "elementsize": 4}],
        [{"id": "crc32"}],
    ],
    ids=str,
)
def test_filters(tmp_path, filters):
    numcodecs = pytest.importorskip("numcodecs")
    X = np.random.default_rng(0).integers(0, 99, (6, 5)).astype("<i4")
    path = tmp_path / "a"
    if filters[0]["id"] in ("crc32", "adler32"):
        codecs = {"compressors": [numcodecs.get_codec(filters[0])], "filters": None}
    else:
        codecs = {"filters": [numcodecs.get_codec(one) for one in filters]}
    zarr.create_array(path, data=X, chunks=(4, 5), zarr_format=2, order="F", **codecs)
    assert np.array_equal(read(path).X, X)


def test_transposed_and_checked(tmp_path):
    X = np.random.default_rng(0).random((6, 5, 4))
    path = tmp_path / "a"
    zarr.create_array(
        path,
        data=X,
        chunks=(4, 5, 3),
        filters=[zarr.codecs.TransposeCodec(order=(2, 0, 1))],
        serializer=zarr.codecs.BytesCodec(endian="big"),
        compressors=[zarr.codecs.ZstdCodec(), zarr.codecs.Crc32cCodec()],
    )
    assert np.array_equal(read(path).X, X)
    chunk = path / "c" / "0" / "0" / "0"
    content = bytearray(chunk.read_bytes())
    content[-1] ^= 1
    chunk.write_bytes(content)
    with pytest.raises(ReadError, match="a: it is damaged"):
        read(path)


@FORMATS
@pytest.mark.parametrize("dtype", [str, "<U7", "S7"])
@pytest.mark.filterwarnings("ignore:.*(does not have a Zarr V3|UnstableSpec)")
def test_labels_that_are_strings(tmp_path, zarr_format, dtype):
    root = zarr.open_group(tmp_path / "s", mode="w", zarr_format=zarr_format)
    root.create_array("images", data=np.ones((6, 3)))
    names = np.array(["apple" if dtype == "S7" else "äpple", "pear"] * 3)
    stored = root.create_array("labels", shape=(6,), dtype=dtype, chunks=(4,))
    stored[:] = names.astype("S7") if dtype == "S7" else names
    data = read(tmp_path / "s")
    assert data.class_names == sorted(set(names.tolist()))
    assert data.labels.tolist() == [data.class_names.index(name) for name in names]
    if dtype != "S7":  # fewer bytes than the images
        with pytest.raises(ReadError, match=r"would take \d+ bytes in memory, and the limit is"):
            read(tmp_path / "s", max_bytes=149)


def test_chunks_that_are_not_stored(tmp_path):
    zarr.create_array(
        tmp_path / "a", shape=(10**3, 8), dtype="f4", chunks=(1, 1), fill_value=float("nan")
    )
    X = zarr.open_array(tmp_path / "a", mode="r+")
    X[3] = np.arange(8)
    values = read(tmp_path / "a").X  # 8,000 chunks, of which eight are there
    assert np.array_equal(values[3], np.arange(8))
    assert np.isnan(np.delete(values, 3, axis=0)).all()


def test_chunks_without_number_are_refused(tmp_path):
    zarr.create_array(tmp_path / "a", shape=(10**5, 8), dtype="u1", chunks=(1, 1))
    with pytest.raises(ReadError, match=r"it declares 800000 chunks and stores 1\."):
        read(tmp_path / "a")


def test_a_pipe_in_a_store_is_refused(tmp_path):
    zarr.create_array(tmp_path / "a", data=np.ones((4, 3)), chunks=(4, 3), zarr_format=2)
    (tmp_path / "a" / "0.0").unlink()
    os.mkfifo(tmp_path / "a" / "0.0")
    with pytest.raises(ReadError, match=r"'0.0' is no regular file"):
        read(tmp_path / "a")
