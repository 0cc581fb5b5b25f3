"""Mixing weights of pixels as maps."""

from __future__ import annotations

import math
from dataclasses import KW_ONLY, dataclass
from typing import Any

import numpy as np

from tuckermix._array_api import to_numpy
from tuckermix._declaration import describe
from tuckermix.plots.fitted import fitted
from tuckermix.plots.pictures import montage
from tuckermix.plots.style import DRAWN, INK, Display, axes_for

MAP_INCHES = 2.0
"""The width of one map in a new figure."""

COLUMNS = 4
"""Maps in a row."""

NAME_SHARE = 0.12
"""Room for the name above a map, as a share of its height."""


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
    @describe(DRAWN)
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
        columns = min(n_maps, COLUMNS)
        top, gap = math.ceil(NAME_SHARE * height), max(1, round(width / 20))
        padded = np.pad(maps, ((0, 0), (top, 0), (0, 0)), constant_values=1.0)
        rows = math.ceil(n_maps / columns)
        size = MAP_INCHES * columns, MAP_INCHES * rows * (height + top) / width + 0.4
        ax = axes_for(type(self).__name__, ax, size)
        sheet = montage(padded, columns, gap=gap)
        self.image_ = ax.imshow(sheet, cmap="gray", vmin=0, vmax=1, interpolation="nearest")
        ax.set_axis_off()
        names = self.names if self.names is not None else range(n_maps)
        for index, name in enumerate(names):
            x = index % columns * (width + gap) + width / 2
            y = index // columns * (height + top + gap) + top - 1
            ax.text(x, y, str(name), ha="center", va="bottom", fontsize=8, color=INK)
        ax.set_title("How much of each component is in each place", fontsize=9)
        return ax
