"""A preconditioner for the membership objective: its stiffest directions, row by row."""

from __future__ import annotations

import math
from typing import Any

from tuckermix._array_api import Array, device, get_namespace

LEAST_SHARE = 1e-6
"""Directions are scaled down by this factor at most. It only matters for B of low rank, where the
eigenvalue to scale down to may be zero."""


class RowPreconditioner:
    r"""The inverse of Fisher metric plus curvature, for the directions of large curvature.

    On a tangent vector ξ the Hessian of the membership objective is dominated by
    :math:`\xi \mapsto \xi T`, where :math:`T = (W - 1\mu^T)(W - 1\mu^T)^T` holds the products of
    the centred components: the same small matrix for every row. Seen in the Fisher metric, whose
    inverse on row m is :math:`D_m = \operatorname{diag}(u_m) - u_m u_m^T`, its eigenvalues
    span several orders of magnitude. With δ their middle one and
    :math:`T/\delta \approx V V^T` from the k larger ones, the preconditioner is

    .. math::

        (D_m^{-1} + V V^T)^{-1} = D_m - D_m V C_m^{-1} V^T D_m, \qquad C_m = I + V^T D_m V,

    on each row. Its norm, :math:`\|\xi\|^2 + \|\xi V\|^2`, is never below the Fisher norm, so a
    trust region measured in it is never larger than the usual one: long steps near the boundary of
    the simplex, where the model is poor, stay excluded. (The inverse of the averaged metric does
    not have this property, and fails.)

    Applied to a gradient it takes two thin matrix products and M products with k × k matrices;
    preparing it at a point takes M inverses of k × k matrices.

    Parameters
    ----------
    U : array of shape (n_samples, n_components)
        The point.
    W : array of shape (n_components, n_features)
        The components there, centred.
    """

    def __init__(self, U: Array, W: Array) -> None:
        xp = get_namespace(U, W)
        n_samples, n_components = U.shape
        self.U = U
        self.V, self.level = self._directions(xp, U, W)
        rank = self.V.shape[1]
        if rank:
            outer = xp.reshape(self.V[:, :, None] * self.V[:, None, :], (n_components, rank * rank))
            mean = xp.matmul(U, self.V)
            C = xp.reshape(xp.matmul(U, outer), (n_samples, rank, rank))
            C -= mean[:, :, None] * mean[:, None, :]
            C += xp.eye(rank, dtype=U.dtype, device=device(U))
            self.C_inverse = xp.linalg.inv(C)

    @staticmethod
    def _directions(xp: Any, U: Array, W: Array) -> tuple[Array, float]:
        """Return V, the part of T above its middle eigenvalue in the mean Fisher metric, and δ."""
        n_samples, n_components = U.shape
        # T has one eigenvalue less than components on the tangent space, half of them are large.
        # The inverses of a point take about rank³ operations a row, a Hessian product 4 L P.
        rank = min((n_components - 1) // 2, math.ceil((n_components * W.shape[1]) ** (1 / 3)))
        values, vectors = xp.linalg.eigh(xp.matmul(W, W.T))
        root = xp.matmul(vectors * xp.sqrt(xp.clip(values, 0.0, None)), vectors.T)
        mean = xp.mean(U, axis=0)
        metric = xp.eye(n_components, dtype=U.dtype, device=device(U)) * mean
        metric = metric - xp.matmul(U.T, U) / n_samples
        values, vectors = xp.linalg.eigh(xp.matmul(root, xp.matmul(metric, root)))
        largest = float(values[-1])
        if rank == 0 or not largest > 0:
            return U.T[:, :0], largest if largest > 0 else 1.0
        level = max(float(values[-1 - rank]), LEAST_SHARE * largest)
        return xp.matmul(root, vectors[:, n_components - rank :]) / level**0.5, level

    def __call__(self, xi: Array) -> Array:
        """Return the preconditioned tangent vector."""
        if not self.V.shape[1]:
            return xi
        xp = get_namespace(xi)
        z = xp.matmul(self.C_inverse, xp.matmul(xi, self.V)[:, :, None])[:, :, 0]
        # D_m v = u ⊙ v − (u·v) u for all rows, with v = V z.
        product = self.U * xp.matmul(z, self.V.T)
        product -= xp.matmul(product, xp.ones_like(product[:1, :]).T) * self.U
        return xi - product
