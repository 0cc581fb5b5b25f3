"""Displays made of pictures: centroids, members, components, maps of weights and trees."""

from __future__ import annotations

import math
from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar

import numpy as np
from scipy.cluster.hierarchy import dendrogram

from tuckermix._array_api import to_numpy
from tuckermix._validation import check_integer
from tuckermix.plots import fitted
from tuckermix.plots.pictures import (
    montage,
    picture,
    picture_kind,
    squeezed_shape,
    value_range,
    views,
)
from tuckermix.plots.style import COLOURS, INK, STYLE, Display, look_of, name_axes
from tuckermix.selection.multiview import cluster_means

ABOVE = {"ha": "center", "va": "bottom", "fontsize": 8, "color": INK}
"""How a name above a tile is written."""


def _gap_and_top(tiles: np.ndarray, named: Any) -> tuple[int, int]:
    """Return the pixels between tiles and above them, where a line of text may stand."""
    height, width = tiles.shape[1:3]
    return max(1, round(max(height, width) / 12)), round(0.28 * height) if named else 0


def _sheet(tiles: np.ndarray, columns: int, named: Any) -> np.ndarray:
    """Lay tiles out on one picture."""
    gap, top = _gap_and_top(tiles, named)
    padding = ((0, 0), (top, 0)) + ((0, 0),) * (tiles.ndim - 2)
    return montage(np.pad(tiles, padding, constant_values=1.0), columns, gap=gap)


class TileDisplay(Display):
    """A display that is a montage of pictures."""

    image_: Any
    _inches: ClassVar[float] = STYLE.tile
    _headed: ClassVar[bool] = False
    """The width of a tile in a new figure, and whether it has room for a line above the tiles."""

    def _draw_tiles(
        self, ax: Any, tiles: np.ndarray, columns: int, title: str, left: Any = (), above: Any = ()
    ) -> Any:
        """Draw tiles row by row, named left of each row or above each tile."""
        height, width = tiles.shape[1:3]
        gap, top = _gap_and_top(tiles, above)
        scale, rows = self._inches / width, math.ceil(len(tiles) / columns)
        wide = scale * columns * (width + gap) + STYLE.left
        high = scale * rows * (height + top + gap) + STYLE.title + STYLE.head * self._headed
        ax = self._axes(ax, (max(wide, STYLE.narrowest), high))
        self.image_ = ax.imshow(_sheet(tiles, columns, above), cmap="gray", vmin=0, vmax=1)
        ax.set_axis_off()
        ax.set_title(title, fontsize=9)
        for index, name in enumerate(above):
            x = index % columns * (width + gap) + width / 2
            y = index // columns * (height + top + gap) + top - 0.5 - 0.05 * height
            ax.text(x, y, name, **ABOVE)
        for row, name in enumerate(left):
            y = row * (height + top + gap) + top + height / 2
            ax.text(-gap - 0.5, y, name, ha="right", va="center", fontsize=8, color=INK)
        return ax

    def _draw_views(self, ax: Any, pictures: np.ndarray, names: list[str], title: str) -> Any:
        """Draw the views of samples: a row for each sample, or several with one view."""
        tiles, n_views = pictures.reshape(-1, *pictures.shape[2:]), pictures.shape[1]
        if n_views == 1:
            columns = min(len(tiles), STYLE.pictures_in_row)
            return self._draw_tiles(ax, tiles, columns, title, above=names)
        return self._draw_tiles(ax, tiles, n_views, title, left=names)


