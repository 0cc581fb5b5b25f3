"""How stable labels are."""

import numpy as np
import pytest
from sklearn.cluster import KMeans
from sklearn.metrics import adjusted_rand_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from tests.cases import each

from tuckermix import MultiViewClustering, TuckerClustering
from tuckermix.labels import GraphLabels
from tuckermix.numerics.points import nearest_neighbors
from tuckermix.selection.record import weight_of
from tuckermix.selection.resampling import (
    Resampler,
    agreement,
    neighbor_lists,
    pivoted_cut,
    restrict,
    set_clusters,
)


def trial_of(resampler, n_clusters, name, count):
    list(resampler.prepare())
    found = resampler.compare([(n_clusters, name)], count)
    return found[0] if found else None


@each("length", [6, 12, 29])
@each("seed", range(3))
def test_restricted_lists_are_those_of_the_part(seed, length):
    rng = np.random.default_rng(seed)
    Z = rng.standard_normal((40, 5))
    indices, squares = nearest_neighbors(Z, Z, length, exclude_self=True)
    keep = np.sort(rng.choice(40, 20, replace=False))
    found, gaps = restrict(lambda: Z, indices, squares, keep, 7)
    truth, distances = nearest_neighbors(Z[keep], Z[keep], 7, exclude_self=True)
    np.testing.assert_array_equal(found, truth)
    np.testing.assert_allclose(gaps, distances)


def test_no_point_is_its_own_neighbour_among_copies():
    Z = np.repeat(np.eye(3), 5, axis=0)
    indices, squares = nearest_neighbors(Z, Z, 2, exclude_self=True)
    keep = np.array([0, 1, 5, 6, 10, 11, 12])
    found, _ = restrict(lambda: Z, indices, squares, keep, 3)
    assert found.min() >= 0
    assert not (found == np.arange(7)[:, None]).any()


def test_true_clusters_are_stable_and_parts_of_them_are_not(planted):
    X, y = planted
    resampler = Resampler(X, [("pixels", TuckerClustering())], np.random.default_rng(0))
    right = trial_of(resampler, 4, "pixels", 6)
    wrong = trial_of(resampler, 6, "pixels", 6)
    assert right.stability > 0.99
    assert wrong.stability < right.stability - 0.05
    assert wrong.score < right.score
    assert adjusted_rand_score(resampler.labels(4, "pixels"), y) > 0.99
    assert right.n_subsamples == 6


def test_modularity_counts_where_every_candidate_has_a_graph(planted):
    X, _ = planted
    ours, other = ("pixels", TuckerClustering()), ("k-means", KMeans(n_init=1))
    rng = np.random.default_rng(0)
    narrow = ("few", TuckerClustering(assign_labels=GraphLabels(n_neighbors=8)))
    resampler = Resampler(X, [ours, narrow], rng, weigh=True)
    wide, few = (trial_of(resampler, 4, name, 2) for name in ("pixels", "few"))
    assert few.weight == weight_of(few.modularity, 4) < 1
    assert wide.weight > weight_of(wide.modularity, 4)
    # The same points and the same labels weigh the same, however many neighbours there are.
    np.testing.assert_array_equal(resampler.labels(4, "pixels"), resampler.labels(4, "few"))
    assert wide.weight == pytest.approx(few.weight)
    assert trial_of(Resampler(X, [ours], rng), 4, "pixels", 2).weight == 1
    mixed = Resampler(X, [ours, other], rng, weigh=True)
    assert trial_of(mixed, 4, "pixels", 2).weight == 1


def test_more_subsamples_continue_fewer(planted):
    X, _ = planted
    candidates = [("pixels", TuckerClustering())]
    one = Resampler(X, candidates, np.random.default_rng(3))
    trial_of(one, 7, "pixels", 2)
    other = Resampler(X, candidates, np.random.default_rng(3))
    assert trial_of(one, 7, "pixels", 5) == trial_of(other, 7, "pixels", 5)


def test_a_sum_of_equal_graphs_is_the_graph(planted):
    X, _ = planted
    twice = MultiViewClustering([("a", TuckerClustering()), ("b", TuckerClustering())])
    candidates = [("one", TuckerClustering()), ("two", twice)]
    resampler = Resampler(X, candidates, np.random.default_rng(0))
    one, two = (trial_of(resampler, 4, name, 3) for name in ("one", "two"))
    assert one.stability == pytest.approx(two.stability)
    assert one.modularity == pytest.approx(two.modularity)


def test_other_clusterers_are_fitted_to_each_part(planted):
    X, y = planted
    rows = X.reshape(len(X), -1)
    scaled = make_pipeline(StandardScaler(), KMeans(n_init=3))
    resampler = Resampler(rows, [("k-means", scaled)], np.random.default_rng(0))
    trial = trial_of(resampler, 4, "k-means", 3)
    assert trial.stability > 0.99
    assert 0.5 < trial.modularity < 0.76  # four equal groups with no edge between have 3/4
    assert adjusted_rand_score(resampler.labels(4, "k-means"), y) > 0.99
    assert scaled[-1].n_clusters == 8  # the candidate itself is not touched


