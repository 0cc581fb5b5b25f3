r"""Nonnegative least squares for many right-hand sides, and the pieces around it.

.. math:: \min_{H \ge 0} \tfrac12 \lVert X - H C \rVert_F^2

Samples are rows: `X` (n, D), the coefficients `H` (n, K), the components `C` (K, D). Everything
here works on the Gram matrix :math:`A = C C^\top` and the cross products :math:`R = X C^\top`,
so that the large matrix `X` is read once, by whoever forms `R`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy.optimize import nnls

from tuckermix._array_api import blocks

TINY = np.finfo(np.float64).tiny
"""Added to numerator and denominator of a multiplicative rule: 0/0 becomes 1, no step."""


@dataclass(frozen=True)
class Pivoting:
    """Settings of block principal pivoting."""

    full_exchanges: int = 3
    """How often all violations of a row are exchanged at once without their number falling, before
    single exchanges take over: the figure of Kim and Park, after Portugal et al. (1994)."""
    rounds_per_component: int = 5
    """Exchanges per component before SciPy's active-set method takes a row. Rows need three to
    eight rounds in all; only rounding on nearly singular systems makes them cycle."""
    violation: float = 1e-12
    """Signs are read with this relative tolerance: between the rounding of a small system (1e-15)
    and the accuracy promised for the solution (1e-8)."""
    singular: float = 1e-10
    """Smallest eigenvalue, for unit diagonal, of a regular Gram matrix. Below it the minimiser is
    not unique; adding this ridge picks nearly the one of least norm, which is continuous in the
    data. It is the square of 1e-5, the accuracy to which components can be told apart, and well
    above the rounding of the Gram matrix (1e-15)."""
    padding: int = 4
    """Passive sets are solved in batches of this many neighbouring sizes: little wasted work for
    ten components and few batches for a hundred."""


PIVOTING = Pivoting()


def nonnegative_least_squares(
    gram: np.ndarray, cross: np.ndarray, *, start: np.ndarray | None = None
) -> np.ndarray:
    r"""Solve nonnegative least squares for all rows by block principal pivoting.

    .. math::

        H = \arg\min_{H \ge 0} \tfrac12 \operatorname{tr}(H A H^\top) - \operatorname{tr}(R H^\top)

    Each row `h` with gradient :math:`y = A h - r` is optimal when :math:`h \ge 0`,
    :math:`y \ge 0` and :math:`h_i y_i = 0`. A passive set F fixes :math:`h_F = A_{FF}^{-1} r_F` and
    zeros elsewhere; indices with the wrong sign are exchanged, all at once as long as that makes
    progress. All rows are pivoted together, and passive sets of about the same size are solved in
    one batch.

    Parameters
    ----------
    gram : ndarray of shape (n_components, n_components)
        The Gram matrix A, positive semidefinite.
    cross : ndarray of shape (n_rows, n_components)
        The cross products R, one row for each problem.
    start : ndarray of shape (n_rows, n_components), default=None
        Coefficients whose positive entries form the first passive sets. The solution does not
        depend on it; near the solution it saves most of the work.

    Returns
    -------
    H : ndarray of shape (n_rows, n_components)
        The nonnegative coefficients, float64.

    References
    ----------
    Kim and Park (2008), Toward faster nonnegative matrix factorization: a new algorithm and
    comparisons, ICDM.
    """
    gram = np.asarray(gram, dtype=np.float64)
    cross = np.asarray(cross, dtype=np.float64)
    n_rows, n_components = cross.shape
    H = np.zeros((n_rows, n_components))
    norms = np.sqrt(np.maximum(np.diagonal(gram), 0.0))
    used = norms > 0  # a zero component takes no part: its coefficient is zero
    if n_rows == 0 or not used.any():
        return H
    # Unit diagonal: signs are unchanged, and one tolerance fits all components.
    norms = norms[used]
    A = gram[np.ix_(used, used)] / norms[:, None] / norms[None, :]
    R = cross[:, used] / norms
    if np.linalg.eigvalsh(A)[0] < PIVOTING.singular:
        A = A + PIVOTING.singular * np.eye(A.shape[0])
    scale = np.max(np.abs(R), axis=1, keepdims=True)
    scale[scale == 0] = 1.0
    passive = np.zeros(R.shape, dtype=bool) if start is None else start[:, used] > 0
    H[:, used] = _pivot(A, R / scale, passive) * (scale / norms)
    return H


def _pivot(
    A: np.ndarray, R: np.ndarray, passive: np.ndarray, settings: Pivoting = PIVOTING
) -> np.ndarray:
    """Exchange until no row violates its signs; `A` has unit diagonal, rows of `R` size one."""
    n_rows, size = R.shape
    H = np.zeros_like(R)
    active = np.arange(n_rows)  # the rows still at work
    passive = passive.copy()
    best = np.full(n_rows, size + 1)  # the fewest violations seen
    chances = np.full(n_rows, settings.full_exchanges)
    for _ in range(settings.rounds_per_component * size + settings.full_exchanges):
        h = _solve_passive(A, R[active], passive[active])
        y = h @ A - R[active]
        F = passive[active]
        wrong = np.where(F, h < -settings.violation, y < -settings.violation)
        n_wrong = np.count_nonzero(wrong, axis=1)
        H[active] = h
        rest = n_wrong > 0
        if not rest.any():
            return np.maximum(H, 0.0)
        active, wrong, n_wrong = active[rest], wrong[rest], n_wrong[rest]
        fewer = n_wrong < best[active]
        best[active[fewer]] = n_wrong[fewer]
        chances[active] = np.where(fewer, settings.full_exchanges, chances[active] - 1)
        single = np.flatnonzero(chances[active] < 0)
        last = size - 1 - np.argmax(wrong[single, ::-1], axis=1)
        wrong[single] = False
        wrong[single, last] = True
        passive[active] ^= wrong
    H[active] = _active_set(A, R[active])
    return np.maximum(H, 0.0)


def _solve_passive(A: np.ndarray, R: np.ndarray, passive: np.ndarray) -> np.ndarray:
    """Solve each row on its passive set, in batches of systems of nearly equal size.

    A set is filled up to a multiple of `padding` with variables of their own equation x = 0, so
    that a few batches serve all sizes.
    """
    n_components, padding = A.shape[0], PIVOTING.padding
    if passive.all():
        return np.linalg.solve(A, R.T).T
    sizes = np.count_nonzero(passive, axis=1)
    padded = np.eye(n_components + padding)
    padded[:n_components, :n_components] = A
    h = np.zeros((len(R), n_components + padding))
    right = np.hstack([R, np.zeros((len(R), padding))])
    order = np.argsort(~passive, axis=1, kind="stable")  # the passive indices first
    width = -(-sizes // padding) * padding
    for size in np.unique(width[sizes > 0]):
        batch = np.flatnonzero(width == size)
        slots = np.arange(size)
        for part in blocks(len(batch), 8 * int(size) ** 2):
            rows = batch[part]
            spare = slots - sizes[rows, None]  # counts up from 0 behind the passive indices
            index = order[rows[:, None], np.minimum(slots, n_components - 1)]
            index = np.where(spare < 0, index, n_components + spare)
            systems = padded[index[:, :, None], index[:, None, :]]
            values = np.linalg.solve(systems, right[rows[:, None], index][:, :, None])
            h[rows[:, None], index] = values[:, :, 0]
    return h[:, :n_components]


def _active_set(A: np.ndarray, R: np.ndarray) -> np.ndarray:
    """Solve the rows that cycle by SciPy's active-set method, on a square root of `A`."""
    values, vectors = np.linalg.eigh(A)
    root = np.sqrt(np.maximum(values, PIVOTING.singular))
    design = root[:, None] * vectors.T
    targets = (R @ vectors) / root
    return np.stack([nnls(design, target)[0] for target in targets])


