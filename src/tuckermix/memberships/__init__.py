"""Mixing weights: which simplex holds the samples, and weights of new samples in it."""

from tuckermix.memberships.least_squares import simplex_least_squares
from tuckermix.memberships.simplex import SIMPLICES, Simplex, choose_simplex

__all__ = ["SIMPLICES", "Simplex", "choose_simplex", "simplex_least_squares"]
