"""Functions to minimise, with derivatives that share their work."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import cached_property, partial
from typing import Any

import numpy as np

from tuckermix._array_api import Array, device, double, epsilon, get_namespace, is_array, to_numpy
from tuckermix._validation import check_integer
from tuckermix.numerics.linalg import rank_of
from tuckermix.numerics.tensor import mode_dot, multi_mode_dot

__all__ = ["MembershipObjective", "TuckerObjective"]

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


N_STATES = 2
"""Points whose intermediate results are kept: the current one and the one on trial, between
which a trust region goes back and forth."""


class _LastStates:
    """The states of the last two points: a solver asks for several things at the same point."""

    def __init__(self, make: Callable[[Any], Any]) -> None:
        self._make = make
        self._kept: list[Any] = []

    def __call__(self, point: Any) -> Any:
        found = next((state for state in self._kept if state.holds(point)), None) or self._make(
            point
        )
        self._kept = [found, *(state for state in self._kept if state is not found)][:N_STATES]
        return found


class MembershipObjective:
    r"""The paper's membership objective, with derivatives that share their work.

    .. math::

        F(U) = -\tfrac12 \operatorname{tr}\bigl(B^T U (U^T U)^{-1} U^T B\bigr),

    With :math:`S = U^T U` and :math:`W = S^{-1} U^T B` (the core tensor, unfolded),

    .. math::

        \nabla F(U) &= -B W^T + U (W W^T), \\
        \nabla^2 F(U)[\xi] &= -B \dot W^T + \xi\, (W W^T) + U (\dot W W^T + W \dot W^T), \qquad
        \dot W = S^{-1}\bigl(\xi^T B - (\xi^T U + U^T \xi) W\bigr),

    which is the expression in section 4.1 of [1]_ with common factors taken out: two products
    with B for a Hessian, and nothing of size M × M. S, its inverse, W and the gradient are kept
    for the last points asked for, so that cost, gradient and Hessian at one point share them.

    Parameters
    ----------
    B : array of shape (n_samples, n_features) or (n_samples, J_1, ...)
        The projected samples. With more features than samples, B is replaced by the triangular
        factor of Bᵀ, which has as many columns as samples and the same objective.

    References
    ----------
    .. [1] Y. Sun, J. Gao, X. Hong, B. Mishra, B. Yin, "Heterogeneous tensor decomposition for
       clustering via manifold optimization", IEEE TPAMI 38(3), 2016.

    Examples
    --------
    >>> import numpy as np
    >>> from tuckermix.manifolds import Multinomial
    >>> from tuckermix.objectives import MembershipObjective
    >>> B = np.random.default_rng(0).standard_normal((30, 5))
    >>> objective = MembershipObjective(B)
    >>> U = Multinomial(30, 3).random_point(0)
    >>> objective.cost(U) >= objective.optimum(n_components=3)
    True
    """

    def __init__(self, B: Array) -> None:
        if not is_array(B) or B.ndim < 2:
            raise ValueError(
                "B must be an array of shape (n_samples, n_features). Got "
                f"{type(B).__name__} of shape {tuple(getattr(B, 'shape', ()))} instead."
            )
        xp = get_namespace(B)
        B = xp.reshape(B, (B.shape[0], -1))
        if not bool(xp.all(xp.isfinite(B))):
            raise ValueError("B has entries that are not finite: NaN or infinity.")
        if B.shape[1] > B.shape[0]:
            B = xp.linalg.qr(B.T, mode="reduced").R.T
        self.B = B
        self._at = _LastStates(self._state)
        self._energies: np.ndarray | None = None

    def cost(self, U: Array) -> float:
        """Return F(U).

        Parameters
        ----------
        U : array of shape (n_samples, n_components)
            Memberships; columns that depend on each other count once.

        Returns
        -------
        cost : float
            Minus half the squared norm of the projection of B onto the columns of `U`.
        """
        return self._at(U).cost

    def egrad(self, U: Array) -> Array:
        """Return the Euclidean gradient at `U`.

        Parameters
        ----------
        U : array of shape (n_samples, n_components)
            Memberships.

        Returns
        -------
        egrad : array of shape (n_samples, n_components)
            The gradient. It is kept: do not write into it.
        """
        return self._at(U).gradient

    def ehess(self, U: Array, xi: Array) -> Array:
        """Return the derivative of the Euclidean gradient at `U` along `xi`.

        Parameters
        ----------
        U : array of shape (n_samples, n_components)
            Memberships.
        xi : array of shape (n_samples, n_components)
            A direction.

        Returns
        -------
        ehess : array of shape (n_samples, n_components)
            The Hessian of F applied to `xi`.
        """
        return self._at(U).hessian(xi)

    def preconditioner(self, U: Array, xi: Array) -> Array:
        """Apply an approximate inverse of the Riemannian Hessian, for `trust_region`.

        Hand it over as ``trust_region(..., preconditioner=objective.preconditioner)``. It needs
        several times fewer Hessian products to the same cost; see `RowPreconditioner` for the
        formula.

        Parameters
        ----------
        U : array of shape (n_samples, n_components)
            A point of the multinomial manifold.
        xi : array of shape (n_samples, n_components)
            A tangent vector at `U`.

        Returns
        -------
        zeta : array of shape (n_samples, n_components)
            A tangent vector; the map is symmetric and positive definite in the Fisher metric.
        """
        return self._at(U).preconditioner(xi)

    def optimum(self, n_components: int) -> float:
        r"""Return the least value of F over all memberships with `n_components` columns.

        .. math:: -h^* = -\tfrac12\Bigl(M \|\mu\|^2 + \sum_{k < L} \sigma_k^2\Bigr),

        where μ is the mean row of B and σ are the singular values of B − 1μᵀ.

        Parameters
        ----------
        n_components : int
            Number of columns, L.

        Returns
        -------
        optimum : float
            The value that no memberships can undercut, and that some attain.
        """
        n_components = check_integer(n_components, "n_components", "optimum")
        xp = get_namespace(self.B)
        mean = xp.mean(double(self.B), axis=0)
        energy_of_mean = self.B.shape[0] * float(xp.sum(mean * mean))
        return -0.5 * (energy_of_mean + self._possible(n_components))

    def gap(self, U: Array) -> float:
        r"""Return what memberships miss of the optimum, relative to what they could explain.

        .. math:: \frac{h^* - h(U)}{\tfrac12 \sum_{k<L} \sigma_k^2}, \qquad h = -F .

        Both h contain the mean of the samples, which all memberships explain. It is left out
        before anything is subtracted, so that a constant added to B changes nothing.

        Parameters
        ----------
        U : array of shape (n_samples, n_components)
            Memberships with rows that sum to one; columns that depend on each other count once.

        Returns
        -------
        gap : float
            Between 0, the optimum, and 1; 0 where the samples are all equal.
        """
        xp = get_namespace(self.B, U)
        possible = self._possible(int(U.shape[1]))
        if possible <= 0.0:
            return 0.0
        # Rows that sum to one make the centred columns dependent: one of them says nothing new.
        U = double(U)[:, :-1]
        Q, _ = whitened_basis(U - xp.mean(U, axis=0))
        part = xp.matmul(Q.T, self._centred())
        return max(0.0, possible - float(xp.sum(part * part))) / possible

    def _centred(self) -> Array:
        """Return B − 1μᵀ in float64."""
        B = double(self.B)
        return B - get_namespace(B).mean(B, axis=0)

    def _possible(self, n_components: int) -> float:
        """Return the centred energy that `n_components` components can explain, the sum of σ²."""
        if self._energies is None:
            xp = get_namespace(self.B)
            centred = self._centred()
            # The smaller side: B has at most as many columns as rows. Sums of leading eigenvalues
            # are as accurate as the largest one, which they contain.
            values = to_numpy(xp.linalg.eigvalsh(xp.matmul(centred.T, centred)))[::-1]
            sigma = np.sqrt(np.clip(values, 0.0, None))
            norm = float(xp.linalg.vector_norm(double(self.B)))
            self._energies = sigma[: rank_of(sigma, norm, epsilon(self.B))] ** 2
        return float(np.sum(self._energies[: n_components - 1]))

    def _state(self, U: Array) -> _State:
        if U.ndim != 2 or U.shape[0] != self.B.shape[0]:
            raise ValueError(
                f"U has shape {tuple(U.shape)}, but B has {self.B.shape[0]} samples: "
                "U needs one row for each of them."
            )
        return _State(self.B, U)


class _State:
    """Products that cost, gradient and Hessian at one point share."""

    def __init__(self, B: Array, U: Array) -> None:
        xp = get_namespace(B, U)
        self.xp = xp
        self.B = B
        self.U = xp.asarray(U, copy=True)
        Q, X = whitened_basis(U)
        self.explained = xp.matmul(Q.T, B)
        entries = xp.reshape(self.explained, (-1,))
        self.cost = -0.5 * float(xp.matmul(entries, entries))
        self.W = xp.matmul(X, self.explained)
        self.S_inverse = xp.matmul(X, X.T)

    def holds(self, U: Array) -> bool:
        """Tell whether these are the results at `U`."""
        same = self.U.shape == U.shape and self.U.dtype == U.dtype
        return same and bool(self.xp.all(self.U == U))

    @cached_property
    def T(self) -> Array:
        """The products W Wᵀ of the components."""
        return self.xp.matmul(self.W, self.W.T)

    @cached_property
    def gradient(self) -> Array:
        """The gradient −B Wᵀ + U T."""
        gradient = self.xp.matmul(self.U, self.T)
        gradient -= self.xp.matmul(self.B, self.W.T)
        return gradient

    @cached_property
    def preconditioner(self) -> RowPreconditioner:
        """The preconditioner for memberships."""
        return RowPreconditioner(self.U, self.W - self.xp.mean(self.B, axis=0))

    def hessian(self, xi: Array) -> Array:
        """Return the derivative of the gradient along ξ."""
        return self.derivatives(xi, self.xp.matmul(xi.T, self.B))[0]

    def derivatives(self, xi: Array, change: Array, dB: Array | None = None) -> tuple[Array, Array]:
        """Return −B Ẇᵀ − Ḃ Wᵀ + ξ T + U (Ẇ Wᵀ + W Ẇᵀ), and Ẇ, where UᵀB changes by `change`."""
        xp = self.xp
        overlap = xp.matmul(xi.T, self.U)
        dW = xp.matmul(self.S_inverse, change - xp.matmul(overlap + overlap.T, self.W))
        dT = xp.matmul(dW, self.W.T)
        hessian = xp.matmul(xi, self.T)
        hessian += xp.matmul(self.U, dT + dT.T)
        if dB is not None:
            hessian -= xp.matmul(dB, self.W.T)
        hessian -= xp.matmul(self.B, dW.T)
        return hessian, dW


def whitened_basis(U: Array) -> tuple[Array, Array]:
    """Return an orthonormal basis Q = U X of the columns of U; dependent ones count once.

    One whitening by the eigenvectors of UᵀU would leave an error of the square of the condition
    of U, which a trust region takes for a change of the cost and stalls on; the second round
    removes it. Directions that rounding alone can produce are left out, so that the cost is the
    projection onto the columns of U even where UᵀU has no inverse.
    """
    xp = get_namespace(U)
    S = xp.matmul(U.T, U)
    values, vectors = xp.linalg.eigh(S)
    floor = S.shape[0] * epsilon(S) * float(values[-1])
    n_dropped = int(xp.sum(xp.astype(values <= floor, xp.int64)))
    X = vectors[:, n_dropped:] / xp.sqrt(values[n_dropped:])
    Q = xp.matmul(U, X)
    values, vectors = xp.linalg.eigh(xp.matmul(Q.T, Q))
    polish = xp.matmul(vectors / xp.sqrt(values), vectors.T)
    return xp.matmul(Q, polish), xp.matmul(X, polish)


class TuckerObjective:
    r"""Energy that the model leaves unexplained, as a function of memberships and factors.

    .. math::

        F(U, U_1, \dots) = -\tfrac12 \operatorname{tr}(B^T P_U B), \qquad
        B = (X \times_1 U_1^T \cdots \times_{N-1} U_{N-1}^T)_{(0)},

    which differs from the model's error by the constant :math:`\tfrac12\|X\|^2`. With the core
    :math:`W = U^+ B`, the partly projected samples :math:`Y_n = X \times_{m \ne n} U_m^T` and
    :math:`E_n = U^T Y_n`, the gradients are

    .. math::

        \nabla_U F = -B W^T + U W W^T, \qquad \nabla_{U_n} F = -(E_n)_{(n)} W_{(n)}^T,

    because W maximises :math:`\langle U^T B, W\rangle - \tfrac12\|U W\|^2`, so that its own change
    does not enter. A point is a sequence ``[U, U_1, ..., U_{N-1}]``. The samples are read once a
    point; a Hessian product needs the :math:`Y_n` only.

    Parameters
    ----------
    X : array of shape (n_samples, d_1, ...)
        The samples.
    """

    def __init__(self, X: Array) -> None:
        self.X = X
        self._at = _LastStates(partial(_WholeState, X))

    def cost(self, point: Sequence[Array]) -> float:
        """Return F at a point ``[U, U_1, ...]``."""
        return self._at(point).cost

    def egrad(self, point: Sequence[Array]) -> list[Array]:
        """Return the Euclidean gradients with respect to memberships and factors."""
        return self._at(point).gradient

    def ehess(self, point: Sequence[Array], vector: Sequence[Array]) -> list[Array]:
        """Return the derivative of the gradients along ``[ξ, V_1, ...]``."""
        return self._at(point).hessian(vector)

    def preconditioner(self, point: Sequence[Array], vector: Any) -> Any:
        r"""Apply an approximate inverse of the Hessian, block by block.

        For the memberships it is that of `MembershipObjective`; for a factor it is
        :math:`V \mapsto V (I + C_n/\delta)^{-1}` with :math:`C_n = (W_S)_{(n)} (W_S)_{(n)}^T`, the
        curvature of the explained part along that mode, and the same level δ.
        """
        blocks = self._at(point).precondition(vector)
        # The vectors of a product of manifolds are lists with arithmetic: keep their kind.
        return blocks if type(vector) is list else type(vector)(blocks)


class _WholeState:
    """Products that cost, gradients and Hessian at one point share."""

    def __init__(self, X: Array, point: Sequence[Array]) -> None:
        xp = get_namespace(X)
        self.xp = xp
        self.point = [xp.asarray(block, copy=True) for block in point]
        U, *factors = self.point
        self.factors = factors
        modes = range(len(factors))
        self.Y = [
            multi_mode_dot(X, [None if m == n else factors[m] for m in modes], transpose=True)
            for n in modes
        ]
        last = len(factors) - 1
        self.B = mode_dot(self.Y[last], factors[last].T, last + 1)
        self.rows = _State(xp.reshape(self.B, (self.B.shape[0], -1)), U)
        self.cost = -0.5 * float(xp.sum(self.rows.explained * self.rows.explained))
        self.W = xp.reshape(self.rows.W, (U.shape[1], *self.B.shape[1:]))
        self.T: Array = xp.tensordot(U.T, X, axes=1)
        self.E = [xp.tensordot(U.T, Y, axes=1) for Y in self.Y]

    def holds(self, point: Sequence[Array]) -> bool:
        """Tell whether these are the results at `point`."""
        return all(
            own.shape == other.shape and bool(self.xp.all(own == other))
            for own, other in zip(self.point, point, strict=True)
        )

    @cached_property
    def gradient(self) -> list[Array]:
        """The gradients."""
        factors = [-self._product(E, self.W, n) for n, E in enumerate(self.E)]
        return [self.rows.gradient, *factors]

    def hessian(self, vector: Sequence[Array]) -> list[Array]:
        """Return the derivative of the gradients."""
        xp = self.xp
        xi, *V = vector
        modes = range(len(V))
        xi_Y = [xp.tensordot(xi.T, Y, axes=1) for Y in self.Y]
        last = len(V) - 1
        change = mode_dot(xi_Y[last], self.factors[last].T, last + 1)  # ξᵀB
        dB = 0.0 * self.B
        for n in modes:
            change = change + mode_dot(self.E[n], V[n].T, n + 1)
            dB = dB + mode_dot(self.Y[n], V[n].T, n + 1)
        rows = self.rows
        change, dB = xp.reshape(change, rows.W.shape), xp.reshape(dB, rows.B.shape)
        U, dW_rows = rows.derivatives(xi, change, dB)
        dW = xp.reshape(dW_rows, self.W.shape)
        factors = []
        for n in modes:
            dE = xi_Y[n]
            for k in modes:
                if k != n:
                    mixed = [V[m] if m == k else self.factors[m] for m in modes]
                    mixed[n] = None
                    dE = dE + multi_mode_dot(self.T, mixed, transpose=True)
            factors.append(-self._product(dE, self.W, n) - self._product(self.E[n], dW, n))
        return [U, *factors]

    def _product(self, left: Array, right: Array, mode: int) -> Array:
        """Contract all axes but that of one feature mode."""
        axes = [axis for axis in range(left.ndim) if axis != mode + 1]
        return self.xp.tensordot(left, right, axes=(axes, axes))

    @cached_property
    def inverses(self) -> list[Array]:
        """The preconditioners of the factors."""
        xp, found = self.xp, []
        for gradient, factor in zip(self.gradient[1:], self.factors, strict=True):
            curvature = -xp.matmul(factor.T, gradient)
            identity = xp.eye(factor.shape[1], dtype=factor.dtype, device=device(factor))
            symmetric = 0.5 * (curvature + curvature.T)
            # One component has no spread, and its level says nothing of the scale.
            least = LEAST_SHARE * float(xp.max(xp.abs(symmetric)))
            level = max(self.rows.preconditioner.level, least)
            found.append(xp.linalg.inv(identity + symmetric / level))
        return found

    def precondition(self, vector: Sequence[Array]) -> list[Array]:
        """Apply the preconditioner of each block."""
        xi, *V = vector
        factors = [self.xp.matmul(v, m) for v, m in zip(V, self.inverses, strict=True)]
        return [self.rows.preconditioner(xi), *factors]
