"""The model without labels: factors, subspace of the memberships, core."""

from tuckermix.decomposition.fit import INITS, SOLVERS, Solver, decompose
from tuckermix.decomposition.result import Decomposition, SweepRecord

__all__ = ["INITS", "SOLVERS", "Decomposition", "Solver", "SweepRecord", "decompose"]
