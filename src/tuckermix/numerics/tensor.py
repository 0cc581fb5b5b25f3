r"""Operations on N-way arrays.

Modes are numbered from zero; in the rest of the package mode 0 holds the samples. Matrices act on
a mode from the left: ``mode_dot(X, A, n)`` contracts axis `n` of `X` with axis 1 of `A`. Unfolding
keeps the order of the remaining axes (C order), so that for a tensor with entries
:math:`x_{ijk}` the columns of the mode-1 unfolding run over :math:`(i, k)` with `k` fastest.
No Kronecker product is ever formed.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from tuckermix._array_api import Array, get_namespace, is_numpy

PIECE = 1024
"""Squares of as many numbers are added up in their own type; what comes out, in float64."""


def unfold(X: Array, mode: int) -> Array:
    """Lay out the fibres of one mode as the columns of a matrix.

    Parameters
    ----------
    X : array of shape (d_0, ..., d_n, ...)
        The tensor.
    mode : int
        The mode n.

    Returns
    -------
    matrix : array of shape (d_n, product of the other sizes)
        A view where the library allows it.
    """
    xp = get_namespace(X)
    order = (mode, *(axis for axis in range(X.ndim) if axis != mode))
    return xp.reshape(xp.permute_dims(X, order), (X.shape[mode], -1))


def mode_dot(X: Array, matrix: Array, mode: int) -> Array:
    r"""Multiply every mode-n fibre of a tensor by a matrix.

    .. math:: Y_{\dots j \dots} = \sum_i a_{ji}\, x_{\dots i \dots}

    Parameters
    ----------
    X : array of shape (d_0, ..., d_n, ...)
        The tensor.
    matrix : array of shape (r, d_n)
        The matrix A.
    mode : int
        The mode n.

    Returns
    -------
    Y : array of shape (d_0, ..., r, ...)
        The product.
    """
    xp = get_namespace(X, matrix)
    if X.shape[mode] != matrix.shape[1]:
        raise ValueError(
            f"mode_dot contracts mode {mode} of size {X.shape[mode]} with a matrix of "
            f"{matrix.shape[1]} columns: the two must be equal."
        )
    left = math.prod(X.shape[:mode])
    right = math.prod(X.shape[mode + 1 :])
    shape = (*X.shape[:mode], matrix.shape[0], *X.shape[mode + 1 :])
    # One large product where the mode is first or last, a batch of small ones in between.
    if right == 1:
        product = xp.matmul(xp.reshape(X, (left, X.shape[mode])), matrix.T)
    elif left == 1:
        product = xp.matmul(matrix, xp.reshape(X, (X.shape[mode], right)))
    else:
        product = xp.matmul(matrix, xp.reshape(X, (left, X.shape[mode], right)))
    return xp.reshape(product, shape)


def multi_mode_dot(
    X: Array, matrices: Sequence[Array | None], *, first_mode: int = 1, transpose: bool = False
) -> Array:
    r"""Multiply consecutive modes of a tensor by one matrix each.

    .. math:: Y = X \times_{m} A_1 \times_{m+1} A_2 \cdots

    Parameters
    ----------
    X : array of shape (d_0, d_1, ...)
        The tensor.
    matrices : sequence of arrays or None
        One matrix for each mode from `first_mode` on; None leaves the mode as it is.
    first_mode : int, default=1
        The mode of the first matrix; 1 leaves the samples alone.
    transpose : bool, default=False
        Use the transposes: with orthonormal factors of shape (d_n, r_n) this projects.

    Returns
    -------
    Y : array
        The product.
    """
    # The last mode first: it is one large product and usually shrinks the tensor.
    for offset in reversed(range(len(matrices))):
        matrix = matrices[offset]
        if matrix is not None:
            X = mode_dot(X, matrix.T if transpose else matrix, first_mode + offset)
    return X


def mode_gram(X: Array, mode: int) -> Array:
    r"""Compute the Gram matrix of an unfolding, :math:`X_{(n)} X_{(n)}^\top`.

    Parameters
    ----------
    X : array of shape (d_0, ..., d_n, ...)
        The tensor.
    mode : int
        The mode n.

    Returns
    -------
    gram : array of shape (d_n, d_n)
        A positive semidefinite matrix.
    """
    xp = get_namespace(X)
    if mode == X.ndim - 1:
        tall = xp.reshape(X, (-1, X.shape[mode]))
        return xp.matmul(tall.T, tall)
    wide = xp.reshape(xp.moveaxis(X, mode, 0), (X.shape[mode], -1))
    return xp.matmul(wide, wide.T)


def squared_norm(X: Array) -> float:
    """Sum the squares of all entries; infinity where that is too large for a float."""
    xp = get_namespace(X)
    if is_numpy(X):
        flat = xp.reshape(X, (-1,))
        end = len(flat) - len(flat) % PIECE
        pieces, rest = flat[:end].reshape(-1, PIECE), flat[end:]
        with np.errstate(over="ignore"):
            # `vecdot` of one pair would keep other threads waiting.
            return float(np.vecdot(pieces, pieces).sum(dtype=np.float64) + np.dot(rest, rest))
    # Short sums in the type of the array, the long one over them in float64.
    return float(xp.sum(xp.sum(X * X, axis=-1), dtype=xp.float64))


def tucker_to_tensor(core: Array, factors: Sequence[Array], memberships: Array | None) -> Array:
    r"""Rebuild a tensor from its Tucker form.

    .. math:: X = G \times_0 U \times_1 U_1 \cdots \times_{N-1} U_{N-1}

    Parameters
    ----------
    core : array of shape (n_components, r_1, ...)
        The core G.
    factors : sequence of arrays of shape (d_n, r_n)
        The factors of the feature modes.
    memberships : array of shape (n_samples, n_components) or None
        The factor of the samples; None leaves the components as they are.

    Returns
    -------
    X : array of shape (n_samples or n_components, d_1, ...)
        The tensor.
    """
    if memberships is not None:
        core = mode_dot(core, memberships, 0)
    return multi_mode_dot(core, factors)
