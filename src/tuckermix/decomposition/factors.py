"""The closed-form update of the orthonormal factors."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import scipy.linalg

from tuckermix._array_api import (
    Array,
    asarray_like,
    device,
    get_namespace,
    is_numpy,
    to_numpy,
)
from tuckermix.tensor import mode_gram, multi_mode_dot

__all__ = ["leading_eigenvectors", "signs_of", "update_factors"]

HOST_EIGENPROBLEM = 512
"""Symmetric matrices up to this size are solved on the host even for data on an accelerator:
for small matrices the launches of the device routine take longer than the whole solution."""

WHOLE_EIGENPROBLEM = 256
"""Up to this size all eigenpairs are computed even if few are wanted: the routine for a part is
no faster there, and with many threads far slower."""


def leading_eigenvectors(gram: Array, n_vectors: int) -> tuple[Array, Array]:
    """Find the leading eigenpairs of a symmetric matrix, eigenvalues falling.

    The sign of each vector is fixed by its entry of largest magnitude, so that runs agree.

    Parameters
    ----------
    gram : array of shape (d, d)
        A symmetric matrix.
    n_vectors : int
        The number of pairs, at most d.

    Returns
    -------
    values : array of shape (n_vectors,)
        The largest eigenvalues.
    vectors : array of shape (d, n_vectors)
        The eigenvectors as columns.
    """
    size = gram.shape[0]
    if n_vectors == 0:
        xp = get_namespace(gram)
        return xp.zeros((0,), dtype=gram.dtype, device=device(gram)), gram[:, :0]
    if is_numpy(gram) or size <= HOST_EIGENPROBLEM:
        matrix = to_numpy(gram)
        if size > WHOLE_EIGENPROBLEM and 4 * n_vectors < size:
            wanted = (size - n_vectors, size - 1)
            values, vectors = scipy.linalg.eigh(matrix, subset_by_index=wanted)
        else:
            values, vectors = np.linalg.eigh(matrix)
        values, vectors = values[::-1][:n_vectors], vectors[:, ::-1][:, :n_vectors]
        vectors = np.ascontiguousarray(vectors) * signs_of(vectors)
        return asarray_like(values, gram), asarray_like(vectors, gram)
    xp = get_namespace(gram)
    values, vectors = xp.linalg.eigh(gram)
    values = xp.flip(values)[:n_vectors]
    vectors = xp.flip(vectors, axis=1)[:, :n_vectors]
    return values, vectors * signs_of(vectors)


def signs_of(vectors: Array) -> Array:
    """Return the sign that makes the largest entry of each column positive."""
    if isinstance(vectors, np.ndarray):  # called for every small eigenproblem
        return np.where(vectors.max(axis=0) + vectors.min(axis=0) < 0, -1.0, 1.0)
    xp = get_namespace(vectors)
    balance = xp.max(vectors, axis=0) + xp.min(vectors, axis=0)
    return xp.where(balance < 0, -xp.ones_like(balance), xp.ones_like(balance))


def update_factors(T: Array, factors: Sequence[Array], *, n_loops: int = 1) -> list[Array]:
    r"""Improve each factor with the others fixed.

    The best factor of mode n spans the leading left singular vectors of the mode-n unfolding of
    the contracted data `T` projected on the other factors, which are the leading eigenvectors of

    .. math:: S_n = B_n B_n^\top, \quad B_n = \bigl(T \times_{m \ne n} U_m^\top\bigr)_{(n)} .

    This is what the paper's equation (6) stands for.

    Parameters
    ----------
    T : array of shape (n_components, d_1, ...)
        The samples contracted with an orthonormal basis of the memberships.
    factors : sequence of arrays of shape (d_n, r_n)
        The present factors.
    n_loops : int, default=1
        How often to go through all modes.

    Returns
    -------
    factors : list of arrays of shape (d_n, r_n)
        The new factors.
    """
    new = list(factors)
    n_modes = len(new)
    for _ in range(n_loops if n_modes > 1 else 1):
        for mode in range(n_modes):
            if new[mode].shape[0] == new[mode].shape[1]:
                continue  # a square factor spans its mode whatever it is
            others = [None if other == mode else new[other] for other in range(n_modes)]
            gram = mode_gram(multi_mode_dot(T, others, transpose=True), mode + 1)
            new[mode] = leading_eigenvectors(gram, new[mode].shape[1])[1]
    return new
