"""How good each number of clusters is, and in which view."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Any

from tuckermix.plots.fitted import fitted
from tuckermix.plots.style import Display, axes_for, colour_of, marker_of, plain_axes

ROOM = 1.2
"""Numbers of clusters are named on the axis where they differ by at least this factor."""


@dataclass(eq=False, repr=False)
class SelectionDisplay(Display):
    """Show what `AutoClustering` compared: one line per view over the numbers of clusters.

    Parameters
    ----------
    selection : Selection
        The record of the choice.
    quantity : {"score", "stability", "modularity"}, default="score"
        What is drawn. The score is stability times modularity over the root of the largest
        modularity that this number of clusters can have.

    Attributes
    ----------
    lines_ : dict of str to matplotlib Line2D
        The line of each view.
    chosen_ : matplotlib Line2D
        The mark at the chosen number of clusters.
    ax_, figure_ : matplotlib Axes and Figure
        Where they are.
    """

    selection: Any
    _: KW_ONLY
    quantity: str = "score"

    @classmethod
    def from_estimator(
        cls, estimator: Any, *, quantity: str = "score", ax: Any = None
    ) -> SelectionDisplay:
        """Show the choice of a fitted estimator.

        Parameters
        ----------
        estimator : AutoClustering
            The fitted clustering.
        quantity : {"score", "stability", "modularity"}, default="score"
            What is drawn.
        ax : matplotlib Axes, default=None
            Where to draw; None makes a figure.

        Returns
        -------
        display : Display
            The display, drawn.
        """
        selection = fitted(estimator, cls.__name__, "selection_")
        return cls(selection, quantity=quantity).plot(ax)

    def _draw(self, ax: Any) -> Any:
        """Draw the lines."""
        ax = axes_for(type(self).__name__, ax, (5.6, 3.2))
        self.lines_ = {}
        for place, view in enumerate(self.selection.views):
            trials = [trial for trial in self.selection.trials if trial.view == view]
            (self.lines_[view],) = ax.plot(
                [trial.n_clusters for trial in trials],
                [getattr(trial, self.quantity) for trial in trials],
                color=colour_of(place),
                marker=marker_of(place),
                markersize=4,
                label=view,
            )
        chosen, view = self.selection.n_clusters, self.selection.view
        best = next(t for t in self.selection.of(chosen) if t.view == view)
        height = getattr(best, self.quantity)
        (self.chosen_,) = ax.plot(
            [chosen], [height], marker="o", markersize=12, fillstyle="none", color="black"
        )
        ax.set_xscale("log")
        # Powers of ten say little of numbers of clusters: every number whose neighbours leave room.
        shown = [chosen]
        for number in sorted({trial.n_clusters for trial in self.selection.trials}):
            if all(max(number, other) >= ROOM * min(number, other) for other in shown):
                shown.append(number)
        ax.set_xticks(sorted(shown), [str(number) for number in sorted(shown)])
        ax.minorticks_off()
        ax.set_xlabel("number of clusters")
        ax.set_ylabel(self.quantity)
        ax.set_title(f"{chosen} clusters, seen by {view}", fontsize=9)
        ax.legend(fontsize=7, frameon=False)
        plain_axes(ax)
        return ax
