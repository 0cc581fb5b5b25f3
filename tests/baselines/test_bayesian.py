"""The Gibbs sampler against a posterior known otherwise, the mode."""

import itertools
from itertools import islice, pairwise

import numpy as np
import pytest
from scipy.stats import gamma, invgamma, kstest, truncnorm
from tests.cases import each

from tuckermix._records import StopReason
from tuckermix.baselines import BayesianNMF
from tuckermix.baselines.bayesian import (
    GIBBS,
    conditional_modes,
    draw_truncated_normal,
    gibbs_samples,
    multinomial_em,
)
from tuckermix.baselines.nonnegative import projected_gradient_norm, random_start
from tuckermix.datasets import load
from tuckermix.metrics import clustering_accuracy


def posterior_means(X, rate, shape, scale, upper, n_points):
    """Means of W, WH and the variance for one component, by summation over a grid."""
    points = (np.arange(n_points) + 0.5) * upper / n_points
    n_rows, n_columns = X.shape
    grid = np.stack(np.meshgrid(*[points] * (n_rows + n_columns), indexing="ij"), axis=-1)
    grid = grid.reshape(-1, n_rows + n_columns)
    W, H = grid[:, :n_rows], grid[:, n_rows:]
    product = W[:, :, None] * H[:, None, :]
    residual = np.sum((X - product) ** 2, axis=(1, 2))
    # The variance of the noise is integrated out: Student's law in the residual.
    log = -(shape + 0.5 * X.size) * np.log(scale + 0.5 * residual) - rate * grid.sum(axis=1)
    weights = np.exp(log - log.max())
    weights /= weights.sum()
    noise = (scale + 0.5 * residual) / (shape + 0.5 * X.size - 1)
    return weights @ W, np.tensordot(weights, product, axes=1), weights @ noise


def test_sampler_recovers_a_posterior_known_otherwise(seed):
    X = np.array([[1.0, 2.0], [0.2, 0.5]])
    prior = {"rate": 1.0, "shape": 3.0, "scale": 0.5}
    W_mean, product_mean, noise_mean = posterior_means(X, *prior.values(), 8.0, n_points=32)
    rng = np.random.default_rng(seed)
    W, H = random_start(X, 1, rng)
    states = [
        (W.ravel().copy(), W @ H, variance)
        for W, H, variance, _ in islice(gibbs_samples(X, W, H, rng, **prior), 10_000)
    ][500:]
    # The scale between W and H, which only the prior holds, moves slowly: a wider tolerance.
    np.testing.assert_allclose(np.mean([s[0] for s in states], axis=0), W_mean, atol=0.15)
    np.testing.assert_allclose(np.mean([s[1] for s in states], axis=0), product_mean, atol=0.03)
    assert np.mean([s[2] for s in states]) == pytest.approx(noise_mean, abs=0.015)


def test_sampler_keeps_the_joint_distribution():
    """Data drawn from the current state leave prior and state as they were (Geweke 2004)."""
    rng = np.random.default_rng(0)
    rate, shape, scale, n_rounds = 1.0, 4.0, 2.0, 8000
    prior = {"rate": rate, "shape": shape, "scale": scale}
    W, H, variance = rng.exponential(size=(2, 1)), rng.exponential(size=(1, 2)), 0.5
    first, noise = [], []
    for _ in range(n_rounds):
        X = W @ H + np.sqrt(variance) * rng.standard_normal((2, 2))
        W, H, variance, _ = next(gibbs_samples(X, W, H, rng, variance=variance, **prior))
        first.append(W[0, 0])
        noise.append(variance)
    # Successive states depend on each other: thin them before a test for independent draws.
    assert kstest(first[::20], gamma(1, scale=1 / rate).cdf).pvalue > 1e-3
    assert kstest(noise[::20], invgamma(shape, scale=scale).cdf).pvalue > 1e-3


def test_planted_factors_are_recovered(seed):
    rng = np.random.default_rng(seed)
    left = rng.exponential(size=(80, 3)) * (rng.random((80, 3)) < 0.6)
    right = rng.exponential(size=(3, 40)) * (rng.random((3, 40)) < 0.6)
    noise = 0.05
    X = np.abs(left @ right + noise * rng.standard_normal((80, 40)))
    model = BayesianNMF(3, max_iter=400, n_init=2, random_state=seed).fit(X)
    unit = right / np.linalg.norm(right, axis=1, keepdims=True)
    cosines = (model.components_ / np.linalg.norm(model.components_, axis=1)[:, None]) @ unit.T
    assert np.all(np.sort(cosines, axis=0)[-1] > 0.99)
    assert np.sqrt(model.noise_variance_) == pytest.approx(noise, rel=0.2)


def problem(seed, n_components=3):
    rng = np.random.default_rng(seed)
    X = rng.random((15, n_components)) @ rng.random((n_components, 10)) + 0.1 * rng.random((15, 10))
    return X, *random_start(X, n_components, rng)


