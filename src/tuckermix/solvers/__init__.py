"""Riemannian solvers for any objective on any manifold of `tuckermix.manifolds`' interface."""

from tuckermix.solvers._trust_region import InnerStop, TrustRegionRecord, trust_region

__all__ = ["InnerStop", "TrustRegionRecord", "trust_region"]
