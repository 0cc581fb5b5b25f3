"""Methods in a Tucker subspace."""

from unittest import mock

import numpy as np
import pytest
import scipy.optimize
from sklearn.cluster import KMeans
from sklearn.datasets import make_blobs
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import adjusted_rand_score

from tuckermix import decompose
from tuckermix._records import StopReason
from tuckermix.baselines import PCAMultinomial
from tuckermix.baselines.tucker import (
    ASIT,
    PCAB,
    TriONTD,
    factorize_orthogonal,
    keep_largest,
    refine_exactly,
    solve_nonnegative_tucker,
)
from tuckermix.datasets import make_tensor_clusters
from tuckermix.decomposition import alternating
from tuckermix.decomposition.exact import closed_form
from tuckermix.metrics import clustering_accuracy
from tuckermix.numerics.tensor import multi_mode_dot, tucker_to_tensor, unfold


def start_tucker(X, ranks):
    return ASIT(ranks=ranks)._prepare(X)


def test_factors_are_the_leading_singular_vectors(seed):
    X = make_tensor_clusters(30, (6, 5, 4), 3, random_state=seed).X
    _, ranks, factors = start_tucker(X, (3, 2, 1))
    assert ranks == (3, 2, 1)
    for mode, factor in enumerate(factors, start=1):
        left = np.linalg.svd(unfold(X, mode), full_matrices=False)[0][:, : factor.shape[1]]
        np.testing.assert_allclose(factor @ factor.T, left @ left.T, atol=1e-8)


def test_default_ranks_find_the_planted_subspace():
    X = make_tensor_clusters(100, (9, 8), 4, ranks=(3, 4), noise=0.01, random_state=0).X
    assert start_tucker(X, None)[1] == (3, 4)


def test_source_brings_the_data_to_ordinary_size():
    X = 1e-150 * np.random.default_rng(0).random((10, 4, 3))
    source = start_tucker(X, 2)[0]
    assert 1.0 < source.squared_norm < 1e3
    np.testing.assert_allclose(source.squared_norm, np.sum((X * source.scale) ** 2))


def test_owner_is_named():
    with pytest.raises(ValueError, match="The 'ranks' parameter of PCAB must be"):
        PCAB(2, ranks=-1).fit(np.ones((4, 3)))


def _noise(seed, shape=(7, 6), n_samples=40):
    return np.random.default_rng(seed).standard_normal((n_samples, *shape))


def test_the_calls_are_those_of_the_paper():
    with (
        mock.patch.object(alternating, "trust_region", wraps=alternating.trust_region) as call,
        mock.patch.object(
            alternating, "update_factors", wraps=alternating.update_factors
        ) as factors,
        pytest.warns(ConvergenceWarning),
    ):
        PCAMultinomial(3, ranks=2, max_iter=4, tol=1e-12, random_state=0).fit(_noise(0))
    options = [entry.kwargs for entry in call.call_args_list]
    assert [entry["max_iter"] for entry in options] == [1000, 5, 5, 5]
    for entry in options:
        assert entry["max_inner"] == 30
        assert entry["tol"] == 1e-6
        assert (entry["max_radius"], entry["initial_radius"]) == (None, None)
        assert entry["preconditioner"] is None
    assert [entry.kwargs["n_loops"] for entry in factors.call_args_list] == [2] * 4


@pytest.mark.parametrize("init", ["hosvd", "hosvd-samples", "random"])
def test_the_model_fits_together(init, seed):
    X = _noise(seed)
    model = PCAMultinomial(4, ranks=(3, 2), init=init, tol=1e-4, random_state=seed).fit(X)
    U = model.memberships_
    assert (U > 0).all()
    np.testing.assert_allclose(U.sum(axis=1), 1.0, rtol=1e-12)
    rebuilt = tucker_to_tensor(model.core_, model.factors_, U)
    assert model.cost_ == pytest.approx(0.5 * np.sum((X - rebuilt) ** 2), rel=1e-9)
    np.testing.assert_allclose(model.inverse_transform(U), rebuilt, atol=1e-10)
    last = model.history_[-1]
    assert last.relative_error == pytest.approx(
        np.linalg.norm(X - rebuilt) / np.linalg.norm(X), rel=1e-9
    )
    assert (last.gap, len(model.history_)) == (model.gap_, model.n_iter_ + 1)
    assert model.ranks_ == (3, 2)