@dataclass(eq=False, repr=False)
class CentroidDisplay(TileDisplay):
    """Show the centroid of each cluster as a picture.

    The centroid of cluster k is the mean of its samples in the learned subspace, lifted back to
    the shape of a sample. Images are shown as they are, volumes by their three middle slices,
    videos by a row of frames (or animated), signals as curves. All share one scale of grey.

    Parameters
    ----------
    centroids : array of shape (n_clusters, d_1, ...)
        The centroids.
    sizes : array of shape (n_clusters,), default=None
        The number of samples of each cluster, shown beside its number.
    kind : {"auto", "signal", "image", "colour", "channels", "volume", "video"}, default="auto"
        How a sample is shown. "auto" takes a three-way sample for a volume.

    Attributes
    ----------
    image_ : matplotlib AxesImage
        The pictures, side by side.
    animation_ : matplotlib FuncAnimation or None
        The moving pictures, where `plot` was asked for them.
    ax_ : matplotlib Axes
        The axes.
    figure_ : matplotlib Figure
        The figure.

    Examples
    --------
    >>> import numpy as np
    >>> from tuckermix.plots import CentroidDisplay
    >>> display = CentroidDisplay(np.eye(8).reshape(1, 8, 8)).plot()  # doctest: +SKIP
    """

    centroids: Any
    _: KW_ONLY
    sizes: Any = None
    kind: str = "auto"

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any = None,
        *,
        kind: str = "auto",
        animate: bool = False,
        ax: Any = None,
    ) -> CentroidDisplay:
        """Show the centroids of a fitted estimator.

        Parameters
        ----------
        estimator : estimator with `centroids_` and `labels_`
            The fitted clustering.
        X : Ignored
            Present so that displays are made alike.
        kind : str, default="auto"
            How a sample is shown.
        animate : bool, default=False
            Whether videos move.
        ax : matplotlib Axes, default=None
            Where to draw; None makes a figure.

        Returns
        -------
        display : Display
            The display, drawn.
        """
        centroids = fitted.centroids_of(estimator, cls.__name__)
        labels = to_numpy(fitted.attribute(estimator, cls.__name__, "labels_"))
        sizes = np.bincount(labels[labels >= 0], minlength=centroids.shape[0])
        return cls(centroids, sizes=sizes, kind=kind).plot(ax, animate=animate)

    def plot(self, ax: Any = None, *, animate: bool = False) -> CentroidDisplay:
        """Draw the centroids.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            Where to draw; None makes a figure.
        animate : bool, default=False
            Whether videos move: `animation_` then plays them, and must be kept alive or saved.

        Returns
        -------
        display : Display
            The display, drawn.
        """
        centroids = to_numpy(self.centroids)
        kind = picture_kind(centroids.shape[1:], self.kind)
        if animate and kind != "video":
            raise ValueError(
                f"animate=True needs videos, but the centroids are shown as {kind}: "
                "pass kind='video' if axis 1 is time."
            )
        every: dict[str, Any] = {"n_frames": centroids.shape[1]} if animate else {}
        pictures = views(centroids, kind, **every)
        names = [str(cluster) for cluster in range(len(centroids))]
        if self.sizes is not None:
            names = [f"{cluster} (n={size})" for cluster, size in enumerate(self.sizes)]
        what = {"volume": ", middle slices", "video": " over time", "channels": ", by channel"}
        title = f"The mean of each cluster{what.get(kind, '')}"
        self._keep(self._draw_views(ax, pictures[:, :1] if animate else pictures, names, title))
        self.animation_ = self._animate(pictures) if animate else None
        return self

    def _animate(self, pictures: np.ndarray) -> Any:
        """Exchange the pictures of the montage frame by frame."""
        from matplotlib.animation import FuncAnimation

        columns = min(len(pictures), STYLE.pictures_in_row)

        def show(frame: int) -> list[Any]:
            self.image_.set_data(_sheet(pictures[:, frame], columns, named=True))
            return [self.image_]

        count, every = pictures.shape[1], STYLE.frame_milliseconds
        return FuncAnimation(self.figure_, show, frames=count, interval=every, blit=True)


