"""Displays made of pictures: centroids, members, components, maps of weights and trees."""

from __future__ import annotations

import math
from dataclasses import KW_ONLY, dataclass
from typing import Any

import numpy as np
from scipy.cluster.hierarchy import dendrogram

from tuckermix._array_api import to_numpy
from tuckermix._validation import check_integer
from tuckermix.plots.fitted import (
    as_fitted,
    centroids_of,
    confidence_of,
    distances_to,
    fitted,
    labels_of,
    rows_of,
    typical_members,
)
from tuckermix.plots.pictures import (
    montage,
    picture,
    picture_kind,
    squeezed_shape,
    value_range,
    views,
)
from tuckermix.plots.style import (
    COLOURS,
    INK,
    STYLE,
    Display,
    axes_for,
    look_of,
    name_axes,
    require_matplotlib,
)
from tuckermix.selection.multiview import cluster_means

ABOVE = {"ha": "center", "va": "bottom", "fontsize": 8, "color": INK}
"""How a name above a tile is written."""


def _gap_and_top(height: int, width: int, named: bool) -> tuple[int, int]:
    """Return the pixels between tiles and above them, where a line of text may stand."""
    return max(1, round(max(height, width) / 12)), round(0.28 * height) if named else 0


def figure_size(tiles: np.ndarray, columns: int, named: bool, inches: float) -> tuple[float, float]:
    """Return the size of a figure whose tiles are `inches` wide."""
    height, width = tiles.shape[1:3]
    gap, top = _gap_and_top(height, width, named)
    rows = math.ceil(len(tiles) / columns)
    scale = inches / width
    wide = scale * columns * (width + gap) + STYLE.left
    high = scale * rows * (height + top + gap) + STYLE.title
    return max(wide, STYLE.narrowest), high


def draw_tiles(
    ax: Any, tiles: np.ndarray, columns: int, row_names: list[str], tile_names: list[str]
) -> Any:
    """Draw a montage on `ax` with a name left of each row or above each tile.

    Returns
    -------
    image : matplotlib AxesImage
        The montage.
    """
    height, width = tiles.shape[1:3]
    gap, top = _gap_and_top(height, width, bool(tile_names))
    padded = np.pad(
        tiles, ((0, 0), (top, 0), (0, 0)) + ((0, 0),) * (tiles.ndim - 3), constant_values=1.0
    )
    sheet = montage(padded, columns, gap=gap)
    image = ax.imshow(sheet, cmap="gray", vmin=0, vmax=1, interpolation="nearest")
    ax.set_axis_off()
    for index, name in enumerate(tile_names):
        x = index % columns * (width + gap) + width / 2
        y = index // columns * (height + top + gap) + top - 0.5 - 0.05 * height
        ax.text(x, y, name, **ABOVE)
    for row, name in enumerate(row_names):
        y = row * (height + top + gap) + top + height / 2
        ax.text(-gap - 0.5, y, name, ha="right", va="center", fontsize=8, color=INK)
    return image


def arranged(
    pictures: np.ndarray, names: list[str]
) -> tuple[np.ndarray, int, list[str], list[str]]:
    """Arrange the views of samples for `draw_tiles`: a row for each, or several with one view."""
    tiles, n_views = pictures.reshape(-1, *pictures.shape[2:]), pictures.shape[1]
    if n_views == 1:
        return tiles, min(len(pictures), STYLE.pictures_in_row), [], names
    return tiles, n_views, names, []


