"""Numerics that know nothing of clustering: tensors, matrices, points and simplices.

Each file is named after what it works on. Everything follows its input: the array library, the
device and the floating type.
"""

from tuckermix.numerics.points import kmeans
from tuckermix.numerics.simplex import simplex_least_squares

__all__ = ["kmeans", "simplex_least_squares"]
