"""Displays made of marks and curves: the map, weights, energy, convergence and classes."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from operator import add
from typing import Any

import numpy as np

from tuckermix._array_api import to_numpy
from tuckermix._validation import check_integer, check_option
from tuckermix.metrics import MatchedTable, matched_table
from tuckermix.numerics.linalg import add_parts
from tuckermix.numerics.tensor import mode_gram
from tuckermix.plots import fitted
from tuckermix.plots.layout import discriminant_map, neighbor_map
from tuckermix.plots.style import COLOURS, INK, SEQUENTIAL, STYLE, Display, look_of, name_axes
from tuckermix.sources import as_blocks

METHODS = {"neighbors": neighbor_map, "discriminant": discriminant_map}


@dataclass(eq=False, repr=False)
class MapDisplay(Display):
    """Show all samples on a plane, by their place in the learned subspace.

    The labels are made in a subspace of some dozens of dimensions, in which each sample has a
    direction. The map keeps neighbours there together ("neighbors") or projects on the two
    directions that separate the clusters best ("discriminant"). Both are deterministic.

    Parameters
    ----------
    positions : array of shape (n_samples, 2)
        Where the samples are.
    labels : array of shape (n_samples,)
        The cluster of each.
    n_total : int, default=None
        The number of samples of which these were taken.

    Attributes
    ----------
    points_ : list of matplotlib PathCollection
        One for each cluster.
    ax_, figure_ : matplotlib Axes and Figure
        Where they are.
    """

    positions: Any
    labels: Any
    _: KW_ONLY
    n_total: int | None = None

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        *,
        method: str = "neighbors",
        max_samples: int = 10_000,
        ax: Any = None,
    ) -> MapDisplay:
        """Show the samples `X` on a map.

        Parameters
        ----------
        estimator : fitted estimator
            The clustering.
        X : array of shape (n_samples, d_1, ...)
            The samples.
        method : {"neighbors", "discriminant"}, default="neighbors"
            How two dimensions are made of many.
        max_samples : int, default=10000
            Of more samples this number is taken, evenly spaced: more marks cover each other, and a
            file of them does not open at once.
        ax : matplotlib Axes, default=None
            Where to draw; None makes a figure.

        Returns
        -------
        display : Display
            The display, drawn.
        """
        check_option(method, "method", cls.__name__, METHODS)
        check_integer(max_samples, "max_samples", cls.__name__)
        labels = fitted.labels_of(estimator, X, cls.__name__)
        chosen = fitted.even_subsample(X.shape[0], max_samples)
        rows = fitted.subspace_of(estimator, X if len(chosen) == X.shape[0] else X[chosen])
        positions = METHODS[method](rows, labels[chosen])
        return cls(positions, labels[chosen], n_total=X.shape[0]).plot(ax)

    @classmethod
    def from_arrays(
        cls, Z: Any, labels: Any, *, method: str = "neighbors", ax: Any = None
    ) -> MapDisplay:
        """Show the rows of `Z`, coordinates of any kind.

        Parameters
        ----------
        Z : array of shape (n_samples, L)
            Coordinates of the samples.
        labels : array of shape (n_samples,)
            The cluster of each.
        method : {"neighbors", "discriminant"}, default="neighbors"
            How two dimensions are made of many.
        ax : matplotlib Axes, default=None
            Where to draw; None makes a figure.

        Returns
        -------
        display : Display
            The display, drawn.
        """
        check_option(method, "method", cls.__name__, METHODS)
        labels = np.asarray(labels)
        return cls(METHODS[method](np.asarray(Z), labels), labels).plot(ax)

    def _draw(self, ax: Any) -> Any:
        """Draw the map."""
        ax = self._axes(ax, (6.4, 5.2))
        positions, labels = np.asarray(self.positions), np.asarray(self.labels)
        size = float(np.clip(STYLE.mark_area / len(positions), *STYLE.mark_areas))
        self.points_ = []
        for cluster in np.unique(labels):
            here = positions[labels == cluster]
            look = look_of(cluster, "color", "marker")
            marks = ax.scatter(*here.T, s=size, linewidth=0, label=str(cluster), **look)
            self.points_.append(marks)
            x, y = np.median(here, axis=0)
            box = {"boxstyle": "round,pad=0.2", "fc": "white", "ec": INK, "lw": 0.6}
            ax.text(x, y, str(cluster), ha="center", va="center", fontsize=9, bbox=box)
        ax.set(xticks=[], yticks=[])
        ax.spines[:].set_visible(False)
        total = len(positions) if self.n_total is None else self.n_total
        shown = "" if total == len(positions) else f" ({len(positions):,} of {total:,} shown)"
        ax.set_title(f"Samples that are close are alike in the learned subspace{shown}", fontsize=9)
        return ax


STYLES = ("auto", "bars", "ternary")
TRIANGLE = np.array([[0.0, 0.0], [1.0, 0.0], [0.5, np.sqrt(3) / 2]])


@dataclass(eq=False, repr=False)
class MembershipDisplay(Display):
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
        check_option(response, "response", cls.__name__, fitted.RESPONSES)
        method, title = fitted.RESPONSES[response]
        weights = getattr(estimator, method)(fitted.as_fitted(estimator, X))
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
        check_option(style, "style", type(self).__name__, STYLES)
        weights = np.asarray(self.weights)
        n_columns = weights.shape[1]
        if style == "ternary" and n_columns != 3:
            raise ValueError(
                f"style='ternary' needs 3 columns. Got {n_columns}: use style='bars' instead."
            )
        names = [str(k) for k in range(n_columns)] if self.names is None else list(self.names)
        three = style == "ternary" or (style == "auto" and n_columns == 3)
        ax = self._axes(ax, (4.4, 4.2) if three else (7.0, 3.2))
        (self._draw_triangle if three else self._draw_bars)(ax, weights, names)
        return self._keep(ax)

    def _draw_bars(self, ax: Any, weights: np.ndarray, names: list[str]) -> None:
        order = np.lexsort((-weights.max(axis=1), weights.argmax(axis=1)))
        order = order[fitted.even_subsample(len(order), STYLE.most_bars)]
        # A step curve holds each value to the next edge; the last one is repeated to close it.
        heights = weights[[*order, order[-1]]].T
        edges, style = np.arange(len(order) + 1), {"edgecolor": "white", "linewidth": 0}
        style |= {"step": "post", "labels": names, "colors": COLOURS}
        self.artists_ = ax.stackplot(edges, heights, **style)
        for k, artist in enumerate(self.artists_):
            artist.set(**look_of(k, "hatch"))
        n_samples = weights.shape[0]
        shown = "" if len(order) == n_samples else f", {len(order)} of {n_samples} shown"
        ax.set(xlim=(0, len(order)), ylim=(0, 1), ylabel="weight")
        ax.legend(loc="center left", bbox_to_anchor=(1.0, 0.5), frameon=False, fontsize=8)
        label = f"samples, ordered by their largest weight{shown}"
        name_axes(ax, f"{self.title or 'Weights'} of each sample", xlabel=label)

    def _draw_triangle(self, ax: Any, weights: np.ndarray, names: list[str]) -> None:
        points, largest = weights @ TRIANGLE, weights.argmax(axis=1)
        ax.plot(*TRIANGLE[[0, 1, 2, 0]].T, color=INK, linewidth=1)
        centre = TRIANGLE.mean(axis=0)
        for k in range(3):  # the borders between the three regions of the largest weight
            middle = (TRIANGLE[k] + TRIANGLE[(k + 1) % 3]) / 2
            ax.plot(*np.stack([centre, middle]).T, color="#999999", linewidth=0.8, linestyle=":")
        style = {"s": 18, "edgecolor": "white", "linewidth": 0.4, "zorder": 3}
        self.artists_ = []
        for k, (name, align) in enumerate(zip(names, ("right", "left", "center"), strict=True)):
            look = {"label": name, **style, **look_of(k, "color", "marker")}
            self.artists_.append(ax.scatter(*points[largest == k].T, **look))
            x, y = TRIANGLE[k] + 0.05 * (TRIANGLE[k] - centre)
            ax.text(x, y, name, ha=align, va="bottom" if k == 2 else "top", color=INK)
        ax.set_aspect("equal")
        ax.set_axis_off()
        title = f"{self.title or 'Weights'}: the nearer a corner, the larger"
        ax.set_title(title, fontsize=10, pad=16)


VALUES = ("share", "singular values")


def mode_spectra(X: Any) -> list[np.ndarray]:
    """Return the singular values of the centred tensor's unfolding along each feature mode.

    The squares are the eigenvalues of ``X_(n) X_(n)ᵀ``, an I_n × I_n matrix that is summed over
    blocks of samples; nothing of the size of X is made.

    Parameters
    ----------
    X : array of shape (n_samples, d_1, ..., d_m)
        The samples.

    Returns
    -------
    spectra : list of arrays of shape (d_n,)
        The singular values of each feature mode, largest first.
    """
    samples, modes = as_blocks(X), range(1, X.ndim)
    total = samples.reduce(lambda block: to_numpy(block).sum(axis=0, dtype=np.float64), add)
    mean = total / X.shape[0]

    def grams_of(block: Any) -> list[np.ndarray]:
        centred = to_numpy(block) - mean
        return [mode_gram(centred, mode) for mode in modes]

    grams = samples.reduce(grams_of, add_parts)
    return [np.sqrt(np.clip(np.linalg.eigvalsh(gram)[::-1], 0, None)) for gram in grams]


@dataclass(eq=False, repr=False)
class EnergyDisplay(Display):
    """Show how much of the data each mode keeps, by the number of directions.

    For mode n the curve is Σ_{j≤J} σ_j² / Σ_j σ_j², with σ the singular values of the centred
    data unfolded along that mode. A ring marks the rank of a model.

    Parameters
    ----------
    spectra : list of arrays of shape (d_n,)
        The singular values of each feature mode, largest first.
    ranks : sequence of int, default=None
        The rank of the model in each mode.

    Attributes
    ----------
    lines_ : list of matplotlib Line2D
        One for each mode.
    ax_, figure_ : matplotlib Axes and Figure
        Where they are.
    """

    spectra: Any
    _: KW_ONLY
    ranks: Any = None

    @classmethod
    def from_array(cls, X: Any, *, values: str = "share", ax: Any = None) -> EnergyDisplay:
        """Show the modes of an array of samples, before anything is fitted.

        Parameters
        ----------
        X : array of shape (n_samples, d_1, ...)
            The samples.
        values : {"share", "singular values"}, default="share"
            What to draw.
        ax : matplotlib Axes, default=None
            Where to draw; None makes a figure.

        Returns
        -------
        display : Display
            The display, drawn.
        """
        return cls(mode_spectra(X)).plot(ax, values=values)

    @classmethod
    def from_estimator(
        cls, estimator: Any, X: Any, *, values: str = "share", ax: Any = None
    ) -> EnergyDisplay:
        """Show the modes of `X`, with the ranks of a fitted estimator.

        Parameters
        ----------
        estimator : estimator with `ranks_`
            The fitted clustering.
        X : array of shape (n_samples, d_1, ...)
            The samples.
        values : {"share", "singular values"}, default="share"
            What to draw.
        ax : matplotlib Axes, default=None
            Where to draw; None makes a figure.

        Returns
        -------
        display : Display
            The display, drawn.
        """
        ranks = getattr(estimator, "ranks_", None)
        return cls(mode_spectra(X), ranks=ranks).plot(ax, values=values)

    def plot(self, ax: Any = None, *, values: str = "share") -> EnergyDisplay:
        """Draw one curve for each mode.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            Where to draw; None makes a figure.
        values : {"share", "singular values"}, default="share"
            The cumulative share of energy, or the singular values themselves on a log scale.

        Returns
        -------
        display : Display
            The display, drawn.
        """
        check_option(values, "values", type(self).__name__, VALUES)
        ax = self._axes(ax, STYLE.chart)
        self.lines_ = []
        for mode, spectrum in enumerate(self.spectra):
            curve = np.asarray(spectrum, dtype=float)
            if values == "share":
                energy = np.cumsum(curve**2)
                curve = energy / energy[-1] if energy[-1] > 0 else np.ones_like(energy)
            look = {"markersize": 4, **look_of(mode, "color", "marker", "linestyle")}
            numbers = np.arange(1, len(curve) + 1)
            self.lines_ += ax.plot(numbers, curve, label=f"mode {mode + 1}", **look)
            if self.ranks is not None:
                rank = int(self.ranks[mode])
                ring = {"facecolors": "none", "edgecolors": INK, "linewidths": 1.4, "zorder": 4}
                ax.scatter([rank], [curve[rank - 1]], s=110, **ring)
        shown: dict[str, Any] = {"ylabel": "singular value", "yscale": "log"}
        if values == "share":
            shown = {"ylabel": "share of energy kept", "ylim": (0, 1.04)}
        ax.xaxis.get_major_locator().set_params(integer=True)
        rings = "" if self.ranks is None else "; rings mark the ranks of the model"
        title = f"How few directions each mode needs{rings}"
        name_axes(ax, title, xlabel="number of directions", **shown)
        ax.legend(frameon=False, fontsize=8)
        return self._keep(ax)


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
    def from_estimator(cls, estimator: Any, X: Any = None, *, ax: Any = None) -> ConvergenceDisplay:
        """Show the history of a fitted estimator.

        Parameters
        ----------
        estimator : estimator with `history_`
            The fitted clustering.
        X : Ignored
            Present so that displays are made alike.
        ax : matplotlib Axes, default=None
            Where to draw; None makes a figure.

        Returns
        -------
        display : Display
            The display, drawn.
        """
        history = fitted.attribute(estimator, cls.__name__, "history_")
        cost, gap = fitted.history_column(history, "cost"), fitted.history_column(history, "gap")
        return cls(fitted.iterations_of(history), cost, gap=gap).plot(ax)

    def _draw(self, ax: Any) -> Any:
        """Draw the curves."""
        ax = self._axes(ax, STYLE.chart)
        iterations, costs = np.asarray(self.iterations), np.asarray(self.cost, dtype=float)
        look = {"color": COLOURS[0], "marker": "o", "markersize": 4, "label": "cost"}
        (self.cost_line_,) = ax.plot(iterations, costs, **look)
        if np.nanmin(costs) > 0 and np.nanmax(costs) > STYLE.log_ratio * np.nanmin(costs):
            ax.set_yscale("log")  # a bad start would flatten all that follows
        ax.xaxis.get_major_locator().set_params(integer=True)
        self.gap_line_ = self.gap_ax_ = None
        gap = np.asarray(np.full(len(iterations), np.nan) if self.gap is None else self.gap, float)
        known = np.isfinite(gap)
        title = "The cost falls until nothing changes any more"
        if known.any():
            title = "The cost falls; the gap tells how far the memberships are from optimal"
            self.gap_ax_ = ax.twinx()
            self.gap_ax_.spines["top"].set_visible(False)
            look |= {"color": COLOURS[3], "marker": "s", "linestyle": "--", "label": "gap"}
            gap = np.maximum(gap[known], STYLE.least_gap)
            (self.gap_line_,) = self.gap_ax_.plot(iterations[known], gap, **look)
            self.gap_ax_.set(yscale="log", ylabel="optimality gap (squares)")
        name_axes(ax, title, xlabel="iteration", ylabel="cost ½‖X − X̂‖² (circles)")
        return ax


@dataclass(eq=False, repr=False)
class ConfusionDisplay(Display):
    """Show how the clusters divide known classes, clusters matched to classes.

    Cell (i, j) counts the samples of class i in cluster j. The columns are ordered by the optimal
    matching, so the diagonal holds the samples that count as right in the clustering accuracy.

    Parameters
    ----------
    table : MatchedTable
        The counts, classes and clusters.

    Attributes
    ----------
    image_ : matplotlib AxesImage
        The shares of each class.
    texts_ : list of matplotlib Text
        The counts, where they fit.
    ax_, figure_ : matplotlib Axes and Figure
        Where they are.
    """

    table: MatchedTable

    @classmethod
    def from_predictions(cls, y_true: Any, y_pred: Any, *, ax: Any = None) -> ConfusionDisplay:
        """Compare two labelings.

        Parameters
        ----------
        y_true : array of shape (n_samples,)
            The known classes.
        y_pred : array of shape (n_samples,)
            The clusters.
        ax : matplotlib Axes, default=None
            Where to draw; None makes a figure.

        Returns
        -------
        display : Display
            The display, drawn.
        """
        return cls(matched_table(y_true, y_pred)).plot(ax)

    @classmethod
    def from_estimator(cls, estimator: Any, X: Any, y: Any, *, ax: Any = None) -> ConfusionDisplay:
        """Compare the labels that an estimator gives to `X` with known classes.

        Parameters
        ----------
        estimator : estimator with `labels_`
            The fitted clustering.
        X : array of shape (n_samples, d_1, ...)
            The samples.
        y : array of shape (n_samples,)
            The known classes.
        ax : matplotlib Axes, default=None
            Where to draw; None makes a figure.

        Returns
        -------
        display : Display
            The display, drawn.
        """
        return cls.from_predictions(y, fitted.labels_of(estimator, X, cls.__name__), ax=ax)

    def _draw(self, ax: Any) -> Any:
        """Draw the table."""
        counts = self.table.counts
        n_rows, n_columns = counts.shape
        side = min(9.0, 2.2 + 0.36 * max(n_rows, n_columns))
        ax = self._axes(ax, (side + 0.6, side))
        shares = counts / np.maximum(counts.sum(axis=1, keepdims=True), 1)
        self.image_ = ax.imshow(shares, cmap=SEQUENTIAL, vmin=0, vmax=1)
        self.texts_ = []
        if max(n_rows, n_columns) <= STYLE.most_printed:
            for i, j in np.argwhere(counts):
                colour = "white" if shares[i, j] < 0.5 else "black"
                style = {"ha": "center", "va": "center", "fontsize": 7, "color": colour}
                self.texts_.append(ax.text(j, i, str(counts[i, j]), **style))
            ax.set_xticks(range(n_columns), [str(c) for c in self.table.clusters], fontsize=8)
            ax.set_yticks(range(n_rows), [str(c) for c in self.table.classes], fontsize=8)
        ax.set(xlabel="cluster, matched to the classes", ylabel="class")
        right = np.trace(counts) / counts.sum()
        ax.set_title(f"Clusters against classes: {right:.1%} on the diagonal", fontsize=9)
        ax.figure.colorbar(self.image_, ax=ax, label="share of the class", shrink=0.8)
        return ax


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
        cls, estimator: Any, X: Any = None, *, quantity: str = "score", ax: Any = None
    ) -> SelectionDisplay:
        """Show the choice of a fitted estimator.

        Parameters
        ----------
        estimator : AutoClustering
            The fitted clustering.
        X : Ignored
            Present so that displays are made alike.
        quantity : {"score", "stability", "modularity"}, default="score"
            What is drawn.
        ax : matplotlib Axes, default=None
            Where to draw; None makes a figure.

        Returns
        -------
        display : Display
            The display, drawn.
        """
        selection = fitted.attribute(estimator, cls.__name__, "selection_")
        return cls(selection, quantity=quantity).plot(ax)

    def _draw(self, ax: Any) -> Any:
        """Draw the lines."""
        ax = self._axes(ax, STYLE.chart)
        self.lines_ = {}
        for place, view in enumerate(self.selection.views):
            trials = [trial for trial in self.selection.trials if trial.view == view]
            curve = [[getattr(t, name) for t in trials] for name in ("n_clusters", self.quantity)]
            look = {"markersize": 4, "label": view, **look_of(place, "color", "marker")}
            (self.lines_[view],) = ax.plot(*curve, **look)
        chosen, view = self.selection.n_clusters, self.selection.view
        best = next(t for t in self.selection.of(chosen) if t.view == view)
        height = getattr(best, self.quantity)
        ring = {"marker": "o", "markersize": 12, "fillstyle": "none", "color": "black"}
        (self.chosen_,) = ax.plot([chosen], [height], **ring)
        ax.set_xscale("log")
        # Powers of ten say little of numbers of clusters: every number whose neighbours leave room.
        shown = [chosen]
        for number in sorted({trial.n_clusters for trial in self.selection.trials}):
            if all(max(number, other) >= ROOM * min(number, other) for other in shown):
                shown.append(number)
        ax.set_xticks(sorted(shown), [str(number) for number in sorted(shown)])
        ax.minorticks_off()
        title = f"{chosen} clusters, seen by {view}"
        name_axes(ax, title, xlabel="number of clusters", ylabel=self.quantity)
        ax.legend(fontsize=7, frameon=False)
        return ax
