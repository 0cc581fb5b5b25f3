"""How fast sweeps converge: ``python -m benchmarks.bench_sweeps``.

Prints and stores (`sweeps.md`) the cost above its final value after each sweep on 24 classes of
PIE, core 12×12, 24 components, for the plain alternation and for the solver with several numbers
of spare directions. A second table counts sweeps and takes times on several datasets, with the
model that labels rest on, for other limits on spare directions, and without going on where the last
steps went. Datasets lie in `TUCKERMIX_DATA`; those that are not there are left out.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from unittest import mock

import numpy as np

from benchmarks.bench_core import faces
from benchmarks.bench_cores import faces as first_classes
from benchmarks.reporting import in_turn, table_by_data
from tuckermix import decompose
from tuckermix._resources import one_blas_thread
from tuckermix.decomposition import exact
from tuckermix.decomposition.exact import closed_form, update_factors
from tuckermix.decomposition.fit import start_factors
from tuckermix.sources import as_source

RANKS, N_COMPONENTS, SWEEPS = (12, 12), 24, 8

DATA = {"orl": 40, "pie": 24, "yale": 15, "yaleb": 10, "coil20": 20, "cbcl": 2, "mnist": 10}
"""Datasets, and how many of their classes."""

MOST = 2000
"""Samples of a dataset that are taken at most, one after the other."""

TOLERANCES, REPEATS = (1e-6, 1e-9), 5

CHANGES: dict[str, dict[str, float]] = {
    "as it is": {},
    "8 spare at most": {"MAX_OVERSAMPLING": 8},
    "32 spare at most": {"MAX_OVERSAMPLING": 32},
    "no overstep": {"MOST_OVERSTEP": 0.0},
}


def plain(X: np.ndarray, n_sweeps: int) -> list[float]:
    """Alternate closed form and factors as the textbook has it; return the cost of each sweep."""
    source = as_source(X)
    factors = start_factors(source, RANKS, "hosvd", np.random.default_rng(0))
    costs = []
    for _ in range(n_sweeps + 1):
        found = closed_form(source.project(factors), N_COMPONENTS - 1)
        costs.append(0.5 * (source.squared_norm - found.explained))
        factors = update_factors(source.contract(found.Q), factors)
    return costs


def with_spare(X: np.ndarray, per_direction: float, n_sweeps: int) -> list[float]:
    """Run the solver with so many spare directions for each direction; return the costs."""
    least = 0 if per_direction == 0 else exact.MIN_OVERSAMPLING
    with (
        mock.patch.object(exact, "OVERSAMPLING", per_direction),
        mock.patch.object(exact, "MIN_OVERSAMPLING", least),
        mock.patch.object(exact, "MAX_OVERSAMPLING", 4 * N_COMPONENTS),
    ):
        fit = decompose(X, N_COMPONENTS, RANKS, tol=0.0, max_iter=n_sweeps)
    return [record.cost for record in fit.history]


def counted(name: str) -> Iterator[list[str]]:
    """Yield the row of a dataset in the second table."""
    X, cells = first_classes(name, DATA[name])[0][:MOST], [name]
    for tol in TOLERANCES:
        for change in CHANGES.values():
            with ExitStack() as stack:
                for constant, value in change.items():
                    stack.enter_context(mock.patch.object(exact, constant, value))
                fit = partial(decompose, X, 2 * DATA[name] + 1, None, tol=tol)
                seconds = in_turn({"fit": fit}, REPEATS)["fit"]
                found = fit()
            cells.append(f"{found.n_iter}, {1e3 * seconds:.0f} ms, {found.stationarity:.0e}")
    yield cells


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "results")
    options = parser.parse_args()
    X, name = faces()
    best = plain(X, 100)[-1]
    runs = {"plain alternation": plain(X, SWEEPS)}
    for per_direction in (0.0, 0.5, 1.0, 2.0):
        label = f"{per_direction:g} spare a direction"
        runs[label] = with_spare(X, per_direction, SWEEPS)
    lines = [
        (
            f"Cost above its final value {best:.6f} after each sweep, {name}, core 12×12, "
            f"{N_COMPONENTS} components. Command: `python -m benchmarks.bench_sweeps`."
        ),
        "",
        "| sweep | " + " | ".join(map(str, range(SWEEPS + 1))) + " |",
        "|---|" + "---|" * (SWEEPS + 1),
    ]
    for label, costs in runs.items():
        cells = [f"{max(0.0, cost - best):.1e}" for cost in costs[: SWEEPS + 1]]
        lines.append(f"| {label} | " + " | ".join(cells + [""] * (SWEEPS + 1 - len(cells))) + " |")
    titles = ["data", *(f"{change}, {tol:g}" for tol in TOLERANCES for change in CHANGES)]
    lines += [
        "",
        (
            "Sweeps, processor time on one thread and stationarity of `decompose` with ranks that "
            "the data choose and 2 K + 1 components, for two tolerances."
        ),
        "",
        *one_blas_thread(table_by_data, n_jobs=1)(titles, DATA, counted),
    ]
    text = "\n".join(lines) + "\n"
    (options.out / "sweeps.md").write_text(text)
    print(text)


if __name__ == "__main__":
    main()
