"""Outliers: single ones, groups of them, and how many ordinary samples are taken for one."""

from dataclasses import replace

import numpy as np
import pytest
from sklearn.neighbors import LocalOutlierFactor
from tests.cases import each

from tuckermix import TuckerClustering, load, save
from tuckermix._array_api import to_numpy
from tuckermix.datasets import make_tensor_clusters
from tuckermix.labels import VoteLabels
from tuckermix.labels.outliers import (
    CORE,
    _outside_other_clusters,
    fade,
    learn_reference,
    threshold_at,
)

N_SAMPLES, N_CLUSTERS, N_OUTLIERS = 300, 4, 15


def ordinary(seed, n_samples=N_SAMPLES):
    """Draw clusters in a few directions of samples of 9 × 8."""
    data = make_tensor_clusters(
        n_samples, shape=(9, 8), n_clusters=N_CLUSTERS, noise=0.3, random_state=seed
    )
    return data.X


def with_strangers(seed, kind):
    """Replace 5 % of the samples by noise, or by samples of one other kind."""
    rng = np.random.default_rng(seed)
    X = ordinary(seed).copy()
    where = rng.choice(len(X), N_OUTLIERS, replace=False)
    size = np.abs(X).max()
    if kind == "noise":
        X[where] = rng.uniform(-size, size, (N_OUTLIERS, 9, 8))
    else:
        X[where] = 0.5 * rng.standard_normal((1, 9, 8)) * size
        X[where] += 0.3 * rng.standard_normal((N_OUTLIERS, 9, 8))
    return X, np.isin(np.arange(len(X)), where)


def found_at(scores, strange, false_alarms=0.05):
    """Return the share of strangers above what 5 % of the others exceed."""
    return np.mean(scores[strange] > np.quantile(scores[~strange], 1 - false_alarms))


@pytest.mark.parametrize("kind", ["noise", "group"])
def test_strangers_are_found(seed, kind):
    X, strange = with_strangers(seed, kind)
    model = TuckerClustering(N_CLUSTERS, outliers="label", random_state=seed).fit(X)
    scores = model.outlier_scores(X)
    assert found_at(scores, strange) >= 0.9
    assert np.mean(model.labels_[strange] == -1) >= 0.9
    assert np.mean(model.labels_[~strange] == -1) <= 0.08
    np.testing.assert_array_equal(model.predict(X), model.labels_)


def test_a_group_vouches_for_itself_where_only_neighbours_are_asked():
    """The test of groups can fail: it does for the local outlier factor."""
    shares = []
    for seed in range(3):
        X, strange = with_strangers(seed, "group")
        factor = LocalOutlierFactor(10).fit(X.reshape(len(X), -1)).negative_outlier_factor_
        shares.append(found_at(-factor, strange))
    assert np.mean(shares) < 0.5


def test_false_alarms_on_new_samples():
    """Of samples that no fit has seen about as many are beyond the threshold as is said."""
    shares = {}
    for rate in (0.05, 0.2):
        alarms = []
        for seed in range(4):
            X = ordinary(seed, 600)
            model = TuckerClustering(
                N_CLUSTERS, outliers="label", false_alarms=rate, random_state=seed
            ).fit(X[:300])
            alarms.append(np.mean(model.predict(X[300:]) == -1))
        shares[rate] = np.mean(alarms)
    assert 0.02 < shares[0.05] < 0.09
    assert 0.14 < shares[0.2] < 0.27


def test_noise_is_not_predicted_with_certainty(seed):
    X, _ = with_strangers(seed, "noise")
    model = TuckerClustering(N_CLUSTERS, outliers="label", random_state=seed).fit(X)
    noise = np.random.default_rng(seed).uniform(-5, 5, (20, 9, 8))
    assert (model.predict(noise) == -1).all()
    P = model.predict_proba(noise)
    np.testing.assert_allclose(P.sum(axis=1), 1.0)
    assert P.shape == (20, N_CLUSTERS)
    assert P.max() < 0.9


def test_what_lies_outside_the_view_is_seen(seed):
    """A sample at the mean of all in the view, and far from all of them outside of it."""
    rng = np.random.default_rng(seed)
    basis = np.linalg.qr(rng.standard_normal((30, 30)))[0]
    X = rng.standard_normal((200, 3)) @ basis[:3] + 1e-3 * rng.standard_normal((200, 30))
    model = TuckerClustering(2, ranks=3, random_state=seed).fit(X)
    strange = X.mean(axis=0) + 5 * basis[-1:]
    assert model.outlier_scores(strange)[0] > 3 * model.outlier_scores(X).max()


