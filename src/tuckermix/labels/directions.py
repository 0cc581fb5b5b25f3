r"""The directions in which samples are compared, and how much each of them counts.

The model keeps the L - 1 leading directions of the centred samples and drops the others. Where it
stops is a matter of convention, and classes do not end there: a direction just outside tells as
much as one just inside. So labels look further, and every direction counts by

.. math:: w_j = \frac{\lambda_j}{\lambda_j + \lambda_L},

:math:`\lambda_j` the energy along direction j and :math:`\lambda_L` that of the first one outside
the model. This is the factor by which the best linear estimate of a signal is shrunk if the noise
has the energy :math:`\lambda_L` in each direction: strong directions count in full, the edge of the
model for a half, and weak ones fade.
"""

from __future__ import annotations

import numpy as np

from tuckermix._array_api import Array, asarray_like, double, epsilon, get_namespace, to_numpy
from tuckermix.decomposition.subspace import centre_rows, rank_of, rough_basis

WIDER = 4
"""How many times more directions than the model has are looked at."""

MOST_MORE = 256
"""The most directions beyond the model: with hundreds of clusters, finding more would take longer
than the fit."""

NEGLIGIBLE = 0.01
"""The last directions that together hold less than this share of the squared weights are left out.
For faces, whose energy falls quickly, that halves the work."""


def compared_directions(B: Array, n_directions: int) -> Array | None:
    """Find scaled directions such that plain distances along them are the ones to compare.

    Parameters
    ----------
    B : array of shape (n_samples, n_features)
        The projected samples as rows; overwritten.
    n_directions : int
        How many directions the model has.

    Returns
    -------
    view : array of shape (n_features, d) or None
        Orthogonal columns in float64; d is at most four times `n_directions`, and at most 256
        above it. Along column j the centred samples have a variance proportional to ``w_j²``, and
        1 on average. None where there is nothing to see beyond the model.
    """
    n_samples, n_features = (int(size) for size in B.shape)
    B, mean = centre_rows(B)
    xp = get_namespace(B)
    width = min(WIDER * n_directions, n_directions + MOST_MORE, n_samples - 1, n_features)
    if width <= n_directions or not bool(xp.any(B != 0)):
        return None
    basis = rough_basis(B, width)[:, :width]
    along = double(xp.matmul(B, asarray_like(basis, B)))
    values = xp.sqrt(xp.sum(along * along, axis=0))
    host = to_numpy(values)
    norm = (n_samples * float(xp.vecdot(mean, mean)) + float(np.max(host)) ** 2) ** 0.5
    if rank_of(host, norm, epsilon(B)) <= n_directions:
        return None
    edge = values[n_directions]
    # With a weight of λ / (λ + λ_L), dividing by the root of λ does no harm where it vanishes.
    scales = values / (values**2 + edge**2)
    squares = to_numpy(values * scales) ** 2
    rest = np.cumsum(squares[::-1])[::-1]
    keep = int(np.sum(rest > NEGLIGIBLE * rest[0]))
    scales = scales[:keep] * (n_samples / float(np.mean(squares[:keep]))) ** 0.5
    return basis[:, :keep] * scales