@dataclass(eq=False, repr=False)
class MemberDisplay(TileDisplay):
    """Show the centroid of each cluster, its typical members and its doubtful ones.

    Typical members have the largest soft label and, among equals, lie nearest to the centroid:
    they show what the cluster is about. Doubtful ones have the smallest and, among equals, lie
    farthest. Of an estimator without `predict_proba` all are equal, and the distance decides.

    Parameters
    ----------
    centroids : array of shape (n_clusters, d_1, ...)
        The centroids.
    typical, doubtful : sequences of arrays of shape (n_k, d_1, ...)
        For each cluster the chosen samples, the most typical or doubtful first.
    kind : str, default="auto"
        How a sample is shown; videos by their middle frame, volumes by a middle slice.

    Attributes
    ----------
    image_ : matplotlib AxesImage
        The pictures: one row per cluster.
    ax_, figure_ : matplotlib Axes and Figure
        Where they are.
    """

    _inches: ClassVar[float] = STYLE.small_tile
    _headed: ClassVar[bool] = True

    centroids: Any
    typical: Any
    doubtful: Any
    _: KW_ONLY
    kind: str = "auto"

    @classmethod
    def from_estimator(
        cls, estimator: Any, X: Any, *, n_members: int = 5, kind: str = "auto", ax: Any = None
    ) -> MemberDisplay:
        """Show members among the samples `X`.

        Parameters
        ----------
        estimator : estimator with `centroids_`
            The fitted clustering.
        X : array of shape (n_samples, d_1, ...)
            The samples.
        n_members : int, default=5
            How many on each side.
        kind : str, default="auto"
            How a sample is shown.
        ax : matplotlib Axes, default=None
            Where to draw; None makes a figure.

        Returns
        -------
        display : Display
            The display, drawn.
        """
        check_integer(n_members, "n_members", cls.__name__)
        centroids = fitted.centroids_of(estimator, cls.__name__)
        labels = fitted.labels_of(estimator, X, cls.__name__)
        sure = fitted.confidence_of(estimator, X, labels)
        away = fitted.distances_to(X, centroids, labels)
        sides = fitted.typical_members(labels, sure, away, len(centroids), n_members)
        samples = ([fitted.rows_of(X, indices) for indices in side] for side in sides)
        return cls(centroids, *samples, kind=kind).plot(ax)

    def _draw(self, ax: Any) -> Any:
        """Draw one row for each cluster: its centroid, the typical, the doubtful."""
        centroids = np.asarray(self.centroids)
        n_typical = max(len(chosen) for chosen in self.typical)
        n_doubtful = max((len(chosen) for chosen in self.doubtful), default=0)
        limits = value_range(np.concatenate([centroids, *self.typical]))
        middle = picture(centroids, self.kind, limits)
        columns = n_typical + n_doubtful + 3  # with a blank one before each side
        tiles = np.ones((len(centroids), columns, *middle.shape[1:]), dtype=np.float32)
        tiles[:, 0] = middle
        for row, *members in zip(tiles, self.typical, self.doubtful, strict=True):
            for chosen, start in zip(members, (2, 3 + n_typical), strict=True):
                if len(chosen):
                    row[start : start + len(chosen)] = picture(chosen, self.kind, limits)
        title = "Each cluster: its centroid, typical and doubtful members"
        names = [str(cluster) for cluster in range(len(centroids))]
        ax = self._draw_tiles(ax, tiles.reshape(-1, *tiles.shape[2:]), columns, title, names)
        ax.set_title(title, fontsize=9, pad=18)
        height, width = middle.shape[1:3]
        step = width + _gap_and_top(middle, False)[0]
        heads = [("centroid", 0.5), ("most typical first", 2 + n_typical / 2)]
        if n_doubtful:
            heads.append(("most doubtful first", 3 + n_typical + n_doubtful / 2))
        for text, column in heads:
            ax.text(column * step, -0.5 - 0.12 * height, text, **ABOVE)
        return ax


AXES = {
    "signal": ("position",),
    "image": ("row", "column"),
    "colour": ("row", "column", "colour"),
    "channels": ("row", "column", "channel"),
    "volume": ("depth", "row", "column"),
    "video": ("frame", "row", "column"),
}
"""Names of the modes of a sample, by how it is shown."""