def test_weights_of_samples_are_the_memberships_at_the_optimum(seed):
    X = _noise(seed)
    model = PCAMultinomial(4, ranks=(3, 2), tol=1e-9, random_state=seed).fit(X)
    assert model.gap_ < 1e-7
    weights = model.transform(X)
    np.testing.assert_allclose(weights.sum(axis=1), 1.0, rtol=1e-12)
    np.testing.assert_allclose(weights, model.memberships_, atol=2e-2)
    # No convex combination of the components comes closer to a sample than these.
    errors = np.sum((X - model.inverse_transform(weights)) ** 2, axis=(1, 2))
    fitted = np.sum((X - model.inverse_transform(model.memberships_)) ** 2, axis=(1, 2))
    assert np.all(errors <= fitted * (1 + 1e-6))


def test_the_curve_starts_with_the_decomposition(seed):
    """The error of an orthonormal sample factor cannot be reached for the same factors."""
    model = PCAMultinomial(4, ranks=(7, 6), random_state=seed).fit(_noise(seed))
    start, first = model.history_[0].relative_error, model.history_[1].relative_error
    assert start < first
    random = PCAMultinomial(4, ranks=(7, 6), init="random", random_state=seed).fit(_noise(seed))
    assert random.history_[0].relative_error > random.history_[1].relative_error


def test_it_comes_close_to_the_exact_solver(seed):
    X = _noise(seed)
    model = PCAMultinomial(4, ranks=(3, 2), tol=1e-8, random_state=seed).fit(X)
    assert model.cost_ <= decompose(X, 4, (3, 2), tol=1e-9).cost * 1.02


@pytest.mark.parametrize("shape", [(8, 7), (5, 4, 3)])
def test_planted_clusters_are_found(shape):
    found = []
    for seed in range(4):
        data = make_tensor_clusters(50, shape, 3, spread=0.2, random_state=seed)
        model = PCAMultinomial(3, ranks=3, random_state=seed).fit(data.X)
        found.append(clustering_accuracy(data.labels, model.labels_))
        assert np.mean(model.predict(data.X) == model.labels_) > 0.9
    assert np.mean(found) > 0.9


def test_awkward_data_give_finite_results(edges):
    for X, n_clusters in edges:
        model = PCAMultinomial(n_clusters, max_iter=4, tol=1e-3, random_state=0).fit(X)
        arrays = (model.memberships_, model.core_, model.components_, model.cost_, *model.factors_)
        assert all(np.all(np.isfinite(value)) for value in arrays)
        assert np.all(np.isfinite(model.transform(X)))
        np.testing.assert_array_equal(np.unique(model.labels_), np.arange(n_clusters))


def test_stop_reasons_and_seeds(seed):
    X = _noise(seed)
    model = PCAMultinomial(3, ranks=2, random_state=seed).fit(X)
    assert model.stop_reason_ is StopReason.TOLERANCE
    again = PCAMultinomial(3, ranks=2, random_state=seed).fit(X)
    np.testing.assert_array_equal(model.memberships_, again.memberships_)
    with pytest.warns(ConvergenceWarning, match="PCAMultinomial stopped after max_iter=1"):
        PCAMultinomial(3, ranks=2, max_iter=1, tol=1e-9, init="random", random_state=0).fit(X)


def test_random_starts_keep_the_best():
    X = _noise(0)
    one = PCAMultinomial(3, ranks=2, init="random", tol=1e-3, random_state=1).fit(X)
    many = PCAMultinomial(3, ranks=2, init="random", tol=1e-3, n_init=4, random_state=1).fit(X)
    assert many.cost_ <= one.cost_


