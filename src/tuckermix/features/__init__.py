"""Features of images and other N-way samples, to be clustered in place of their pixels."""

from tuckermix.features.scale import Scale
from tuckermix.features.scattering import Scattering

__all__ = ["Scale", "Scattering"]
