"""The data as the solvers see them: blocks of samples and reductions over them."""

from tuckermix.sources.source import (
    Blocks,
    Measure,
    MemoryBlocks,
    Sketch,
    Source,
    SpanSettings,
    add_parts,
    as_blocks,
    as_source,
)

__all__ = ["Blocks", "Measure", "MemoryBlocks", "Sketch", "Source", "SpanSettings", "add_parts"]
__all__ += ["as_blocks", "as_source"]
