import numpy as np
import pytest
from tests.cases import each

from tuckermix.datasets import ReadError, read

pa = pytest.importorskip("pyarrow", reason="pyarrow is not installed")
parquet = pytest.importorskip("pyarrow.parquet", reason="pyarrow is not installed")


@pytest.fixture
def save(tmp_path):
    def write(**columns):
        parquet.write_table(pa.table(columns), tmp_path / "t.parquet")
        return tmp_path / "t.parquet"

    return write


def test_a_column_of_lists(save):
    X = np.random.default_rng(0).integers(0, 256, (5, 6), dtype=np.uint8)
    kinds = pa.array(["cat", "dog", "cat", "dog", "dog"]).dictionary_encode()
    path = save(label=kinds, image=pa.array(X.tolist(), pa.list_(pa.uint8())), age=range(5))
    data = read(path, sample_shape=(2, 3))
    assert np.array_equal(data.X, X.reshape(5, 2, 3))
    assert data.X.dtype == np.uint8
    assert [data.class_names[label] for label in data.labels] == ["cat", "dog", "cat", "dog", "dog"]


def test_lists_of_lists_have_their_shape(save):
    X = np.random.default_rng(0).random((5, 3, 4))
    data = read(save(X=X.tolist(), name=list("abcde"), y=[3, 1, 2, 3, 1]))
    assert np.array_equal(data.X, X)
    assert data.names == list("abcde")
    assert data.labels.tolist() == [3, 1, 2, 3, 1]


def test_a_column_for_each_pixel(save):
    X = np.random.default_rng(0).random((5, 3)).astype(np.float32)
    data = read(save(**dict(zip("abc", X.T, strict=True)), label=["u", "v", "u", "v", "v"]))
    np.testing.assert_array_equal(data.X, X)
    assert data.class_names == ["u", "v"]


@pytest.mark.parametrize("kind", [np.uint8, np.float32, np.float64])
def test_tables_of_all_forms_give_the_same(save, tmp_path, kind):
    X = (100 * np.random.default_rng(0).random((20, 3)) * [1, 2, 0.01]).astype(kind)
    path = save(**dict(zip("abc", X.T, strict=True)))
    flat = read(path)
    nested = read(save(image=list(X)))
    lines = [",".join(str(float(value)) for value in row) for row in X]
    (tmp_path / "t.csv").write_text("\n".join(["a,b,c", *lines]))
    text = read(tmp_path / "t.csv")
    for other in (flat, nested):
        assert np.array_equal(text.X, other.X)
        assert (text.X.dtype, text.extra) == (other.X.dtype, other.extra)


def test_dates_and_texts_are_refused_by_name(save):
    day = pa.array([0, 1], pa.timestamp("s"))
    path = save(a=[1.0, 2.0], day=day, city=["Rome", "Oslo"])
    with pytest.raises(ReadError, match=r"'day' \(dates\), 'city' \(texts\)\. .* drop='day,city'"):
        read(path)
    assert read(path, drop="day,city").X.tolist() == [[1], [2]]


def test_a_column_of_paths(save, tmp_path):
    X = np.random.default_rng(0).random((4, 3, 2))
    for index, sample in enumerate(X):
        np.save(tmp_path / f"{index}.npy", sample)
    names = ["2.npy", "0.npy", "3.npy"]
    path = save(path=names, label=[5, 6, 5], age=[1.0, 2.0, 3.0])
    for options in ({}, {"key": "path"}):
        data = read(path, **options)
        assert np.array_equal(data.X, X[[2, 0, 3]])
        assert (data.names, data.labels.tolist()) == (names, [5, 6, 5])
    with pytest.raises(ReadError, match="does not lie in the folder of the table"):
        read(save(path=["../2.npy"]))


@each(
    "columns, options, message",
    [
        ({"a": [[1, 2], [3]]}, {}, "the lists of the column 'a' have different lengths"),
        ({"a": [[1, None], [3, 4]], "y": [1, 2]}, {"key": "b"}, "it has no column 'b'"),
        ({"u": [[1]], "v": [[2]]}, {}, "not clear which of its columns .* one of these: u, v"),
        ({"a": ["x", "y"]}, {}, "neither a column of paths nor one of numbers"),
        ({"a": pa.array([], pa.float64())}, {}, "it has no rows"),
        ({"a": [b"x"], "b": [1.0]}, {"label_key": "a"}, "'a' holds neither numbers nor texts"),
        ({"a": pa.array([True, None])}, {}, "the column 'a' has gaps"),
        ({"a": list(range(1000))}, {"max_bytes": 3000}, "bytes in memory, and the limit is"),
    ],
)
def test_tables_refused(save, columns, options, message):
    with pytest.raises(ReadError, match=message):
        read(save(**columns), **options)


def test_more_numbers_than_the_limit(save):
    path = save(a=pa.array([7] * 4000), b=pa.array([7] * 4000))
    with pytest.raises(ReadError, match="2 numbers in 4000 rows would take 64000 bytes"):
        read(path, max_bytes=20_000)


def test_a_file_that_is_none(tmp_path):
    (tmp_path / "t.parquet").write_bytes(b"PAR1 is not enough")
    with pytest.raises(ReadError, match=r"Cannot read .*t.parquet: it is damaged"):
        read(tmp_path / "t.parquet")
