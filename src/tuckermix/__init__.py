"""Cluster stacks of images, videos, volumes and other N-way arrays without flattening them."""

from tuckermix._version import __version__

__all__ = ["__version__"]
