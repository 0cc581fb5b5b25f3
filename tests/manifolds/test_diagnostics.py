"""Slope tests: they pass what is right, fail what is wrong, and can be drawn."""

from __future__ import annotations

import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tuckermix._array_api import asarray_like
from tuckermix.manifolds import Multinomial, check_gradient, check_hessian, check_retraction


class Smooth:
    """½⟨A U, U⟩ + Σ sin(U ⊙ C): no derivative of it vanishes."""

    def __init__(self, rng, shape, scale=1.0):
        size = shape[0] * shape[1]
        A = rng.standard_normal((size, size)) * scale / size
        self.A, self.C, self.scale = A + A.T, rng.standard_normal(shape) * 3.0, scale

    def _times(self, V):
        return (self.A @ V.ravel()).reshape(V.shape)

    def cost(self, U):
        return 0.5 * np.sum(U * self._times(U)) + self.scale * np.sum(np.sin(self.C * U))

    def egrad(self, U):
        return self._times(U) + self.scale * self.C * np.cos(self.C * U)

    def ehess(self, U, xi):
        return self._times(xi) - self.scale * self.C**2 * np.sin(self.C * U) * xi


@st.composite
def problems(draw):
    manifold = Multinomial(draw(st.integers(1, 6)), draw(st.integers(2, 5)))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    objective = Smooth(rng, manifold.shape, 10.0 ** draw(st.integers(-4, 4)))
    spread = draw(st.sampled_from([0.0, 1.0, 4.0]))
    U = np.exp(-spread * rng.random(manifold.shape))
    return objective, manifold, U / U.sum(axis=1, keepdims=True), rng


@given(problems())
def test_right_derivatives_pass(problem):
    objective, manifold, U, rng = problem
    xi = manifold.projection(U, U * rng.standard_normal(U.shape))
    xi /= manifold.norm(U, xi)
    gradient = check_gradient(objective, manifold, U, xi)
    assert gradient.passed
    assert gradient.slope >= 1.9
    hessian = check_hessian(objective, manifold, U, xi, random_state=0)
    assert hessian.passed
    assert hessian.slope >= 2.9
    assert hessian.asymmetry <= 1e-9


def test_slopes_are_the_known_ones(rng):
    manifold = Multinomial(5, 4)
    objective = Smooth(rng, manifold.shape)
    assert check_gradient(objective, manifold, random_state=rng).slope == pytest.approx(2, abs=0.1)
    assert check_hessian(objective, manifold, random_state=rng).slope == pytest.approx(3, abs=0.1)
    first = check_retraction(manifold, random_state=rng)
    assert (first.passed, first.expected) == (True, 2.0)
    assert first.slope == pytest.approx(2, abs=0.1)
    second = check_retraction(manifold, name="retraction2", random_state=rng)
    assert (second.passed, second.expected) == (True, 3.0)
    assert second.slope == pytest.approx(3, abs=0.1)


def test_wrong_derivatives_fail(rng):
    manifold = Multinomial(5, 4)
    objective = Smooth(rng, manifold.shape)
    right = objective.egrad
    objective.egrad = lambda U: 1.01 * right(U)
    wrong = check_gradient(objective, manifold, random_state=rng)
    assert not wrong.passed
    assert wrong.slope == pytest.approx(1, abs=0.1)
    objective.egrad = right
    ehess = objective.ehess
    objective.ehess = lambda U, xi: 1.5 * ehess(U, xi)
    wrong = check_hessian(objective, manifold, random_state=rng)
    assert not wrong.passed
    assert wrong.slope == pytest.approx(2, abs=0.1)


def test_a_hessian_that_is_not_self_adjoint_fails(rng):
    manifold = Multinomial(5, 4)
    objective = Smooth(rng, manifold.shape)
    ehess, N = objective.ehess, rng.standard_normal((20, 20))
    N = N - N.T  # adds nothing to ⟨ξ, Hξ⟩, so the slope alone would not tell
    objective.ehess = lambda U, xi: ehess(U, xi) + (N @ xi.ravel()).reshape(xi.shape)
    check = check_hessian(objective, manifold, random_state=rng)
    assert check.slope >= 2.9
    assert check.asymmetry > 1e-3
    assert not check.passed


def test_hessian_along_a_first_order_retraction_has_slope_two(rng):
    """The reason why the test moves along geodesics."""
    manifold = Multinomial(5, 4)
    objective = Smooth(rng, manifold.shape)

    class FirstOrder(Multinomial):
        exp = Multinomial.retraction

    class SecondOrder(Multinomial):
        exp = Multinomial.retraction2

    assert not check_hessian(objective, FirstOrder(5, 4), random_state=1).passed
    assert check_hessian(objective, SecondOrder(5, 4), random_state=1).passed


def test_no_error_passes():
    """A function that is linear along geodesics of plain space leaves nothing to measure."""

    class Line:
        def inner(self, x, xi, zeta):
            return np.sum(xi * zeta)

        def rgrad(self, x, egrad):
            return egrad

        def retraction(self, x, xi):
            return x + xi

    class Linear:
        def cost(self, x):
            return np.sum(x)

        def egrad(self, x):
            return np.ones_like(x)

    check = check_gradient(Linear(), Line(), np.ones(3), np.ones(3))
    assert check.passed
    assert np.isnan(check.slope)
    assert check.window.size == 0


def test_other_libraries(xp, rng):
    manifold = Multinomial(4, 3)
    target = manifold.random_point(rng)

    class Distance:
        """Half the squared Euclidean distance to a point, plus a cubic."""

        def cost(self, U):
            D = U - asarray_like(target, U)
            return float(xp.sum(D * D / 2 + D * D * D))

        def egrad(self, U):
            D = U - asarray_like(target, U)
            return D + 3 * D * D

        def ehess(self, U, xi):
            D = U - asarray_like(target, U)
            return xi + 6 * D * xi

    U = xp.asarray(manifold.random_point(rng))
    assert check_gradient(Distance(), manifold, U, random_state=0).passed
    assert check_hessian(Distance(), manifold, U, random_state=0).passed
    assert check_retraction(manifold, U, random_state=0).passed


def test_plot_shows_errors_and_slopes(rng):
    plt = pytest.importorskip("matplotlib.pyplot")
    manifold = Multinomial(5, 4)
    check = check_gradient(Smooth(rng, manifold.shape), manifold, random_state=rng)
    ax = check.plot()
    assert ax.get_title() == "gradient"
    labels = [text.get_text() for text in ax.get_legend().get_texts()]
    assert labels == ["error", "slope 2", f"measured {check.slope:.2f}"]
    assert check.plot(ax) is ax
    plt.close(ax.figure)


def test_plot_without_matplotlib_says_what_to_install(monkeypatch, rng):
    check = check_retraction(Multinomial(3, 3), random_state=0)
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    with pytest.raises(ImportError, match=r"SlopeCheck.plot needs matplotlib: install"):
        check.plot()


def test_what_is_missing_is_named(rng):
    class Flat:
        def retraction(self, x, xi):
            return x + xi

    with pytest.raises(TypeError, match="Flat has neither exp nor retraction2"):
        check_hessian(None, Flat(), np.ones(2), np.ones(2))
    with pytest.raises(ValueError, match="'name' parameter of check_retraction must be one of"):
        check_retraction(Multinomial(3, 2), name="exp")
