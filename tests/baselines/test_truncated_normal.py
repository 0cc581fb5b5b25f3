"""Draws from the truncated normal distribution, against the law known to SciPy."""

import numpy as np
import pytest
from scipy.stats import kstest, truncnorm

from tuckermix.baselines.truncated_normal import TAIL, draw_truncated_normal

N_DRAWS = 20_000

# The cut at zero lies this many deviations above the mean: no cut at all, both sides of the
# change of method, far tails and tails where the distribution function underflows.
CUTS = [-50.0, -3.0, 0.0, 1.0, TAIL - 1e-9, TAIL + 1e-9, 6.0, 20.0, 37.0, 50.0, 1e4, 1e8]


@pytest.mark.parametrize("cut", CUTS)
@pytest.mark.parametrize("deviation", [1e-6, 1.0, 1e6])
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
