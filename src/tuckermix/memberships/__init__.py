"""Mixing weights: which simplex holds the samples, or lies among them."""

from tuckermix.memberships.min_volume import smallest_simplex
from tuckermix.memberships.simplex import SIMPLICES, Simplex, anchored_simplex, find_archetypes

__all__ = ["SIMPLICES", "Simplex", "anchored_simplex", "find_archetypes", "smallest_simplex"]
