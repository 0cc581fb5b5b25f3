"""What a decomposition returns, and how an iteration is recorded."""

from __future__ import annotations

from dataclasses import dataclass

from tuckermix._array_api import Array
from tuckermix._records import Record, StopReason

__all__ = ["Decomposition", "SweepRecord"]


@dataclass(frozen=True)
class SweepRecord(Record):
    """One sweep of a solver over all modes; the start is the first record.

    Attributes
    ----------
    iteration : int
        The number of the sweep, 0 for the start.
    cost : float
        Half the squared error.
    relative_error : float
        The norm of the error over the norm of the data.
    gap : float
        The distance of the memberships from the optimum of their subproblem, relative; NaN where
        the solver does not compute it at every sweep.
    time : float
        Seconds since the start.
    """

    iteration: int
    cost: float
    relative_error: float
    gap: float
    time: float


@dataclass(frozen=True)
class Decomposition(Record):
    r"""The model without labels.

    .. math:: X \approx G \times_0 Q \times_1 U_1 \cdots \times_{N-1} U_{N-1}

    with orthonormal `Q` whose first column is constant. Every set of mixing weights whose columns
    span those of `Q` gives the same fit.

    Attributes
    ----------
    factors : list of arrays of shape (d_n, r_n)
        Orthonormal factors of the feature modes.
    Q : array of shape (n_samples, n_components)
        Orthonormal basis of the subspace of the memberships, the constant direction first.
    core : array of shape (n_components, r_1, ...)
        The core that belongs to `Q`.
    mean : array of shape (product of r_n,)
        The mean of the projected samples.
    directions : array of shape (product of r_n, n_components - 1)
        Orthonormal directions of the subspace in the projected space.
    singular_values : array of shape (n_components - 1,)
        The singular values of the centred, projected samples along `directions`.
    memberships : array of shape (n_samples, n_components) or None
        The mixing weights that the solver reached; None where it determines the subspace only.
    cost : float
        Half the squared error.
    relative_error : float
        The norm of the error over the norm of the data.
    gap : float
        How far `Q` is from the optimum for these factors, relative to the optimum.
    history : list of SweepRecord
        One record a sweep, the start first.
    n_iter : int
        The number of sweeps done.
    stop_reason : StopReason
        Why the solver ended.
    """

    factors: list[Array]
    Q: Array
    core: Array
    mean: Array
    directions: Array
    singular_values: Array
    memberships: Array | None
    cost: float
    relative_error: float
    gap: float
    history: list[SweepRecord]
    n_iter: int
    stop_reason: StopReason

    @property
    def n_components(self) -> int:
        """The number of components that the data support, at most the number asked for."""
        return int(self.Q.shape[1])

    @property
    def ranks(self) -> tuple[int, ...]:
        """The number of columns of each factor."""
        return tuple(int(factor.shape[1]) for factor in self.factors)
