"""The known roads to a simplex around samples, for comparison: VCA, N-FINDR, MVSA, SISAL, FCLS.

Each function takes samples or coordinates as rows and returns vertices; `fcls` returns the weights
for given vertices. They follow the papers named in their docstrings, in our own code.
"""

from __future__ import annotations

import numpy as np
import scipy.sparse
from scipy.optimize import linprog

from tuckermix.memberships.archetypes import project_rows
from tuckermix.numerics import simplex_least_squares

SLP_ROUNDS = 60
SLP_TOL = 1e-7
SLP_NEAREST = 30
"""Samples nearest to each facet whose constraints a program begins with."""
SLP_FEASIBLE = 1e-9
SLP_BOX = 1e6
"""Bounds of the unknowns, far from any solution: with few constraints a program has none."""
SISAL_ROUNDS = 80
SISAL_INNER = 40


def affine_coordinates(
    X: np.ndarray, n_directions: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return coordinates in the best affine subspace, its basis and the mean."""
    mean = X.mean(axis=0)
    basis = np.linalg.svd(X - mean, full_matrices=False)[2][:n_directions]
    return (X - mean) @ basis.T, basis, mean


def vca(X: np.ndarray, n_vertices: int, rng: np.random.Generator) -> np.ndarray:
    """Return samples far along directions orthogonal to those before (Nascimento and Dias 2005).

    The samples are projected on the leading singular vectors and then on a plane (the paper's road
    for high signal-to-noise ratio).
    """
    basis = np.linalg.svd(X.T @ X)[0][:, :n_vertices]
    projected = X @ basis
    plane = projected / (projected @ projected.mean(axis=0))[:, None]
    found = np.zeros((n_vertices, n_vertices))
    found[0, -1] = 1.0
    chosen = []
    for k in range(n_vertices):
        direction = rng.standard_normal(n_vertices)
        direction -= np.linalg.pinv(found) @ (found @ direction)
        chosen.append(int(np.argmax(np.abs(plane @ direction))))
        found[k] = plane[chosen[-1]]
    return X[chosen]


def nfindr(X: np.ndarray, n_vertices: int, rng: np.random.Generator) -> np.ndarray:
    """Return the samples that span the largest simplex, by exchange (Winter 1999)."""
    Z = affine_coordinates(X, n_vertices - 1)[0]
    lifted = np.column_stack([np.ones(len(Z)), Z])
    chosen = list(rng.choice(len(Z), n_vertices, replace=False))
    improved = True
    while improved:
        improved = False
        for k in range(n_vertices):
            matrix = lifted[chosen]
            # The determinant with row k exchanged is linear in that row: its cofactors.
            others = np.delete(matrix, k, axis=0)
            normal = np.linalg.svd(others)[2][-1]
            best = int(np.argmax(np.abs(lifted @ normal)))
            if abs(lifted[best] @ normal) > abs(matrix[k] @ normal) * (1 + 1e-12):
                chosen[k], improved = best, True
    return X[chosen]


def archetypal_analysis(
    X: np.ndarray, n_vertices: int, rng: np.random.Generator, rounds: int = 400
) -> tuple[np.ndarray, np.ndarray]:
    """Return archetypes and weights by projected gradients in turn (Mørup and Hansen 2012).

    It starts from samples far from each other, as the paper does, and works on all samples in the
    full space.
    """
    centred = X - X.mean(axis=0)
    chosen = [int(rng.integers(len(X)))]
    for _ in range(2 * n_vertices):  # the first choices are exchanged for better ones
        distance = sum(np.linalg.norm(X - X[index], axis=1) for index in chosen[-n_vertices + 1 :])
        chosen.append(int(np.argmax(distance)))
    chosen = chosen[-n_vertices:]
    mixtures = np.zeros((n_vertices, len(X)))
    mixtures[np.arange(n_vertices), chosen] = 1.0
    vertices, weights = centred[chosen], np.full((len(X), n_vertices), 1.0 / n_vertices)
    largest = np.linalg.eigvalsh(centred.T @ centred)[-1]
    for _ in range(rounds):
        gram, pull = vertices @ vertices.T, centred @ vertices.T
        curvature = np.linalg.norm(gram, 2)
        for _ in range(5):
            weights = project_rows(weights - (weights @ gram - pull) / curvature)
        overlap, pull = weights.T @ weights, weights.T @ centred
        step = 1.0 / (np.linalg.norm(overlap, 2) * largest)
        for _ in range(5):
            slope = (overlap @ vertices - pull) @ centred.T
            mixtures = project_rows(mixtures - step * slope)
            vertices = mixtures @ centred
    return vertices + X.mean(axis=0), weights


def fcls(X: np.ndarray, vertices: np.ndarray) -> np.ndarray:
    """Return the best nonnegative weights with sum one (Heinz and Chang 2001), exactly."""
    centre = vertices.mean(axis=0)
    basis = np.linalg.svd(vertices - centre, full_matrices=False)[2][: len(vertices) - 1]
    return simplex_least_squares((X - centre) @ basis.T, (vertices - centre) @ basis.T)


def _enclosing_start(Z: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    n_vertices = Z.shape[1] + 1
    lifted = np.column_stack([np.ones(len(Z)), Z])
    vertices = nfindr(Z, n_vertices, rng)
    inverse = np.linalg.inv(np.column_stack([np.ones(n_vertices), vertices]))
    growth = 1.01 * max(1.0, 1.0 - n_vertices * float(np.min(lifted @ inverse)))
    vertices = vertices.mean(axis=0) + growth * (vertices - vertices.mean(axis=0))
    return np.linalg.inv(np.column_stack([np.ones(n_vertices), vertices]))


def mvsa(Z: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Minimise the volume with all samples inside (Li and Bioucas-Dias 2008).

    The logarithm of the determinant is linearised about the present simplex and the program with
    all constraints solved to the end, with a line search: the paper's iteration with a linear in
    place of a diagonal quadratic model, which has the same stationary points.
    """
    n_samples, n_vertices = len(Z), Z.shape[1] + 1
    lifted = np.column_stack([np.ones(n_samples), Z])
    Q = _enclosing_start(Z, rng)
    volume = -np.linalg.slogdet(Q)[1]
    asked = np.zeros((n_samples, n_vertices), dtype=bool)
    for _ in range(SLP_ROUNDS):
        slope = -np.linalg.inv(Q)  # of −log det with respect to the columns, in turn
        nearest = np.argsort(lifted @ Q, axis=0)[:SLP_NEAREST]
        np.put_along_axis(asked, nearest, True, axis=0)
        best = _linear_program(slope, lifted, asked)
        direction = best - Q
        step = 1.0
        while step > 1e-8:
            sign, logarithm = np.linalg.slogdet(Q + step * direction)
            if -logarithm < volume and sign == np.sign(np.linalg.det(Q)):
                break
            step /= 2
        if step <= 1e-8 or volume + logarithm < SLP_TOL:
            break
        Q, volume = Q + step * direction, -logarithm
    return np.linalg.inv(Q)[:, 1:]


def _linear_program(slope: np.ndarray, lifted: np.ndarray, asked: np.ndarray) -> np.ndarray:
    """Minimise a linear function with all samples inside; `asked` marks constraints in play.

    Constraints that the solution breaks join until none is left: the optimum of the whole program
    at a fraction of its time.
    """
    n_vertices = len(slope)
    sums = scipy.sparse.kron(np.ones((1, n_vertices)), scipy.sparse.eye(n_vertices), format="csr")
    while True:
        rows = [lifted[asked[:, k]] for k in range(n_vertices)]
        constraints = scipy.sparse.block_diag([-each for each in rows], format="csr")
        found = linprog(
            slope.reshape(-1),
            A_ub=constraints,
            b_ub=np.zeros(constraints.shape[0]),
            A_eq=sums,
            b_eq=np.eye(n_vertices)[0],
            bounds=(-SLP_BOX, SLP_BOX),
            method="highs",
        )
        best = found.x.reshape(n_vertices, n_vertices).T
        broken = (lifted @ best < -SLP_FEASIBLE) & ~asked
        if not broken.any():
            return best
        asked |= broken


def sisal(Z: np.ndarray, rng: np.random.Generator, tau: float = 1.0) -> np.ndarray:
    """Minimise the volume with a hinge on negative weights (Bioucas-Dias 2009).

    The logarithm of the determinant is majorised by a quadratic with the paper's parameter, and
    each problem solved by splitting; `tau` is the paper's default.
    """
    n_samples, n_vertices = len(Z), Z.shape[1] + 1
    lifted = np.column_stack([np.ones(n_samples), Z])
    Q = _enclosing_start(Z, rng)
    mu = n_vertices * 1000.0 / n_samples * 1e-3
    penalty = 1.0
    matrix = penalty * (lifted.T @ lifted) + mu * np.eye(n_vertices)
    inverse = np.linalg.inv(matrix)
    first = np.eye(n_vertices)[0]

    def value(Q: np.ndarray) -> float:
        return -np.linalg.slogdet(Q)[1] + tau * float(np.sum(np.maximum(0.0, -(lifted @ Q))))

    split = lifted @ Q
    dual = np.zeros_like(split)
    for _ in range(SISAL_ROUNDS):
        slope = -np.linalg.inv(Q).T
        trial = Q
        for _ in range(SISAL_INNER):
            right = mu * Q - slope + penalty * lifted.T @ (split + dual)
            trial = inverse @ right
            # The columns must add up to e_1: spread what is missing, in the metric of the matrix.
            trial += ((first - trial.sum(axis=1)) / n_vertices)[:, None]
            weights = lifted @ trial
            shifted = weights - dual
            split = np.where(shifted >= 0, shifted, np.minimum(0.0, shifted + tau / penalty))
            dual -= weights - split
        step, before = 1.0, value(Q)
        while step > 1e-6 and value(Q + step * (trial - Q)) > before:
            step /= 2
        if step <= 1e-6:
            break
        Q = Q + step * (trial - Q)
    return np.linalg.inv(Q)[:, 1:]
