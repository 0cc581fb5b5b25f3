"""How the cost and the optimality gap fall over the iterations."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Any

import numpy as np

from tuckermix._declaration import describe
from tuckermix.plots.fitted import fitted
from tuckermix.plots.style import COLOURS, DRAWN, Display, axes_for, plain_axes

GAP_FLOOR = 1e-17
"""A gap of exactly zero is drawn here, below rounding error, so that a log scale can show it."""


LOG_RATIO = 3.0
"""Costs that fall by more than this factor are drawn on a log scale."""


def history_column(history: Any, name: str) -> np.ndarray:
    """Return one quantity of all history records as floats, nan where a record lacks it."""
    values = [getattr(record, name, None) for record in history]
    return np.array([np.nan if value is None else float(value) for value in values])


def iterations_of(history: Any) -> np.ndarray:
    """Return the numbers of the iterations; their places where records have none."""
    numbers = history_column(history, "iteration")
    return np.arange(len(history), dtype=float) if np.isnan(numbers).any() else numbers


@dataclass(eq=False, repr=False)
class ConvergenceDisplay(Display):
    """Show the cost of each iteration, and how far its memberships are from their optimum.

    The cost is ½‖X − X̂‖². The gap (h* − h)/h* compares the memberships with the closed form of
    their subproblem: at rounding level no other memberships would do better.

    Parameters
    ----------
    iterations : array of shape (n,)
        The numbers of the iterations, the start first.
    cost : array of shape (n,)
        The cost after each.
    gap : array of shape (n,), default=None
        The gap after each; nan where it is unknown.

    Attributes
    ----------
    cost_line_, gap_line_ : matplotlib Line2D
        The curves; `gap_line_` is None where no gap is known.
    ax_, gap_ax_, figure_ : matplotlib Axes and Figure
        Where they are.
    """

    iterations: Any
    cost: Any
    _: KW_ONLY
    gap: Any = None

    @classmethod
    def from_estimator(cls, estimator: Any, *, ax: Any = None) -> ConvergenceDisplay:
        """Show the history of a fitted estimator.

        Parameters
        ----------
        estimator : estimator with `history_`
            The fitted clustering.
        ax : matplotlib Axes, default=None
            Where to draw; None makes a figure.

        Returns
        -------
        display : Display
            The display, drawn.
        """
        history = fitted(estimator, cls.__name__, "history_")
        cost, gap = history_column(history, "cost"), history_column(history, "gap")
        return cls(iterations_of(history), cost, gap=gap).plot(ax)

    def _draw(self, ax: Any) -> Any:
        """Draw the curves."""
        ax = axes_for(type(self).__name__, ax, (5.6, 3.2))
        iterations = np.asarray(self.iterations)
        (self.cost_line_,) = ax.plot(
            iterations, self.cost, color=COLOURS[0], marker="o", markersize=4, label="cost"
        )
        costs = np.asarray(self.cost, dtype=float)
        if np.nanmin(costs) > 0 and np.nanmax(costs) > LOG_RATIO * np.nanmin(costs):
            ax.set_yscale("log")  # a bad start would flatten all that follows
        ax.set_xlabel("iteration")
        ax.set_ylabel("cost ½‖X − X̂‖² (circles)")
        ax.xaxis.get_major_locator().set_params(integer=True)
        plain_axes(ax)
        self.gap_line_ = self.gap_ax_ = None
        gap = np.full(len(iterations), np.nan) if self.gap is None else np.asarray(self.gap, float)
        known = np.isfinite(gap)
        title = "The cost falls until nothing changes any more"
        if known.any():
            self.gap_ax_ = ax.twinx()
            self.gap_ax_.spines["top"].set_visible(False)
            (self.gap_line_,) = self.gap_ax_.plot(
                iterations[known],
                np.maximum(gap[known], GAP_FLOOR),
                color=COLOURS[3],
                marker="s",
                markersize=4,
                linestyle="--",
                label="gap",
            )
            self.gap_ax_.set_yscale("log")
            self.gap_ax_.set_ylabel("optimality gap (squares)")
            title = "The cost falls; the gap tells how far the memberships are from optimal"
        ax.set_title(title, fontsize=9)
        return ax
