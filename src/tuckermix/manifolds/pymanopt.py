"""Our manifolds for Pymanopt's optimizers, and Pymanopt's manifolds for our solvers."""

from __future__ import annotations

from typing import Any

from tuckermix._optional import require
from tuckermix._validation import check_random_state

METHODS = (
    *("inner", "norm", "projection", "rgrad", "rhess", "retraction", "exp", "log", "dist"),
    *("transport", "random_point", "random_tangent"),
)
"""Methods that a manifold needs to be handed over."""


def to_pymanopt(manifold: Any, *, random_state: Any = None) -> Any:
    """Return a Pymanopt manifold with the geometry of `manifold`.

    Every Pymanopt optimizer runs on it: trust regions, conjugate gradients, steepest descent and
    the derivative-free ones; it may be a factor of Pymanopt's `Product`.

    Parameters
    ----------
    manifold : object
        A manifold with the methods of `tuckermix.manifolds.Multinomial`.
    random_state : None, int or Generator, default=None
        Where the random points and tangent vectors come from, which Pymanopt asks for without
        a seed.

    Returns
    -------
    manifold : pymanopt.manifolds.manifold.Manifold
        The same manifold.

    Examples
    --------
    >>> import numpy as np, pymanopt
    >>> from tuckermix.manifolds import Multinomial, to_pymanopt
    >>> from tuckermix.objectives import MembershipObjective
    >>> objective = MembershipObjective(np.random.default_rng(0).standard_normal((30, 5)))
    >>> manifold = to_pymanopt(Multinomial(30, 3), random_state=0)
    >>> on_arrays = pymanopt.function.numpy(manifold)
    >>> problem = pymanopt.Problem(
    ...     manifold,
    ...     on_arrays(objective.cost),
    ...     euclidean_gradient=on_arrays(objective.egrad),
    ...     euclidean_hessian=on_arrays(objective.ehess),
    ... )
    >>> result = pymanopt.optimizers.TrustRegions(verbosity=0).run(problem)
    >>> bool(np.isclose(result.cost, objective.optimum(3)))
    True
    """
    base: Any = require("pymanopt.manifolds.manifold", "to_pymanopt", "pymanopt").Manifold
    missing = [name for name in METHODS if not hasattr(manifold, name)]
    if missing:
        raise TypeError(
            f"{type(manifold).__name__} lacks {', '.join(missing)}, which to_pymanopt needs."
        )
    rng = check_random_state(random_state)

    class Exported(base):
        """A manifold of this package under Pymanopt's names."""

        def __init__(self) -> None:
            self.original = manifold
            super().__init__(repr(manifold), int(manifold.dim))

        @property
        def typical_dist(self) -> float:
            return float(manifold.typical_dist)

        inner_product = staticmethod(manifold.inner)
        norm = staticmethod(manifold.norm)
        projection = to_tangent_space = staticmethod(manifold.projection)
        euclidean_to_riemannian_gradient = staticmethod(manifold.rgrad)
        euclidean_to_riemannian_hessian = staticmethod(manifold.rhess)
        retraction = staticmethod(manifold.retraction)
        exp = staticmethod(manifold.exp)
        log = staticmethod(manifold.log)
        dist = staticmethod(manifold.dist)
        transport = staticmethod(manifold.transport)

        def pair_mean(self, point_a: Any, point_b: Any) -> Any:
            return manifold.exp(point_a, 0.5 * manifold.log(point_a, point_b))

        def random_point(self) -> Any:
            return manifold.random_point(rng)

        def random_tangent_vector(self, point: Any) -> Any:
            return manifold.random_tangent(point, rng)

        def zero_vector(self, point: Any) -> Any:
            return 0.0 * point

    return Exported()


class FromPymanopt:
    """A Pymanopt manifold under the names of this package, for `tuckermix.solvers`.

    Points and tangent vectors stay what they are for Pymanopt: arrays, or lists of arrays for its
    products.

    Parameters
    ----------
    manifold : pymanopt.manifolds.manifold.Manifold
        Any manifold of Pymanopt.
    """

    def __init__(self, manifold: Any) -> None:
        self.original = manifold
        self.dim = int(manifold.dim)
        self.inner = manifold.inner_product
        self.norm = manifold.norm
        self.projection = manifold.to_tangent_space
        self.rgrad = manifold.euclidean_to_riemannian_gradient
        self.rhess = manifold.euclidean_to_riemannian_hessian
        self.retraction = manifold.retraction
        self.transport = manifold.transport

    def __repr__(self) -> str:
        return f"FromPymanopt({self.original})"

    @property
    def typical_dist(self) -> float:
        """The scale of the manifold."""
        return float(self.original.typical_dist)
