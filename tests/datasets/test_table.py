import tracemalloc

import numpy as np
import pytest

from tuckermix.datasets import ReadError, read

Image = pytest.importorskip("PIL.Image", reason="pillow is not installed")


def pictures(folder, count=4):
    X = np.random.default_rng(0).integers(0, 256, (count, 6, 5), dtype=np.uint8)
    folder.mkdir(parents=True, exist_ok=True)
    for index, picture in enumerate(X):
        Image.fromarray(picture).save(folder / f"{index}.png")
    return X


@pytest.mark.parametrize("sign", [",", ";", "\t"])
def test_a_column_of_paths(tmp_path, sign):
    X = pictures(tmp_path / "images")
    rows = [f"{kind}{sign}images/{index}.png{sign}{index / 2}" for index, kind in
            ((2, "cat"), (0, "dog"), (3, "cat"))]  # fmt: skip
    (tmp_path / "t.csv").write_text("\n".join([sign.join(("class", "path", "age")), *rows]))
    data = read(tmp_path / "t.csv")
    assert np.array_equal(data.X, X[[2, 0, 3]])
    assert data.names == ["images/2.png", "images/0.png", "images/3.png"]
    assert [data.class_names[label] for label in data.labels] == ["cat", "dog", "cat"]
    assert read(tmp_path / "t.csv", label_key=False).labels is None
    assert read(tmp_path / "t.csv", size=3).X.shape == (3, 3, 3)


def test_files_that_are_skipped_take_their_classes_along(tmp_path):
    X = pictures(tmp_path)
    (tmp_path / "1.png").write_bytes(b"text")
    rows = [f"{index}.png,{10 + index}" for index in range(4)]
    (tmp_path / "t.csv").write_text("\n".join(["name,y", *rows]))
    data = read(tmp_path / "t.csv", on_error="skip")
    assert np.array_equal(data.X, X[[0, 2, 3]])
    assert data.labels.tolist() == [10, 12, 13]
    assert [name for name, _ in data.extra["skipped"]] == ["1.png"]


@pytest.mark.parametrize("where", ["../secret.png", "/etc/passwd", "a/../../b.png", "", "."])
def test_paths_do_not_leave_the_folder_of_the_table(tmp_path, where):
    pictures(tmp_path / "inner")
    Image.fromarray(np.zeros((6, 5), np.uint8)).save(tmp_path / "secret.png")
    (tmp_path / "inner" / "t.csv").write_text(f"path,x\n0.png,a\n{where},a\n")
    with pytest.raises(ReadError, match="does not lie in the folder of the table"):
        read(tmp_path / "inner" / "t.csv", on_error="skip")


def test_whole_paths_below_the_table_are_its_own(tmp_path):
    X = pictures(tmp_path / "images")
    rows = [str(tmp_path / "images" / f"{index}.png") for index in range(4)]
    (tmp_path / "t.csv").write_text("\n".join(["path,x", *(f"{row},a" for row in rows)]))
    assert np.array_equal(read(tmp_path / "t.csv").X, X)


@pytest.mark.parametrize("kind", [np.uint8, np.float64])
def test_a_column_for_each_pixel(tmp_path, kind):
    rng = np.random.default_rng(0)
    X = rng.integers(0, 256, (7, 6)).astype(kind) + (0.5 if kind is np.float64 else 0)
    y = rng.integers(0, 3, 7)
    lines = [",".join(map(str, [label, *row.tolist()])) for label, row in zip(y, X, strict=True)]
    (tmp_path / "t.csv").write_text("\n".join(["label," + ",".join("abcdef"), *lines]))
    data = read(tmp_path / "t.csv", sample_shape=(2, 3))
    assert np.array_equal(data.X, X.reshape(7, 2, 3))
    assert data.X.dtype == kind
    assert data.labels.tolist() == y.tolist()
    assert data.names is None


def test_names_beside_pixels(tmp_path):
    (tmp_path / "t.csv").write_text("name,a,b\nfirst,1,2\nsecond,3,4\n")
    data = read(tmp_path / "t.csv")
    assert data.names == ["first", "second"]
    assert data.X.tolist() == [[1, 2], [3, 4]]


@pytest.mark.parametrize(
    ("text", "options", "message"),
    [
        ("\n", {}, "it is empty"),
        ("a,a\n1,2\n", {}, "two of its columns have one name"),
        ("a,b\n", {}, "it has a heading and no rows"),
        ("a,b\n1\n", {}, "row 2 has 1 cells, and the first has 2"),
        (
            "a,b\n1,2\n1,x\n",
            {},
            "row 3 holds a text in the column 'b', where .* leave the column out with drop='b'",
        ),
        ("a,b\nx,y\n", {}, "neither a column of paths nor one of numbers"),
        ("a,b\n1,2\n", {"key": "c"}, "it has no column 'c'. Set key to one of these: a, b"),
        ("a,b\n1,2\n", {"label_key": "c"}, "it has no column 'c'. Set label_key to one of"),
        ("a,b\n1,2\n", {"sample_shape": 3}, r"a row has 2 numbers and sample_shape=\(3,\) has 3"),
        ("a,b\n1,2\n", {"size": 3}, "size cannot be applied to a table of numbers"),
        ("path,b\nx.png,1\nx.png,2\n", {"key": "path"}, "it names 'x.png' twice"),
        ("path,b\nx.txt,1\n", {"key": "path"}, "files like 'x.txt' hold no samples"),
        ("path,b\nx.png,1\ny.npy,2\n", {"key": "path"}, "it holds images, like 'x.png', and arr"),
        ("path,b\nx.png,1\n", {"key": "path"}, "it does not exist"),
        ("a,b\n1,2\n", {"drop": "c"}, "it has no column 'c'. Set drop to one of these: a, b"),
        (
            "a,city,day\n1,Rome,2020-02-01\n2,Oslo,2020-02-03\n",
            {},
            r"'city' \(texts such as 'Rome'\), 'day' \(dates such .* drop='city,day', ",
        ),
        ("a,b\n" + 99 * "1,2\n", {"max_bytes": 200}, "rows take 224 bytes in memory"),
    ],
)
def test_tables_refused(tmp_path, text, options, message):
    (tmp_path / "t.csv").write_text(text)
    with pytest.raises(ReadError, match=message):
        read(tmp_path / "t.csv", **options)


