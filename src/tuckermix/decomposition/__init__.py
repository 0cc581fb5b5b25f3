"""The model without labels: factors, subspace of the memberships, core."""

from tuckermix.decomposition.fit import SOLVERS, decompose
from tuckermix.decomposition.result import Decomposition, SweepRecord
from tuckermix.decomposition.start import INITS

__all__ = ["INITS", "SOLVERS", "Decomposition", "SweepRecord", "decompose"]