def solve_components(X: np.ndarray, components: np.ndarray) -> np.ndarray:
    r"""Find the nonnegative coefficients of samples on fixed components.

    .. math:: \arg\min_{H \ge 0} \lVert X - H C \rVert_F^2

    Parameters
    ----------
    X : ndarray of shape (n_samples, d_1, ...)
        The samples.
    components : ndarray of shape (n_components, d_1, ...)
        The components C.

    Returns
    -------
    H : ndarray of shape (n_samples, n_components)
        The coefficients, float64.
    """
    n_features = math.prod(components.shape[1:])
    X = np.asarray(X, dtype=np.float64).reshape(len(X), n_features)
    components = np.asarray(components, dtype=np.float64).reshape(len(components), n_features)
    # Products of tiny or huge numbers leave the range of floats: solve for both at size one.
    data_scale, component_scale = scale_of(X), scale_of(components)
    C = components / component_scale
    H = nonnegative_least_squares(C @ C.T, (X / data_scale) @ C.T)
    H *= data_scale / component_scale
    return H


def scale_of(array: np.ndarray) -> float:
    """Return the largest absolute entry, or 1 for an array of zeros: the unit to compute in."""
    largest = float(np.max(np.abs(array), initial=0.0))
    return largest if largest > 0 else 1.0


