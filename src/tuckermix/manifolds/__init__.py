"""Riemannian geometry: the multinomial manifold, slope tests, the bridge to Pymanopt."""

from tuckermix.manifolds.diagnostics import (
    SlopeCheck,
    check_gradient,
    check_hessian,
    check_retraction,
)
from tuckermix.manifolds.multinomial import Multinomial
from tuckermix.manifolds.pymanopt import FromPymanopt, to_pymanopt

__all__ = [
    "FromPymanopt",
    "Multinomial",
    "SlopeCheck",
    "check_gradient",
    "check_hessian",
    "check_retraction",
    "to_pymanopt",
]
