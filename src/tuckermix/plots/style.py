"""Colours, markers and measures of the displays, and the class that draws them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Self

from tuckermix._optional import require

COLOURS = (
    "#0072B2",  # blue
    "#E69F00",  # orange
    "#009E73",  # green
    "#CC79A7",  # purple
    "#D55E00",  # vermilion
    "#56B4E9",  # sky blue
    "#882255",  # wine
    "#555555",  # grey, in place of black, which is kept for text and outlines
    "#F0E442",  # yellow, late because it is faint on white
    "#332288",  # indigo
)
"""The palette of Okabe and Ito and two dark tones, told apart with every common colour vision, in
an order in which neighbours differ in grey as well."""

MARKERS = ("o", "s", "^", "D", "v", ">", "X", "*", "<")
"""One less than there are colours: the pair (colour, marker) repeats after 90 clusters only."""

HATCHES = ("", "///", "...", "\\\\\\", "xxx", "ooo", "+++", "---", "|||")
LINES = ("-", "--", "-.", ":")
SEQUENTIAL = "cividis"
"""Its lightness grows evenly, so it prints in grey, and it looks alike to the colour-blind."""

INK = "#222222"


@dataclass(frozen=True)
class Style:
    """Measures of all displays, inches where they are lengths."""

    tile: float = 1.15
    """The width of a picture in a new figure: a thumbnail that is large enough to judge."""
    small_tile: float = 0.55
    """The width of a picture among many of a row."""
    map_tile: float = 2.0
    """The width of a map of a scene."""
    profile: float = 1.6
    """The height of the profiles below the components."""
    left: float = 0.5
    """Room for the names of rows."""
    title: float = 0.4
    """Room for the title."""
    head: float = 0.2
    """Room for a line between the title and the first row."""
    narrowest: float = 4.6
    """The width that a title needs."""
    chart: tuple[float, float] = (5.6, 3.2)
    """A figure of curves."""
    pictures_in_row: int = 5
    """Samples in a row, where each has a single picture."""
    maps_in_row: int = 4
    """Maps of a scene in a row."""
    frame_milliseconds: int = 120
    """About eight frames per second, slow enough to follow."""
    most_bars: int = 400
    """More bars than this are thinner than a pixel on most screens."""
    most_printed: int = 20
    """With more classes than this the counts do not fit their cells."""
    mark_area: float = 30_000.0
    """Square points that the marks of a map share."""
    mark_areas: tuple[float, float] = (7.0, 30.0)
    """The smallest and the largest mark."""
    least_gap: float = 1e-17
    """A gap of zero is drawn here, below rounding error, so that a log scale can show it."""
    most_leaves: int = 30
    """Leaves of a tree whose pictures can still be told apart."""
    steady: float = 0.9
    """The stability from which on a merge is marked."""
    log_ratio: float = 3.0
    """Costs that fall by more than this factor are drawn on a log scale."""


STYLE = Style()


LOOKS = {"color": COLOURS, "marker": MARKERS, "hatch": HATCHES, "linestyle": LINES}
"""Marks that tell clusters apart, by the name of the argument of Matplotlib."""


def look_of(cluster: int, *names: str) -> dict[str, Any]:
    """Return the arguments that draw a cluster, such as its colour and its marker."""
    return {name: LOOKS[name][int(cluster) % len(LOOKS[name])] for name in names}


def require_matplotlib(owner: str) -> Any:
    """Return `matplotlib.pyplot`, or say what to install."""
    return require("matplotlib.pyplot", owner, "plot")


def name_axes(ax: Any, title: str, **settings: Any) -> None:
    """Set title and labels, and take away the two spines that carry no scale."""
    ax.set(**settings)
    ax.set_title(title, fontsize=9)
    ax.spines[["top", "right"]].set_visible(False)


class Display:
    """A picture that can be drawn again, on axes of one's own or in a new figure."""

    _draw: Callable[[Any], Any]
    """Draw on the axes given, or on those of a new figure, and return them."""

    def plot(self, ax: Any = None) -> Self:
        """Draw it.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            Where to draw; None makes a figure.

        Returns
        -------
        display : Display
            The display, drawn.
        """
        return self._keep(self._draw(ax))

    def _axes(self, ax: Any, size: tuple[float, float]) -> Any:
        """Return `ax`, or the axes of a new figure of `size` inches if it is None."""
        plt = require_matplotlib(type(self).__name__)
        return plt.subplots(figsize=size, layout="constrained")[1] if ax is None else ax

    def _keep(self, ax: Any) -> Self:
        self.ax_, self.figure_ = ax, ax.figure
        return self
