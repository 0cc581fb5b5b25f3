"""The three solvers of the model on faces: cost reached, gap and time, from one start.

    TUCKERMIX_DATA=... python benchmarks/compare_solvers.py

`exact` alternates closed forms, `trust-region` is the paper's alternation run to convergence,
`joint` moves all modes at once. All start from HOSVD I with the same ranks and number of
components. The last column is the cost relative to that of `exact`: negative is better.
"""

from __future__ import annotations

import time

import numpy as np
import pymanopt  # noqa: F401  (its import takes seconds, which are not the joint solver's)

from tuckermix import datasets, decompose

SETTINGS = {
    "ORL, 10 people": ("orl", 10, (12, 12)),
    "ORL, 40 people": ("orl", 40, (12, 12)),
    "PIE, 24 people": ("pie", 24, (12, 12)),
}
TOL = 1e-10
MAX_ITER = 500


def main() -> None:
    """Run every solver on every setting."""
    print(f"{'data':16s} {'solver':14s} {'cost':>16s} {'gap':>9s} {'iter':>5s} {'s':>8s}  to exact")
    for title, (name, n_people, ranks) in SETTINGS.items():
        data = datasets.load(name)
        people = np.unique(data.labels)
        people = np.random.default_rng(0).choice(people, n_people, replace=False)
        X = data.X[np.isin(data.labels, people)].astype(np.float64)
        reference = None
        for solver in ("exact", "trust-region", "joint"):
            begin = time.perf_counter()
            fit = decompose(
                X, n_people, ranks, solver=solver, tol=TOL, max_iter=MAX_ITER, random_state=0
            )
            seconds = time.perf_counter() - begin
            reference = fit.cost if reference is None else reference
            print(
                f"{title:16s} {solver:14s} {fit.cost:16.6f} {fit.gap:9.1e} {fit.n_iter:5d} "
                f"{seconds:8.2f}  {(fit.cost - reference) / reference:+.1e}",
                flush=True,
            )


if __name__ == "__main__":
    main()
