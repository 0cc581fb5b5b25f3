"""Bayesian nonnegative matrix factorisation (B-NMF): Gibbs sampling, mode, or multinomial EM."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.random import Generator
from scipy.special import erfc, erfcinv

from tuckermix._estimators import declare
from tuckermix._records import StopReason
from tuckermix._validation import Rules, check_real, one_of, share
from tuckermix.baselines._base import Run, Trace
from tuckermix.baselines.nmf import NonnegativeFactorization, iterate
from tuckermix.baselines.nonnegative import least_squares_cost, normalize_components

METHODS = ("gibbs", "icm", "multinomial")


@dataclass(frozen=True)
class GibbsSettings:
    """Settings of the sampler."""

    noise_floor: float = 1e-24
    """Least variance of the noise relative to the mean square of the data: an exact fit would
    otherwise give every conditional the width zero. Its root, 1e-12, is the rounding of a
    product."""
    noise_ceiling: float = 1.0
    """Largest variance of the noise relative to the mean square of the data: that of no model at
    all. With flat priors and more parameters than entries the posterior is improper, and without
    this bound the sampler escapes to infinity."""
    tail: float = 4.0
    """Standard deviations beyond which a draw comes from Marsaglia's tail method instead of the
    inverse distribution function: there its acceptance is at least 95 % and rounding in the
    inverse function begins to matter."""


GIBBS = GibbsSettings()


def draw_truncated_normal(
    mean: np.ndarray, deviation: np.ndarray | float, rng: Generator
) -> np.ndarray:
    r"""Draw from normal distributions cut off below zero, exactly in all regimes.

    .. math:: p(a) \propto \exp\bigl(-(a - \mu)^2 / 2 s^2\bigr), \quad a \ge 0

    With :math:`z = -\mu / \sqrt2 s`, the draw is
    :math:`\mu + \sqrt2 s \operatorname{erfc}^{-1}(u \operatorname{erfc} z)` with uniform `u`. When
    the cut lies more than four deviations above the mean, :math:`x = \sqrt{c^2 - 2 \log u}`
    with :math:`c = -\mu / s` is proposed and accepted with probability :math:`c / x`
    (Marsaglia 1964), which has no approximation at any distance.

    Parameters
    ----------
    mean : ndarray of shape (n,)
        The mean of each normal distribution before the cut.
    deviation : float or ndarray of shape (n,)
        The standard deviation, positive.
    rng : numpy.random.Generator
        Source of randomness.

    Returns
    -------
    draws : ndarray of shape (n,)
        Nonnegative values.
    """
    mean = np.asarray(mean, dtype=np.float64)
    cut = -mean / deviation
    tail = cut > GIBBS.tail
    z = np.minimum(cut, GIBBS.tail) * np.sqrt(0.5)
    # 1 - u lies in (0, 1]: the inverse function is finite there.
    standard = np.sqrt(2.0) * erfcinv((1.0 - rng.random(mean.shape)) * erfc(z))
    draws = np.maximum(mean + deviation * standard, 0.0)
    if tail.any():
        width = np.broadcast_to(deviation, mean.shape)[tail]
        draws[tail] = width * _draw_beyond(cut[tail], rng)
    return draws


def _draw_beyond(cut: np.ndarray, rng: Generator) -> np.ndarray:
    """Draw x - cut for standard normal x beyond `cut` (large), by Marsaglia's method."""
    excess = np.empty_like(cut)
    open_ = np.arange(len(cut))
    while len(open_):
        c = cut[open_]
        twice = 2.0 * rng.standard_exponential(len(open_))
        x = np.hypot(c, np.sqrt(twice))
        accepted = rng.random(len(open_)) * x <= c
        excess[open_[accepted]] = (twice / (x + c))[accepted]  # x - c without cancellation
        open_ = open_[~accepted]
    return excess


