"""What the comparison methods with a Tucker subspace share: the choice of ranks and the start."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from tuckermix._declaration import declare
from tuckermix._records import Record
from tuckermix._validation import check_ranks
from tuckermix.baselines._base import IterativeClustering
from tuckermix.decomposition.fit import hosvd
from tuckermix.sources import Source, as_source

STARTED = """
Parameters
----------
source : Source
    The samples.
factors : sequence of ndarray of shape (d_n, r_n)
    Orthonormal factors to start from.
"""
"""What runs from Tucker factors share."""


@dataclass(frozen=True)
class TuckerStart(Record):
    """The samples with the ranks and factors from which a method starts.

    Attributes
    ----------
    source : Source
        The samples, scaled to ordinary size; `cost_of` undoes it for costs.
    ranks : tuple of int
        One rank for each feature mode.
    factors : list of ndarray of shape (d_n, r_n)
        Leading singular vectors of each unfolding, the paper's first initialisation.
    """

    source: Source
    ranks: tuple[int, ...]
    factors: list[np.ndarray]


def start_tucker(X: np.ndarray, ranks: Any, owner: str) -> TuckerStart:
    """Choose ranks and factors as `TuckerClustering` does.

    Parameters
    ----------
    X : ndarray of shape (n_samples, d_1, ...)
        The samples, float64.
    ranks : None, int, float or sequence of int
        The parameter as the user gave it.
    owner : str
        The name of the class that has the parameter, for messages.

    Returns
    -------
    start : TuckerStart
        Source, ranks and factors.
    """
    chosen = check_ranks(ranks, tuple(X.shape[1:]), owner)
    source = as_source(X)
    return TuckerStart(source, *hosvd(source, chosen))


@declare
class TuckerMethod(IterativeClustering):
    """Base of the methods that work in a Tucker subspace.

    Parameters
    ----------
    ranks : None, int, float or sequence of int, default=None
        The number of columns of each factor: one int for all modes, one for each, or the share of
        the centred energy to keep. None keeps 98 % of the energy above the noise.

    Attributes
    ----------
    factors_ : list of arrays of shape (d_n, r_n)
        Orthonormal factors of the feature modes.
    core_ : array of shape (n_clusters, r_1, ...)
        The components in the subspace.
    ranks_ : tuple of int
        The number of columns of each factor.
    """

    ranks: Any = None

    def _prepare(self, X: np.ndarray) -> Any:
        return start_tucker(X, self.ranks, type(self).__name__)