def test_bad_parameters_are_refused():
    with pytest.raises(ValueError, match="'init' parameter of PCAMultinomial must be one of"):
        PCAMultinomial(2, init="zeros").fit(_noise(0))
    with pytest.raises(ValueError, match="The 'ranks' parameter of PCAMultinomial must be"):
        PCAMultinomial(2, ranks=(2, 2, 2)).fit(_noise(0))


def test_factors_first_with_memberships_of_kmeans(seed):
    """The paper's Remark 3: the first record is that of k-means and the best factors for it."""
    X = make_tensor_clusters(60, (7, 6), 3, spread=0.2, random_state=seed).X
    model = PCAMultinomial(3, ranks=(3, 2), init="kmeans", random_state=seed).fit(X)
    usual = PCAMultinomial(3, ranks=(3, 2), random_state=seed).fit(X)
    assert model.cost_ == pytest.approx(usual.cost_, rel=1e-3)
    errors = [record.relative_error for record in model.history_]
    assert np.all(np.diff(errors) <= 1e-12)
    means = np.stack([X[model.labels_ == k].mean(axis=0) for k in range(3)])
    assert errors[0] <= np.linalg.norm(X) ** -1 * np.linalg.norm(X - means[model.labels_]) + 0.1
    assert errors[0] >= errors[-1]


def _noise_pcab(seed, shape=(7, 6), n_samples=50):
    """Return data whose leading directions change sign, where nonnegativity costs something."""
    return np.random.default_rng(seed).standard_normal((n_samples, *shape))


def _solve(X, ranks, n_components, seed, **options):
    source, _, factors = start_tucker(X, ranks)
    U = np.random.default_rng(seed).random((len(X), n_components))
    energies = np.sum(X.reshape(len(X), -1) ** 2, axis=1)
    options = {"max_iter": 100, "tol": 1e-9} | options
    return solve_nonnegative_tucker(source, factors, U, energies, **options)


@pytest.mark.parametrize("shape", [(12,), (7, 6), (5, 4, 3)])
def test_cost_never_rises_and_constraints_hold(seed, shape):
    X = _noise_pcab(seed, shape)
    run = _solve(X, 3, 4, seed)
    costs = np.array([step.cost for step in run.history])
    assert np.all(np.diff(costs) <= 1e-12 * costs[0])
    assert costs[-1] < costs[0]
    assert (run.memberships >= 0).all()
    for factor in run.fitted["factors_"]:
        np.testing.assert_allclose(factor.T @ factor, np.eye(3), atol=1e-12)
    rebuilt = tucker_to_tensor(run.fitted["core_"], run.fitted["factors_"], run.memberships)
    np.testing.assert_allclose(run.cost, 0.5 * np.sum((X - rebuilt) ** 2), rtol=1e-10)


def test_memberships_are_those_of_scipy(seed):
    X = _noise_pcab(seed)
    model = PCAB(4, ranks=3, tol=1e-3, random_state=seed).fit(X)
    design = model.components_.reshape(4, -1).T
    expected = np.stack([scipy.optimize.nnls(design, x.ravel())[0] for x in X])
    np.testing.assert_allclose(model.memberships_, expected, atol=1e-8)
    np.testing.assert_allclose(model.transform(X), model.memberships_, atol=1e-10)
    np.testing.assert_allclose(np.linalg.norm(design, axis=0), 1.0)
    rebuilt = model.inverse_transform(model.memberships_)
    np.testing.assert_allclose(model.cost_, 0.5 * np.sum((X - rebuilt) ** 2), rtol=1e-8)


