"""Compare two ways to the eigenvectors of a graph: ``python -m benchmarks.bench_eigenvectors``.

The graphs are those by which `TuckerClustering` labels samples, as far as they are too large for
LAPACK. Lanczos takes the fewest products with the graph, a block of vectors the fewest calls.
Processor times are medians on one thread, the two in turn. Datasets lie in `TUCKERMIX_DATA`; those
that are not there are left out. Results go to `eigenvectors.md`.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any
from unittest import mock

from benchmarks import reporting
from benchmarks.bench_cores import faces as first_classes
from tuckermix import TuckerClustering
from tuckermix._resources import one_blas_thread
from tuckermix.labels import graph
from tuckermix.numerics import linalg

CASES = (
    ("pie", 24, None),
    ("pie", 68, None),
    ("yaleb", 20, None),
    ("yaleb", 38, None),
    ("coil20", 20, None),
    ("digits", 10, None),
    ("mnist", 10, 1000),
    ("mnist", 10, 10_000),
    ("mnist", 30, 10_000),
)
"""Dataset, clusters, and samples where not all are taken."""

REPEATS = 7


def graphs(name: str, n_clusters: int, n_samples: int | None) -> Iterator[tuple[Any, int]]:
    """Fit a model and yield each large graph whose eigenvectors were wanted, and how many."""
    X, _ = first_classes(name, n_clusters)
    asked: list[tuple[Any, int]] = []

    def noted(matrix: Any, count: int) -> Any:
        asked.append((matrix, count))
        return linalg.leading_eigenvectors(matrix, count)

    with mock.patch.object(graph, "leading_eigenvectors", noted):
        TuckerClustering(n_clusters, random_state=0).fit(X[:n_samples])
    for matrix, count in asked:
        size = matrix.shape[0]
        if size > linalg.SPARSE_SIZE and 4 * (count + linalg.SPARE) <= size:
            yield matrix, count


def compared(case: tuple[str, int, int | None]) -> Iterator[tuple[Any, ...]]:
    """Yield a row for each graph of a case."""
    for matrix, count in graphs(*case):
        ways = {
            "Lanczos": partial(linalg._lanczos, matrix, count),
            "block": partial(linalg._filtered_eigenvectors, matrix, count),
        }
        times = reporting.in_turn(ways, REPEATS)
        cells = [f"{1e3 * times[way]:.0f} ms" for way in ways]
        if ways["Lanczos"]() is None:
            cells[0] += ", leaves one out"
        few = matrix.shape[0] >= linalg.MANY_WANTED * count
        yield case[0], f"{matrix.shape[0]:,}", count, *cells, "Lanczos" if few else "block"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "results")
    options = parser.parse_args()
    command = "TUCKERMIX_DATA=… python -m benchmarks.bench_eigenvectors"
    titles = ("data", "samples", "eigenvectors", "Lanczos", "block", "default")
    lines = one_blas_thread(reporting.table_by_data)(titles, CASES, compared)
    heading = reporting.heading(command, "Medians of processor time", reporting.environment())
    text = "\n".join([heading, "", *lines, ""])
    (options.out / "eigenvectors.md").write_text(text)
    print(text)


if __name__ == "__main__":
    main()
