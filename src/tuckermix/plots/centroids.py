"""The centroids as pictures."""

from __future__ import annotations

import math
from dataclasses import KW_ONLY, dataclass
from typing import Any

import numpy as np

from tuckermix._array_api import to_numpy
from tuckermix._declaration import describe
from tuckermix.plots.fitted import centroids_of, fitted
from tuckermix.plots.pictures import montage, picture_kind, squeezed_shape, value_range, views
from tuckermix.plots.style import DRAWN, INK, axes_for

TILE_INCHES = 1.15
"""The width of a tile in a new figure: a thumbnail that is large enough to judge."""

MOST_COLUMNS = 5
"""Samples in a row, where each has a single picture."""

FRAME_MILLISECONDS = 120
"""About eight frames a second, slow enough to follow."""


LEFT_INCHES, TITLE_INCHES, LEAST_INCHES = 0.5, 0.4, 4.6
"""Room for the names of rows and for the title, and the width that a title needs."""


def _gap_and_top(height: int, width: int, named: bool) -> tuple[int, int]:
    """Return the pixels between tiles and above them, where a line of text may stand."""
    return max(1, round(max(height, width) / 12)), round(0.28 * height) if named else 0


def figure_size(tiles: np.ndarray, columns: int, named: bool, inches: float) -> tuple[float, float]:
    """Return the size of a figure whose tiles are `inches` wide."""
    height, width = tiles.shape[1:3]
    gap, top = _gap_and_top(height, width, named)
    rows = math.ceil(len(tiles) / columns)
    scale = inches / width
    wide = scale * columns * (width + gap) + LEFT_INCHES
    high = scale * rows * (height + top + gap) + TITLE_INCHES
    return max(wide, LEAST_INCHES), high


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
        ax.text(x, y, name, ha="center", va="bottom", fontsize=8, color=INK)
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
        return tiles, min(len(pictures), MOST_COLUMNS), [], names
    return tiles, n_views, names, []


@dataclass(eq=False, repr=False)
class CentroidDisplay:
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
        size = figure_size(tiles, columns, bool(above), TILE_INCHES)
        ax = axes_for(type(self).__name__, ax, size)
        self.image_ = draw_tiles(ax, *layout)
        what = {"volume": ", middle slices", "video": " over time", "channels": ", by channel"}
        ax.set_title(f"The mean of each cluster{what.get(kind, '')}", fontsize=9)
        self.ax_, self.figure_ = ax, ax.figure
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

        return FuncAnimation(
            self.figure_, show, frames=pictures.shape[1], interval=FRAME_MILLISECONDS, blit=True
        )
