r"""The estimator that the four nonnegative matrix factorisations share.

.. math:: \min_{W, H \ge 0} \tfrac12 \lVert X - W H \rVert_F^2

Samples are rows, so `W` (n_samples, n_components) holds the memberships and `H` (n_components,
n_features) the components. The literature, with samples in columns, has the two names swapped.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from tuckermix._declaration import declare
from tuckermix._records import Record, StopReason
from tuckermix.baselines._base import ComponentClustering
from tuckermix.baselines._run import Run, Step
from tuckermix.baselines.nonnegative import random_start, scale_of

FACTORS = """
Parameters
----------
X : ndarray of shape (n_samples, n_features)
    The data.
W : ndarray of shape (n_samples, n_components)
    Start of the coefficients.
H : ndarray of shape (n_components, n_features)
    Start of the components.
max_iter : int, default=1000
    The limit on iterations.
tol : float, default=1e-5
    The least relative decrease of the error; 0 runs all iterations.

Returns
-------
result : Factorization
    The factors and the records of the run.
"""
"""What the algorithms share."""


@dataclass
class Factorization(Record):
    """What one of the algorithms returns.

    Attributes
    ----------
    W : ndarray of shape (n_samples, n_components)
        The coefficients.
    H : ndarray of shape (n_components, n_features)
        The components.
    n_iter : int
        Iterations done.
    stop_reason : StopReason
        Why the algorithm ended.
    history : list of Step
        One record an iteration, the start first.
    measure : str
        What `tol` is compared with.
    residual : float
        The last value of that measure.
    noise_variance : float
        The estimated variance of the noise, for methods that have one.
    """

    W: np.ndarray
    H: np.ndarray
    n_iter: int
    stop_reason: StopReason
    history: list[Step]
    measure: str = "relative change of the error"
    residual: float = float("nan")
    noise_variance: float = float("nan")


def normalize_components(W: np.ndarray, H: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    r"""Give each component unit norm and its coefficients the rest of the scale.

    The product :math:`WH` is the same. Without this the free scale of each column of `W` would
    decide what k-means on its rows sees.

    Parameters
    ----------
    W : ndarray of shape (n_samples, n_components)
        The coefficients.
    H : ndarray of shape (n_components, n_features)
        The components; those that are zero stay zero.

    Returns
    -------
    W, H : ndarray
        The same product.
    """
    norms = np.linalg.norm(H, axis=1)
    norms[norms == 0] = 1.0
    return W * norms, H / norms[:, None]


@declare
class NonnegativeFactorization(ComponentClustering):
    """Base of the nonnegative matrix factorisations: scaling around one of the algorithms.

    Parameters
    ----------
    max_iter : int, default=1000
        The limit on iterations of each start, that of the toolbox which the paper used.
    """

    _positive_only = True

    @abstractmethod
    def _factorize(
        self, X: np.ndarray, W: np.ndarray, H: np.ndarray, rng: np.random.Generator
    ) -> Factorization:
        """Run the algorithm from the start `W`, `H` on data whose largest entry is one."""

    def _prepare(self, X: np.ndarray) -> Any:
        # In units of the largest entry no product of two entries leaves the range of floats.
        scale = scale_of(X)
        return X.reshape(X.shape[0], -1) / X.dtype.type(scale), scale, X.shape[1:]

    def _run(self, data: Any, rng: np.random.Generator) -> Run:
        X, scale, shape = data
        W, H = random_start(X, self.n_clusters, rng)
        result = self._factorize(X, W, H, rng)
        W, H = normalize_components(result.W, result.H)
        history = [replace(step, cost=step.cost * scale * scale) for step in result.history]
        fitted: dict[str, Any] = {"components_": H.reshape(self.n_clusters, *shape)}
        if np.isfinite(result.noise_variance):
            fitted["noise_variance_"] = result.noise_variance * scale * scale
        return Run(
            memberships=W * scale,
            cost=history[-1].cost,
            n_iter=result.n_iter,
            stop_reason=result.stop_reason,
            history=history,
            fitted=fitted,
            measure=result.measure,
            residual=result.residual,
        )
