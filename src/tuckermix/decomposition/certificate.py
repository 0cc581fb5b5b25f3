r"""How far a solution is from what the theory says is possible, measured apart from the solver.

For fixed factors the theorem gives the largest value :math:`h^*` that memberships with L columns
can reach. The **gap** is what a solution misses of it, relative to the centred energy that L
components can explain,

.. math:: \text{gap} = \frac{h^* - h}{\tfrac12 \sum_{k<L} \sigma_k^2},

so that adding a constant to all samples does not hide it. The singular values come from the Gram
matrix of the smaller side of the projected samples, which knows nothing of the solver's subspace
`Q`; h is measured by multiplying the samples with `Q`. Where both sides are too large for a Gram
matrix, a random block that is orthogonal to what the solver found is iterated instead: the energy
that it finds is a lower bound on what exists, and the gap is then a lower bound on the true one.

The alternation over the factors ends at a point where no single mode can be improved, one of
possibly several. The **stationarity** says how far from such a point the factors are: the largest
norm over the modes of the Riemannian gradient
:math:`(I - U_n U_n^\top) S_n U_n`, with :math:`S_n` the Gram matrix of mode n of the samples
contracted with `Q` and the other factors, relative to the same centred energy.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from tuckermix._array_api import Array, double, epsilon, get_namespace, is_dask, to_numpy
from tuckermix._settings import Settings
from tuckermix.decomposition.result import Decomposition
from tuckermix.numerics.linalg import (
    DENSE_SIDE,
    leading_eigenvectors,
    orthonormal_basis,
    random_basis,
    rank_of,
)
from tuckermix.numerics.tensor import mode_dot, multi_mode_dot, unfold
from tuckermix.sources import Source


@dataclass(frozen=True)
class ProbeSettings(Settings):
    """How large problems are judged.

    Attributes
    ----------
    probes : int
        Random directions beside those of the solver, where no Gram matrix can be formed: a leading
        direction that the solver missed has a part in all of them.
    probe_steps : int
        Rounds of power iteration on them. A direction twice as energetic as the rest stands out by
        a factor of 2^12 in the energy after six.
    """

    probes: int = 16
    probe_steps: int = 6


def certify(source: Source, fit: Decomposition, n_directions: int) -> Decomposition:
    """Measure the gap and the stationarity of a solution, in one more pass over the samples.

    Parameters
    ----------
    source : Source
        The samples.
    fit : Decomposition
        The solution; what it says of itself is not used. Where the solver ended with such a pass,
        over the same factors and basis, that one is taken.
    n_directions : int
        How many centred directions it was allowed, one less than the components asked for.

    Returns
    -------
    fit : Decomposition
        The same with `gap` and `stationarity` set.
    """
    measured = fit.measured or source.measure(fit.factors, fit.Q)
    # The first column of Q is constant: what it explains is the mean, which no solution misses.
    within, cross, gram = measured.within[1:, 1:], measured.cross[1:, :], measured.gram
    if gram is None:
        gram = _smaller_gram(source, fit.factors, cross)
    sigma = np.sqrt(np.clip(np.linalg.eigvalsh(to_numpy(gram))[::-1][:n_directions], 0.0, None))
    rank = rank_of(sigma, source.squared_norm**0.5, epsilon(source.like))
    possible = float(np.sum(sigma[:rank] ** 2))
    if possible == 0.0:  # samples that are equal up to rounding
        return replace(fit, gap=0.0, stationarity=0.0, measured=None)
    reached = _explained(within, cross) if cross.shape[0] else 0.0
    slopes = []
    factors = [double(factor) for factor in fit.factors]
    for mode, factor in enumerate(factors):
        others = [None if n == mode else other for n, other in enumerate(factors)]
        B = multi_mode_dot(measured.contracted, others, transpose=True)
        slopes.append(_slope(B, factor, mode + 1))
    gap = max(0.0, possible - reached) / possible
    return replace(fit, gap=gap, stationarity=max(slopes) / possible, measured=None)


def _explained(within: Array, cross: Array) -> float:
    """Return the energy of rows within a subspace, from products with a basis of it."""
    xp = get_namespace(within)
    values, vectors = leading_eigenvectors(within, within.shape[0])
    keep = int(np.sum(to_numpy(values) > epsilon(values) * float(values[0])))
    if keep == within.shape[0]:
        return float(xp.sum(xp.linalg.solve(within, cross) * cross))
    # Columns that depend on others, as rounding may leave them, tell nothing more.
    along = xp.matmul(vectors[:, :keep].T, cross)
    return float(xp.sum(along * along / values[:keep, None]))


def _slope(B: Array, factor: Array, mode: int) -> float:
    """Return the norm of ``(I - F Fᵀ) B Bᵀ F``, with B unfolded along a mode."""
    xp = get_namespace(B)
    if math.prod(B.shape) < factor.shape[0] * factor.shape[1]:
        # No matrix of the size of the factor, which is that of a long mode.
        B = unfold(B, mode)
        along = xp.matmul(factor.T, B)
        beyond = B - xp.matmul(factor, along)
        return float(xp.sum(xp.matmul(along, xp.matmul(beyond.T, beyond)) * along)) ** 0.5
    rest = [axis for axis in range(B.ndim) if axis != mode]
    image = xp.tensordot(B, mode_dot(B, factor.T, mode), axes=(rest, rest))
    slope = image - xp.matmul(factor, xp.matmul(factor.T, image))
    return float(xp.sqrt(xp.sum(slope * slope)))


def _smaller_gram(source: Source, factors: list[Array], cross: Array) -> Array:
    """Return a Gram matrix with the leading energies where that of the columns is too large.

    For few samples it is that of the rows. With many of both, it is that of a subspace: the one
    that the solver found (`cross` holds its rows) and a random block, iterated outside it. Its
    eigenvalues are then lower bounds.
    """
    use = ProbeSettings.current()
    xp = get_namespace(source.mean)
    if source.n_samples <= DENSE_SIDE:
        B: Any = source.centred(factors)[0]
        B = double(B.compute() if is_dask(B) else B)
        return xp.matmul(B, B.T)
    found = orthonormal_basis(cross.T)
    probe = random_basis(cross.shape[1], use.probes, np.random.default_rng(use.probes), source.mean)
    for _ in range(use.probe_steps):
        probe = probe - xp.matmul(found, xp.matmul(found.T, probe))
        image = source.sketch(factors, orthonormal_basis(probe)).cross
        rows = multi_mode_dot(image, [double(factor) for factor in factors], transpose=True)
        probe = xp.reshape(rows, (rows.shape[0], cross.shape[1])).T
    basis = orthonormal_basis(xp.concat([found, probe], axis=1))
    return source.sketch(factors, basis, cross=False).gram
