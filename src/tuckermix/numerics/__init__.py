"""Numerics that know nothing of clustering: tensors, matrices, points and simplices.

Each file is named after what it works on. Everything follows its input: the array library, the
device and the floating type.
"""

from tuckermix.numerics.linalg import (
    centre_rows,
    gram_of_columns,
    leading_directions,
    leading_eigenvectors,
    orthonormal_basis,
    random_basis,
)
from tuckermix.numerics.points import KMeansResult, kmeans, nearest_neighbors
from tuckermix.numerics.simplex import regular_simplex, simplex_least_squares
from tuckermix.numerics.tensor import (
    mode_dot,
    mode_gram,
    multi_mode_dot,
    squared_norm,
    tucker_to_tensor,
    unfold,
)

__all__ = [
    "KMeansResult",
    "centre_rows",
    "gram_of_columns",
    "kmeans",
    "leading_directions",
    "leading_eigenvectors",
    "mode_dot",
    "mode_gram",
    "multi_mode_dot",
    "nearest_neighbors",
    "orthonormal_basis",
    "random_basis",
    "regular_simplex",
    "simplex_least_squares",
    "squared_norm",
    "tucker_to_tensor",
    "unfold",
]
