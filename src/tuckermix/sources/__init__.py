"""The data as the solvers see them: blocks of samples and reductions over them."""

from tuckermix.sources.blocks import Blocks, MemoryBlocks, as_blocks
from tuckermix.sources.source import Sketch, Source, as_source

__all__ = ["Blocks", "MemoryBlocks", "Sketch", "Source", "as_blocks", "as_source"]