def mode_profiles(components: np.ndarray, mean: np.ndarray) -> list[np.ndarray]:
    """Return where along each mode components differ from the mean sample, and how much.

    Parameters
    ----------
    components : array of shape (n_components, d_1, ...)
        The components.
    mean : array of shape (d_1, ...)
        What they are compared with.

    Returns
    -------
    profiles : list of arrays of shape (n_components, d_n)
        The root mean square of the difference over all other modes.
    """
    squares = (components - mean) ** 2
    modes = range(1, components.ndim)
    others = (tuple(other for other in modes if other != mode) for mode in modes)
    return [np.sqrt(squares.mean(axis=axes)) for axes in others]


@dataclass(eq=False, repr=False)
class ComponentDisplay(TileDisplay):
    """Show the components of the model, and where along each mode they stand out.

    Images are shown as they are, volumes by their three middle slices, videos by frames. Below
    is one small plot for each mode: how far each component is from the mean component at each
    row, column, slice or frame. That says *where* and *when*.

    Parameters
    ----------
    components : array of shape (n_components, d_1, ...)
        The components.
    weights : array of shape (n_components,), default=None
        The mean weight of each, shown above it.
    kind : {"auto", "signal", "image", "colour", "channels", "volume", "video"}, default="auto"
        How a sample is shown. "auto" takes a three-way sample for a volume.

    Attributes
    ----------
    image_ : matplotlib AxesImage
        The pictures.
    profile_axes_ : list of matplotlib Axes
        One for each mode; empty where `plot` was given axes.
    ax_, figure_ : matplotlib Axes and Figure
        Where the pictures are.
    """

    components: Any
    _: KW_ONLY
    weights: Any = None
    kind: str = "auto"

    @classmethod
    def from_estimator(
        cls, estimator: Any, X: Any = None, *, kind: str = "auto", ax: Any = None
    ) -> ComponentDisplay:
        """Show the components of a fitted estimator.

        Parameters
        ----------
        estimator : estimator with `components_` and `memberships_`
            The fitted model.
        X : Ignored
            Present so that displays are made alike.
        kind : str, default="auto"
            How a sample is shown.
        ax : matplotlib Axes, default=None
            Where to draw the pictures, without profiles; None makes a figure with them.

        Returns
        -------
        display : Display
            The display, drawn.
        """
        components = to_numpy(fitted.attribute(estimator, cls.__name__, "components_"))
        weights = to_numpy(fitted.attribute(estimator, cls.__name__, "memberships_")).mean(axis=0)
        return cls(components, weights=weights, kind=kind).plot(ax)

    def _draw(self, ax: Any) -> Any:
        components = to_numpy(self.components)
        pictures = views(components, self.kind)
        names = [str(number) for number in range(len(components))]
        if self.weights is not None:
            names = [f"{name} ({100 * share:.0f} %)" for name, share in enumerate(self.weights)]
        return self._draw_views(ax, pictures, names, "Components")

    def _axes(self, ax: Any, size: tuple[float, float]) -> Any:
        """Make a figure with the pictures above and a profile for each mode below."""
        self.profile_axes_: list[Any] = []
        if ax is not None:
            return ax
        ax = super()._axes(None, (size[0], size[1] + STYLE.profile))
        components = to_numpy(self.components)
        components = components.reshape(len(components), *squeezed_shape(components.shape[1:]))
        profiles = mode_profiles(components, components.mean(axis=0))
        heights = [size[1], STYLE.profile]
        grid = ax.figure.add_gridspec(2, len(profiles), height_ratios=heights)
        ax.set_subplotspec(grid[0, :])
        highest = max(1.05 * max(float(profile.max()) for profile in profiles), math.ulp(0.0))
        named = AXES[picture_kind(components.shape[1:], self.kind)]
        for mode, profile in enumerate(profiles):
            below = ax.figure.add_subplot(grid[1, mode])
            for number, curve in enumerate(profile):
                style = look_of(number, "color", "linestyle")
                below.plot(curve, label=str(number), linewidth=1, **style)
            below.set_ylim(0, highest)
            name = named[mode] if len(named) == len(profiles) else f"mode {mode}"
            below.set_xlabel(name, fontsize=8, color=INK)
            below.tick_params(labelsize=7, labelleft=mode == 0)
            below.spines[["top", "right"]].set_visible(False)
            self.profile_axes_.append(below)
        below.legend(fontsize=6, frameon=False)
        return ax