def log_posterior(X, W, H, variance, rate, shape, scale):
    """The density of the model, up to a constant, written down from its definition."""
    residual = np.sum((X - W @ H) ** 2)
    return (
        -0.5 * X.size * np.log(variance)
        - 0.5 * residual / variance
        - rate * (W.sum() + H.sum())
        - (shape + 1) * np.log(variance)
        - scale / variance
    )


PRIOR = {"rate": 0.3, "shape": 1.0, "scale": 0.1}


def test_modes_climb_the_posterior(seed):
    X, W, H = problem(seed)
    heights = [
        log_posterior(X, W, H, variance, **PRIOR)
        for W, H, variance, _ in islice(gibbs_samples(X, W, H, None, **PRIOR), 100)
    ]
    assert all(after >= before - 1e-9 for before, after in pairwise(heights))


def test_icm_ends_at_a_mode(seed):
    X, W, H = problem(seed)
    result = conditional_modes(X, W, H, **PRIOR, max_iter=5000, tol=1e-12)
    W, H, variance = (
        result.memberships,
        result.fitted["components_"],
        result.fitted["noise_variance_"],
    )
    best = log_posterior(X, W, H, variance, **PRIOR)
    # Stationary in the factors ...
    residual = (W @ H - X) / variance
    slopes = ((W, residual @ H.T + PRIOR["rate"]), (H, W.T @ residual + PRIOR["rate"]))
    assert projected_gradient_norm(*slopes) < 1e-4 * np.linalg.norm(X @ H.T) / variance
    # ... and no small move of all variables together is better.
    rng = np.random.default_rng(seed)
    for size in (1e-3, 1e-2):
        for _ in range(200):
            moved = (
                np.maximum(W + size * rng.standard_normal(W.shape), 0),
                np.maximum(H + size * rng.standard_normal(H.shape), 0),
                variance * np.exp(size * rng.standard_normal()),
            )
            assert log_posterior(X, *moved, **PRIOR) < best


def test_one_column_is_the_conditional_mode():
    X, W, H = problem(0)
    new, _, variance, _ = next(gibbs_samples(X, W, H, None, rate=0.2, variance=0.01))
    others = W[:, 1:] @ H[1:]
    expected = np.maximum(((X - others) @ H[0] - 0.2 * 0.01) / (H[0] @ H[0]), 0)
    np.testing.assert_allclose(new[:, 0], expected, rtol=1e-10)
    assert variance == pytest.approx(
        0.5 * np.sum((X - new @ H) ** 2) / (0.5 * X.size + 1), rel=1e-10
    )


def test_silent_components_keep_their_values():
    X, W, H = problem(0)
    H[1] = 0
    kept = W[:, 1].copy()
    new, *_ = next(gibbs_samples(X, W, H, None, rate=0.1))
    np.testing.assert_array_equal(new[:, 1], kept)


def test_exact_fits_and_too_many_parameters_stay_finite():
    rng = np.random.default_rng(0)
    X = np.outer(np.arange(1.0, 5.0), np.ones(2))
    W, H = random_start(X, 8, rng)
    for left, right, variance, cost in islice(gibbs_samples(X, W, H, rng), 500):
        assert np.all(np.isfinite(left))
        assert np.all(np.isfinite(right))
        assert 0 < variance <= np.mean(X**2)
        assert np.isfinite(cost)


def test_the_mean_is_that_of_the_draws_after_the_burn_in():
    X, _, _ = problem(0)
    whole = BayesianNMF(3, max_iter=40, burn_in=0.75, random_state=0).fit(X)
    late = BayesianNMF(3, max_iter=40, burn_in=0.0, random_state=0).fit(X)
    assert len(whole.history_) == 42  # the start, the sweeps, the mean
    for one, other in zip(whole.history_[:-1], late.history_[:-1], strict=True):
        assert one.cost == other.cost  # the same chain
    assert whole.cost_ != late.cost_
    assert whole.stop_reason_ is StopReason.MAX_ITER
    assert whole.noise_variance_ > 0


@pytest.mark.parametrize(
    ("settings", "text"),
    [
        ({"method": "vb"}, "'method' parameter of BayesianNMF must be one of 'gibbs', 'icm'"),
        (
            {"burn_in": 1.0},
            "'burn_in' parameter of BayesianNMF must be a number >= 0 and < 1. Got 1.0",
        ),
        ({"rate": -1.0}, "'rate' parameter of BayesianNMF must be a number >= 0. Got -1.0"),
        ({"noise_shape": "a"}, "'noise_shape' parameter of BayesianNMF must be a number >= 0"),
        ({"noise_scale": -2.0}, "'noise_scale' parameter of BayesianNMF must be a number >= 0"),
    ],
)
def test_parameters_are_checked(settings, text):
    with pytest.raises(ValueError, match=text):
        BayesianNMF(2, **settings).fit(np.ones((4, 3)))


def counts(seed, shape=(20, 12)):
    return np.random.default_rng(seed).random(shape) ** 3


