"""Soft labels and mixing weights, as stacked bars or in a triangle."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Any

import numpy as np

from tuckermix._array_api import to_numpy
from tuckermix._declaration import describe
from tuckermix._validation import check_option
from tuckermix.plots.fitted import RESPONSES, as_fitted, even_subsample
from tuckermix.plots.style import DRAWN, INK, axes_for, colour_of, hatch_of, marker_of, plain_axes

STYLES = ("auto", "bars", "ternary")
MAX_BARS = 400
"""More bars than this are thinner than a pixel on most screens."""

TRIANGLE = np.array([[0.0, 0.0], [1.0, 0.0], [0.5, np.sqrt(3) / 2]])


@dataclass(eq=False, repr=False)
class MembershipDisplay:
    """Show how the samples divide between clusters or components.

    Each sample is a point of the simplex: its weights are positive and sum to one. Stacked bars
    show all weights of up to 400 samples, ordered by their largest weight; with three columns a
    triangle shows every sample, whose corners are the three clusters.

    Parameters
    ----------
    weights : array of shape (n_samples, n_columns)
        Rows that sum to one: soft labels or mixing weights.
    names : sequence of str, default=None
        The names of the columns; None numbers them.
    title : str, default=None
        What the weights are.

    Attributes
    ----------
    artists_ : list of matplotlib artists
        One for each column: areas for bars, point sets in the triangle.
    ax_, figure_ : matplotlib Axes and Figure
        Where they are.
    """

    weights: Any
    _: KW_ONLY
    names: Any = None
    title: str | None = None

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        *,
        response: str = "predict_proba",
        style: str = "auto",
        ax: Any = None,
    ) -> MembershipDisplay:
        """Show the soft labels or the mixing weights of the samples `X`.

        Parameters
        ----------
        estimator : estimator with `predict_proba` and `transform`
            The fitted clustering.
        X : array of shape (n_samples, d_1, ...)
            The samples.
        response : {"predict_proba", "memberships"}, default="predict_proba"
            Soft labels, which say how clear a label is, or the model's mixing weights, which are
            flatter because a simplex around all samples is wide.
        style : {"auto", "bars", "ternary"}, default="auto"
            "auto" takes the triangle for three columns.
        ax : matplotlib Axes, default=None
            Where to draw; None makes a figure.

        Returns
        -------
        display : Display
            The display, drawn.
        """
        check_option(response, "response", cls.__name__, RESPONSES)
        if response == "predict_proba":
            weights, title = estimator.predict_proba(as_fitted(estimator, X)), "Soft labels"
        else:
            weights, title = estimator.transform(as_fitted(estimator, X)), "Mixing weights"
        return cls(to_numpy(weights), title=title).plot(ax, style=style)

    def plot(self, ax: Any = None, *, style: str = "auto") -> MembershipDisplay:
        """Draw the weights.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            Where to draw; None makes a figure.
        style : {"auto", "bars", "ternary"}, default="auto"
            "auto" takes the triangle for three columns.

        Returns
        -------
        display : Display
            The display, drawn.
        """
        owner = type(self).__name__
        check_option(style, "style", owner, STYLES)
        weights = np.asarray(self.weights)
        n_columns = weights.shape[1]
        if style == "ternary" and n_columns != 3:
            raise ValueError(
                f"style='ternary' needs 3 columns. Got {n_columns}: use style='bars' instead."
            )
        names = [str(k) for k in range(n_columns)] if self.names is None else list(self.names)
        if style == "ternary" or (style == "auto" and n_columns == 3):
            ax = axes_for(owner, ax, (4.4, 4.2))
            self._draw_triangle(ax, weights, names)
        else:
            ax = axes_for(owner, ax, (7.0, 3.2))
            self._draw_bars(ax, weights, names)
        self.ax_, self.figure_ = ax, ax.figure
        return self

    def _draw_bars(self, ax: Any, weights: np.ndarray, names: list[str]) -> None:
        order = np.lexsort((-weights.max(axis=1), weights.argmax(axis=1)))
        order = order[even_subsample(len(order), MAX_BARS)]
        edges = np.arange(len(order) + 1)
        # A step curve holds each value to the next edge; the last one is repeated to close it.
        heights = weights[[*order, order[-1]]].T
        colours = [colour_of(k) for k in range(len(names))]
        self.artists_ = ax.stackplot(
            edges,
            heights,
            step="post",
            labels=names,
            colors=colours,
            edgecolor="white",
            linewidth=0,
        )
        for k, artist in enumerate(self.artists_):
            artist.set_hatch(hatch_of(k))
        ax.set(xlim=(0, len(order)), ylim=(0, 1), ylabel="weight")
        n_samples = weights.shape[0]
        shown = "" if len(order) == n_samples else f", {len(order)} of {n_samples} shown"
        ax.set_xlabel(f"samples, ordered by their largest weight{shown}")
        ax.set_title(f"{self.title or 'Weights'} of each sample", fontsize=10)
        ax.legend(
            loc="center left",
            bbox_to_anchor=(1.0, 0.5),
            frameon=False,
            fontsize=8,
            handlelength=1.4,
        )
        plain_axes(ax)

    def _draw_triangle(self, ax: Any, weights: np.ndarray, names: list[str]) -> None:
        points = weights @ TRIANGLE
        largest = weights.argmax(axis=1)
        closed = np.concatenate([TRIANGLE, TRIANGLE[:1]])
        ax.plot(closed[:, 0], closed[:, 1], color=INK, linewidth=1)
        centre = TRIANGLE.mean(axis=0)
        for k in range(3):  # the borders between the three regions of the largest weight
            middle = (TRIANGLE[k] + TRIANGLE[(k + 1) % 3]) / 2
            ax.plot(*np.stack([centre, middle]).T, color="#999999", linewidth=0.8, linestyle=":")
        self.artists_ = [
            ax.scatter(
                *points[largest == k].T,
                s=18,
                marker=marker_of(k),
                color=colour_of(k),
                edgecolor="white",
                linewidth=0.4,
                label=name,
                zorder=3,
            )
            for k, name in enumerate(names)
        ]
        for k, (name, align) in enumerate(zip(names, ("right", "left", "center"), strict=True)):
            x, y = TRIANGLE[k] + 0.05 * (TRIANGLE[k] - centre)
            ax.text(x, y, name, ha=align, va="bottom" if k == 2 else "top", color=INK)
        ax.set_aspect("equal")
        ax.set_axis_off()
        title = f"{self.title or 'Weights'}: the nearer a corner, the larger"
        ax.set_title(title, fontsize=10, pad=16)