def gibbs_samples(
    X: np.ndarray,
    W: np.ndarray,
    H: np.ndarray,
    rng: Generator | None,
    *,
    rate: float = 0.0,
    shape: float = 0.0,
    scale: float = 0.0,
    variance: float = 1.0,
) -> Iterator[tuple[np.ndarray, np.ndarray, float, float]]:
    r"""Run the Gibbs sampler; each step gives the state after one sweep.

    .. math::

        X_{ij} \sim N\bigl((WH)_{ij}, \sigma^2\bigr), \quad
        W_{in}, H_{nj} \sim \operatorname{Exp}(\lambda), \quad
        \sigma^2 \sim \operatorname{InvGamma}(k, \theta)

    A sweep draws the columns of W, then :math:`\sigma^2`, then the rows of H. With a flat prior
    the scale between the factors is free; each component is then brought to unit norm. Given
    the rest, a column of W is normal with mean :math:`(D_n - \sum_{m \ne n} W_m C_{mn} -
    \lambda\sigma^2) / C_{nn}` and variance :math:`\sigma^2 / C_{nn}`, cut off at zero, where
    :math:`C = H H^\top` and :math:`D = X H^\top`; and :math:`\sigma^2` is
    :math:`\operatorname{InvGamma}(k + \tfrac12 IJ, \theta + \tfrac12 \lVert X - WH \rVert^2)`.

    Parameters
    ----------
    X : ndarray of shape (n_samples, n_features)
        The data.
    W : ndarray of shape (n_samples, n_components)
        Start of the coefficients.
    H : ndarray of shape (n_components, n_features)
        Start of the components.
    rng : numpy.random.Generator or None
        Source of randomness. None takes the mode of each conditional instead of a draw:
        iterated conditional modes.
    rate : float, default=0.0
        Rate of the exponential prior of both factors; 0 is flat on the half line.
    shape, scale : float, default=0.0
        Parameters of the prior of the variance; 0 is scale-invariant.
    variance : float, default=1.0
        Start of the variance of the noise.

    Yields
    ------
    W, H : ndarray
        The state after the sweep. The next one may change them in place.
    variance : float
        The variance of the noise.
    cost : float
        Half the squared error.
    """
    W, B = W.astype(np.float64), H.T.astype(np.float64)  # B as rows, like W
    squared_norm = float(np.vdot(X, X))
    mean_square = squared_norm / X.size or 1.0
    floor = GIBBS.noise_floor * mean_square
    ceiling = GIBBS.noise_ceiling * mean_square if rng is not None and scale == 0 else np.inf

    def update(A: np.ndarray, gram: np.ndarray, cross: np.ndarray) -> None:
        """Update the columns of `A` (rows, components) in turn, in place: draws, or modes."""
        for n in range(A.shape[1]):
            curvature = gram[n, n]
            if curvature <= 0:  # the data say nothing on this column: it keeps its values
                continue
            mean = A[:, n] + (cross[:, n] - A @ gram[:, n] - variance * rate) / curvature
            if rng is None:
                A[:, n] = np.maximum(mean, 0.0)
            else:
                A[:, n] = draw_truncated_normal(mean, np.sqrt(variance / curvature), rng)

    gram, cross = B.T @ B, X @ B
    while True:
        update(W, gram, cross)
        rest = scale + least_squares_cost(squared_norm, W, cross, gram)
        if rng is None:
            variance = rest / (0.5 * X.size + shape + 1.0)
        else:
            variance = rest / rng.standard_gamma(0.5 * X.size + shape)
        variance = min(max(variance, floor), ceiling)
        gram, cross = W.T @ W, X.T @ W
        update(B, gram, cross)
        cost = least_squares_cost(squared_norm, B, cross, gram)
        if rate == 0:  # the scale between the factors would wander
            W, H = normalize_components(W, B.T)
            B = H.T
        gram, cross = B.T @ B, X @ B
        yield W, B.T, variance, cost


def conditional_modes(
    X: np.ndarray,
    W: np.ndarray,
    H: np.ndarray,
    *,
    max_iter: int = 1000,
    tol: float = 1e-6,
    **prior: float,
) -> Run:
    r"""Climb to a mode of the posterior by iterated conditional modes.

    .. math:: W_n \leftarrow \max\Bigl(0,
        \frac{D_n - \sum_{m \ne n} W_m C_{mn} - \lambda\sigma^2}{C_{nn}}\Bigr), \qquad
        \sigma^2 \leftarrow \frac{\theta + \tfrac12 \lVert X - WH \rVert^2}{\tfrac12 IJ + k + 1}

    Every step raises the posterior density. Stops when the relative change of the error in one
    sweep falls below `tol`.

    Parameters
    ----------
    X, W, H
        As in `gibbs_samples`.
    max_iter : int, default=1000
        The limit on sweeps.
    tol : float, default=1e-6
        The least relative change of the error; 0 does all sweeps.
    **prior : float
        The `rate`, `shape` and `scale` of `gibbs_samples`.

    Returns
    -------
    result : Run
        The factors and the records of the run.
    """
    modes = gibbs_samples(X, W, H, None, **prior)
    variance = 1.0

    def sweep(W: np.ndarray, H: np.ndarray) -> tuple[np.ndarray, np.ndarray, float]:
        nonlocal variance
        W, H, variance, cost = next(modes)
        return W, H, cost

    run = iterate(sweep, X, W, H, max_iter=max_iter, tol=tol)
    run.fitted["noise_variance_"] = variance
    return run


