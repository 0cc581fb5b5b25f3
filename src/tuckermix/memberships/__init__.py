"""Mixing weights: which of the equally good simplices holds the samples."""

from tuckermix.memberships.simplex import SIMPLICES, Simplex, anchored_simplex

__all__ = ["SIMPLICES", "Simplex", "anchored_simplex"]
