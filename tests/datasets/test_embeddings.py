"""Embeddings from files, matched to samples by name or by order."""

import numpy as np
import pytest

from tuckermix.datasets import ReadError, read, read_embeddings

NAMES = ["cats/a.jpg", "cats/b.jpg", "dogs/c.jpg"]


@pytest.fixture
def vectors(rng):
    return rng.standard_normal((3, 5)).astype(np.float32)


@pytest.fixture
def rng():
    return np.random.default_rng(0)


def write_table(path, names, vectors, head="name"):
    rows = [",".join([head, *(f"v{i}" for i in range(vectors.shape[1]))])]
    rows += [
        ",".join([name, *(repr(float(value)) for value in row)])
        for name, row in zip(names, vectors, strict=True)
    ]
    path.write_text("\n".join(rows) + "\n")


def test_rows_in_the_order_of_the_samples(tmp_path, vectors):
    np.save(tmp_path / "e.npy", vectors)
    np.testing.assert_array_equal(read_embeddings(tmp_path / "e.npy", NAMES), vectors)
    np.testing.assert_array_equal(read_embeddings(tmp_path / "e.npy"), vectors)
    with pytest.raises(ReadError, match=r"e\.npy: it has 3 rows without names, and there are 2"):
        read_embeddings(tmp_path / "e.npy", NAMES[:2])


def test_maps_are_embeddings_too(tmp_path, rng):
    maps = rng.random((3, 4, 2, 2))
    np.savez(tmp_path / "e.npz", maps=maps)
    np.testing.assert_array_equal(read_embeddings(tmp_path / "e.npz", NAMES), maps)


@pytest.mark.parametrize(
    "written",
    [
        lambda name: name,
        lambda name: f"/elsewhere/photos/{name}",
        lambda name: name.replace("/", "\\"),
        lambda name: name.rpartition("/")[2].removesuffix(".jpg"),
        lambda name: name.replace(".jpg", ".png"),
    ],
)
@pytest.mark.parametrize("kind", ["csv", "npz", "parquet"])
def test_rows_by_name(tmp_path, vectors, kind, written):
    order = [2, 0, 1]
    names = [written(NAMES[place]) for place in order]
    path = tmp_path / f"e.{kind}"
    if kind == "csv":
        write_table(path, names, vectors[order], "file")
    elif kind == "npz":
        np.savez(path, embeddings=vectors[order], names=np.array(names))
    else:
        pa = pytest.importorskip("pyarrow", reason="pyarrow is not installed")
        import pyarrow.parquet

        columns = {"path": names, "vector": list(vectors[order])}
        pyarrow.parquet.write_table(pa.table(columns), path)
    np.testing.assert_allclose(read_embeddings(path, NAMES), vectors, rtol=1e-6)
    np.testing.assert_allclose(read_embeddings(path, NAMES[1:]), vectors[1:], rtol=1e-6)


def test_paths_that_are_there_are_not_opened(tmp_path, vectors):
    image = pytest.importorskip("PIL.Image", reason="Pillow is not installed")
    for name in ("a.png", "b.png", "c.png"):
        image.fromarray(np.zeros((8, 8), dtype=np.uint8)).save(tmp_path / name)
    write_table(tmp_path / "e.csv", ["a.png", "b.png", "c.png"], vectors, "path")
    assert read(tmp_path / "e.csv").X.shape == (3, 8, 8)
    found = read_embeddings(tmp_path / "e.csv", ["c.png", "a.png"])
    np.testing.assert_allclose(found, vectors[[2, 0]], rtol=1e-6)


def test_what_does_not_fit_is_told(tmp_path, vectors):
    write_table(tmp_path / "e.csv", NAMES, vectors)
    with pytest.raises(ReadError, match=r"no row for 1 of 2 samples, such as 'dogs/d\.jpg'"):
        read_embeddings(tmp_path / "e.csv", ["dogs/c.jpg", "dogs/d.jpg"])
    write_table(tmp_path / "twice.csv", [*NAMES[:2], NAMES[0]], vectors)
    with pytest.raises(ReadError, match="names a sample twice"):
        read_embeddings(tmp_path / "twice.csv", NAMES[:2])
    with pytest.raises(ReadError, match="does not exist"):
        read_embeddings(tmp_path / "none.npy", NAMES)
