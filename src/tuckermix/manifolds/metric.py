"""The Fisher information metric on matrices with positive rows that sum to one."""

from __future__ import annotations

import math

from tuckermix._array_api import Array, get_namespace
from tuckermix.manifolds.rows import row_sums


class FisherMetric:
    r"""Lengths, tangent spaces, gradients and Hessians at a point.

    .. math::

        T_U = \{\xi : \xi 1 = 0\}, \qquad
        \langle\xi, \zeta\rangle_U = \sum_{ml} \frac{\xi_{ml}\zeta_{ml}}{U_{ml}}.

    All of it is a formula in the entries of the point; ways to move are in `Multinomial`.
    """

    def inner(self, U: Array, xi: Array, zeta: Array) -> float:
        r"""Return the Fisher inner product :math:`\sum_{ml} \xi_{ml}\zeta_{ml}/U_{ml}`.

        Parameters
        ----------
        U : array of shape (n_samples, n_components)
            The point.
        xi, zeta : array of shape (n_samples, n_components)
            Tangent vectors at `U`.

        Returns
        -------
        inner : float
            The inner product (Sun et al. 2016, equation 8).
        """
        xp = get_namespace(U, xi, zeta)
        return float(xp.matmul(xp.reshape(xi / U, (-1,)), xp.reshape(zeta, (-1,))))

    def norm(self, U: Array, xi: Array) -> float:
        r"""Return the length :math:`\sqrt{\langle\xi, \xi\rangle_U}` of a tangent vector."""
        return math.sqrt(max(0.0, self.inner(U, xi, xi)))

    def projection(self, U: Array, Z: Array) -> Array:
        r"""Project a matrix onto the tangent space, orthogonally in the Fisher metric.

        .. math:: \Pi_U(Z) = Z - (Z 1) 1^T \odot U.

        Parameters
        ----------
        U : array of shape (n_samples, n_components)
            The point.
        Z : array of shape (n_samples, n_components)
            Any matrix.

        Returns
        -------
        xi : array of shape (n_samples, n_components)
            The tangent vector at `U` nearest to `Z` (Sun et al. 2016, section 3.1).
        """
        return Z - row_sums(Z) * U

    # Derivatives ------------------------------------------------------------------------------

    def rgrad(self, U: Array, egrad: Array) -> Array:
        r"""Turn a Euclidean gradient into the Riemannian one.

        .. math:: \operatorname{grad} f(U) = \Pi_U(U \odot G).

        Parameters
        ----------
        U : array of shape (n_samples, n_components)
            The point.
        egrad : array of shape (n_samples, n_components)
            The Euclidean gradient G at `U`.

        Returns
        -------
        rgrad : array of shape (n_samples, n_components)
            The tangent vector with :math:`\langle\operatorname{grad} f, \xi\rangle_U =
            \sum G \odot \xi` for every tangent :math:`\xi` (Sun et al. 2016, (9)).
        """
        return self.projection(U, U * egrad)

    def rhess(self, U: Array, egrad: Array, ehess: Array, xi: Array) -> Array:
        r"""Turn a Euclidean Hessian along a tangent vector into the Riemannian one.

        .. math::

            \operatorname{Hess} f(U)[\xi] = \Pi_U\bigl(U \odot \dot G
                + \tfrac12\, \xi \odot (G - (U \odot G) 1 1^T)\bigr).

        This equals equations 10 and 11 of Sun et al. 2016 without their division by U, which
        cancels; it therefore stays accurate near the boundary.

        Parameters
        ----------
        U : array of shape (n_samples, n_components)
            The point.
        egrad : array of shape (n_samples, n_components)
            The Euclidean gradient G at `U`.
        ehess : array of shape (n_samples, n_components)
            The derivative :math:`\dot G` of the Euclidean gradient along `xi`.
        xi : array of shape (n_samples, n_components)
            A tangent vector at `U`.

        Returns
        -------
        rhess : array of shape (n_samples, n_components)
            The Hessian along `xi`, a tangent vector at `U`.
        """
        return self.rhess_from(U, self.prepare_rhess(U, egrad), ehess, xi)

    def prepare_rhess(self, U: Array, egrad: Array) -> Array:
        r"""Return :math:`\tfrac12(G - (U \odot G) 1 1^T)`, all that `rhess` needs of the gradient.

        Compute it once a point and hand it to `rhess_from` when many Hessian products are taken.
        """
        prepared = egrad - row_sums(U * egrad)
        prepared *= 0.5
        return prepared

    def rhess_from(self, U: Array, prepared: Array, ehess: Array, xi: Array) -> Array:
        """Return what `rhess` returns, from a gradient that `prepare_rhess` has prepared."""
        product = U * ehess
        product += xi * prepared
        product -= row_sums(product) * U
        return product
