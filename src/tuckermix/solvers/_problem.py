"""An objective on a manifold, as a solver wants to see it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

DIFFERENCE_STEP = 2.0**-14
"""Length of the step for finite differences of the gradient: the fourth root of the machine
epsilon rounded to a power of 2, which Manopt uses too."""


class Problem:
    """Cost, Riemannian gradient and Hessian at the current point, and a count of the products.

    Parameters
    ----------
    objective : object
        Gives `cost`, `egrad` and, where it can, `ehess`.
    manifold : object
        Turns them into Riemannian ones.
    preconditioner : callable, default=None
        Maps a point and a tangent vector to a tangent vector.
    """

    def __init__(
        self, objective: Any, manifold: Any, preconditioner: Callable[[Any, Any], Any] | None = None
    ) -> None:
        for owner, names in (
            (objective, ("cost", "egrad")),
            (manifold, ("inner", "projection", "rgrad", "rhess", "retraction")),
        ):
            missing = [name for name in names if not hasattr(owner, name)]
            if missing:
                raise TypeError(
                    f"{type(owner).__name__} lacks {', '.join(missing)}, which trust_region needs."
                )
        self.objective = objective
        self.manifold = manifold
        self.preconditioner = preconditioner
        self.n_hessians = 0
        self.point: Any = None
        self.egrad: Any = None
        self.gradient: Any = None
        self._prepared: Any = None

    def cost(self, point: Any) -> float:
        """Return the cost of any point."""
        return float(self.objective.cost(point))

    def inner(self, xi: Any, zeta: Any) -> float:
        """Return the inner product at the current point."""
        return float(self.manifold.inner(self.point, xi, zeta))

    def move(self, point: Any) -> Any:
        """Make `point` the current one and return the Riemannian gradient there."""
        self.point = point
        self.egrad = self.objective.egrad(point)
        self.gradient = self.manifold.rgrad(point, self.egrad)
        self._prepared = None
        return self.gradient

    def hessian(self, xi: Any) -> Any:
        """Return the Riemannian Hessian at the current point along `xi`."""
        self.n_hessians += 1
        if not hasattr(self.objective, "ehess"):
            return self._difference(xi)
        ehess = self.objective.ehess(self.point, xi)
        if not hasattr(self.manifold, "rhess_from"):
            return self.manifold.rhess(self.point, self.egrad, ehess, xi)
        if self._prepared is None:
            self._prepared = self.manifold.prepare_rhess(self.point, self.egrad)
        return self.manifold.rhess_from(self.point, self._prepared, ehess, xi)

    def precondition(self, xi: Any) -> Any:
        """Apply the preconditioner at the current point."""
        assert self.preconditioner is not None
        return self.preconditioner(self.point, xi)

    def _difference(self, xi: Any) -> Any:
        """Approximate the Hessian by the change of the gradient along a short step."""
        norm = self.inner(xi, xi) ** 0.5
        if norm == 0.0:
            return 0.0 * xi
        length = DIFFERENCE_STEP / norm
        ahead = self.manifold.retraction(self.point, length * xi)
        gradient = self.manifold.rgrad(ahead, self.objective.egrad(ahead))
        back = self.manifold.transport(ahead, self.point, gradient)
        return (back - self.gradient) / length
