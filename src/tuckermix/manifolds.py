"""Riemannian geometry: the multinomial manifold, slope tests, the bridge to Pymanopt.

A slope test compares a function along a curve with its Taylor polynomial from the derivative under
test. The error of a right derivative falls with a known power of the step; on logarithmic axes
the curve of errors has that slope, over several decades, until rounding takes over.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tuckermix._array_api import Array, asarray_like, epsilon, get_namespace
from tuckermix._estimators import Settings
from tuckermix._optional import require
from tuckermix._records import Record
from tuckermix._validation import check_integer, check_option, check_random_state

__all__ = [
    "FromPymanopt",
    "Multinomial",
    "SlopeCheck",
    "check_gradient",
    "check_hessian",
    "check_retraction",
    "to_pymanopt",
]


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


POINT_TOLERANCE = 1e3
"""Row sums may miss 1 (or 0, for a tangent vector) by this many rounding errors a column: a
chain of some hundred retractions, each off by a few, still passes."""


def row_sums(Z: Array) -> Array:
    """Return Z·1 as a column; a matrix product is several times faster than a sum by rows."""
    xp = get_namespace(Z)
    return xp.matmul(Z, xp.ones_like(Z[:1, :]).T)


def safe_ratio(xi: Array, U: Array) -> Array:
    """Divide without overflow, whatever the length of the step: huge entries are cut short."""
    xp = get_namespace(xi, U)
    limit = math.sqrt(float(xp.finfo(U.dtype).max)) / 4.0
    return xp.clip(xi, -limit, limit) / xp.clip(U, 1.0 / limit, None)


def angle_from_chord(square: Array) -> Array:
    """Return the angle of unit vectors from the square of their chord; at most π/2 here."""
    xp = get_namespace(square)
    return 2.0 * xp.asin(xp.clip(0.5 * xp.sqrt(square), 0.0, 1.0))


def raise_to_floor(Y: Array) -> Array:
    """Raise entries to at least the machine epsilon, as Manopt does, without rescaling."""
    return get_namespace(Y).clip(Y, epsilon(Y), None)


def check_matrix(matrix: Array, shape: tuple[int, int], name: str, tol: float | None) -> float:
    """Raise where shape or finiteness is wrong; return the tolerance for row sums.

    Parameters
    ----------
    matrix : array
        The candidate.
    shape : tuple of int
        The shape it must have.
    name : str
        What to call it at the beginning of a sentence.
    tol : float or None
        A tolerance to be kept, or None for the default one.

    Returns
    -------
    tol : float
        The tolerance.
    """
    if tuple(matrix.shape) != shape:
        raise ValueError(
            f"{name} has shape {tuple(matrix.shape)}, but the manifold has points of shape "
            f"{shape}: one row per sample, one column per component."
        )
    xp = get_namespace(matrix)
    if not bool(xp.all(xp.isfinite(matrix))):
        raise ValueError(f"{name} has entries that are not finite: NaN or infinity.")
    return POINT_TOLERANCE * shape[1] * epsilon(matrix) if tol is None else tol


def check_positive(matrix: Array, name: str) -> None:
    """Raise where an entry is not positive, and say in which row."""
    xp = get_namespace(matrix)
    smallest = xp.min(matrix, axis=1)
    row = int(xp.argmin(smallest))
    if not float(smallest[row]) > 0:
        raise ValueError(
            f"Row {row} of {name} has an entry {float(smallest[row]):.6g}, not > 0: "
            "points lie inside the simplex, raise small entries to the machine epsilon."
        )


def check_row_sums(matrix: Array, target: float, name: str, tol: float) -> None:
    """Raise where a row sum misses its target, and say which one is worst."""
    xp = get_namespace(matrix)
    sums = xp.sum(matrix, axis=1)
    row = int(xp.argmax(xp.abs(sums - target)))
    if not abs(float(sums[row]) - target) <= tol:
        raise ValueError(
            f"Row {row} of {name} sums to {float(sums[row]):.6g}, not {target:g} "
            f"(tolerance {tol:.1e})."
        )


class Multinomial(FisherMetric):
    r"""Matrices with positive rows that sum to one, under the Fisher information metric.

    .. math::

        \mathbb{P}^L_M = \{U \in \mathbb{R}^{M \times L} : U_{ml} > 0,\ U 1 = 1\}, \qquad
        T_U = \{\xi : \xi 1 = 0\}, \qquad
        \langle\xi, \zeta\rangle_U = \sum_{ml} \frac{\xi_{ml}\zeta_{ml}}{U_{ml}}.

    With :math:`S = 2\sqrt{U}` entrywise, each row lies in the positive orthant of a sphere of
    radius 2 and the Fisher metric is the one of that sphere; exponential, logarithm and distance
    follow from it. All operations take the point first and then the vectors, keep the array
    library and device of their input, and return points with entries of at least the machine
    epsilon, so that no later division meets a zero.

    Parameters
    ----------
    n_samples : int
        Number of rows, M.
    n_components : int
        Number of columns, L.

    References
    ----------
    .. [1] Y. Sun, J. Gao, X. Hong, B. Mishra, B. Yin, "Heterogeneous tensor decomposition for
       clustering via manifold optimization", IEEE TPAMI 38(3), 2016, section 3.
    .. [2] N. Boumal, B. Mishra, P.-A. Absil, R. Sepulchre, "Manopt, a Matlab toolbox for
       optimization on manifolds", JMLR 15, 2014 (``multinomialfactory``).
    .. [3] G. Lebanon, J. Lafferty, "Hyperplane margin classifiers on the multinomial manifold",
       ICML 2004 (the isometry with the sphere).

    Examples
    --------
    >>> from tuckermix.manifolds import Multinomial
    >>> manifold = Multinomial(n_samples=4, n_components=3)
    >>> U = manifold.random_point(random_state=0)
    >>> xi = manifold.random_tangent(U, random_state=1)
    >>> bool(abs(manifold.dist(U, manifold.exp(U, xi)) - manifold.norm(U, xi)) < 1e-12)
    True
    """

    def __init__(self, n_samples: int, n_components: int) -> None:
        self.n_samples = check_integer(n_samples, "n_samples", "Multinomial")
        self.n_components = check_integer(n_components, "n_components", "Multinomial")

    def __repr__(self) -> str:
        return f"Multinomial(n_samples={self.n_samples}, n_components={self.n_components})"

    @property
    def shape(self) -> tuple[int, int]:
        """The shape of a point, ``(n_samples, n_components)``."""
        return (self.n_samples, self.n_components)

    @property
    def dim(self) -> int:
        """The dimension, :math:`M (L - 1)`."""
        return self.n_samples * (self.n_components - 1)

    @property
    def typical_dist(self) -> float:
        r"""Manopt's scale of the manifold, :math:`M\pi/2`.

        It exceeds the true `diameter` for M > 4 and is kept so that runs can be compared with
        Manopt's; ``max_radius=manifold.diameter`` saves a trust region some early rejections.
        """
        return self.n_samples * math.pi / 2

    @property
    def diameter(self) -> float:
        r"""The largest distance of two points, :math:`\pi\sqrt{M}` (approached, not attained)."""
        return math.pi * math.sqrt(self.n_samples)

    # Moving along the manifold ----------------------------------------------------------------

    def retraction(self, U: Array, xi: Array) -> Array:
        r"""Move along a tangent vector by a softmax, correct to first order.

        .. math:: R_U(\xi) = \operatorname{softmax}(\log U + \xi \oslash U) \text{ by rows.}

        The largest exponent of each row is subtracted first, so that steps of any length are
        safe. The result is raised to at least the machine epsilon.

        Parameters
        ----------
        U : array of shape (n_samples, n_components)
            The point.
        xi : array of shape (n_samples, n_components)
            A tangent vector at `U`.

        Returns
        -------
        Y : array of shape (n_samples, n_components)
            The new point (Sun et al. 2016, section 3.1, with the t lost in its text).
        """
        xp = get_namespace(U, xi)
        exponent = safe_ratio(xi, U) + xp.log(U)
        exponent -= xp.max(exponent, axis=1, keepdims=True)
        Y = xp.exp(exponent)
        Y /= row_sums(Y)
        return raise_to_floor(Y)

    def retraction2(self, U: Array, xi: Array) -> Array:
        r"""Move along a tangent vector, correct to second order.

        .. math:: R_U(\xi) = s \odot s, \qquad
            s = \frac{\sqrt U + \tfrac12 \xi \oslash \sqrt U}{\|\sqrt U + \tfrac12 \xi \oslash
            \sqrt U\|_2} \text{ by rows,}

        the metric projection onto the sphere seen through :math:`2\sqrt U`. Unlike `retraction`,
        second derivatives of a function along it are the Riemannian Hessian at every point.

        Parameters
        ----------
        U : array of shape (n_samples, n_components)
            The point.
        xi : array of shape (n_samples, n_components)
            A tangent vector at `U`.

        Returns
        -------
        Y : array of shape (n_samples, n_components)
            The new point.
        """
        xp = get_namespace(U, xi)
        root = xp.sqrt(U)
        sphere = root + 0.5 * safe_ratio(xi, root)
        # A long step would overflow when squared: only the direction of each row matters.
        sphere /= xp.max(xp.abs(sphere), axis=1, keepdims=True)
        Y = sphere * sphere
        Y /= row_sums(Y)
        return raise_to_floor(Y)

    def exp(self, U: Array, xi: Array) -> Array:
        r"""Follow the geodesic that leaves `U` along `xi`, for unit time.

        .. math:: \exp_U(\xi) = \bigl(\cos\theta\, \sqrt U + \tfrac{\sin\theta}{\theta} v\bigr)^2,
            \qquad v = \tfrac12 \xi \oslash \sqrt U,\quad \theta = \|v\|_2 \text{ by rows.}

        A geodesic that reaches the boundary is reflected there.

        Parameters
        ----------
        U : array of shape (n_samples, n_components)
            The point.
        xi : array of shape (n_samples, n_components)
            A tangent vector at `U`.

        Returns
        -------
        Y : array of shape (n_samples, n_components)
            The end of the geodesic (Lebanon and Lafferty 2004).
        """
        xp = get_namespace(U, xi)
        root = xp.sqrt(U)
        v = 0.5 * safe_ratio(xi, root)
        # Scaled by the largest entry, the squares neither overflow nor vanish.
        largest = xp.max(xp.abs(v), axis=1, keepdims=True)
        direction = v / xp.where(largest > 0, largest, xp.ones_like(largest))
        length = xp.sqrt(row_sums(direction * direction))
        theta = largest * length
        direction = direction / xp.where(length > 0, length, xp.ones_like(length))
        sphere = xp.cos(theta) * root + xp.sin(theta) * direction
        Y = sphere * sphere
        Y /= row_sums(Y)
        return raise_to_floor(Y)

    def log(self, U: Array, Y: Array) -> Array:
        r"""Return the tangent vector at `U` whose geodesic ends at `Y`.

        .. math:: \log_U(Y) = \frac{2\theta}{\sin\theta}\,
            \bigl(\sqrt{U \odot Y} - \cos\theta\, U\bigr), \qquad
            \cos\theta = \sqrt{U \odot Y}\, 1 \text{ by rows.}

        Angles come from the chord :math:`\sqrt Y - \sqrt U = (Y - U) \oslash (\sqrt Y + \sqrt U)`,
        which is accurate for neighbouring points, where the arc cosine is not.

        Parameters
        ----------
        U, Y : array of shape (n_samples, n_components)
            Points.

        Returns
        -------
        xi : array of shape (n_samples, n_components)
            The tangent vector, with ``exp(U, xi) == Y`` and ``norm(U, xi) == dist(U, Y)``.
        """
        xp = get_namespace(U, Y)
        root = xp.sqrt(U)
        chord = (Y - U) / (xp.sqrt(Y) + root)
        square = row_sums(chord * chord)
        theta = angle_from_chord(square)
        sine = xp.sin(theta)
        zero = sine <= 0
        factor = xp.where(zero, xp.ones_like(sine), theta / xp.where(zero, sine + 1.0, sine))
        xi = (2.0 * factor) * root * (chord + 0.5 * square * root)
        return self.projection(U, xi)

    def dist(self, U: Array, Y: Array) -> float:
        r"""Return the geodesic distance of two points.

        .. math:: d(U, Y)^2 = \sum_m \bigl(2 \arccos \textstyle\sum_l
            \sqrt{U_{ml} Y_{ml}}\bigr)^2.

        Parameters
        ----------
        U, Y : array of shape (n_samples, n_components)
            Points.

        Returns
        -------
        dist : float
            The distance, computed from the chord as in `log`.
        """
        xp = get_namespace(U, Y)
        chord = (Y - U) / (xp.sqrt(Y) + xp.sqrt(U))
        theta = angle_from_chord(row_sums(chord * chord))
        return 2.0 * math.sqrt(float(xp.sum(theta * theta)))

    def transport(self, U: Array, Y: Array, xi: Array) -> Array:
        r"""Carry a tangent vector at `U` over to `Y` by projection, :math:`\Pi_Y(\xi)`.

        Parameters
        ----------
        U, Y : array of shape (n_samples, n_components)
            Points.
        xi : array of shape (n_samples, n_components)
            A tangent vector at `U`.

        Returns
        -------
        zeta : array of shape (n_samples, n_components)
            A tangent vector at `Y`.
        """
        return self.projection(Y, xi)

    # Random elements --------------------------------------------------------------------------

    def random_point(self, random_state: Any = None, *, like: Array | None = None) -> Array:
        """Draw uniform entries and divide each row by its sum, as Manopt does.

        Parameters
        ----------
        random_state : None, int or Generator, default=None
            Where the numbers come from. They are drawn with NumPy for every library.
        like : array, default=None
            An array whose library, device and type the point takes; None means NumPy, float64.

        Returns
        -------
        U : array of shape (n_samples, n_components)
            A point; it is not uniformly distributed on the simplex.
        """
        # 1 − u lies in (0, 1]: a zero entry cannot be drawn.
        U = 1.0 - check_random_state(random_state).random(self.shape)
        U /= U.sum(axis=1, keepdims=True)
        if like is not None:
            U = asarray_like(U, like)
        return raise_to_floor(U)

    def random_tangent(self, U: Array, random_state: Any = None) -> Array:
        """Draw a tangent vector of norm one: a projected Gaussian matrix divided by its norm.

        Parameters
        ----------
        U : array of shape (n_samples, n_components)
            The point.
        random_state : None, int or Generator, default=None
            Where the numbers come from. They are drawn with NumPy for every library.

        Returns
        -------
        xi : array of shape (n_samples, n_components)
            A tangent vector at `U`.
        """
        normal = check_random_state(random_state).standard_normal(self.shape)
        xi = self.projection(U, asarray_like(normal, U))
        norm = self.norm(U, xi)
        return xi / norm if norm > 0 else xi  # a single component has the zero vector only

    def zero(self, U: Array) -> Array:
        """Return the zero tangent vector at `U`."""
        return get_namespace(U).zeros_like(U)

    # Checks -----------------------------------------------------------------------------------

    def check_point(self, U: Array, *, tol: float | None = None) -> None:
        """Raise ValueError that says where and how `U` fails to be a point.

        Parameters
        ----------
        U : array of shape (n_samples, n_components)
            The candidate.
        tol : float, default=None
            How far a row sum may be from 1; None means 1000 rounding errors a column.
        """
        tol = check_matrix(U, self.shape, "The point", tol)
        check_positive(U, "the point")
        check_row_sums(U, 1.0, "the point", tol)

    def check_tangent(self, U: Array, xi: Array, *, tol: float | None = None) -> None:
        """Raise ValueError that says where and how `xi` fails to be tangent at `U`.

        Parameters
        ----------
        U : array of shape (n_samples, n_components)
            The point.
        xi : array of shape (n_samples, n_components)
            The candidate.
        tol : float, default=None
            How far a row sum may be from 0, relative to the largest entry of `xi` where that
            exceeds 1; None means 1000 rounding errors a column.
        """
        tol = check_matrix(xi, self.shape, "The tangent vector", tol)
        xp = get_namespace(U, xi)
        scale = max(1.0, float(xp.max(xp.abs(xi))))
        check_row_sums(xi, 0.0, "the tangent vector", tol * scale)


def check_methods(owner: Any, names: Sequence[str], user: str) -> None:
    """Raise where an object lacks methods that its user needs."""
    missing = [name for name in names if not hasattr(owner, name)]
    if missing:
        raise TypeError(f"{type(owner).__name__} lacks {', '.join(missing)}, which {user} needs.")


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
    check_methods(manifold, METHODS, "to_pymanopt")
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


@dataclass(frozen=True)
class CheckSettings(Settings):
    """How slopes are compared.

    Attributes
    ----------
    n_steps : int
        Steps from 1e-8 to 1: six in each decade.
    window : int
        Neighbouring steps over which the slope is measured: a decade and a half.
    straight : float
        Decades by which the errors of a straight window may miss their line, 5 %. The first
        straight window above rounding counts: further up, the next power of the step can hide a
        small mistake.
    slope_tolerance : float
        A slope may miss the expected one by this much. The orders to tell apart are integers.
    symmetry_tolerance : float
        Relative difference of ⟨Hξ, ζ⟩ and ⟨ξ, Hζ⟩ that passes: far above rounding, far below a
        mistake.
    """

    n_steps: int = 51
    window: int = 10
    straight: float = 0.02
    slope_tolerance: float = 0.1
    symmetry_tolerance: float = 1e-06


NOISE = 1e3
"""Errors below this many rounding errors of the values compared are rounding."""


@dataclass(frozen=True)
class SlopeCheck(Record):
    """The outcome of a slope test.

    Attributes
    ----------
    name : str
        What was tested.
    slope : float
        The slope measured; NaN where all errors are rounding.
    expected : float
        The least slope of a right derivative.
    passed : bool
        Whether the slope is at least the expected one, or there is no error at all.
    steps : ndarray of shape (n_steps,)
        The steps along the curve.
    errors : ndarray of shape (n_steps,)
        The errors of the Taylor polynomial.
    window : ndarray of shape (n_window,)
        The steps over which the slope was measured; empty where there is no error at all.
    asymmetry : float
        For a Hessian, how far it is from self-adjoint, relative to its size; 0 otherwise.
    """

    name: str
    slope: float
    expected: float
    passed: bool
    steps: np.ndarray
    errors: np.ndarray
    window: np.ndarray
    asymmetry: float = 0.0

    def plot(self, ax: Any = None) -> Any:
        """Draw the errors against the steps, beside a line of the expected slope.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            Where to draw; None makes new axes.

        Returns
        -------
        ax : matplotlib Axes
            The axes drawn on.
        """
        plt = require("matplotlib.pyplot", "SlopeCheck.plot", "plot")
        if ax is None:
            ax = plt.figure().add_subplot()
        shown = self.errors > 0  # a logarithmic axis has no place for zero
        ax.loglog(self.steps[shown], self.errors[shown], ".-", label="error")
        if self.window.size:
            inside = np.isin(self.steps, self.window) & shown
            middle = np.flatnonzero(inside)[inside.sum() // 2]
            line = self.errors[middle] * (self.steps / self.steps[middle]) ** self.expected
            ax.loglog(self.steps, line, "--", label=f"slope {self.expected:g}")
            ax.loglog(
                self.steps[inside],
                self.errors[inside],
                lw=3,
                alpha=0.5,
                label=f"measured {self.slope:.2f}",
            )
        ax.set(xlabel="step", ylabel="error", title=self.name)
        ax.legend()
        return ax


def check_gradient(
    objective: Any,
    manifold: Any,
    point: Any = None,
    tangent: Any = None,
    *,
    random_state: Any = None,
) -> SlopeCheck:
    r"""Test a gradient: the error of the linear model falls with the square of the step.

    .. math:: |f(\gamma(t)) - f(x) - t \langle\operatorname{grad} f(x), \xi\rangle_x| = O(t^2)

    Parameters
    ----------
    objective : object
        Gives `cost` and `egrad`.
    manifold : object
        Gives `inner`, `rgrad` and `exp` or `retraction`.
    point : array, default=None
        The point x; None draws one.
    tangent : array, default=None
        The direction ξ; None draws one.
    random_state : None, int or Generator, default=None
        Where random numbers come from.

    Returns
    -------
    check : SlopeCheck
        Slope 2 is right. ``check.plot()`` draws it.
    """
    x, xi = _start(manifold, point, tangent, random_state)
    gradient = manifold.rgrad(x, objective.egrad(x))
    slope = float(manifold.inner(x, gradient, xi))
    move = getattr(manifold, "exp", manifold.retraction)
    start = float(objective.cost(x))

    def error(t: float) -> float:
        return abs(float(objective.cost(move(x, t * xi))) - start - t * slope)

    return _measure("gradient", error, 2.0, max(abs(start), abs(slope)))


def check_hessian(
    objective: Any,
    manifold: Any,
    point: Any = None,
    tangent: Any = None,
    *,
    random_state: Any = None,
) -> SlopeCheck:
    r"""Test a Hessian: the error of the quadratic model falls with the cube of the step.

    .. math:: |f(\gamma(t)) - f(x) - t \langle\operatorname{grad} f(x), \xi\rangle_x
        - \tfrac{t^2}{2} \langle\operatorname{Hess} f(x)[\xi], \xi\rangle_x| = O(t^3)

    The curve is the geodesic, or a second-order retraction (`retraction2`) where there is no
    `exp`: along a first-order retraction the second derivative is not the Hessian, except at
    critical points. The Hessian must be self-adjoint too.

    Parameters
    ----------
    objective : object
        Gives `cost`, `egrad` and `ehess`.
    manifold : object
        Gives `inner`, `rgrad`, `rhess`, `random_tangent` and `exp` or `retraction2`.
    point : array, default=None
        The point x; None draws one.
    tangent : array, default=None
        The direction ξ; None draws one.
    random_state : None, int or Generator, default=None
        Where random numbers come from.

    Returns
    -------
    check : SlopeCheck
        Slope 3 is right. ``check.plot()`` draws it.
    """
    rng = check_random_state(random_state)
    x, xi = _start(manifold, point, tangent, rng)
    move = getattr(manifold, "exp", None) or getattr(manifold, "retraction2", None)
    if move is None:
        raise TypeError(
            f"{type(manifold).__name__} has neither exp nor retraction2: along a first-order "
            "retraction the second derivative is not the Hessian."
        )
    egrad = objective.egrad(x)

    def hessian(vector: Any) -> Any:
        return manifold.rhess(x, egrad, objective.ehess(x, vector), vector)

    H = hessian(xi)
    slope = float(manifold.inner(x, manifold.rgrad(x, egrad), xi))
    curvature = float(manifold.inner(x, H, xi))
    start = float(objective.cost(x))

    def error(t: float) -> float:
        model = start + t * slope + 0.5 * t**2 * curvature
        return abs(float(objective.cost(move(x, t * xi))) - model)

    zeta = manifold.random_tangent(x, rng)
    one, other = float(manifold.inner(x, H, zeta)), float(manifold.inner(x, xi, hessian(zeta)))
    size = max(abs(one), abs(other), abs(curvature), float(np.finfo(float).tiny))
    scale = max(abs(start), abs(slope), abs(curvature))
    return _measure("Hessian", error, 3.0, scale, asymmetry=abs(one - other) / size)


def check_retraction(
    manifold: Any,
    point: Any = None,
    tangent: Any = None,
    *,
    name: str = "retraction",
    random_state: Any = None,
) -> SlopeCheck:
    r"""Test a retraction: its distance to the geodesic falls with a power of the step.

    .. math:: d(R_x(t\xi), \exp_x(t\xi)) = O(t^{p+1})

    with p = 1 for a retraction, p = 2 for one of second order.

    Parameters
    ----------
    manifold : object
        Gives the retraction, `exp` and `dist`.
    point : array, default=None
        The point x; None draws one.
    tangent : array, default=None
        The direction ξ; None draws one.
    name : {"retraction", "retraction2"}, default="retraction"
        Which one to test.
    random_state : None, int or Generator, default=None
        Where random numbers come from.

    Returns
    -------
    check : SlopeCheck
        Slope 2 is right for `retraction`, 3 for `retraction2`. ``check.plot()`` draws it.
    """
    check_option(name, "name", "check_retraction", ("retraction", "retraction2"))
    x, xi = _start(manifold, point, tangent, random_state)
    move = getattr(manifold, name)

    def error(t: float) -> float:
        return float(manifold.dist(move(x, t * xi), manifold.exp(x, t * xi)))

    return _measure(name, error, 2.0 if name == "retraction" else 3.0, 1.0)


def _start(manifold: Any, point: Any, tangent: Any, random_state: Any) -> tuple[Any, Any]:
    rng = check_random_state(random_state)
    if point is None:
        point = manifold.random_point(rng)
    if tangent is None:
        tangent = manifold.random_tangent(point, rng)
    return point, tangent


def _measure(
    name: str,
    error: Callable[[float], float],
    expected: float,
    scale: float,
    asymmetry: float = 0.0,
) -> SlopeCheck:
    """Evaluate the errors and find the slope of their first straight stretch."""
    use = CheckSettings.current()
    steps = np.logspace(-8, 0, use.n_steps)
    errors = np.array([error(float(t)) for t in steps])
    noise = NOISE * float(np.finfo(float).eps) * scale
    usable = np.isfinite(errors) & (errors > noise)
    best, slope, window = np.inf, np.nan, steps[:0]
    for start in range(use.n_steps - use.window + 1):
        part = slice(start, start + use.window)
        if not usable[part].all():
            continue
        x, y = np.log10(steps[part]), np.log10(errors[part])
        (fit, intercept) = np.polyfit(x, y, 1)
        misfit = float(np.max(np.abs(y - fit * x - intercept)))
        if misfit < best:
            best, slope, window = misfit, float(fit), steps[part]
        if misfit <= use.straight:
            break
    # A higher order than needed is right as well: the derivative one higher happens to vanish.
    no_error = bool(np.isfinite(errors).all() and not usable.any())
    passed = no_error or bool(slope >= expected - use.slope_tolerance)
    passed = passed and asymmetry <= use.symmetry_tolerance
    return SlopeCheck(name, slope, expected, passed, steps, errors, window, asymmetry)
