"""How fast sweeps converge: ``python -m benchmarks.bench_sweeps``.

Prints and stores (`sweeps.md`) the cost above its final value after each sweep on 24 classes of
PIE, core 12×12, 24 components, for the plain alternation and for the solver with several numbers
of spare directions.
"""

from __future__ import annotations

from pathlib import Path
from unittest import mock

import numpy as np

from benchmarks.bench_core import faces
from tuckermix import decompose
from tuckermix.decomposition import exact
from tuckermix.decomposition.exact import closed_form, update_factors
from tuckermix.decomposition.fit import start_factors
from tuckermix.sources import as_source

RANKS, N_COMPONENTS, SWEEPS = (12, 12), 24, 8


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
    ):
        fit = decompose(X, N_COMPONENTS, RANKS, tol=0.0, max_iter=n_sweeps)
    return [record.cost for record in fit.history]


def main() -> None:
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
    text = "\n".join(lines) + "\n"
    (Path(__file__).parent / "results" / "sweeps.md").write_text(text)
    print(text)


if __name__ == "__main__":
    main()