def bright(seed, n_samples=N_SAMPLES):
    """Draw nonnegative samples around four patterns, all about as bright."""
    rng = np.random.default_rng(seed)
    patterns = rng.random((N_CLUSTERS, 9, 8))
    patterns /= patterns.mean(axis=(1, 2), keepdims=True)
    X = patterns[np.arange(n_samples) % N_CLUSTERS] * rng.normal(1.0, 0.03, (n_samples, 1, 1))
    return X + 0.2 * rng.random((n_samples, 9, 8))


@pytest.mark.parametrize("kind", ["pale", "strong", "black"])
def test_what_is_paler_or_stronger_than_all_others_is_seen(seed, kind):
    """Such samples lie between the others, or beyond them in a direction that all share."""
    X = bright(seed)
    middle = X.mean(axis=0)  # between all clusters
    X[:N_OUTLIERS] += middle - X[:N_OUTLIERS].mean(axis=0)
    X[:N_OUTLIERS] *= {"pale": 0.6, "strong": 1.6, "black": 0.0}[kind]
    model = TuckerClustering(N_CLUSTERS, outliers="label", random_state=seed).fit(X)
    assert np.mean(model.labels_[:N_OUTLIERS] == -1) >= 0.9
    assert np.mean(model.labels_[N_OUTLIERS:] == -1) <= 0.08
    scores = model.outlier_scores(X)
    assert np.isfinite(scores).all()
    strength = np.abs(X).mean(axis=(1, 2))
    low, usual, high = np.quantile(strength, (0.1, 0.5, 0.9))
    np.testing.assert_allclose(model._model_.strengths, (low, usual, high))
    # Against the formula, where nothing else counts as much; without quantiles nothing is asked.
    least = 1e-3 * usual
    above = np.log((strength + least) / (usual + least))
    above = np.where(
        above > 0,
        above / np.log((high + least) / (usual + least)),
        above / np.log((low + least) / (usual + least)),
    )
    before = replace(model._model_, strengths=None).outlier_scores(X)
    np.testing.assert_allclose(scores, np.maximum(before, above), rtol=1e-9)


def test_clusters_are_judged_by_the_directions_of_the_others(rng):
    """Against the singular vectors of the other clusters themselves."""
    q = rng.standard_normal((60, 8)) * np.linspace(3, 0.1, 8)
    labels = rng.integers(0, 3, 60)
    found = _outside_other_clusters(q, labels)
    for label in range(3):
        others, own = q[labels != label], q[labels == label]
        centred = others - others.mean(axis=0)
        _, values, rows = np.linalg.svd(centred, full_matrices=False)
        rank = np.searchsorted(np.cumsum(values**2), 0.95 * np.sum(values**2)) + 1
        rest = (own - others.mean(axis=0)) @ (np.eye(8) - rows[:rank].T @ rows[:rank])
        np.testing.assert_allclose(found[labels == label], np.sum(rest**2, axis=1), atol=1e-9)


def test_the_core_leaves_strangers_out(seed):
    X, strange = with_strangers(seed, "group")
    model = TuckerClustering(N_CLUSTERS, random_state=seed).fit(X)
    core = to_numpy(model._model_.reference.points)
    assert len(core) == np.ceil(CORE * len(X))
    inside = [np.abs(core - point).max(axis=1).min() < 1e-12 for point in model.place(X)]
    assert not np.any(np.array(inside) & strange)


def test_scores_do_not_depend_on_the_array_library(xp):
    X, _ = with_strangers(0, "group")
    truth = TuckerClustering(N_CLUSTERS, outliers="label", random_state=0).fit(X)
    model = TuckerClustering(N_CLUSTERS, outliers="label", random_state=0).fit(xp.asarray(X))
    np.testing.assert_array_equal(to_numpy(model.labels_), truth.labels_)
    scores = model.outlier_scores(xp.asarray(X))
    assert isinstance(scores, type(xp.asarray(X)))
    np.testing.assert_allclose(to_numpy(scores), truth.outlier_scores(X), rtol=1e-6, atol=1e-8)


def test_scores_of_dask_arrays_and_of_blocks():
    dask_array = pytest.importorskip("dask.array")
    X, _ = with_strangers(1, "noise")
    truth = TuckerClustering(N_CLUSTERS, outliers="label", random_state=0).fit(X)
    lazy = dask_array.from_array(X, chunks=(100, 9, 8))
    model = TuckerClustering(N_CLUSTERS, outliers="label", random_state=0).fit(lazy)
    np.testing.assert_array_equal(np.asarray(model.labels_), truth.labels_)
    scores = model.outlier_scores(lazy)
    np.testing.assert_allclose(np.asarray(scores), truth.outlier_scores(X), rtol=1e-8, atol=1e-10)