@dataclass(eq=False, repr=False)
class AbundanceDisplay(TileDisplay):
    """Show the mixing weights of the pixels of a scene as one map for each component.

    Where pixels are samples, a component is a pure spectrum and the weights say how much of it is
    in each place.

    Parameters
    ----------
    memberships : array of shape (height * width, n_components)
        Mixing weights of the pixels, row by row.
    shape : tuple of int
        Height and width of the scene.
    names : sequence of str, default=None
        What the components are called.

    Attributes
    ----------
    image_ : matplotlib AxesImage
        The maps, side by side, white for nothing and black for all.
    ax_, figure_ : matplotlib Axes and Figure
        Where they are.
    """

    _inches: ClassVar[float] = STYLE.map_tile

    memberships: Any
    shape: tuple[int, int]
    _: KW_ONLY
    names: Any = None

    @classmethod
    def from_estimator(
        cls, estimator: Any, shape: tuple[int, int], *, names: Any = None, ax: Any = None
    ) -> AbundanceDisplay:
        """Show the weights of the pixels on which an estimator was fitted.

        Parameters
        ----------
        estimator : estimator with `memberships_`
            The fitted model.
        shape : tuple of int
            Height and width of the scene.
        names : sequence of str, default=None
            What the components are called.
        ax : matplotlib Axes, default=None
            Where to draw; None makes a figure.

        Returns
        -------
        display : Display
            The display, drawn.
        """
        memberships = fitted.attribute(estimator, cls.__name__, "memberships_")
        return cls(memberships, shape, names=names).plot(ax)

    def _draw(self, ax: Any) -> Any:
        weights = to_numpy(self.memberships)
        height, width = self.shape
        if weights.shape[0] != height * width:
            raise ValueError(
                f"AbundanceDisplay needs one row of memberships for each pixel: shape={self.shape} "
                f"has {height * width} pixels, memberships has {weights.shape[0]} rows."
            )
        maps = 1.0 - weights.T.reshape(-1, height, width)
        columns = min(len(maps), STYLE.maps_in_row)
        names = range(len(maps)) if self.names is None else self.names
        title, above = "How much of each component is in each place", [str(name) for name in names]
        return self._draw_tiles(ax, maps, columns, title, above=above)


