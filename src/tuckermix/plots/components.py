"""The components as pictures, with their profile along each mode."""

from __future__ import annotations

import math
from dataclasses import KW_ONLY, dataclass
from typing import Any

import numpy as np

from tuckermix._array_api import to_numpy
from tuckermix._declaration import describe
from tuckermix.plots.centroids import TILE_INCHES, arranged, draw_tiles, figure_size
from tuckermix.plots.fitted import fitted
from tuckermix.plots.pictures import picture_kind, squeezed_shape, value_range, views
from tuckermix.plots.style import (
    DRAWN,
    INK,
    Display,
    colour_of,
    line_of,
    plain_axes,
    require_matplotlib,
)

PROFILE_INCHES = 1.6
"""The height of the profiles below the pictures."""

AXES = {
    "signal": ("position",),
    "image": ("row", "column"),
    "colour": ("row", "column", "colour"),
    "channels": ("row", "column", "channel"),
    "volume": ("depth", "row", "column"),
    "video": ("frame", "row", "column"),
}
"""What the modes of a sample are called, by how it is shown."""


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
    stands one small plot for each mode: how far each component is from the mean component at each
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
            size = figure_size(layout[0], layout[1], pictures.shape[1] == 1, TILE_INCHES)
            ax = self._axes_with_profiles(plt, components, kind, size)
        self.image_ = draw_tiles(ax, *layout)
        ax.set_title("Components", fontsize=9)
        return ax

    def _axes_with_profiles(
        self, plt: Any, components: np.ndarray, kind: str, size: tuple[float, float]
    ) -> Any:
        """Make a figure with the pictures above and a profile for each mode below."""
        width, height = size
        figure = plt.figure(figsize=(width, height + PROFILE_INCHES), layout="constrained")
        n_modes = components.ndim - 1
        grid = figure.add_gridspec(2, n_modes, height_ratios=[height, PROFILE_INCHES])
        top = figure.add_subplot(grid[0, :])
        profiles = mode_profiles(components, components.mean(axis=0))
        highest = max(1.05 * max(float(profile.max()) for profile in profiles), math.ulp(0.0))
        named = AXES.get(kind, ())
        for mode, profile in enumerate(profiles):
            below = figure.add_subplot(grid[1, mode])
            for number, curve in enumerate(profile):
                style = {"color": colour_of(number), "linestyle": line_of(number)}
                below.plot(curve, label=str(number), linewidth=1, **style)
            below.set_ylim(0, highest)
            name = named[mode] if len(named) == n_modes else f"mode {mode}"
            below.set_xlabel(name, fontsize=8, color=INK)
            below.tick_params(labelsize=7, labelleft=mode == 0)
            plain_axes(below)
            self.profile_axes_.append(below)
        below.legend(fontsize=6, frameon=False)
        return top
