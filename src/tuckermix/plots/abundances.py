"""Mixing weights of pixels as maps."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Any

from tuckermix._array_api import to_numpy
from tuckermix._declaration import describe
from tuckermix.plots.centroids import draw_tiles, figure_size
from tuckermix.plots.fitted import fitted
from tuckermix.plots.style import DRAWN, Display, axes_for

MAP_INCHES = 2.0
"""The width of one map in a new figure."""

COLUMNS = 4
"""Maps in a row."""


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
        columns = min(n_maps, COLUMNS)
        ax = axes_for(type(self).__name__, ax, figure_size(maps, columns, True, MAP_INCHES))
        names = range(n_maps) if self.names is None else self.names
        self.image_ = draw_tiles(ax, maps, columns, [], [str(name) for name in names])
        ax.set_title("How much of each component is in each place", fontsize=9)
        return ax
