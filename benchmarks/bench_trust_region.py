"""The trust region beside Pymanopt's: seconds an iteration and Hessian products, in one run.

    TUCKERMIX_DATA=... python benchmarks/bench_trust_region.py [--iterations 60] [--repeats 3]

PIE faces, 24 people (M = 1008), core 12×12 (P = 144), 24 components; one start and one set of
options (at most 30 inner iterations, Manopt's radius) for all. Times are those of the processor, so
that other work on the machine matters little; each contestant runs in turn, several times, and its
best time counts.

- Pymanopt, and `trust_region`, with the same plain functions: the formulas of the paper's
  section 4.1 as they stand, bracketed so that nothing of size M × M appears;
- `trust_region` with `MembershipObjective`, whose cost, gradient and Hessian share their work;
- Hessian products to a gap of 1e-6, without and with the preconditioner.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable

import numpy as np
import pymanopt

from tuckermix import datasets
from tuckermix._records import SolverResult
from tuckermix.manifolds import Multinomial, to_pymanopt
from tuckermix.numerics.tensor import mode_gram, multi_mode_dot
from tuckermix.objectives import MembershipObjective
from tuckermix.solvers import trust_region

N_PEOPLE, RANK, MAX_INNER, GAP = 24, 12, 30, 1e-6


class PlainObjective:
    """The paper's formulas, each computed from scratch."""

    def __init__(self, B: np.ndarray) -> None:
        self.B = B

    def cost(self, U: np.ndarray) -> float:
        """Return −½ tr(Bᵀ U S⁻¹ Uᵀ B)."""
        C = U.T @ self.B
        return -0.5 * float(np.sum(C * np.linalg.solve(U.T @ U, C)))

    def egrad(self, U: np.ndarray) -> np.ndarray:
        """Return −BBᵀU S⁻¹ + U S⁻¹ UᵀBBᵀU S⁻¹."""
        inverse = np.linalg.inv(U.T @ U)
        BBU = self.B @ (self.B.T @ U)
        return -BBU @ inverse + U @ (inverse @ (U.T @ BBU) @ inverse)

    def ehess(self, U: np.ndarray, xi: np.ndarray) -> np.ndarray:
        """Return the derivative of the gradient along ξ, term by term."""
        inverse = np.linalg.inv(U.T @ U)
        BBU = self.B @ (self.B.T @ U)
        C = U.T @ BBU
        BBxi = self.B @ (self.B.T @ xi)
        overlap = xi.T @ U
        overlap = overlap + overlap.T
        cross = xi.T @ BBU
        return (
            -BBxi @ inverse
            + xi @ (inverse @ C @ inverse)
            + BBU @ (inverse @ overlap @ inverse)
            + U @ (inverse @ (cross + cross.T) @ inverse)
            - U @ (inverse @ overlap @ inverse @ C @ inverse)
            - U @ (inverse @ C @ inverse @ overlap @ inverse)
        )


def projected_faces(seed: int) -> np.ndarray:
    """Return the samples of 24 people projected on the factors of HOSVD I."""
    data = datasets.load("pie")
    people = np.random.default_rng(seed).choice(np.unique(data.labels), N_PEOPLE, replace=False)
    X = data.X[np.isin(data.labels, people)].astype(np.float64) / 255.0
    factors = [np.linalg.eigh(mode_gram(X, mode))[1][:, -RANK:] for mode in (1, 2)]
    return multi_mode_dot(X, factors, transpose=True).reshape(X.shape[0], -1)


def timed(run: Callable[[], int]) -> float:
    """Return processor seconds an iteration."""
    begin = time.process_time()
    n_iter = run()
    return (time.process_time() - begin) / n_iter


def with_pymanopt(
    objective: PlainObjective, manifold: Multinomial, U: np.ndarray, n_iter: int
) -> int:
    """Run Pymanopt's trust regions."""
    exported = to_pymanopt(manifold)
    on_arrays = pymanopt.function.numpy(exported)
    problem = pymanopt.Problem(
        exported,
        on_arrays(objective.cost),
        euclidean_gradient=on_arrays(objective.egrad),
        euclidean_hessian=on_arrays(objective.ehess),
    )
    optimizer = pymanopt.optimizers.TrustRegions(verbosity=0, max_iterations=n_iter)
    return int(optimizer.run(problem, initial_point=U, maxinner=MAX_INNER).iterations)


def to_gap(
    objective: MembershipObjective, manifold: Multinomial, U: np.ndarray, preconditioned: bool
) -> SolverResult:
    """Run until the gap is small enough."""
    optimum = objective.optimum(manifold.n_components)
    return trust_region(
        objective,
        manifold,
        U,
        max_inner=MAX_INNER,
        callback=lambda entry: entry.cost - optimum <= -GAP * optimum,
        preconditioner=objective.preconditioner if preconditioned else None,
    )


def main() -> None:
    """Run all contestants and print the ratios."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--iterations", type=int, default=100)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    B = projected_faces(options.seed)
    manifold = Multinomial(B.shape[0], N_PEOPLE)
    U = manifold.random_point(options.seed)
    plain, shared = PlainObjective(B), MembershipObjective(B)
    xi = manifold.random_tangent(U, 0)
    np.testing.assert_allclose(plain.egrad(U), shared.egrad(U), rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(plain.ehess(U, xi), shared.ehess(U, xi), rtol=1e-6, atol=1e-6)

    def ours(objective: PlainObjective | MembershipObjective) -> int:
        return trust_region(
            objective, manifold, U, max_iter=options.iterations, max_inner=MAX_INNER
        ).n_iter

    contestants: dict[str, Callable[[], int]] = {
        "Pymanopt, plain functions": lambda: with_pymanopt(plain, manifold, U, options.iterations),
        "trust_region, plain functions": lambda: ours(plain),
        "trust_region, shared work": lambda: ours(shared),
    }
    best = dict.fromkeys(contestants, np.inf)
    for _ in range(options.repeats):
        for name, run in contestants.items():
            best[name] = min(best[name], timed(run))
    reference = best["Pymanopt, plain functions"]
    print(f"{options.iterations} iterations, {'×'.join(map(str, B.shape))}, L = {N_PEOPLE}")
    for name, seconds in best.items():
        print(f"{name:32s} {1e3 * seconds:7.2f} ms an iteration  {reference / seconds:5.2f}×")
    runs = {name: to_gap(shared, manifold, U, name == "with") for name in ("without", "with")}
    for name, result in runs.items():
        last = result.history[-1]
        print(
            f"{name:7s} preconditioner: {last.n_hessians:5d} Hessian products, "
            f"{result.n_iter} iterations, {last.time:.2f} s to a gap of {GAP:g} "
            f"({result.stop_reason})"
        )
    counts = [result.history[-1].n_hessians for result in runs.values()]
    print(f"fewer Hessian products: {counts[0] / counts[1]:.1f}×")


if __name__ == "__main__":
    main()