def test_core_and_factors_are_optimal_at_the_end(seed):
    X = _noise_pcab(seed)
    run = _solve(X, (3, 2), 4, seed, max_iter=500, tol=1e-12)
    U, factors = run.memberships, run.fitted["factors_"]
    B = multi_mode_dot(X, factors, transpose=True).reshape(len(X), -1)
    best = np.linalg.pinv(U) @ B
    cost = 0.5 * (np.sum(X**2) - np.sum((U @ best) ** 2))
    assert run.cost - cost < 1e-6 * cost
    Q = np.linalg.qr(U)[0]
    partial = np.einsum("il,iab,bc->alc", Q, X, factors[1]).reshape(7, -1)
    left = np.linalg.svd(partial)[0][:, :3]
    np.testing.assert_allclose(left @ left.T, factors[0] @ factors[0].T, atol=1e-2)


def test_positive_data_reach_the_unconstrained_optimum():
    # A positive leading singular vector: nonnegativity costs nothing, and the truncated singular
    # value decomposition is the optimum.
    X = np.random.default_rng(0).random((40, 12)) + 0.5
    run = _solve(X, 12, 3, 0, max_iter=3000, tol=1e-12)
    values = np.linalg.svd(X, compute_uv=False)
    np.testing.assert_allclose(run.cost, 0.5 * np.sum(values[3:] ** 2), rtol=1e-3)


@pytest.mark.parametrize("shape", [(7, 6), (5, 4, 3)])
def test_row_sums_added_back_never_beat_the_model(shape):
    for seed in range(4):
        data = make_tensor_clusters(40, shape, 3, positive=True, random_state=seed)
        model = PCAB(3, ranks=3, random_state=seed).fit(data.X)
        sums = model.memberships_.sum(axis=1, keepdims=True)
        U = model.memberships_ / np.where(sums > 0, sums, 1.0)
        U[sums[:, 0] == 0] = 1 / 3
        B = multi_mode_dot(data.X, model.factors_, transpose=True).reshape(40, -1)
        explained = np.sum((U @ (np.linalg.pinv(U) @ B)) ** 2)
        cost = 0.5 * (np.sum(data.X**2) - explained)
        # For the same factors the optimum of the model is known ...
        assert explained <= closed_form(B.copy(), 2).explained * (1 + 1e-12)
        # ... and the fitted model, with factors of its own, is no worse.
        assert decompose(data.X, 3, 3).cost <= cost * (1 + 1e-9)


def test_dead_components_are_revived(seed):
    X = _noise_pcab(seed)
    source, _, factors = start_tucker(X, 3)
    U = np.random.default_rng(seed).random((50, 4))
    U[:, 2] = 0.0
    energies = np.sum(X.reshape(50, -1) ** 2, axis=1)
    run = solve_nonnegative_tucker(source, factors, U, energies, max_iter=50, tol=0.0)
    assert run.memberships.any(axis=0).all()
    costs = np.array([step.cost for step in run.history])
    assert np.all(np.diff(costs) <= 1e-12 * costs[0])


@pytest.mark.parametrize("shape", [(8, 7), (6, 5, 4)])
def test_planted_clusters_are_found_by_pcab(shape):
    for seed in range(4):
        data = make_tensor_clusters(60, shape, 3, spread=0.2, random_state=seed)
        for ranks in (3, None):
            model = PCAB(3, ranks=ranks, random_state=seed).fit(data.X)
            assert clustering_accuracy(data.labels, model.labels_) > 0.95
        np.testing.assert_array_equal(model.predict(data.X), model.labels_)


def test_awkward_data_give_finite_results_by_pcab(edges):
    for X, n_clusters in edges:
        model = PCAB(n_clusters, random_state=0).fit(X)
        arrays = (model.memberships_, model.core_, model.components_, model.cost_, *model.factors_)
        assert all(np.all(np.isfinite(value)) for value in arrays)
        assert np.all(np.isfinite([step.cost for step in model.history_]))
        np.testing.assert_array_equal(np.unique(model.labels_), np.arange(n_clusters))


