import numpy as np
import pytest
from tests.cases import each

from tuckermix.datasets import ReadError, read


@pytest.fixture
def save(tmp_path):
    def write(**arrays):
        np.savez(tmp_path / "a.npz", **arrays)
        return tmp_path / "a.npz"

    return write


def test_labels_of_all_kinds(save):
    X = np.zeros((4, 3))
    for labels, expected in (
        ([3, 3, 9, 9], [3, 3, 9, 9]),
        ([1.0, 2.0, -1.0, 2.0], [1, 2, -1, 2]),
        ([True, False, True, True], [1, 0, 1, 1]),
        ([[1], [2], [3], [4]], [1, 2, 3, 4]),
        ([[1, 2, 3, 4]], [1, 2, 3, 4]),
        (np.array([200, 1, 2, 3], np.uint8), [200, 1, 2, 3]),
    ):
        data = read(save(X=X, labels=np.asarray(labels)))
        assert data.labels.tolist() == expected
        assert data.labels.dtype == np.int64
        assert data.class_names is None
    data = read(save(X=X, labels=np.array([b"b", b"a", b"b", b"c"])))
    assert data.labels.tolist() == [1, 0, 1, 2]
    assert data.class_names == ["a", "b", "c"]


def test_y_means_labels_beside_x_only(save):
    y = np.arange(4)
    assert read(save(X=np.zeros((4, 3)), y=y)).labels.tolist() == [0, 1, 2, 3]
    assert read(save(field=np.zeros((6, 4, 3)), y=y)).labels is None
    assert read(save(field=np.zeros((6, 4, 3)), y=y)).X.shape == (6, 4, 3)


def test_an_image_of_labels_is_not_taken_for_labels(save):
    data = read(save(cube=np.zeros((5, 4, 3)), labels=np.zeros((5, 4), int)), key="cube")
    assert data.labels is None


def test_flat_samples_get_a_shape(save):
    X = np.arange(24).reshape(4, 6)
    assert np.array_equal(read(save(X=X), sample_shape=(2, 3)).X, X.reshape(4, 2, 3))
    assert np.array_equal(read(save(X=X.reshape(4, 2, 3)), sample_shape=6).X, X)
    with pytest.raises(ReadError, match=r"a sample has 6 entries and sample_shape=\(2, 2\) has 4"):
        read(save(X=X), sample_shape=(2, 2))


def test_colours_can_be_made_grey(save):
    X = np.random.default_rng(0).random((5, 4, 4, 3))
    assert np.allclose(read(save(X=X), grey=True).X, X @ [0.299, 0.587, 0.114])


@each(
    "arrays, options, message",
    [
        ({}, {}, "it holds no arrays. Store the samples"),
        ({"X": np.zeros(4)}, {}, r"'X' \(4,\) float64 has fewer than two axes. Samples need"),
        (
            {"a": np.zeros(4), "b": np.zeros(5)},
            {},
            r"none of its arrays can hold samples \('a' \(4",
        ),
        ({"X": np.zeros((0, 4))}, {}, r"'X' \(0, 4\) float64 is empty. Check how"),
        ({"X": np.zeros((4, 0))}, {}, r"'X' \(4, 0\) float64 is empty. Check how"),
        ({"X": np.zeros((4, 2), complex)}, {}, "'X' holds complex128, and samples are real"),
        ({"X": np.array([["a", "b"]])}, {}, "'X' holds <U1, and samples are real numbers"),
        (
            {"X": np.zeros((4, 2))},
            {"sample_axis": 2},
            ".* has no axis 2. Set sample_axis between 0 and 1",
        ),
        (
            {"X": np.zeros((4, 2))},
            {"lazy": True},
            "this format cannot be left on disk. Leave out lazy and",
        ),
        ({"X": np.zeros((4, 2))}, {"size": 3}, "size cannot be applied to stored arrays. These"),
        (
            {"X": np.zeros((4, 2)), "labels": np.zeros(3)},
            {},
            r"'labels' has 3 labels, but 'X' of shape \(4, 2\) has 4 samples along axis 0. Name",
        ),
        (
            {"X": np.zeros((4, 2)), "labels": np.zeros(2)},
            {"sample_axis": 0},
            "'labels' has 2 labels, but 'X' .* has 4 samples along axis 0",
        ),
        (
            {"X": np.zeros((4, 2)), "labels": np.array([0.5, 1, 2, 3])},
            {},
            "the labels 'labels' are not whole numbers. Store one integer",
        ),
        (
            {"X": np.zeros((2, 2)), "labels": np.array([np.nan, 1])},
            {},
            "the labels 'labels' are not whole numbers",
        ),
        (
            {"X": np.zeros((2, 2)), "labels": np.array([1e300, 1])},
            {},
            "the labels 'labels' do not fit into 64 bits",
        ),
        (
            {"X": np.zeros((4, 2)), "z": np.zeros((2, 2))},
            {"label_key": "z"},
            r"the labels 'z' have shape \(2, 2\)",
        ),
        (
            {"X": np.zeros((2, 2)), "labels": np.array([1j, 2])},
            {},
            "the labels 'labels' are complex128",
        ),
    ],
)
def test_refused(save, arrays, options, message):
    with pytest.raises(ReadError, match=f"Cannot read .*a.npz: {message}"):
        read(save(**arrays), **options)


def test_long_listings_are_cut(save):
    path = save(**{f"a{i}": np.zeros((2, 2)) for i in range(15)})
    with pytest.raises(ReadError, match="and 3 more"):
        read(path)
