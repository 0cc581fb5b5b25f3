"""The objective of the whole model, over memberships and factors at once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tuckermix._array_api import Array, device, get_namespace
from tuckermix.numerics.tensor import mode_dot, multi_mode_dot
from tuckermix.objectives.membership import N_STATES, RowPreconditioner, whitened_basis


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
        self._states: list[_State] = []

    def cost(self, point: Sequence[Array]) -> float:
        """Return F at a point ``[U, U_1, ...]``."""
        return self._at(point).cost

    def egrad(self, point: Sequence[Array]) -> list[Array]:
        """Return the Euclidean gradients with respect to memberships and factors."""
        return self._at(point).gradient()

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

    def _at(self, point: Sequence[Array]) -> _State:
        for state in self._states:
            if state.holds(point):
                return state
        state = _State(self.X, point)
        self._states = [state, *self._states[: N_STATES - 1]]
        return state


class _State:
    """Products that cost, gradients and Hessian at one point share."""

    def __init__(self, X: Array, point: Sequence[Array]) -> None:
        xp = get_namespace(X)
        self.xp = xp
        self.point = [xp.asarray(block, copy=True) for block in point]
        U, *factors = self.point
        self.U, self.factors = U, factors
        modes = range(len(factors))
        self.Y = [
            multi_mode_dot(X, [None if m == n else factors[m] for m in modes], transpose=True)
            for n in modes
        ]
        last = len(factors) - 1
        self.B = mode_dot(self.Y[last], factors[last].T, last + 1)
        self.core_shape = (U.shape[1], *self.B.shape[1:])
        rows = xp.reshape(self.B, (self.B.shape[0], -1))
        Q, basis = whitened_basis(U)
        C = xp.matmul(Q.T, rows)
        self.rows = rows
        self.cost = -0.5 * float(xp.sum(C * C))
        self.W_rows = xp.matmul(basis, C)
        self.W = xp.reshape(self.W_rows, self.core_shape)
        self.S_inverse = xp.matmul(basis, basis.T)
        self.T: Array = xp.tensordot(U.T, X, axes=1)
        self.E = [xp.tensordot(U.T, Y, axes=1) for Y in self.Y]
        self._gradient: list[Array] | None = None
        self._preconditioners: tuple[RowPreconditioner, list[Array]] | None = None

    def holds(self, point: Sequence[Array]) -> bool:
        """Tell whether these are the results at `point`."""
        return all(
            own.shape == other.shape and bool(self.xp.all(own == other))
            for own, other in zip(self.point, point, strict=True)
        )

    def gradient(self) -> list[Array]:
        """Return the gradients."""
        if self._gradient is None:
            xp = self.xp
            self.WW = xp.matmul(self.W_rows, self.W_rows.T)
            U = xp.matmul(self.U, self.WW) - xp.matmul(self.rows, self.W_rows.T)
            factors = [-self._product(E, self.W, n) for n, E in enumerate(self.E)]
            self._gradient = [U, *factors]
        return self._gradient

    def hessian(self, vector: Sequence[Array]) -> list[Array]:
        """Return the derivative of the gradients."""
        xp = self.xp
        self.gradient()
        xi, *V = vector
        modes = range(len(V))
        xi_Y = [xp.tensordot(xi.T, Y, axes=1) for Y in self.Y]
        last = len(V) - 1
        change = mode_dot(xi_Y[last], self.factors[last].T, last + 1)  # ξᵀB
        dB = 0.0 * self.B
        for n in modes:
            change = change + mode_dot(self.E[n], V[n].T, n + 1)
            dB = dB + mode_dot(self.Y[n], V[n].T, n + 1)
        overlap = xp.matmul(xi.T, self.U)
        change = xp.reshape(change, self.W_rows.shape)
        change = change - xp.matmul(overlap + overlap.T, self.W_rows)
        dW_rows = xp.matmul(self.S_inverse, change)
        dW = xp.reshape(dW_rows, self.core_shape)
        dWW = xp.matmul(dW_rows, self.W_rows.T)
        U = xp.matmul(xi, self.WW) + xp.matmul(self.U, dWW + dWW.T)
        U = U - xp.matmul(xp.reshape(dB, self.rows.shape), self.W_rows.T)
        U = U - xp.matmul(self.rows, dW_rows.T)
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

    def precondition(self, vector: Sequence[Array]) -> list[Array]:
        """Apply the preconditioner of each block."""
        xp = self.xp
        if self._preconditioners is None:
            first = RowPreconditioner(self.U, self.W_rows - xp.mean(self.rows, axis=0))
            inverses = []
            for gradient, factor in zip(self.gradient()[1:], self.factors, strict=True):
                curvature = -xp.matmul(factor.T, gradient)
                identity = xp.eye(factor.shape[1], dtype=factor.dtype, device=device(factor))
                symmetric = 0.5 * (curvature + curvature.T)
                inverses.append(xp.linalg.inv(identity + symmetric / first.level))
            self._preconditioners = first, inverses
        first, inverses = self._preconditioners
        xi, *V = vector
        return [first(xi), *(xp.matmul(v, m) for v, m in zip(V, inverses, strict=True))]
