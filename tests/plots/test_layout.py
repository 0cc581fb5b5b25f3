import numpy as np
import pytest
from tests.cases import each
from threadpoolctl import threadpool_info, threadpool_limits

from tuckermix.plots import layout
from tuckermix.plots.layout import discriminant_map, neighbor_map, spread_out


def blobs(seed, n_groups=6, dim=12, n=40):
    rng = np.random.default_rng(seed)
    centres = rng.normal(size=(n_groups, dim)) * 4
    labels = np.repeat(np.arange(n_groups), n)
    return centres[labels] + rng.normal(size=(len(labels), dim)), labels


def test_neighbors_in_the_subspace_are_neighbors_on_the_map(seed):
    Z, labels = blobs(seed)
    positions = neighbor_map(Z, labels)
    distances = np.linalg.norm(positions[:, None] - positions, axis=2)
    np.fill_diagonal(distances, np.inf)
    assert (labels[distances.argmin(axis=1)] == labels).mean() > 0.98


def test_map_does_not_need_the_labels_to_separate_groups():
    Z, labels = blobs(1)
    positions = neighbor_map(Z, np.zeros_like(labels))
    distances = np.linalg.norm(positions[:, None] - positions, axis=2)
    np.fill_diagonal(distances, np.inf)
    assert (labels[distances.argmin(axis=1)] == labels).mean() > 0.98


@pytest.mark.parametrize("method", [neighbor_map, discriminant_map])
def test_maps_are_deterministic(method):
    Z, labels = blobs(0)
    np.testing.assert_array_equal(method(Z, labels), method(Z.copy(), labels))


def test_discriminant_finds_the_separating_plane():
    rng = np.random.default_rng(0)
    Z = rng.normal(size=(300, 8)) * np.r_[10, np.ones(7)]  # the largest variance separates nothing
    labels = np.repeat([0, 1, 2], 100)
    Z[:, 3] += 8 * (labels == 1)
    Z[:, 5] += 8 * (labels == 2)
    positions = discriminant_map(Z, labels)
    means = np.stack([positions[labels == k].mean(axis=0) for k in range(3)])
    within = np.mean([positions[labels == k].std(axis=0) for k in range(3)])
    gaps = [np.linalg.norm(means[i] - means[j]) for i, j in [(0, 1), (0, 2), (1, 2)]]
    assert min(gaps) > 5 * within


@each("method", [neighbor_map, discriminant_map])
@each(
    "Z, labels",
    [
        (np.zeros((5, 4)), [0, 0, 1, 1, 1]),
        (np.arange(6.0)[:, None], [0, 0, 0, 1, 1, 1]),
        (np.ones((1, 3)), [0]),
        (np.eye(2), [0, 1]),
        (np.eye(6), [0, 0, 0, 0, 0, 0]),
    ],
)
def test_degenerate_samples_still_have_a_place(method, Z, labels):
    positions = method(Z, np.array(labels))
    assert positions.shape == (len(Z), 2)
    assert np.isfinite(positions).all()


def test_groups_that_were_points_become_discs(seed):
    rng = np.random.default_rng(seed)
    labels = np.repeat(np.arange(8), 40)
    centres = rng.normal(size=(8, 2)) * 10
    positions = spread_out(centres[labels])
    distances = np.linalg.norm(positions[:, None] - positions, axis=2)
    np.fill_diagonal(distances, np.inf)
    even = np.sqrt(np.prod(np.ptp(positions, axis=0)) / len(labels))
    assert np.median(distances.min(axis=1)) > 0.2 * even
    moved = np.linalg.norm(positions - centres[labels], axis=1)
    assert moved.max() < 3 * even  # and stay where they were


def test_ctrl_c_inside_a_foreign_limit_leaves_the_threads_as_they_were(monkeypatch):
    def cut(**options):
        threadpool_limits(1, user_api="blas")  # as scikit-learn does, and cut before the end
        raise KeyboardInterrupt

    monkeypatch.setattr(layout, "NearestNeighbors", cut)
    with threadpool_limits(2, user_api="blas"):
        with pytest.raises(KeyboardInterrupt):
            neighbor_map(*blobs(0))
        numbers = {one["num_threads"] for one in threadpool_info() if one["user_api"] == "blas"}
        assert numbers == {2}
