"""Keep the numerical libraries to one thread where threads only get in each other's way.

A fit on the host is a long series of small products and eigenproblems. Handing each of them to
several threads takes longer than doing it, several times longer where other programs want the
processor too. scikit-learn's k-means does the same.
"""

from __future__ import annotations

from functools import cache, wraps
from typing import Any, TypeVar

from threadpoolctl import ThreadpoolController

__all__ = ["one_blas_thread"]

Function = TypeVar("Function")


@cache
def _controller() -> ThreadpoolController:
    """Look up the loaded libraries, once: that takes milliseconds."""
    # SciPy brings a BLAS of its own, which must be loaded to be found.
    import scipy.linalg  # noqa: F401

    return ThreadpoolController()


def one_blas_thread(function: Function) -> Function:
    """Run a function with one BLAS thread, and give the others back afterwards."""

    @wraps(function)  # type: ignore[arg-type]
    def limited(*args: Any, **options: Any) -> Any:
        with _controller().limit(limits=1, user_api="blas"):
            return function(*args, **options)  # type: ignore[operator]

    return limited  # type: ignore[return-value]