def test_multinomial_step_is_expectation_maximisation(seed):
    """Written out with the probabilities of the components for each entry, as in the toolbox."""
    X = counts(seed)
    W, H = random_start(X, 3, np.random.default_rng(seed))
    W, H, X = W / W.sum(axis=0), H / H.sum(axis=1, keepdims=True), X / X.sum()
    for found in itertools.islice(multinomial_em(X, W, H), 5):
        joint = np.einsum("ik,kj->kij", W, H) / 3
        shares = X * joint / joint.sum(axis=0)
        W = shares.sum(axis=2).T / shares.sum(axis=(1, 2))
        H = shares.sum(axis=1) / shares.sum(axis=(1, 2))[:, None]
        np.testing.assert_allclose(found[0], W, rtol=1e-10)
        np.testing.assert_allclose(found[1], H, rtol=1e-10)


def test_multinomial_with_one_component_has_a_closed_form(seed):
    X = counts(seed)
    start = random_start(X, 1, np.random.default_rng(seed))
    W, H = next(multinomial_em(X, *start))
    np.testing.assert_allclose(W[:, 0], X.sum(axis=1) / X.sum(), rtol=1e-10)
    np.testing.assert_allclose(H[0], X.sum(axis=0) / X.sum(), rtol=1e-10)


def test_multinomial_memberships_sum_to_one_over_samples(seed):
    X = 7.0 * counts(seed).reshape(20, 4, 3)
    model = BayesianNMF(3, method="multinomial", max_iter=300, random_state=seed).fit(X)
    np.testing.assert_allclose(model.memberships_.sum(axis=0), 1.0)
    sums = model.components_.sum(axis=(1, 2))
    np.testing.assert_allclose(sums, X.sum() / 3)  # components are equally likely
    rebuilt = model.inverse_transform(model.memberships_)
    np.testing.assert_allclose(0.5 * np.sum((X - rebuilt) ** 2), model.cost_, rtol=1e-10)
    assert model.n_iter_ == 300
    assert not hasattr(model, "noise_variance_")
    assert model.cost_ < model.history_[0].cost


@pytest.mark.parametrize("data", [np.zeros((9, 4)), np.eye(9), np.ones((9, 2))])
def test_multinomial_takes_degenerate_data(data):
    model = BayesianNMF(3, method="multinomial", max_iter=20, random_state=0).fit(data)
    assert np.isfinite(model.memberships_).all()
    assert np.isfinite(model.components_).all()
    assert set(model.predict(data)) <= {0, 1, 2}


@pytest.mark.data
def test_multinomial_comes_near_the_figures_of_the_paper(data_home):
    """CBCL in Table 2: 0.631; the sampler gives 0.695."""
    data = load("cbcl", data_home=data_home)
    rng = np.random.default_rng(0)
    scores = []
    for _ in range(3):
        chosen = [rng.choice(np.flatnonzero(data.labels == k), 600, replace=False) for k in (0, 1)]
        index = np.concatenate(chosen)
        model = BayesianNMF(2, method="multinomial", random_state=0).fit(data.X[index])
        scores.append(clustering_accuracy(data.labels[index], model.labels_))
    assert abs(np.mean(scores) - 0.631) < 0.04


N_DRAWS = 20_000

# The cut at zero lies this many deviations above the mean: no cut at all, both sides of the
# change of method, far tails and tails where the distribution function underflows.
CUTS = [-50.0, 0.0, GIBBS.tail - 1e-9, GIBBS.tail + 1e-9, 20.0, 50.0, 1e8]


@each("cut", CUTS)
@each("deviation", [1e-6, 1.0, 1e6])
def test_draw_has_the_right_distribution(cut, deviation):
    rng = np.random.default_rng(0)
    draws = draw_truncated_normal(np.full(N_DRAWS, -cut * deviation), deviation, rng) / deviation
    assert draws.min() >= 0
    if cut < 30:
        law = truncnorm(cut, np.inf, loc=-cut)
        distribution, mean, variance = law.cdf, law.mean(), law.var()
    else:  # x = excess over the cut: density exp(-c x - x²/2), first-order corrected moments
        distribution = lambda x: 1 - np.exp(-cut * x) * (1 - 0.5 * x**2)  # noqa: E731
        mean, variance = 1 / cut - 2 / cut**3, 1 / cut**2 - 6 / cut**4
    assert kstest(draws, distribution).pvalue > 1e-3
    assert draws.mean() == pytest.approx(mean, abs=5 * np.sqrt(variance / N_DRAWS))
    # Kurtosis is at most that of the exponential law, 9.
    assert draws.var() == pytest.approx(variance, rel=5 * np.sqrt(8 / N_DRAWS))


def test_draws_take_one_mean_and_deviation_each():
    rng = np.random.default_rng(1)
    mean = np.array([-1e5, -3.0, 0.0, 5.0, 1e5])
    deviation = np.array([1.0, 1.0, 1e-3, 2.0, 1e-9])
    draws = np.stack([draw_truncated_normal(mean, deviation, rng) for _ in range(4000)])
    expected = truncnorm.mean(-mean[1:] / deviation[1:], np.inf, mean[1:], deviation[1:])
    np.testing.assert_allclose(draws[:, 1:].mean(axis=0), expected, rtol=0.05)
    assert draws[:, 0].mean() == pytest.approx(1e-5, rel=0.1)  # the exponential tail