@dataclass(eq=False, repr=False)
class CentroidDisplay(Display):
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
        cls, estimator: Any, *, kind: str = "auto", animate: bool = False, ax: Any = None
    ) -> CentroidDisplay:
        """Show the centroids of a fitted estimator.

        Parameters
        ----------
        estimator : estimator with `centroids_` and `labels_`
            The fitted clustering.
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
        centroids = centroids_of(estimator, cls.__name__)
        labels = to_numpy(fitted(estimator, cls.__name__, "labels_"))
        sizes = np.bincount(labels[labels >= 0], minlength=centroids.shape[0])
        return cls(centroids, sizes=sizes, kind=kind).plot(ax, animate=animate)

    def _names(self) -> list[str]:
        if self.sizes is None:
            return [str(cluster) for cluster in range(len(self.centroids))]
        return [f"{cluster} (n={size})" for cluster, size in enumerate(self.sizes)]

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
        every = {"n_frames": squeezed_shape(centroids.shape[1:])[0]} if animate else {}
        pictures = views(centroids, kind, limits=value_range(centroids), **every)
        layout = arranged(pictures[:, :1] if animate else pictures, self._names())
        tiles, columns, _, above = layout
        size = figure_size(tiles, columns, bool(above), STYLE.tile)
        ax = axes_for(type(self).__name__, ax, size)
        self.image_ = draw_tiles(ax, *layout)
        what = {"volume": ", middle slices", "video": " over time", "channels": ", by channel"}
        ax.set_title(f"The mean of each cluster{what.get(kind, '')}", fontsize=9)
        self._keep(ax)
        self.animation_ = self._animate(pictures, columns) if animate else None
        return self

    def _animate(self, pictures: np.ndarray, columns: int) -> Any:
        """Exchange the pictures of the montage frame by frame."""
        from matplotlib.animation import FuncAnimation

        sheet = self.image_.get_array()
        height, width = pictures.shape[2:4]
        gap, top = _gap_and_top(height, width, True)

        def show(frame: int) -> list[Any]:
            picture = np.array(sheet)
            for cluster in range(pictures.shape[0]):
                y = cluster // columns * (height + top + gap) + top
                x = cluster % columns * (width + gap)
                picture[y : y + height, x : x + width] = pictures[cluster, frame]
            self.image_.set_data(picture)
            return [self.image_]

        count, every = pictures.shape[1], STYLE.frame_milliseconds
        return FuncAnimation(self.figure_, show, frames=count, interval=every, blit=True)


@dataclass(eq=False, repr=False)
class MemberDisplay(Display):
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
        centroids = centroids_of(estimator, cls.__name__)
        labels = labels_of(estimator, X, cls.__name__)
        typical, doubtful = typical_members(
            labels,
            confidence_of(estimator, X, labels),
            distances_to(X, centroids, labels),
            len(centroids),
            n_members,
        )
        return cls(
            centroids,
            [rows_of(X, indices) for indices in typical],
            [rows_of(X, indices) for indices in doubtful],
            kind=kind,
        ).plot(ax)

    def _draw(self, ax: Any) -> Any:
        """Draw one row for each cluster: its centroid, the typical, the doubtful."""
        centroids = np.asarray(self.centroids)
        n_typical = max(len(chosen) for chosen in self.typical)
        n_doubtful = max((len(chosen) for chosen in self.doubtful), default=0)
        limits = value_range(np.concatenate([centroids, *self.typical]))
        middle = picture(centroids, self.kind, limits)
        blank = np.ones((1, *middle.shape[1:]), dtype=np.float32)
        rows = []
        for cluster in range(len(centroids)):
            row = [middle[cluster : cluster + 1], blank]
            members = (self.typical[cluster], self.doubtful[cluster])
            for chosen, count in zip(members, (n_typical, n_doubtful), strict=True):
                if len(chosen):
                    row.append(picture(chosen, self.kind, limits))
                row.extend([blank] * (count - len(chosen) + 1))
            rows.append(np.concatenate(row[:-1]))
        tiles = np.concatenate(rows)
        columns = n_typical + n_doubtful + 3
        height, width = tiles.shape[1:3]
        wide, high = figure_size(tiles, columns, False, STYLE.small_tile)
        ax = axes_for(type(self).__name__, ax, (wide, high + STYLE.head))
        names = [str(cluster) for cluster in range(len(centroids))]
        self.image_ = draw_tiles(ax, tiles, columns, names, [])
        step = width + max(1, round(max(height, width) / 12))
        heads = [("centroid", 0.5), ("most typical first", 2 + n_typical / 2)]
        if n_doubtful:
            heads.append(("most doubtful first", 3 + n_typical + n_doubtful / 2))
        for text, column in heads:
            ax.text(column * step, -0.5 - 0.12 * height, text, **ABOVE)
        ax.set_title("Each cluster: its centroid, typical and doubtful members", fontsize=9, pad=18)
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
    return [
        np.sqrt(squares.mean(axis=tuple(other for other in modes if other != mode)))
        for mode in modes
    ]


@dataclass(eq=False, repr=False)
class ComponentDisplay(Display):
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
        cls, estimator: Any, *, kind: str = "auto", ax: Any = None
    ) -> ComponentDisplay:
        """Show the components of a fitted estimator.

        Parameters
        ----------
        estimator : estimator with `components_` and `memberships_`
            The fitted model.
        kind : str, default="auto"
            How a sample is shown.
        ax : matplotlib Axes, default=None
            Where to draw the pictures, without profiles; None makes a figure with them.

        Returns
        -------
        display : Display
            The display, drawn.
        """
        components = to_numpy(fitted(estimator, cls.__name__, "components_"))
        weights = to_numpy(fitted(estimator, cls.__name__, "memberships_")).mean(axis=0)
        return cls(components, weights=weights, kind=kind).plot(ax)

    def _draw(self, ax: Any) -> Any:
        plt = require_matplotlib(type(self).__name__)
        components = to_numpy(self.components)
        components = components.reshape(len(components), *squeezed_shape(components.shape[1:]))
        kind = picture_kind(components.shape[1:], self.kind)
        pictures = views(components, kind, limits=value_range(components))
        names = [str(number) for number in range(len(components))]
        if self.weights is not None:
            names = [f"{name} ({100 * share:.0f} %)" for name, share in enumerate(self.weights)]
        layout = arranged(pictures, names)
        self.profile_axes_: list[Any] = []
        if ax is None:
            size = figure_size(layout[0], layout[1], pictures.shape[1] == 1, STYLE.tile)
            ax = self._axes_with_profiles(plt, components, kind, size)
        self.image_ = draw_tiles(ax, *layout)
        ax.set_title("Components", fontsize=9)
        return ax

    def _axes_with_profiles(
        self, plt: Any, components: np.ndarray, kind: str, size: tuple[float, float]
    ) -> Any:
        """Make a figure with the pictures above and a profile for each mode below."""
        width, height = size
        figure = plt.figure(figsize=(width, height + STYLE.profile), layout="constrained")
        n_modes = components.ndim - 1
        grid = figure.add_gridspec(2, n_modes, height_ratios=[height, STYLE.profile])
        top = figure.add_subplot(grid[0, :])
        profiles = mode_profiles(components, components.mean(axis=0))
        highest = max(1.05 * max(float(profile.max()) for profile in profiles), math.ulp(0.0))
        named = AXES.get(kind, ())
        for mode, profile in enumerate(profiles):
            below = figure.add_subplot(grid[1, mode])
            for number, curve in enumerate(profile):
                style = look_of(number, "color", "linestyle")
                below.plot(curve, label=str(number), linewidth=1, **style)
            below.set_ylim(0, highest)
            name = named[mode] if len(named) == n_modes else f"mode {mode}"
            below.set_xlabel(name, fontsize=8, color=INK)
            below.tick_params(labelsize=7, labelleft=mode == 0)
            below.spines[["top", "right"]].set_visible(False)
            self.profile_axes_.append(below)
        below.legend(fontsize=6, frameon=False)
        return top


@dataclass(eq=False, repr=False)
class AbundanceDisplay(Display):
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
        return cls(fitted(estimator, cls.__name__, "memberships_"), shape, names=names).plot(ax)

    def _draw(self, ax: Any) -> Any:
        weights = to_numpy(self.memberships)
        height, width = self.shape
        if weights.shape[0] != height * width:
            raise ValueError(
                f"AbundanceDisplay needs one row of memberships for each pixel: shape={self.shape} "
                f"has {height * width} pixels, memberships has {weights.shape[0]} rows."
            )
        n_maps = weights.shape[1]
        maps = 1.0 - weights.T.reshape(n_maps, height, width)
        columns = min(n_maps, STYLE.maps_in_row)
        ax = axes_for(type(self).__name__, ax, figure_size(maps, columns, True, STYLE.map_tile))
        names = range(n_maps) if self.names is None else self.names
        self.image_ = draw_tiles(ax, maps, columns, [], [str(name) for name in names])
        ax.set_title("How much of each component is in each place", fontsize=9)
        return ax


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
        tree = fitted(estimator, cls.__name__, "tree_")
        chosen = tree.n_clusters
        if n_clusters is None:
            most = min(2 * chosen, STYLE.most_leaves) if X is not None else chosen
            n_clusters = min(max(chosen, most), tree.n_leaves)
        check_integer(n_clusters, "n_clusters", cls.__name__)
        pictures = None
        if n_clusters == chosen:
            pictures = centroids_of(estimator, cls.__name__)
        elif X is not None:
            X = as_fitted(estimator, X)
            pictures = to_numpy(cluster_means(X, tree.labels_at(n_clusters), n_clusters))
        return cls(tree, n_clusters, pictures=pictures, kind=kind).plot(ax)

    def _draw(self, ax: Any) -> Any:
        """Draw the branches, the fitted level and the pictures."""
        tree, count = self.tree, self.n_clusters
        size = (max(STYLE.narrowest, STYLE.small_tile * count), STYLE.chart[1])
        ax = axes_for(type(self).__name__, ax, size)
        labels, first = tree.cut(count), tree.n_leaves - count
        place = dict(enumerate(labels.tolist()))  # of each node, in the tree that is drawn
        cluster = dict(zip(labels.tolist(), tree.clusters.tolist(), strict=True))
        rows = []
        for row, (a, b) in enumerate(tree.merges.tolist()):
            place[tree.n_leaves + row] = place[a] if row < first else count + row - first
            if row >= first:
                rows.append([place[a], place[b], row - first + 1.0, 2])
                cluster[count + row - first] = cluster[place[a]]
        within = count - tree.n_clusters  # merges below the fitted level
        steady = tree.stability[first:] >= STYLE.steady

        def name(node: int) -> str:
            return str(node - count)

        layout = {"leaves": [0], "color_list": [], "icoord": [], "dcoord": []}
        if rows:
            layout = dendrogram(rows, no_plot=True, link_color_func=name)
        self.lines_, self.order_ = [], layout["leaves"]
        parts = ("color_list", "icoord", "dcoord")
        for text, x, y in zip(*(layout[key] for key in parts), strict=True):
            row = int(text)
            colour = COLOURS[cluster[count + row] % len(COLOURS)] if row < within else INK
            self.lines_ += ax.plot(x, y, color=colour, linewidth=1.2)
            if steady[row]:
                ax.plot([(x[1] + x[2]) / 2], [y[1]], ".", color=colour)
        middle = STYLE.leaf_step * (np.arange(count) + 0.5)
        ax.axhline(within + 0.5, color=INK, linestyle="--", linewidth=0.6)
        ax.set(xlim=(0, STYLE.leaf_step * count), ylim=(0, count), ylabel="number of clusters")
        shown = sorted({1, tree.n_clusters, count})
        ax.set_yticks([count - level + 0.5 for level in shown], [str(level) for level in shown])
        ax.set_xticks(middle, [str(label) for label in self.order_], fontsize=7)
        ax.tick_params(axis="x", length=0, pad=2)
        name_axes(ax, f"{count} clusters and their merges, {tree.n_clusters} fitted")
        self.picture_axes_ = []
        if self.pictures is None:
            return ax
        tiles = picture(self.pictures, self.kind)
        for x, label in zip(middle, self.order_, strict=True):
            box = [x - 0.45 * STYLE.leaf_step, -0.32, 0.9 * STYLE.leaf_step, 0.22]
            inset = ax.inset_axes(box, transform=ax.get_xaxis_transform())
            inset.imshow(tiles[label], cmap="gray", vmin=0, vmax=1, interpolation="nearest")
            inset.set_axis_off()
            self.picture_axes_.append(inset)
        return ax