def test_columns_that_are_left_out(tmp_path):
    (tmp_path / "t.csv").write_text("a,city,day,b\n1,Rome,2020-02-01,4\n2,Oslo,2020-02-03,5\n")
    for drop in ("city,day", ["day", "city"]):
        data = read(tmp_path / "t.csv", drop=drop)
        assert data.X.tolist() == [[1, 4], [2, 5]]
        assert read(tmp_path / "t.csv", **data.extra["reading"]).X.tolist() == data.X.tolist()


def test_columns_of_different_scales_are_standardised(tmp_path):
    X = np.random.default_rng(0).normal(size=(30, 3)) * [1, 100, 5] + [0, 9, 3]
    lines = [",".join(map(repr, map(float, row))) for row in X]
    (tmp_path / "t.csv").write_text("\n".join(["a,b,c", *lines]))
    data = read(tmp_path / "t.csv")
    np.testing.assert_allclose(data.X, (X - X.mean(axis=0)) / X.std(axis=0), atol=1e-9)
    assert "each was brought to mean 0 and deviation 1. To keep" in data.extra["notes"][0]
    assert np.array_equal(read(tmp_path / "t.csv", scale="none").X, X)
    # New rows are brought to the scale of the first ones.
    (tmp_path / "new.csv").write_text("\n".join(["a,b,c", *lines[:4]]))
    new = read(tmp_path / "new.csv", **data.extra["reading"])
    assert np.array_equal(new.X, data.X[:4])
    (tmp_path / "less.csv").write_text("a,b\n1,2\n")
    with pytest.raises(ReadError, match="the scale is that of 3 columns"):
        read(tmp_path / "less.csv", **data.extra["reading"])
    plain = read(tmp_path / "t.csv", drop="b")  # one scale, up to a factor of ten
    assert np.array_equal(plain.X, X[:, [0, 2]])
    assert np.allclose(read(tmp_path / "t.csv", drop="b", scale="columns").X.std(axis=0), 1)


def test_pixels_keep_their_values_and_may_be_pictures(tmp_path):
    X = np.random.default_rng(0).integers(-256, 256, (30, 64)).clip(0)
    X[:, :8] = 0
    X[0, 0] = 1  # the border varies less
    names = ",".join(f"p{index}" for index in range(64))
    lines = [",".join(map(str, [row, *pixels])) for row, pixels in enumerate(X.tolist())]
    (tmp_path / "t.csv").write_text("\n".join([f",{names}", *lines]))  # as pandas writes it
    data = read(tmp_path / "t.csv")
    assert np.array_equal(data.X, X)
    assert data.X.dtype == np.uint8
    assert data.extra["notes"] == [
        "The column that numbers the rows was left out.",
        "64 columns may be pictures of 8 × 8. To see them so: sample_shape=(8, 8).",
    ]
    assert np.array_equal(read(tmp_path / "t.csv", sample_shape=(8, 8)).X, X.reshape(30, 8, 8))


def test_a_key_that_holds_numbers(tmp_path):
    pa = pytest.importorskip("pyarrow", reason="pyarrow is not installed")
    parquet = pytest.importorskip("pyarrow.parquet", reason="pyarrow is not installed")
    parquet.write_table(pa.table({"a": [1, 2], "b": [3, 4]}), tmp_path / "t.parquet")
    with pytest.raises(ReadError, match="the column 'a' holds numbers"):
        read(tmp_path / "t.parquet", key="a")


def test_a_folder_that_is_a_link_does_not_leave_the_folder_of_the_table(tmp_path):
    pictures(tmp_path / "outside")
    (tmp_path / "inner").mkdir()
    (tmp_path / "inner" / "images").symlink_to(tmp_path / "outside")
    (tmp_path / "inner" / "t.csv").write_text("path,x\nimages/0.png,a\n")
    with pytest.raises(ReadError, match="does not lie in the folder of the table"):
        read(tmp_path / "inner" / "t.csv")


@pytest.mark.parametrize(
    "write",
    [
        lambda stream: stream.truncate(2**30),
        lambda stream: stream.write(b",".join(b"%d" % n for n in range(2**19))),
        lambda stream: stream.write(b"a,b\n1," + b"2" * 2**24),
        lambda stream: stream.write(b"a,b\n" + b'1,"\n"' * 2**19),
        lambda stream: stream.write(b"a\n" + b"1\n" * 2**20),
    ],
    ids=["holes", "names", "long line", "endless row", "rows"],
)
def test_a_table_keeps_to_the_limit(tmp_path, write):
    with open(tmp_path / "t.csv", "wb") as stream:
        write(stream)
    limit = 2**21
    tracemalloc.start()
    try:
        with pytest.raises(ReadError, match=r"in memory, and the limit is max_bytes=2097152"):
            read(tmp_path / "t.csv", max_bytes=limit)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 4 * limit