@dataclass(eq=False, repr=False)
class TreeDisplay(Display):
    """Show coarser and finer clusters: a dendrogram of the tree, with a picture for each leaf.

    The vertical axis is the number of clusters: a horizontal line cuts that many branches. The
    dashed one is the fitted level, and branches below it have the colour of their cluster. Dots
    mark merges whose two sides are found again from parts of the samples, with a mean adjusted Rand
    index of 0.9 or more.

    Parameters
    ----------
    tree : Tree
        The tree of partitions.
    n_clusters : int
        The level at which the drawing ends.
    pictures : array of shape (n_clusters, d_1, ...), default=None
        What is shown below each leaf, by its label at that level.
    kind : str, default="auto"
        How a sample is shown; videos by their middle frame, volumes by a middle slice.

    Attributes
    ----------
    lines_ : list of matplotlib Line2D
        One for each merge.
    picture_axes_ : list of matplotlib Axes
        The pictures, from left to right.
    order_ : list of int
        The labels of the leaves, from left to right.
    ax_, figure_ : matplotlib Axes and Figure
        Where they are.
    """

    tree: Any
    n_clusters: int
    _: KW_ONLY
    pictures: Any = None
    kind: str = "auto"

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any = None,
        *,
        n_clusters: int | None = None,
        kind: str = "auto",
        ax: Any = None,
    ) -> TreeDisplay:
        """Show the tree of a fitted estimator.

        Parameters
        ----------
        estimator : estimator with `tree_`
            The fitted clustering.
        X : array of shape (n_samples, d_1, ...), default=None
            The fitted samples, whose means are shown. Without them the tree ends at the fitted
            level, where means are known.
        n_clusters : int, default=None
            The level at which it ends. None means twice the fitted number, but at most 30, or the
            fitted number if there are more.
        kind : str, default="auto"
            How a sample is shown.
        ax : matplotlib Axes, default=None
            Where to draw; None makes a figure.

        Returns
        -------
        display : Display
            The display, drawn.
        """
        tree = fitted.attribute(estimator, cls.__name__, "tree_")
        chosen = tree.n_clusters
        if n_clusters is None:
            most = min(2 * chosen, STYLE.most_leaves) if X is not None else chosen
            n_clusters = min(max(chosen, most), tree.n_leaves)
        check_integer(n_clusters, "n_clusters", cls.__name__)
        pictures = None
        if n_clusters == chosen:
            pictures = fitted.centroids_of(estimator, cls.__name__)
        elif X is not None:
            X = fitted.as_fitted(estimator, X)
            pictures = to_numpy(cluster_means(X, tree.labels_at(n_clusters), n_clusters))
        return cls(tree, n_clusters, pictures=pictures, kind=kind).plot(ax)

    def _draw(self, ax: Any) -> Any:
        """Draw the branches, the fitted level and the pictures."""
        tree, count = self.tree, self.n_clusters
        size = (max(STYLE.narrowest, STYLE.small_tile * count), STYLE.chart[1])
        ax = self._axes(ax, size)
        # Nodes of the tree that is drawn: leaves by their labels, then merges.
        first, within = tree.n_leaves - count, count - tree.n_clusters
        nodes = tree.cut(count).tolist()
        cluster = dict(zip(nodes, tree.clusters.tolist(), strict=True))
        links: list[tuple[int, int, int, int]] = []
        for row, (one, other) in enumerate(tree.merges.tolist()):
            nodes.append(nodes[one] if row < first else count + len(links))
            if row >= first:
                cluster[nodes[-1]] = cluster[nodes[one]]
                links.append((nodes[one], nodes[other], len(links) + 1, 2))

        def colour_of(node: int) -> str:
            return COLOURS[cluster[node] % len(COLOURS)] if node < count + within else INK

        drawn: dict[str, Any] = {"leaves": [0], "icoord": [], "dcoord": [], "color_list": []}
        if links:
            drawn = dendrogram(np.array(links, float), no_plot=True, link_color_func=colour_of)
        self.lines_, self.order_ = [], drawn["leaves"]
        branches = zip(drawn["icoord"], drawn["dcoord"], drawn["color_list"], strict=True)
        for places, heights, colour in branches:
            x, top = np.divide(places, 10), heights[1]  # leaves are ten apart there
            self.lines_ += ax.plot(x, heights, color=colour, linewidth=1.2)
            if tree.stability[first + int(top) - 1] >= STYLE.steady:
                ax.plot([(x[1] + x[2]) / 2], [top], ".", color=colour)
        ax.axhline(within + 0.5, color=INK, linestyle="--", linewidth=0.6)
        ax.set(xlim=(0, count), ylim=(0, count), ylabel="number of clusters")
        shown = sorted({1, tree.n_clusters, count})
        ax.set_yticks([count - level + 0.5 for level in shown], [str(level) for level in shown])
        middle = np.arange(count) + 0.5
        ax.set_xticks(middle, [str(label) for label in self.order_], fontsize=7)
        ax.tick_params(axis="x", length=0, pad=2)
        name_axes(ax, f"{count} clusters and their merges, {tree.n_clusters} fitted")
        self.picture_axes_ = []
        tiles = [] if self.pictures is None else picture(self.pictures, self.kind)
        for x, label in zip(middle, self.order_ if len(tiles) else [], strict=False):
            inset = ax.inset_axes([x - 0.45, -0.32, 0.9, 0.22], transform=ax.get_xaxis_transform())
            inset.imshow(tiles[label], cmap="gray", vmin=0, vmax=1, interpolation="nearest")
            inset.set_axis_off()
            self.picture_axes_.append(inset)
        return ax
