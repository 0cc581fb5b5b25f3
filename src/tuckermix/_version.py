"""The version of the package, stated once."""

__version__ = "0.2.0"