def test_stop_reasons():
    X = _noise_pcab(0)
    assert PCAB(3, ranks=2, tol=1e-2, random_state=0).fit(X).stop_reason_ is StopReason.TOLERANCE
    with pytest.warns(ConvergenceWarning, match="PCAB stopped after max_iter=2 with decrease"):
        model = PCAB(3, ranks=2, max_iter=2, tol=1e-9, random_state=0).fit(X)
    assert model.stop_reason_ is StopReason.MAX_ITER
    assert (model.n_iter_, len(model.history_)) == (2, 3)


def test_ranks_must_fit_the_samples():
    with pytest.raises(ValueError, match="The 'ranks' parameter of PCAB must be"):
        PCAB(2, ranks=(2, 2, 2)).fit(_noise_pcab(0))


def test_faces(data_home):
    # Ten persons of ORL: the paper's table has accuracies from 0.56 to 0.73.
    with np.load(data_home / "orl.npz") as data:
        chosen = data["labels"] <= 10
        X, y = data["images"][chosen], data["labels"][chosen]
    model = PCAB(10, ranks=12, random_state=0).fit(X)
    costs = np.array([step.cost for step in model.history_])
    assert np.all(np.diff(costs) <= 1e-12 * costs[0])
    assert clustering_accuracy(y, model.labels_) > 0.5


def _hard(seed, shape=(7, 6)):
    """Return data without clear clusters, on which the rounds have work to do."""
    return np.random.default_rng(seed).standard_normal((80, *shape)) + 0.5


@pytest.mark.parametrize("shape", [(12,), (7, 6), (5, 4, 3)])
def test_cost_never_rises_and_constraints_hold_by_asit(seed, shape):
    X = _hard(seed, shape)
    model = ASIT(6, ranks=2, n_init=1, random_state=seed).fit(X)
    costs = np.array([step.cost for step in model.history_])
    assert np.all(np.diff(costs) <= 1e-12 * costs[0])
    assert model.n_iter_ >= 2
    for factor in model.factors_:
        np.testing.assert_allclose(factor.T @ factor, np.eye(2), atol=1e-12)
    np.testing.assert_array_equal(model.memberships_, np.eye(6)[model.labels_])


def test_end_is_optimal_in_each_block(seed):
    X = _hard(seed)
    model = ASIT(4, ranks=(3, 2), random_state=seed, tol=1e-13).fit(X)
    assert model.stop_reason_ is StopReason.STABLE
    B = multi_mode_dot(X, model.factors_, transpose=True)
    means = np.stack([B[model.labels_ == c].mean(axis=0) for c in range(4)])
    np.testing.assert_allclose(model.core_, means, atol=1e-12)
    np.testing.assert_array_equal(model.predict(X), model.labels_)
    # Each factor spans the leading singular vectors of the weighted cluster means.
    counts = np.bincount(model.labels_)
    M = np.stack([X[model.labels_ == c].mean(axis=0) for c in range(4)])
    M *= np.sqrt(counts)[:, None, None]
    left = np.linalg.svd(np.concatenate(list(M @ model.factors_[1]), axis=1))[0][:, :3]
    projector = model.factors_[0] @ model.factors_[0].T
    np.testing.assert_allclose(left @ left.T, projector, atol=1e-4)
    rebuilt = model.centroids_[model.labels_]
    np.testing.assert_allclose(model.cost_, 0.5 * np.sum((X - rebuilt) ** 2), rtol=1e-10)


def test_with_full_ranks_it_is_kmeans():
    X = _hard(0, (4, 3))
    ours = ASIT(5, ranks=(4, 3), n_init=30, random_state=0).fit(X)
    theirs = KMeans(5, n_init=30, random_state=0).fit(X.reshape(80, -1))
    np.testing.assert_allclose(2 * ours.cost_, theirs.inertia_, rtol=0.01)


def test_more_starts_are_never_worse():
    X = _hard(1)
    costs = [ASIT(6, ranks=2, n_init=n, random_state=3).fit(X).cost_ for n in (1, 3, 10)]
    assert costs[0] >= costs[1] >= costs[2]