def test_a_graph_of_more_parts_than_clusters_is_not_tried():
    rng = np.random.default_rng(0)
    centers = 1e4 * np.eye(4)[np.repeat(np.arange(4), 30)]
    X = centers + rng.standard_normal((120, 4))
    candidates = [("rows", TuckerClustering(assign_labels=GraphLabels(n_neighbors=5)))]
    resampler = Resampler(X, candidates, np.random.default_rng(0))
    assert trial_of(resampler, 3, "rows", 2) is None
    assert trial_of(resampler, 4, "rows", 2).stability == 1.0


def test_set_clusters_reaches_into_pipelines():
    inner = make_pipeline(StandardScaler(), make_pipeline(StandardScaler(), KMeans()))
    set_clusters(inner, 5, 7)
    assert inner[-1][-1].n_clusters == 5
    assert inner[-1][-1].random_state == 7


def test_a_judge_measures_all_partitions_on_one_graph(planted):
    X, _ = planted
    sharp = TuckerClustering(assign_labels=GraphLabels(ridge_edge=0.5, ridge_power=2.0))
    candidates = [("all", TuckerClustering()), ("few", sharp)]
    alone = Resampler(X, candidates, np.random.default_rng(0))
    judged = Resampler(X, candidates, np.random.default_rng(0), "all")
    assert trial_of(judged, 4, "all", 1) == trial_of(alone, 4, "all", 1)
    assert trial_of(judged, 8, "few", 1).modularity < trial_of(alone, 8, "few", 1).modularity
    np.testing.assert_array_equal(judged.labels(8, "few"), alone.labels(8, "few"))


@pytest.mark.parametrize("seed", range(5))
def test_agreement_is_the_adjusted_rand_index(seed):
    rng = np.random.default_rng(seed)
    labels, others = rng.integers(0, 5, 60), rng.integers(0, 3 + seed, 60)
    assert agreement(labels, others) == pytest.approx(adjusted_rand_score(labels, others))
    assert agreement(labels, labels[::-1].max() - labels) == pytest.approx(1.0)
    one = np.zeros(60, dtype=int)
    assert agreement(one, one) == adjusted_rand_score(one, one) == 1.0
    assert agreement(one, labels) == adjusted_rand_score(one, labels) == 0.0


def test_parts_are_cut_as_without_a_guess(planted, monkeypatch):
    X, _ = planted
    candidates = [("pixels", TuckerClustering())]
    exact = trial_of(Resampler(X, candidates, np.random.default_rng(0)), 4, "pixels", 6)
    monkeypatch.setattr("tuckermix.numerics.linalg.WHOLE_EIGENPROBLEM", 50)
    guessed = trial_of(Resampler(X, candidates, np.random.default_rng(0)), 4, "pixels", 6)
    assert guessed.stability == pytest.approx(exact.stability, abs=1e-3)
    assert guessed.modularity == exact.modularity


@pytest.mark.parametrize("n_clusters", [2, 5, 12, 40])
@pytest.mark.parametrize("seed", range(3))
def test_pivots_find_groups_that_hardly_touch(n_clusters, seed):
    rng = np.random.default_rng(seed)
    sizes = rng.integers(3, 12, n_clusters)
    truth = np.repeat(np.arange(n_clusters), sizes)
    weights = (truth[:, None] == truth) + 0.02 * rng.uniform(size=(len(truth),) * 2)
    weights = weights + weights.T
    scale = 1 / np.sqrt(weights.sum(axis=1))
    values, vectors = np.linalg.eigh(scale[:, None] * weights * scale)
    labels = pivoted_cut((values[::-1], vectors[:, ::-1]), n_clusters)
    assert adjusted_rand_score(labels, truth) == 1.0


def test_a_scan_draws_nothing_and_sees_the_clusters(planted):
    X, y = planted
    scores = {}
    for seed in (0, 1):
        resampler = Resampler(X, [("pixels", TuckerClustering())], np.random.default_rng(seed))
        list(resampler.prepare())
        found = resampler.scan(4, [3, 4, 5], ["pixels"], 2)
        scores[seed] = {trial.n_clusters: trial.modularity for trial in found}
        assert max(found, key=lambda trial: trial.score).n_clusters == 4
        assert adjusted_rand_score(resampler.labels(4, "pixels"), y) > 0.99
    assert scores[0] == scores[1]


def test_neighbours_are_those_of_the_exact_search():
    rng = np.random.default_rng(0)
    for width in (3, 100):
        Z = rng.standard_normal((200, width))
        Z /= np.linalg.norm(Z, axis=1, keepdims=True)
        indices, squares = neighbor_lists(Z, 10)
        truth, distances = nearest_neighbors(Z, Z, 10, exclude_self=True)
        np.testing.assert_array_equal(indices, truth)
        np.testing.assert_allclose(squares, distances, atol=1e-5)


def test_noise_has_the_directions_of_the_samples_and_no_clusters(planted):
    X, _ = planted
    twice = MultiViewClustering([("a", TuckerClustering()), ("b", TuckerClustering(ranks=9))])
    candidates = [("pixels", TuckerClustering()), ("sum", twice)]
    resampler = Resampler(X, candidates, np.random.default_rng(0))
    list(resampler.prepare())
    for names in (["pixels"], ["sum"], ["sum", "pixels"]):
        noise = resampler.of_noise(names, 0)
        assert noise.compare([(4, names[0])], 3)[0].stability < 0.8
        assert trial_of(resampler, 4, names[0], 3).stability > 0.99