def test_scores_do_not_depend_on_units_or_on_what_else_is_asked(seed):
    X, _ = with_strangers(seed, "noise")
    model = TuckerClustering(N_CLUSTERS, random_state=seed).fit(X)
    scores = model.outlier_scores(X)
    np.testing.assert_allclose(model.outlier_scores(X[5:9]), scores[5:9], rtol=1e-9)
    scaled = TuckerClustering(N_CLUSTERS, random_state=seed).fit(1e6 * X)
    np.testing.assert_allclose(scaled.outlier_scores(1e6 * X), scores, rtol=1e-6, atol=1e-8)


def test_labels_of_clusters_are_those_without_outliers(seed):
    """Labelling outliers moves no other sample; numbers follow the sizes that are left."""
    X, _ = with_strangers(seed, "noise")
    plain = TuckerClustering(N_CLUSTERS, random_state=seed).fit(X)
    model = TuckerClustering(N_CLUSTERS, outliers="label", random_state=seed).fit(X)
    kept = model.labels_ >= 0
    pairs = set(zip(plain.labels_[kept].tolist(), model.labels_[kept].tolist(), strict=True))
    assert len(pairs) == len({one for one, _ in pairs}) == len({two for _, two in pairs})
    sizes = np.bincount(model.labels_[kept], minlength=N_CLUSTERS)
    assert (np.diff(sizes) <= 0).all()
    means = np.stack([X[model.labels_ == name].mean(axis=0) for name in range(N_CLUSTERS)])
    parts = model._model_
    offsets = (parts.project(means) - parts.mean) @ parts.directions
    np.testing.assert_allclose(model.centroids_, parts.lift(offsets), atol=1e-10)


def test_many_samples_through_landmarks(monkeypatch):
    monkeypatch.setattr("tuckermix.clustering.MAX_LANDMARKS", 200)
    X, strange = with_strangers(2, "noise")
    model = TuckerClustering(N_CLUSTERS, outliers="label", random_state=0).fit(X)
    np.testing.assert_array_equal(model.predict(X), model.labels_)
    assert np.mean(model.labels_[strange] == -1) >= 0.9


def test_batches_keep_their_numbers(seed):
    X, strange = with_strangers(seed, "noise")
    model = TuckerClustering(N_CLUSTERS, outliers="label", random_state=seed)
    model.partial_fit(X[:150]).partial_fit(X[150:])
    np.testing.assert_array_equal(model.predict(X[150:]), model.labels_)
    assert np.mean(model.labels_[strange[150:]] == -1) >= 0.8


def test_saved_and_loaded(seed, tmp_path):
    X, _ = with_strangers(seed, "group")
    model = TuckerClustering(N_CLUSTERS, outliers="label", random_state=seed).fit(X)
    scores = model.outlier_scores(X)
    save(model, tmp_path / "model")
    loaded = load(tmp_path / "model")
    np.testing.assert_array_equal(loaded.labels_, model.labels_)
    np.testing.assert_array_equal(loaded.predict(X), model.labels_)
    np.testing.assert_allclose(loaded.outlier_scores(X), scores, rtol=1e-12)


def test_a_fit_that_keeps_outliers_is_as_it_was(seed):
    X, _ = with_strangers(seed, "noise")
    model = TuckerClustering(N_CLUSTERS, outliers="label", random_state=seed).fit(X)
    model.set_params(outliers="keep").fit(X)
    assert model.labels_.min() == 0
    assert model._model_.threshold is None
    assert "reference" not in vars(model._model_)  # nothing is learned before it is asked for


@pytest.mark.parametrize("n_samples", [2, 3, 5, 20])
def test_few_samples_and_single_clusters(n_samples):
    X = np.random.default_rng(n_samples).standard_normal((n_samples, 4))
    for n_clusters in (1, 2):
        scores = TuckerClustering(n_clusters, random_state=0).fit(X).outlier_scores(X)
        assert scores.shape == (n_samples,)
        assert np.isfinite(scores).all()


def test_copies_and_constant_samples():
    X = np.repeat(np.random.default_rng(0).standard_normal((12, 5)), 4, axis=0)
    assert np.isfinite(TuckerClustering(3, random_state=0).fit(X).outlier_scores(X)).all()


