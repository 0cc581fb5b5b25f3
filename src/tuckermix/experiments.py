"""The former place of `tuckermix_bench`, which is a distribution of its own now.

Names are forwarded, with a warning, until version 0.4.
"""

from __future__ import annotations

import importlib
import warnings
from typing import Any


def __getattr__(name: str) -> Any:
    if name.startswith("__"):
        raise AttributeError(name)
    try:
        bench = importlib.import_module("tuckermix_bench")
    except ImportError as error:
        raise ImportError(
            "tuckermix.experiments needs tuckermix-bench: pip install tuckermix-bench."
        ) from error
    warnings.warn(
        f"tuckermix.experiments.{name} has moved to tuckermix_bench.{name}; the old name goes "
        "with version 0.4.",
        DeprecationWarning,
        stacklevel=2,
    )
    return getattr(bench, name)