def multinomial_em(
    X: np.ndarray, W: np.ndarray, H: np.ndarray
) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    r"""Run expectation maximisation for counts; each step gives the state after one iteration.

    .. math::

        p_{ij} = \tfrac1K \sum_k w_{ik} h_{kj}, \qquad
        w_{ik} \leftarrow \frac{w_{ik} \sum_j h_{kj} x_{ij} / p_{ij}}{\sum_i \cdots}, \qquad
        h_{kj} \leftarrow \frac{h_{kj} \sum_i w_{ik} x_{ij} / p_{ij}}{\sum_j \cdots}

    where X, the columns of W and the rows of H sum to one: pairs (i, j) are drawn by drawing a
    component, all of which are as likely, then a sample and a feature. Both factors are updated
    from the same :math:`p`. No step lowers the likelihood :math:`\sum x_{ij} \log p_{ij}` of the
    model whose components have weights of their own; these stay at 1/K in the toolbox.

    Parameters
    ----------
    X, W, H
        As in `gibbs_samples`; positive starts.

    Yields
    ------
    W, H : ndarray
        The state after the iteration.
    """
    tiny = np.finfo(np.float64).tiny
    X = X / max(float(X.sum()), tiny)
    W, H = W / np.maximum(W.sum(axis=0), tiny), H / np.maximum(H.sum(axis=1), tiny)[:, None]
    while True:
        model = W @ H
        ratio = np.divide(X, model, out=np.zeros_like(model), where=model > 0)
        new_W, new_H = W * (ratio @ H.T), H * (W.T @ ratio)
        left, right = new_W.sum(axis=0), new_H.sum(axis=1)
        # A component that explains nothing keeps its values.
        W = np.where(left > 0, new_W / np.where(left > 0, left, 1.0), W)
        H = np.where(right[:, None] > 0, new_H / np.where(right > 0, right, 1.0)[:, None], H)
        yield W, H