def test_thresholds_keep_the_stated_share(rng):
    """Scores with an exponential tail, and the same with outliers far beyond it."""
    scores = rng.exponential(size=20_000)
    for rate in (0.01, 0.05, 0.2):
        assert np.mean(scores > threshold_at(scores, rate)) == pytest.approx(rate, abs=0.006)
        mixed = np.concatenate([scores, np.full(1000, 50.0)])
        assert np.mean(scores > threshold_at(mixed, rate)) == pytest.approx(rate, abs=0.006)


def test_fading_keeps_rows_and_their_largest_entry(xp, rng):
    shares = rng.dirichlet(np.ones(5), 50)
    scores = np.linspace(-3, 30, 50)
    faded = to_numpy(fade(xp.asarray(shares), xp.asarray(scores), 1.0))
    np.testing.assert_allclose(faded.sum(axis=1), 1.0)
    np.testing.assert_allclose(faded[scores <= 1.0], shares[scores <= 1.0])
    np.testing.assert_allclose(faded[-1], 0.2, atol=1e-9)
    rising = scores < 20
    np.testing.assert_array_equal(faded.argmax(axis=1)[rising], shares.argmax(axis=1)[rising])


def test_the_reference_of_points_alone(rng):
    """A point far from two dense groups scores more than all of theirs."""
    rows = np.concatenate([rng.normal(0, 0.1, (40, 3)), rng.normal(2, 0.1, (40, 3))])
    points = np.concatenate([np.ones((80, 1)), rows], axis=1)
    labels = np.repeat([0, 1], 40)
    reference = learn_reference(points, rows, labels, (0.0, 0.0), 10)
    far = np.array([[1.0, 1.0, 1.0, 1.0]])
    inner = reference.score(points, rows, np.zeros(80), np.ones(80))
    assert reference.score(far, far[:, 1:], np.zeros(1), np.ones(1))[0] > inner.max()


def test_a_tenth_on_either_side_is_usual(rng):
    """A part that is paler or stronger than the others is a cluster, if there are enough of it."""
    rows = rng.normal(0, 0.1, (40, 3))
    points = np.concatenate([np.ones((40, 1)), rows], axis=1)
    given = (points, rows, np.zeros(40, dtype=int), (0.0, 0.0), 10)
    before = learn_reference(*given).score(points, rows, np.zeros(40), np.ones(40))
    reference = learn_reference(*given, (0.1, 1.0, 1.5))
    for strength, least in ((0.1, 1.0), (1.0, 0.0), (1.5, 1.0)):
        scores = reference.score(points, rows, np.zeros(40), np.full(40, strength))
        np.testing.assert_allclose(scores, np.maximum(before, least), atol=1e-12)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"outliers": "drop"}, "The 'outliers' parameter of TuckerClustering must be one of"),
        ({"outliers": "label", "false_alarms": 1.0}, "must be a number > 0 and < 1"),
        (
            {"outliers": "label", "assign_labels": "subspace"},
            "needs the landmarks of assign_labels",
        ),
    ],
)
def test_parameters_are_checked(options, message):
    with pytest.raises(ValueError, match=message):
        TuckerClustering(2, **options).fit(np.eye(9)[:, :4])


def test_scores_need_landmarks():
    X = ordinary(0, 40)
    model = TuckerClustering(3, assign_labels="subspace", random_state=0).fit(X)
    with pytest.raises(ValueError, match="Outlier scores compare samples with landmarks"):
        model.outlier_scores(X)


@each(
    "changes, message",
    [
        ({"leftover": (2.0, 1.0)}, "leftover must be two numbers"),
        ({"leftover": [1.0, 2.0]}, "leftover must be two numbers"),
        ({"strengths": (1.0, 3.0, 2.0)}, "strengths must be three numbers"),
        ({"strengths": (-1.0, 2.0, 3.0)}, "strengths must be three numbers"),
        ({"strengths": (1.0, 2.0)}, "strengths must be three numbers"),
        ({"strengths": (1.0, 2.0, float("nan"))}, "strengths must be three numbers"),
        ({"threshold": float("nan")}, "takes no threshold such as nan"),
        ({"threshold": 1.0, "leftover": None}, "takes no threshold such as 1.0"),
    ],
)
def test_stored_values_are_checked(changes, message):
    model = TuckerClustering(3, random_state=0).fit(ordinary(0, 40))._model_
    assert isinstance(model.labeller, VoteLabels)
    with pytest.raises(ValueError, match=message):
        replace(model, **changes).check((9, 8), 3)
