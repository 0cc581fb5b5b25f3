"""Where the factors start: the paper's three initialisations."""

from __future__ import annotations

import numpy as np

from tuckermix._array_api import Array, asarray_like
from tuckermix.decomposition.factors import leading_eigenvectors
from tuckermix.sources import Source

__all__ = ["INITS", "start_factors"]

INITS = ("hosvd", "hosvd-samples", "random")

SAMPLES_LOOPS = 3
"""Rounds of the second initialisation; its factors hardly move after the second."""


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
    if init == "random":
        factors = []
        for size, rank in zip(source.sample_shape, ranks, strict=True):
            basis, triangle = np.linalg.qr(rng.standard_normal((size, rank)))
            basis = basis * np.where(np.diag(triangle) < 0, -1.0, 1.0)
            factors.append(asarray_like(basis, source.mean))
        return factors
    grams = source.mode_grams() if grams is None else grams
    factors = [leading_eigenvectors(g, rank)[1] for g, rank in zip(grams, ranks, strict=True)]
    if init == "hosvd-samples" and len(ranks) > 1:
        for _ in range(SAMPLES_LOOPS):
            for mode, rank in enumerate(ranks):
                gram = source.projected_gram(factors, mode)
                factors[mode] = leading_eigenvectors(gram, rank)[1]
    return factors
