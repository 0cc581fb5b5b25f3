"""How many columns each factor gets."""

from __future__ import annotations

import numbers
from typing import Any

import numpy as np

from tuckermix._array_api import Array, asarray_like, to_numpy
from tuckermix.sources import Source
from tuckermix.tensor import mode_gram

__all__ = ["DEFAULT_ENERGY", "check_ranks", "ranks_from_energy"]

DEFAULT_ENERGY = 0.97
"""Share of the centred energy of each mode that is kept when no ranks are given. With 95 %, two of
the nine rows of `python -m benchmarks.quality` lose 0.035 in accuracy against the core sizes of the
paper; with 97 % none does, and 98 % gains nothing further."""

SMALL_MODE = 4
"""A mode of at most this size is kept whole: cutting it saves nothing and may cut a feature."""


def check_ranks(ranks: Any, sample_shape: tuple[int, ...], owner: str) -> tuple[int, ...] | float:
    """Turn the `ranks` parameter into one rank a mode, or into the share of energy to keep.

    Parameters
    ----------
    ranks : None, int, float or sequence of int
        The parameter as the user gave it.
    sample_shape : tuple of int
        The sizes of the feature modes.
    owner : str
        The name of the class or function that has the parameter, for messages.

    Returns
    -------
    ranks : tuple of int or float
        One rank for each feature mode, or a share of energy in (0, 1).
    """
    rule = (
        f"The 'ranks' parameter of {owner} must be None, an int, a share of energy in (0, 1), or "
        f"one int per feature mode (here {len(sample_shape)}). Got {ranks!r} instead."
    )
    if ranks is None:
        return DEFAULT_ENERGY
    if isinstance(ranks, bool | np.bool_ | str | dict):
        raise ValueError(rule)
    if isinstance(ranks, numbers.Integral):
        if ranks < 1:
            raise ValueError(rule)
        return tuple(min(int(ranks), size) for size in sample_shape)
    if isinstance(ranks, numbers.Real):
        if not 0.0 < float(ranks) < 1.0:
            raise ValueError(rule)
        return float(ranks)
    try:
        values = list(ranks)
    except TypeError:
        raise ValueError(rule) from None
    if not all(
        isinstance(value, numbers.Integral) and not isinstance(value, bool) and int(value) >= 1
        for value in values
    ):
        raise ValueError(rule)
    if len(values) == len(sample_shape) - 1 and sample_shape[-1] == 1:
        values.append(1)  # a trailing mode of size 1 is no mode of its own
    if len(values) != len(sample_shape):
        raise ValueError(rule)
    for mode, (rank, size) in enumerate(zip(values, sample_shape, strict=True)):
        if rank > size:
            raise ValueError(
                f"ranks={tuple(int(v) for v in values)} must not exceed the sample shape "
                f"{sample_shape}: rank {int(rank)} of feature mode {mode} is larger than {size}."
            )
    return tuple(int(value) for value in values)


def ranks_from_energy(source: Source, grams: list[Array], share: float) -> tuple[int, ...]:
    """Choose the smallest ranks that keep a share of the centred energy of each mode.

    Parameters
    ----------
    source : Source
        The samples.
    grams : list of arrays of shape (d_n, d_n)
        The Gram matrices of their feature modes.
    share : float
        The share to keep, in (0, 1).

    Returns
    -------
    ranks : tuple of int
        One rank for each feature mode.
    """
    ranks = []
    for mode, gram in enumerate(grams):
        if gram.shape[0] <= SMALL_MODE:
            ranks.append(int(gram.shape[0]))
            continue
        shift = source.n_samples * mode_gram(source.mean[None, ...], mode + 1)
        centred = to_numpy(gram - asarray_like(shift, gram))
        energy = np.clip(np.linalg.eigvalsh(centred)[::-1], 0.0, None)
        total = energy.sum()
        if total <= 0.0:
            ranks.append(1)
            continue
        kept = np.cumsum(energy) / total
        ranks.append(min(int(np.searchsorted(kept, share)) + 1, gram.shape[0]))
    return tuple(ranks)
