"""From samples to the model: choose ranks and a start, run a solver.

The solvers are declared in `SOLVERS`. Each is a function
``solve(source, start, n_components)`` that returns a `Decomposition`.
"""

from __future__ import annotations

import importlib
import math
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from tuckermix._array_api import Array, asarray_like, to_numpy
from tuckermix._estimators import Settings
from tuckermix._names import EXACT, INITS, JOINT, TRUST_REGION
from tuckermix._optional import require
from tuckermix._records import Record
from tuckermix._threads import on_samples
from tuckermix._validation import (
    Rules,
    as_tensor,
    check_integer,
    check_random_state,
    check_ranks,
    check_real,
    one_of,
)
from tuckermix.decomposition.exact import sweep
from tuckermix.decomposition.result import Callback, Decomposition, Progress, Start, certify
from tuckermix.numerics import linalg
from tuckermix.numerics.tensor import mode_gram
from tuckermix.sources import Source, SpanSettings


@dataclass(frozen=True)
class RankSettings(Settings):
    """How ranks are chosen, and where solvers start.

    Attributes
    ----------
    samples_loops : int
        Rounds of the second initialisation; its factors hardly move after the second.
    default_energy : float
        Share of the centred energy of each mode, above the noise, that is kept when no ranks are
        given. With 97 %, faces and digits in noise of one or two standard deviations fall behind
        fixed ranks of 12 to 14; with 99 %, digits without noise do.
    short_mode : int
        A shorter mode has no tail to speak of: its last eighth is a single direction.
    wide : int
        An unfolding with that many columns for each row spreads white noise evenly, see
        `noise_floor`; with fewer, the tail says too little of the rest of the noise.
    flat : float
        Where less than this share of the energy is above the floor, the spectrum is flat: nothing
        tells the signal from the noise, and the share is that of all energy.
    small_mode : int
        A mode of at most this size is kept whole: cutting it saves nothing and may cut a feature.
    part_tol : float
        Tolerance on the part, whose solution is only a start, and differs more from that of all.
    least_kept : float
        The share of the centred energy that a single direction of a mode must keep, lest it be that
        of the mean and samples that differ look the same.
    """

    samples_loops: int = 3
    default_energy: float = 0.98
    short_mode: int = 16
    wide: int = 16
    flat: float = 0.01
    small_mode: int = 4
    part_tol: float = 0.001
    least_kept: float = 0.5


TAIL = 8
"""The last eighth of a spectrum tells the noise: few signals reach that far."""


MANY_SAMPLES = 16384
"""From this many samples on, the exact solver starts from the solution for a random part of them:
the start then costs next to nothing and one or two sweeps over all samples are left."""

PART = 2048
"""How many samples that part has: enough to fix the leading directions of any data to within what
one sweep over all samples repairs."""


@dataclass(frozen=True)
class Solver(Record):
    """Interface of a solver.

    Attributes
    ----------
    function : str
        Where it is, as ``"module:name"``; imported when it is first used.
    gives : {"subspace", "memberships"}
        Whether it determines the subspace of the mixing weights only, or the weights too.
    from_part : bool
        Whether it can start from the solution for a part of many samples.
    package : str or None
        The optional package that it needs, which is also the name of the extra.
    """

    function: str
    gives: str = "subspace"
    from_part: bool = False
    package: str | None = None


SOLVERS: dict[str, Solver] = {
    EXACT: Solver("tuckermix.decomposition.exact:solve_exact", from_part=True),
    TRUST_REGION: Solver(
        "tuckermix.decomposition.alternating:solve_alternating", gives="memberships"
    ),
    JOINT: Solver(
        "tuckermix.decomposition.alternating:solve_joint", gives="memberships", package="pymanopt"
    ),
}
"""The solvers by name. Another one is another entry."""

OPTIONS: Rules = {
    "solver": one_of(SOLVERS),
    "init": one_of(INITS),
    "n_init": check_integer,
    "max_iter": check_integer,
    "tol": check_real,
}
"""Options of a decomposition beside the numbers of components and ranks, with the rule of each."""


