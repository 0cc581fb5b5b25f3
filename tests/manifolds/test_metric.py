"""The Fisher metric; its properties over many points are tested with the manifold."""

import numpy as np
import pytest

from tuckermix.manifolds.metric import FisherMetric


def test_inner_product_is_the_sum_over_entries(rng):
    metric, U = FisherMetric(), rng.dirichlet(np.ones(3), size=5)
    xi, zeta = rng.standard_normal((2, 5, 3))
    assert metric.inner(U, xi, zeta) == pytest.approx(np.sum(xi * zeta / U), rel=1e-12)
    assert metric.norm(U, xi) == pytest.approx(np.sum(xi**2 / U) ** 0.5, rel=1e-12)


def test_gradient_stands_for_the_derivative(rng):
    """The metric with the gradient is the derivative of a function along a tangent vector."""
    metric, U, G = FisherMetric(), rng.dirichlet(np.ones(3), size=5), rng.standard_normal((5, 3))
    xi = metric.projection(U, rng.standard_normal((5, 3)))
    assert metric.inner(U, metric.rgrad(U, G), xi) == pytest.approx(np.sum(G * xi), rel=1e-10)


def test_hessian_equals_the_form_with_division(rng):
    """The formula of the paper, term by term, on a point where its division is harmless."""
    metric, U = FisherMetric(), rng.dirichlet(np.ones(4), size=9)
    G, H = rng.standard_normal(U.shape), rng.standard_normal(U.shape)
    xi = metric.projection(U, rng.standard_normal(U.shape))
    alpha = (G * U).sum(axis=1, keepdims=True)
    d_alpha = (H * U + G * xi).sum(axis=1, keepdims=True)
    gradient = G * U - alpha * U
    d_gradient = H * U + G * xi - alpha * xi - d_alpha * U
    paper = metric.projection(U, d_gradient - 0.5 * xi * gradient / U)
    np.testing.assert_allclose(metric.rhess(U, G, H, xi), paper, atol=1e-14)
