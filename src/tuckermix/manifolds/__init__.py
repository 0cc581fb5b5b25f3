"""Riemannian geometry: the multinomial manifold, slope tests, the bridge to Pymanopt."""

from tuckermix.manifolds.multinomial import Multinomial

__all__ = ["Multinomial"]
