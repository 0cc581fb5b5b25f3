import numpy as np
import pytest
from tests.cases import each

from tuckermix.datasets import make_tensor_clusters

SHAPES = [(7,), (8, 6), (5, 4, 6), (3, 4, 3, 2), (1,), (1, 1)]


def unfold(X, mode):
    return np.moveaxis(X, mode, 0).reshape(X.shape[mode], -1)


@each("shape", SHAPES)
@each("seed", range(3))
def test_shapes_types_and_repetition(shape, seed):
    data = make_tensor_clusters(40, shape, 4, random_state=seed)
    again = make_tensor_clusters(40, shape, 4, random_state=seed)
    assert data.X.shape == (40, *shape)
    assert data.X.dtype == np.float64
    assert data.labels.dtype == np.int64
    assert sorted(set(data.labels)) == [0, 1, 2, 3]
    assert np.array_equal(data.X, again.X)
    assert np.array_equal(data.labels, again.labels)
    assert not np.array_equal(data.X, make_tensor_clusters(40, shape, 4, random_state=seed + 9).X)


@each("ranks", [(2, 3, 4), (4, 2, 2), 3])
@each("seed", range(3))
def test_without_noise_the_ranks_are_those_asked_for(ranks, seed):
    data = make_tensor_clusters(60, (5, 6, 7), 3, ranks=ranks, noise=0, random_state=seed)
    wanted = ranks if isinstance(ranks, tuple) else (ranks,) * 3
    assert tuple(np.linalg.matrix_rank(unfold(data.X, mode)) for mode in (1, 2, 3)) == wanted
    for factor, rank in zip(data.extra["factors"], wanted, strict=True):
        assert np.allclose(factor.T @ factor, np.eye(rank))


@pytest.mark.parametrize("n_directions", [0, 1, 2])
def test_clusters_are_affinely_independent(n_directions):
    data = make_tensor_clusters(90, (6, 6), 4, n_directions=n_directions, noise=0, random_state=1)
    rows = data.X.reshape(90, -1)
    assert np.linalg.matrix_rank(rows - rows.mean(axis=0), tol=1e-8) == 4 * (1 + n_directions) - 1
    for k in range(4):
        members = rows[data.labels == k] - data.extra["centres"][k].ravel()
        assert np.linalg.matrix_rank(members, tol=1e-8) == n_directions


@pytest.mark.parametrize("noise", [0.1, 1.0, 3.0])
def test_noise_is_relative_to_the_signal(noise):
    settings = {"n_samples": 400, "shape": (10, 10), "random_state": 3}
    clean = make_tensor_clusters(**settings, noise=0).X
    noisy = make_tensor_clusters(**settings, noise=noise).X
    ratio = np.sqrt(np.mean((noisy - clean) ** 2) / np.mean(clean**2))
    assert ratio == pytest.approx(noise, rel=0.03)


def test_imbalance_is_the_ratio_of_the_extreme_sizes():
    assert np.bincount(make_tensor_clusters(100, 5, 4, random_state=0).labels).tolist() == [25] * 4
    sizes = np.bincount(make_tensor_clusters(1000, 5, 5, imbalance=10, random_state=0).labels)
    assert sizes.sum() == 1000
    assert sizes[0] / sizes[-1] == pytest.approx(10, rel=0.05)
    assert np.all(np.diff(sizes) < 0)
    # However lopsided, no cluster is empty.
    sizes = np.bincount(make_tensor_clusters(12, 5, 10, imbalance=1e9, random_state=0).labels)
    assert sizes.sum() == 12
    assert sizes.min() == 1


@pytest.mark.parametrize("seed", range(5))
def test_centres_stay_apart_in_a_space_too_small_for_orthogonal_ones(seed):
    data = make_tensor_clusters(60, (1,), 6, n_directions=0, noise=0.0, random_state=seed)
    assert np.min(np.diff(np.sort(data.extra["centres"].ravel()))) > 0.1


def test_order_sign_and_plain_arrays():
    labels = make_tensor_clusters(30, (4,), 3, shuffle=False, random_state=0).labels
    assert np.all(np.diff(labels) >= 0)
    assert make_tensor_clusters(30, (4,), 3, positive=True, random_state=0).X.min() == 0.0
    X, y = make_tensor_clusters(30, (4,), 3, random_state=0, return_X_y=True)
    assert X.shape == (30, 4)
    assert y.shape == (30,)


@each(
    "parameters, message",
    [
        ({"n_samples": 2}, "n_samples=2 must be >= n_clusters=3."),
        ({"n_samples": 2.5}, "'n_samples' parameter of make_tensor_clusters must be an integer"),
        ({"n_clusters": 0}, "'n_clusters' parameter of make_tensor_clusters must be an integer"),
        ({"n_directions": -1}, "'n_directions' parameter of make_tensor_clusters"),
        ({"noise": -1.0}, "'noise' parameter of make_tensor_clusters must be a number >= 0"),
        ({"spread": float("nan")}, "'spread' parameter of make_tensor_clusters must be a number"),
        ({"imbalance": 0.5}, "'imbalance' parameter of make_tensor_clusters must be a number >= 1"),
        ({"shape": ()}, "'shape' parameter of make_tensor_clusters must name at least one mode"),
        ({"shape": (3, 0)}, "'shape' parameter of make_tensor_clusters must be an integer >= 1"),
        ({"ranks": (2, 2, 2)}, r"ranks=\(2, 2, 2\) must have one entry for each mode"),
        ({"ranks": 9}, r"ranks=\(9, 9\) must not exceed shape=\(8, 8\)"),
        ({"random_state": "x"}, "random_state must be None, an int"),
    ],
)
def test_refused(parameters, message):
    with pytest.raises(ValueError, match=message):
        make_tensor_clusters(**parameters)