@pytest.mark.parametrize("shape", [(8, 7), (6, 5, 4)])
def test_planted_clusters_are_found_by_asit(shape):
    for seed in range(4):
        data = make_tensor_clusters(60, shape, 3, spread=0.2, random_state=seed)
        for ranks in (3, None):
            model = ASIT(3, ranks=ranks, random_state=seed).fit(data.X)
            assert clustering_accuracy(data.labels, model.labels_) > 0.95
    new = make_tensor_clusters(60, shape, 3, spread=0.2, random_state=3).X[:7]
    np.testing.assert_array_equal(model.predict(new), model.labels_[:7])


def test_awkward_data_give_finite_results_by_asit(edges):
    for X, n_clusters in edges:
        model = ASIT(n_clusters, random_state=0).fit(X)
        for value in (model.core_, model.centroids_, model.cost_, *model.factors_):
            assert np.all(np.isfinite(value))
        np.testing.assert_array_equal(np.unique(model.labels_), np.arange(n_clusters))
        assert np.all(model.predict(X) < n_clusters)


def test_max_iter_is_reported():
    with pytest.warns(UserWarning, match="ASIT stopped after max_iter=1"):
        model = ASIT(6, ranks=2, n_init=1, max_iter=1, tol=1e-12, random_state=0).fit(_hard(0))
    assert model.stop_reason_ is StopReason.MAX_ITER


def test_ranks_must_fit_the_samples_by_asit():
    with pytest.raises(ValueError, match="rank 9 of feature mode 0 is larger than 7"):
        ASIT(2, ranks=(9, 2)).fit(_hard(0))


def test_faces_by_asit(data_home):
    # Ten persons of ORL: the paper's table has accuracies from 0.56 to 0.73.
    with np.load(data_home / "orl.npz") as data:
        chosen = data["labels"] <= 10
        X, y = data["images"][chosen], data["labels"][chosen]
    model = ASIT(10, ranks=12, random_state=0).fit(X)
    costs = np.array([step.cost for step in model.history_])
    assert np.all(np.diff(costs) <= 1e-12 * costs[0])
    assert clustering_accuracy(y, model.labels_) > 0.5


def test_blobs_of_the_scikit_learn_check():
    X, y = make_blobs(n_samples=50, random_state=1)
    for seed in range(5):
        model = TriONTD(3, random_state=seed)
        labels = model.fit_predict(X - X.min(axis=0))
        assert adjusted_rand_score(y, labels) > 0.4
        np.testing.assert_array_equal(np.unique(labels), np.arange(3))
        np.testing.assert_array_equal(labels, model.labels_)


def _blocks(seed, shape, n_samples=60):
    """Plant groups in all modes: the model of the method, with a little noise."""
    rng = np.random.default_rng(seed)
    labels = rng.permutation(np.arange(n_samples) % 3)
    core = rng.random((3,) + (3,) * len(shape)) ** 3
    weights = rng.uniform(0.7, 1.3, n_samples).reshape(-1, *[1] * len(shape))
    groups = [np.eye(3)[rng.permutation(np.arange(size) % 3)] for size in shape]
    factors = [g * rng.uniform(0.9, 1.1, (len(g), 1)) for g in groups]
    X = multi_mode_dot(core[labels] * weights, factors)
    return X + 0.02 * rng.random(X.shape), labels, groups


def test_constraints_hold_exactly(seed):
    X = make_tensor_clusters(40, (6, 5), 3, positive=True, random_state=seed).X
    model = TriONTD(3, ranks=2, random_state=seed).fit(X)
    for factor in (model.memberships_, *model.factors_):
        assert (factor >= 0).all()
        assert np.max(np.count_nonzero(factor, axis=1)) == 1
        np.testing.assert_allclose(factor.T @ factor, np.eye(factor.shape[1]), atol=1e-12)
    assert (model.core_ >= 0).all()
    rebuilt = tucker_to_tensor(model.core_, model.factors_, model.memberships_)
    np.testing.assert_allclose(model.cost_, 0.5 * np.sum((X - rebuilt) ** 2), rtol=1e-10)
    np.testing.assert_allclose(model.cost_, model.history_[-1].cost)
    np.testing.assert_array_equal(model.labels_, np.argmax(model.memberships_, axis=1))
    iterations = [step.iteration for step in model.history_]
    assert iterations == list(range(len(iterations)))


