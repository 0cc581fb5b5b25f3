"""The data as the solvers see them: three reductions over the samples."""

from tuckermix.sources.base import Sketch, Source, as_source
from tuckermix.sources.memory import MemorySource

__all__ = ["MemorySource", "Sketch", "Source", "as_source"]