def unit_rows(rows: np.ndarray) -> np.ndarray:
    """Divide each row by its norm; a row of zeros stays."""
    norms = np.linalg.norm(rows, axis=1, keepdims=True)
    return rows / np.where(norms > 0, norms, 1.0)


def normalize_components(W: np.ndarray, H: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    r"""Give each component unit norm and its coefficients the rest of the scale.

    The product :math:`WH` is the same. Without this the free scale of each column of `W` would
    decide what k-means on its rows sees.

    Parameters
    ----------
    W : ndarray of shape (n_samples, n_components)
        The coefficients.
    H : ndarray of shape (n_components, n_features)
        The components; those that are zero stay zero.

    Returns
    -------
    W, H : ndarray
        The same product.
    """
    norms = np.linalg.norm(H, axis=1)
    norms[norms == 0] = 1.0
    return W * norms, H / norms[:, None]


def least_squares_cost(
    squared_norm: float, H: np.ndarray, cross: np.ndarray, gram: np.ndarray
) -> float:
    r"""Evaluate :math:`\tfrac12\lVert X - HC\rVert^2` from products, without forming `H C`.

    .. math:: \tfrac12 \lVert X\rVert^2 - \langle H, R\rangle + \tfrac12 \langle H^\top H, A\rangle

    Parameters
    ----------
    squared_norm : float
        The squared norm of the data.
    H : ndarray of shape (n_rows, n_components)
        The coefficients.
    cross : ndarray of shape (n_rows, n_components)
        The cross products R.
    gram : ndarray of shape (n_components, n_components)
        The Gram matrix A.

    Returns
    -------
    cost : float
        The cost; zero where rounding would make it negative.
    """
    value = 0.5 * squared_norm - float(np.vdot(H, cross)) + 0.5 * float(np.vdot(H.T @ H, gram))
    return max(0.0, value)


def projected_gradient_norm(*pairs: tuple[np.ndarray, np.ndarray]) -> float:
    r"""Return the norm of the gradient where a step along it stays feasible.

    An entry counts where the gradient is negative or the variable positive; the norm vanishes
    exactly at the stationary points of the nonnegative problem.

    Parameters
    ----------
    *pairs : tuple of (ndarray, ndarray)
        Variables and their gradients.

    Returns
    -------
    norm : float
        The joint Frobenius norm.
    """
    total = 0.0
    for variable, gradient in pairs:
        free = gradient * ((gradient < 0) | (variable > 0))
        total += float(np.vdot(free, free))
    return float(np.sqrt(total))


def random_start(
    X: np.ndarray, n_components: int, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    r"""Draw uniform factors whose product has the mean of the data.

    .. math:: W, H \sim U(0, 1), \quad \text{both divided by } \sqrt{\textstyle\sum WH / \sum X}

    Parameters
    ----------
    X : ndarray of shape (n_samples, n_features)
        The data, nonnegative.
    n_components : int
        The number of components.
    rng : numpy.random.Generator
        Source of randomness.

    Returns
    -------
    W : ndarray of shape (n_samples, n_components)
        Coefficients.
    H : ndarray of shape (n_components, n_features)
        Components.
    """
    W = rng.random((X.shape[0], n_components))
    H = rng.random((n_components, X.shape[1]))
    product, total = float(W.sum(axis=0) @ H.sum(axis=1)), float(X.sum())
    factor = np.sqrt(total / product) if total > 0 else 1.0
    return (W * factor).astype(X.dtype, copy=False), (H * factor).astype(X.dtype, copy=False)
