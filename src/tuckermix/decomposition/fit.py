"""From samples to the model: choose ranks and a start, run a solver."""

from __future__ import annotations

from typing import Any

import numpy as np

from tuckermix._array_api import Array, is_dask
from tuckermix._threads import one_blas_thread
from tuckermix._validation import (
    as_tensor,
    check_integer,
    check_option,
    check_random_state,
    check_real,
)
from tuckermix.decomposition.exact import Callback, Sweeps, solve_exact
from tuckermix.decomposition.ranks import check_ranks, ranks_from_energy
from tuckermix.decomposition.result import Decomposition
from tuckermix.decomposition.start import INITS, start_factors
from tuckermix.sources import Source, as_source
from tuckermix.sources.memory import explain_shortage

__all__ = ["SOLVERS", "decompose", "decompose_source"]

SOLVERS = ("exact", "trust-region", "joint")

MANY_SAMPLES = 16384
"""From this many samples on, the exact solver starts from the solution for a random part of them:
the start then costs next to nothing and two or three sweeps over all samples are left."""

PART = 4096
"""How many samples that part has: enough to fix the leading directions of any data to within what
one sweep over all samples repairs."""

PART_TOL = 1e-4
"""Tolerance on the part, whose solution is only a start."""


@explain_shortage
@one_blas_thread
def decompose(
    X: Any,
    n_components: int,
    ranks: Any = None,
    *,
    solver: str = "exact",
    init: str = "hosvd",
    n_init: int = 1,
    max_iter: int = 100,
    tol: float = 1e-6,
    random_state: Any = None,
    callback: Callback | None = None,
) -> Decomposition:
    r"""Fit the heterogeneous Tucker model without labels.

    .. math:: \min \tfrac12 \| X - G \times_0 U \times_1 U_1 \cdots \times_{N-1} U_{N-1} \|^2

    over mixing weights `U` with positive rows that sum to one, orthonormal factors and the core.

    Parameters
    ----------
    X : array of shape (n_samples, d_1, ...)
        The samples: a NumPy, PyTorch, CuPy, JAX or Dask array.
    n_components : int
        The number of components L. Fewer are fitted where the data have a lower rank.
    ranks : None, int, float or sequence of int, default=None
        The number of columns of each factor: one int for all modes, one for each, or the share of
        the centred energy to keep; None keeps 97 %.
    solver : {"exact", "trust-region", "joint"}, default="exact"
        Closed forms; the paper's trust region; all modes at once.
    init : {"hosvd", "hosvd-samples", "random"}, default="hosvd"
        Where the factors start.
    n_init : int, default=1
        The number of random starts, of which the best is kept; only for ``init="random"``.
    max_iter : int, default=100
        Most sweeps over all modes.
    tol : float, default=1e-6
        Stop when a sweep lowers the relative error by less than this.
    random_state : None, int, Generator or RandomState, default=None
        The source of randomness.
    callback : callable or None, default=None
        Called with a record after each sweep; a true return value stops the solver.

    Returns
    -------
    decomposition : Decomposition
        Factors, subspace of the memberships, core, cost, gap and history.

    Examples
    --------
    >>> from tuckermix import decompose
    >>> from tuckermix.datasets import make_tensor_clusters
    >>> X = make_tensor_clusters(random_state=0).X
    >>> fit = decompose(X, n_components=5, ranks=3)
    >>> fit.Q.shape
    (300, 5)
    """
    X = as_tensor(X, "decompose")
    if is_dask(X):
        from tuckermix.sources.dask import check_dask

        X = check_dask(X)
    check_integer(n_components, "n_components", "decompose")
    checked = check_ranks(ranks, tuple(int(size) for size in X.shape[1:]), "decompose")
    return decompose_source(
        as_source(X),
        n_components,
        checked,
        solver=check_option(solver, "solver", "decompose", SOLVERS),
        init=check_option(init, "init", "decompose", INITS),
        n_init=check_integer(n_init, "n_init", "decompose"),
        max_iter=check_integer(max_iter, "max_iter", "decompose"),
        tol=check_real(tol, "tol", "decompose"),
        rng=check_random_state(random_state),
        callback=callback,
    )


def decompose_source(
    source: Source,
    n_components: int,
    ranks: tuple[int, ...] | float,
    *,
    solver: str,
    init: str,
    n_init: int,
    max_iter: int,
    tol: float,
    rng: np.random.Generator,
    callback: Callback | None = None,
) -> Decomposition:
    """Fit the model to a source with parameters that are already checked; see `decompose`."""
    n_components = min(n_components, source.n_samples)
    best: Decomposition | None = None
    for _ in range(n_init if init == "random" else 1):
        result = _solve_once(
            source, n_components, ranks, solver, init, max_iter, tol, rng, callback
        )
        if best is None or result.cost < best.cost:
            best = result
    assert best is not None
    return best


def _solve_once(
    source: Source,
    n_components: int,
    ranks: tuple[int, ...] | float,
    solver: str,
    init: str,
    max_iter: int,
    tol: float,
    rng: np.random.Generator,
    callback: Callback | None,
) -> Decomposition:
    part = source
    if source.n_samples >= MANY_SAMPLES and n_components < PART // 2:
        part = source.take(np.sort(rng.choice(source.n_samples, size=PART, replace=False)))
    grams = None
    if isinstance(ranks, float):
        grams = part.mode_grams()
        ranks = ranks_from_energy(part, grams, ranks)
    if solver == "exact":
        if init == "hosvd" and part is not source:
            factors, directions = _start_from_part(part, ranks, n_components, max_iter, rng, grams)
        else:
            known = grams if part is source else None
            factors, directions = start_factors(source, ranks, init, rng, known), None
        return solve_exact(
            source,
            factors,
            n_components,
            max_iter=max_iter,
            tol=tol,
            directions=directions,
            callback=callback,
        )
    factors = start_factors(source, ranks, init, rng)
    if solver == "trust-region":
        from tuckermix.decomposition.alternating import solve_alternating

        return solve_alternating(
            source, factors, n_components, max_iter=max_iter, tol=tol, rng=rng, callback=callback
        )
    from tuckermix.decomposition.joint import solve_joint

    return solve_joint(
        source, factors, n_components, max_iter=max_iter, tol=tol, rng=rng, callback=callback
    )


def _start_from_part(
    part: Source,
    ranks: tuple[int, ...],
    n_components: int,
    max_iter: int,
    rng: np.random.Generator,
    grams: list[Array] | None,
) -> tuple[list[Array], Array]:
    """Sweep over a part of the samples; return its factors and a basis of directions."""
    factors = start_factors(part, ranks, "hosvd", rng, grams)
    return Sweeps(part, n_components - 1, PART_TOL).run(factors, None, max_iter)