@declare
class BayesianNMF(NonnegativeFactorization):
    r"""Cluster by Bayesian nonnegative matrix factorisation (B-NMF).

    .. math::

        X_{ij} \sim N\bigl((WH)_{ij}, \sigma^2\bigr), \quad
        W_{in}, H_{nj} \sim \operatorname{Exp}(\lambda), \quad
        \sigma^2 \sim \operatorname{InvGamma}(k, \theta)

    with the flattened samples as rows of X, memberships W and components H. A Gibbs sampler draws
    each column of W and row of H from its exact conditional distribution, a normal cut off at
    zero; the components are the mean of the draws after the burn-in. With `method="icm"` the mode
    of each conditional is taken instead, which climbs to a mode of the posterior. With
    `method="multinomial"` X is taken for counts and factorised by expectation maximisation
    (`multinomial_em`). Labels come from k-means on the memberships.

    Parameters
    ----------
    n_clusters : int, default=8
        The number of clusters, and of components where the model has any.
    method : {"gibbs", "icm", "multinomial"}, default="gibbs"
        Mean of a Gibbs sampler; posterior mode by iterated conditional modes; or Hansen's
        multinomial model, the only probabilistic method of the toolbox that the paper names.
    burn_in : float, default=0.5
        The share of the sweeps that the sampler discards, at least 0 and below 1.
    rate : float, default=0.0
        Rate of the exponential priors, in units of one over the root of the largest entry of
        the data. 0 is flat on the half line.
    noise_shape : float, default=0.0
        Shape of the inverse-gamma prior of the noise variance.
    noise_scale : float, default=0.0
        Its scale, in units of the square of the largest entry of the data.
    max_iter : int, default=1000
        The number of sweeps of each start, for "icm" the limit on it; 1000 is the toolbox's.
    tol : float, default=1e-6
        For "icm", stop when the error changes relatively by less in one sweep. The sampler does
        all its sweeps.
    assign_labels : {"kmeans", "argmax"}, default="kmeans"
        Labels by k-means on the memberships, or by the largest one.
    n_init : int, default=1
        The number of starts; the run of least cost is kept.
    random_state : None, int, Generator or RandomState, default=None
        Source of randomness for the starts and for k-means.

    Attributes
    ----------
    labels_ : array of shape (n_samples,)
        The cluster of each sample; every label occurs.
    memberships_ : array of shape (n_samples, n_clusters)
        Nonnegative weights of the components in each sample.
    cost_ : float
        Half the squared error of the last record, in units of the data.
    history_ : list of Step
        One record per sweep, the start first. The cost of a sampler does not fall steadily. The
        last record is that of the posterior mean.
    n_iter_ : int
        Iterations of the best start.
    stop_reason_ : StopReason
        Why the best start ended.
    failure_ : str
        Empty; the reason where a method fails.
    sample_shape_ : tuple of int
        The shape of a sample.
    n_features_in_ : int
        The length of its first axis.
    components_ : array of shape (n_clusters, d_1, ...)
        The components, each of unit norm.
    centroids_ : array of shape (n_clusters, d_1, ...)
        The mean model sample of each cluster.
    membership_centers_ : array of shape (n_clusters, n_clusters)
        The mean memberships of each cluster.
    noise_variance_ : float
        Posterior mean (or mode) of the variance of the noise, in units of the data; "multinomial"
        has none.

    Notes
    -----
    The paper cites Schmidt's sampler, and says that its code is that of the toolbox of the
    Technical University of Denmark, whose only probabilistic method is the multinomial model. The
    figures of that model are close to the paper's, those of the sampler are not. The memberships of
    "multinomial" are the toolbox's, columns of W that sum to one, with the scale left to the
    components; only new samples get theirs by least squares.

    Defaults are those of the author's sampler: flat priors. What differs from it: far in the tail
    the draw is exact where his takes an exponential; each component is kept at unit norm,
    because under flat priors the scale between W and H is free and wanders; the variance of the
    noise stays below the mean square of the data, because with more parameters than entries the
    posterior is improper; a component on which the data are silent keeps its values; the
    memberships are recomputed by exact nonnegative least squares on the mean components, so that
    `transform` and `fit` agree.

    References
    ----------
    Schmidt, Winther and Hansen (2009), Bayesian non-negative matrix factorization, ICA.

    Examples
    --------
    >>> import numpy as np
    >>> from tuckermix.baselines import BayesianNMF
    >>> X = np.repeat(np.eye(3), 4, axis=0).reshape(12, 3, 1)
    >>> labels = BayesianNMF(n_clusters=3, max_iter=100, random_state=0).fit_predict(X)
    >>> len(set(labels.tolist()))
    3
    """

    method: str = "gibbs"
    burn_in: float = 0.5
    rate: float = 0.0
    noise_shape: float = 0.0
    noise_scale: float = 0.0
    tol: float = 1e-06

    _rules: ClassVar[Rules] = {
        "method": one_of(METHODS),
        "burn_in": share,
        "rate": check_real,
        "noise_shape": check_real,
        "noise_scale": check_real,
    }

    def _finish(self, X: np.ndarray, run: Run) -> None:
        if self.method != "multinomial":
            super()._finish(X, run)
            return
        # The toolbox leaves the scale in the components and lets the coefficients sum to one.
        sums = run.memberships.sum(axis=0)
        sums[sums == 0] = 1.0
        run.memberships = run.memberships / sums
        shape = (-1,) + (1,) * (X.ndim - 1)
        run.fitted["components_"] = run.fitted["components_"] * sums.reshape(shape)

    def _factorize(self, X: np.ndarray, W: np.ndarray, H: np.ndarray, rng: Generator) -> Run:
        prior = {"rate": self.rate, "shape": self.noise_shape, "scale": self.noise_scale}
        if self.method == "icm":
            return conditional_modes(X, W, H, max_iter=self.max_iter, tol=self.tol, **prior)
        squared_norm = float(np.vdot(X, X))
        trace = Trace(squared_norm)
        trace.add(least_squares_cost(squared_norm, W, X @ H.T, H @ H.T))
        if self.method == "multinomial":
            weight = float(X.sum()) / self.n_clusters
            states = multinomial_em(X, W, H)
            for W, H in itertools.islice(states, self.max_iter):
                trace.add(least_squares_cost(squared_norm, weight * W, X @ H.T, H @ H.T))
            return trace.run(weight * W, StopReason.MAX_ITER, fitted={"components_": H})
        discarded = int(self.burn_in * self.max_iter)
        kept = self.max_iter - discarded
        mean_W, mean_H, variance = np.zeros_like(W), np.zeros_like(H), 0.0
        samples = itertools.islice(gibbs_samples(X, W, H, rng, **prior), self.max_iter)
        for sweep, (draw_W, draw_H, draw_variance, cost) in enumerate(samples):
            trace.add(cost)
            if sweep >= discarded:
                if self.rate > 0:
                    draw_W, draw_H = normalize_components(draw_W, draw_H)
                mean_W += draw_W / kept
                mean_H += draw_H / kept
                variance += draw_variance / kept
        trace.add(least_squares_cost(squared_norm, mean_W, X @ mean_H.T, mean_H @ mean_H.T))
        fitted = {"components_": mean_H, "noise_variance_": variance}
        # The record of the mean is no sweep.
        return trace.run(mean_W, StopReason.MAX_ITER, n_iter=self.max_iter, fitted=fitted)
