"""Functions to minimise, with derivatives that share their work."""

from tuckermix.objectives.membership import MembershipObjective

__all__ = ["MembershipObjective"]