def test_last_phase_improves_on_rounding_alone(seed):
    X, _, _ = _blocks(seed, (8, 7))
    model = TriONTD(3, ranks=3, random_state=seed).fit(X)
    feasible = [step.cost for step in model.history_ if step.orthogonality == 0]
    assert model.cost_ <= feasible[0]
    assert model.history_[-1].relative_error < 0.1


@pytest.mark.parametrize("shape", [(8, 7), (6, 5, 4)])
def test_planted_groups_are_found_in_all_modes(shape):
    for seed in range(4):
        X, labels, groups = _blocks(seed, shape)
        model = TriONTD(3, ranks=3, max_iter=100, random_state=seed).fit(X)
        assert clustering_accuracy(labels, model.labels_) == 1.0
        for factor, group in zip(model.factors_, groups, strict=True):
            assert clustering_accuracy(np.argmax(group, 1), np.argmax(factor, 1)) > 0.7


@pytest.mark.parametrize("shape", [(8, 7), (6, 5, 4)])
def test_planted_clusters_are_found_with_default_ranks(shape):
    for seed in range(4):
        data = make_tensor_clusters(60, shape, 3, spread=0.2, positive=True, random_state=seed)
        model = TriONTD(3, max_iter=50, random_state=seed).fit(data.X)
        assert clustering_accuracy(data.labels, model.labels_) > 0.95


@pytest.mark.filterwarnings("ignore:TriONTD failed")
def test_awkward_data_give_finite_results_of_tri_ontd(edges):
    for X, n_clusters in edges:
        model = TriONTD(n_clusters, random_state=0).fit(X)
        arrays = (model.memberships_, model.core_, model.components_, model.cost_, *model.factors_)
        assert all(np.all(np.isfinite(value)) for value in arrays)
        assert np.all(np.isfinite([step.cost for step in model.history_]))
        np.testing.assert_array_equal(np.unique(model.labels_), np.arange(n_clusters))
        assert (model.stop_reason_ is StopReason.FAILED) == bool(model.failure_)


def test_failure_is_reported():
    X = np.ones((10, 4, 3))
    with pytest.warns(ConvergenceWarning, match="TriONTD failed: only 1 of 3 columns"):
        model = TriONTD(3, random_state=0).fit(X)
    assert model.stop_reason_ is StopReason.FAILED
    assert not model.stop_reason_.converged
    assert model.failure_ == "only 1 of 3 columns of the indicator keep a sample."


def test_groups_without_rows_are_left_out():
    X, _, _ = _blocks(0, (8, 7))
    X[:, 2:] = 0.0  # two rows are left for six groups
    model = TriONTD(3, ranks=(6, 3), random_state=0).fit(X)
    assert model.ranks_[0] <= 2
    assert model.core_.shape == (3, *model.ranks_)
    assert [factor.shape[1] for factor in model.factors_] == list(model.ranks_)


def test_negative_data_are_refused():
    with pytest.raises(ValueError, match="Negative values in data passed to TriONTD"):
        TriONTD(2).fit(-np.ones((4, 3)))


def test_faces_of_tri_ontd(data_home):
    # Ten persons of ORL: the paper's table has accuracies from 0.56 to 0.73.
    with np.load(data_home / "orl.npz") as data:
        chosen = data["labels"] <= 10
        X, y = data["images"][chosen], data["labels"][chosen]
    model = TriONTD(10, ranks=12, random_state=0).fit(X)
    costs = np.array([step.cost for step in model.history_ if step.orthogonality == 0])
    assert np.all(np.diff(costs) <= 1e-12 * costs[0])
    assert max(step.lagrangian_change for step in model.history_) <= 1e-14
    assert clustering_accuracy(y, model.labels_) > 0.5