@on_samples
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
        the centred energy to keep. None keeps 98 % of the energy above the noise.
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
    n_components = check_integer(n_components, "n_components", "decompose")
    ranks = check_ranks(ranks, tuple(int(size) for size in X.shape[1:]), "decompose")
    given = {"solver": solver, "init": init, "n_init": n_init, "max_iter": max_iter, "tol": tol}
    options = {name: rule(given[name], name, "decompose") for name, rule in OPTIONS.items()}
    rng = check_random_state(random_state)
    return decompose_source(Source(X), n_components, ranks, **options, rng=rng, callback=callback)


def decompose_source(
    source: Source,
    n_components: int,
    ranks: tuple[int, ...] | float | None,
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
    use = RankSettings.current()
    choice = SOLVERS[solver]
    if choice.package:
        require(choice.package, f'solver="{solver}"', choice.package)
    module, name = choice.function.split(":")
    solve = getattr(importlib.import_module(module), name)
    n_components = min(n_components, source.n_samples)
    given, whole, use_spans = source, source, SpanSettings.current()
    spans: list[Array | None] = []
    if max(source.sample_shape) > min(use_spans.long_mode, use_spans.dense_side):
        spans, exact = source.spans(ranks if isinstance(ranks, tuple) else None)
        whole = source.within(spans)
    part = whole
    if whole.n_samples >= MANY_SAMPLES and n_components < PART // 2:
        part = whole.take(np.sort(rng.choice(whole.n_samples, size=PART, replace=False)))
    grams = None
    asked = isinstance(ranks, tuple)
    if not isinstance(ranks, tuple):
        grams = part.mode_grams()
        ranks = ranks_from_energy(grams, part.mean, part.n_samples, ranks)
    source, bases = whole, None
    if not whole.lazy and max(whole.sample_shape) > use_spans.many_entries:
        bases, grams = strongest_spans(part, ranks, grams, asked=asked)
        source = whole.within(bases)
        part = source if part is whole else part.within(bases)
    begin = source
    if part is not source:
        if init == "hosvd" and choice.from_part:
            begin = part
        else:
            grams = None
    best: Decomposition | None = None
    for _ in range(n_init if init == "random" else 1):
        factors = start_factors(begin, ranks, init, rng, grams)
        start = Start(factors, rng, None, max_iter, tol, callback)
        if begin is not source:  # its solution is a start for all samples
            rough = replace(start, tol=use.part_tol)
            factors, directions = sweep(Progress(part), rough, n_components - 1)
            start = replace(start, factors=factors, directions=directions)
        result = solve(source, start, n_components)
        if best is None or result.cost < best.cost:
            best = result
    assert best is not None
    if math.isinf(best.cost):
        warnings.warn(
            "The cost of numbers as large as these is beyond the range of floating point: it is "
            "given as infinity, all else holds. Divide X by a constant for a finite one.",
            RuntimeWarning,
            stacklevel=3,
        )
    if bases is not None:
        # The rows within the bases are those of the samples, and shorter.
        measured = replace(source.measure(best.factors, best.Q), contracted=whole.contract(best.Q))
        best = replace(lifted(best, bases), measured=measured)
    if whole is given:
        return certify(given, best, n_components - 1)
    if exact:  # then the samples within the bases tell as much, in less memory
        return lifted(certify(whole, best, n_components - 1), spans)
    return certify(given, lifted(best, spans), n_components - 1)


def lifted(fit: Decomposition, bases: Sequence[Array | None]) -> Decomposition:
    """Return a solution for whole modes from one along bases of some, which are given up."""
    if all(basis is None for basis in bases):
        return fit
    return replace(fit, factors=_lifted_factors(fit.factors, bases), measured=None)


def _lifted_factors(factors: Sequence[Array], bases: Sequence[Array | None]) -> list[Array]:
    return [
        factor if basis is None else linalg.times_in_place(asarray_like(basis, factor), factor)
        for factor, basis in zip(factors, bases, strict=True)
    ]


def strongest_spans(
    source: Source, ranks: tuple[int, ...], grams: list[Array] | None, *, asked: bool
) -> tuple[list[Array | None], list[Array] | None]:
    """Find the strongest directions of long modes, in which the solvers work.

    Of a mode of more than a thousand entries, such as the channels of a network, the solution needs
    `ranks` directions. It looks for them among half as many more, the leading ones of the
    unfolding: each reading of the samples is shorter by that. Ranks that nobody asked for may be
    as good as their limit allows: then the leading directions are taken as they are. What is left
    out changes the cost by far less than the ranks do, and `certify` looks at the whole mode.

    Parameters
    ----------
    source : Source
        The samples, or a part of them.
    ranks : tuple of int
        The number of columns of each factor.
    grams : list of arrays of shape (d_n, d_n) or None
        The Gram matrices of the modes, where they are known.
    asked : bool
        Whether these ranks were asked for.

    Returns
    -------
    bases : list of arrays of shape (d_n, w_n) or None
        Orthonormal columns, in float64; None for modes that stay as they are.
    grams : list of arrays of shape (w_n, w_n) or None
        The Gram matrices within the bases, where they are known.
    """
    settings, shape = SpanSettings.current(), source.sample_shape
    bases: list[Array | None] = [None] * len(shape)
    for mode, (size, rank) in enumerate(zip(shape, ranks, strict=True)):
        width = round(settings.wider * rank) + settings.further
        width = width if asked else max(rank, min(width, settings.most_directions))
        if size > settings.many_entries and len(shape) > 1 and 2 * width <= size:
            grams = source.mode_grams() if grams is None else list(grams)
            basis = linalg.leading_eigenvectors(grams[mode], width)[1]
            bases[mode], grams[mode] = basis, basis.T @ (grams[mode] @ basis)
    return bases, grams


def noise_floor(energy: np.ndarray, n_columns: int) -> float:
    """Estimate how much white noise adds to each eigenvalue of an unfolding.

    Noise of variance s² in an unfolding of size (d, n) adds about ``n s²`` to every eigenvalue. By
    the law of Marchenko and Pastur its own lie within ``n s² (1 ± √(d / n))²``, which for the wide
    unfoldings of images is a small spread. The last eighth of the spectrum is near the lower end,
    so that its mean divided by ``(1 - √(d / n))²`` is ``n s²``. To subtract the upper end would
    drop directions that tell classes apart.

    Parameters
    ----------
    energy : ndarray of shape (d,)
        The eigenvalues of the centred Gram matrix of the unfolding, falling.
    n_columns : int
        The number n of its columns.

    Returns
    -------
    floor : float
        The estimate; 0 for short modes and narrow unfoldings, which do not tell.
    """
    use = RankSettings.current()
    size = len(energy)
    if size < use.short_mode or n_columns < use.wide * size:
        return 0.0
    return float(energy[-(size // TAIL) :].mean()) / (1.0 - (size / n_columns) ** 0.5) ** 2


def ranks_from_energy(
    grams: list[Array], mean: Array, n_samples: int, share: float | None
) -> tuple[int, ...]:
    """Choose the smallest ranks that keep a share of the centred energy of each mode.

    Parameters
    ----------
    grams : list of arrays of shape (d_n, d_n)
        The Gram matrices of the feature modes.
    mean : array of shape (d_1, ...)
        The mean of the samples, in float64.
    n_samples : int
        The number of samples.
    share : float or None
        The share to keep, in (0, 1); None means 98 % of what is above the noise: the energy less
        `noise_floor`. A share that is given is one of all energy.

    Returns
    -------
    ranks : tuple of int
        One rank for each feature mode.
    """
    use = RankSettings.current()
    ranks = []
    n_entries, spans = n_samples * math.prod(mean.shape), SpanSettings.current()
    for mode, gram in enumerate(grams):
        if gram.shape[0] <= use.small_mode:
            ranks.append(int(gram.shape[0]))
            continue
        shift = n_samples * mode_gram(mean[None, ...], mode + 1)
        centred = to_numpy(gram - asarray_like(shift, gram))
        energy = np.clip(np.linalg.eigvalsh(centred)[::-1], 0.0, None)
        total = energy.sum()
        if total <= 0.0:
            ranks.append(1)
            continue
        if share is None:
            above = np.clip(energy - noise_floor(energy, n_entries // len(energy)), 0.0, None)
            if above.sum() > use.flat * total:
                energy, total = above, above.sum()
        kept = np.cumsum(energy) / total
        wanted = use.default_energy if share is None else share
        most = gram.shape[0]
        if share is None and most > spans.many_entries and len(grams) > 1:
            most = spans.most_directions
        rank = min(int(np.searchsorted(kept, wanted)) + 1, most)
        if rank == 1:
            # The one direction must not be spent on the mean, where all samples are the same.
            vector = to_numpy(linalg.leading_eigenvectors(gram, 1)[1])[:, 0]
            rank = 1 if vector @ centred @ vector > use.least_kept * total else 2
        ranks.append(rank)
    return tuple(ranks)


def hosvd(
    source: Source, ranks: tuple[int, ...] | float | None
) -> tuple[tuple[int, ...], list[Array]]:
    """Choose ranks, where none are given, and the leading singular vectors of each unfolding.

    Parameters
    ----------
    source : Source
        The samples.
    ranks : tuple of int, float or None
        One rank for each feature mode, or what `ranks_from_energy` chooses them by.

    Returns
    -------
    ranks : tuple of int
        One rank for each feature mode.
    factors : list of arrays of shape (d_n, r_n)
        Orthonormal columns, in float64.
    """
    bases, _ = source.spans(ranks if isinstance(ranks, tuple) else None)
    source = source.within(bases)
    grams = source.mode_grams()
    if not isinstance(ranks, tuple):
        ranks = ranks_from_energy(grams, source.mean, source.n_samples, ranks)
    factors = start_factors(source, ranks, "hosvd", np.random.default_rng(0), grams)
    return ranks, _lifted_factors(factors, bases)


def choose_ranks(source: Source, share: float | None) -> tuple[int, ...]:
    """Choose ranks as `ranks_from_energy` does, within bases of long modes."""
    source = source.within(source.spans()[0])
    return ranks_from_energy(source.mode_grams(), source.mean, source.n_samples, share)


def start_factors(
    source: Source,
    ranks: tuple[int, ...],
    init: str,
    rng: np.random.Generator,
    grams: list[Array] | None = None,
) -> list[Array]:
    """Choose orthonormal factors from which a solver starts.

    Parameters
    ----------
    source : Source
        The samples.
    ranks : tuple of int
        The number of columns of each factor.
    init : {"hosvd", "hosvd-samples", "random"}
        ``"hosvd"`` takes the leading singular vectors of each unfolding (the paper's HOSVD
        initialisation I); ``"hosvd-samples"`` the best common factors of the single samples,
        with no reduction along the sample mode (its initialisation II); ``"random"`` a random
        orthonormal basis.
    rng : numpy.random.Generator
        The source of randomness.
    grams : list of arrays of shape (d_n, d_n) or None, default=None
        The Gram matrices of the feature modes where they are known already.

    Returns
    -------
    factors : list of arrays of shape (d_n, r_n)
        Orthonormal columns, in float64.
    """
    use = RankSettings.current()
    if init == "random":
        shapes = zip(source.sample_shape, ranks, strict=True)
        return [linalg.random_basis(size, rank, rng, source.mean) for size, rank in shapes]
    grams = source.mode_grams() if grams is None else grams
    factors = [vectors for _, vectors in map(linalg.leading_eigenvectors, grams, ranks)]
    if init == "hosvd-samples" and len(ranks) > 1:
        for _ in range(use.samples_loops):
            for mode, rank in enumerate(ranks):
                gram = source.projected_gram(factors, mode)
                factors[mode] = linalg.leading_eigenvectors(gram, rank)[1]
    return factors
