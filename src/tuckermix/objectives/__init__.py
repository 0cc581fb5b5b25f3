"""Functions to minimise, with derivatives that share their work."""

from tuckermix.objectives.membership import MembershipObjective
from tuckermix.objectives.tucker import TuckerObjective

__all__ = ["MembershipObjective", "TuckerObjective"]