def test_reaching_the_limit_in_either_phase_is_said():
    X = make_tensor_clusters(40, (6, 5), 3, positive=True, random_state=0).X
    assert (
        TriONTD(3, max_iter=2, tol=0.0, random_state=0).fit(X).stop_reason_ is StopReason.MAX_ITER
    )
    first = TriONTD(3, max_iter=5, tol=1e-12, random_state=0).fit(X)
    assert first.stop_reason_ is StopReason.MAX_ITER
    both = TriONTD(3, max_iter=2000, tol=1e-3, random_state=0).fit(X)
    assert both.stop_reason_ is StopReason.TOLERANCE


def _positive_factors(seed, shape, ranks):
    rng = np.random.default_rng(seed)
    return [rng.random(size) + 0.1 for size in zip(shape, ranks, strict=True)]


@pytest.mark.parametrize("shape", [(9,), (7, 6), (5, 4, 3)])
def test_rules_never_raise_their_lagrangian(seed, shape):
    X = np.random.default_rng(seed).random((30, *shape))
    start = _positive_factors(seed, X.shape, (3,) + (2,) * len(shape))
    factors, history, reason = factorize_orthogonal(X, start, max_iter=100, tol=0.0)
    assert reason is StopReason.MAX_ITER
    assert max(step.lagrangian_change for step in history) <= 1e-14
    assert min(step.lagrangian_change for step in history) < -1e-4
    assert all((factor >= 0).all() for factor in factors)
    assert history[-1].orthogonality < history[0].orthogonality
    assert history[-1].cost < history[0].cost


def test_lagrangian_is_the_error_with_multipliers(seed):
    # Independent of the code: rebuild the model, and differentiate nothing.
    rng = np.random.default_rng(seed)
    X, S = rng.random((8, 6)), rng.random((3, 2))
    W, U = rng.random((8, 3)), rng.random((6, 2))
    N = X @ (S @ U.T).T
    product = W.T @ N
    symmetric = (product + product.T) / 2
    multiplier = symmetric - S @ U.T @ U @ S.T
    new = W * np.sqrt(N / (W @ symmetric))

    def lagrangian(Z):
        error = np.linalg.norm(X - Z @ S @ U.T) ** 2
        return error + np.trace(multiplier @ (Z.T @ Z - np.eye(3)))

    assert lagrangian(new) < lagrangian(W)
    for scale in (0.9, 1.1):
        # The step minimises an upper bound, so moving on in the same ratio is worse for the bound.
        assert _bound(scale * new, W, N, symmetric) > _bound(new, W, N, symmetric)


def _bound(Z, W, N, symmetric):
    """Evaluate the auxiliary function of the multiplicative rule."""
    return np.sum((W @ symmetric) * Z**2 / W) - 2 * np.sum(N * W * (1 + np.log(Z / W)))


@pytest.mark.parametrize("shape", [(9,), (7, 6), (5, 4, 3)])
def test_exact_phase_never_raises_the_error(seed, shape):
    X = np.random.default_rng(seed).random((30, *shape))
    start = [keep_largest(f) for f in _positive_factors(seed, X.shape, (3,) + (2,) * len(shape))]
    factors, core, history, reason = refine_exactly(X, start, max_iter=100, tol=0.0)
    costs = np.array([step.cost for step in history])
    assert np.all(np.diff(costs) <= 1e-12 * costs[0])
    assert costs[-1] < costs[0]
    assert reason is StopReason.TOLERANCE
    rebuilt = tucker_to_tensor(core, factors[1:], factors[0])
    np.testing.assert_allclose(costs[-1], 0.5 * np.sum((X - rebuilt) ** 2), rtol=1e-10)
