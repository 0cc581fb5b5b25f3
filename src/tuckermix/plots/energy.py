"""How the energy of the data spreads over the directions of each mode."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Any

import numpy as np

from tuckermix._array_api import blocks, to_numpy
from tuckermix._declaration import describe
from tuckermix._validation import check_option
from tuckermix.plots.style import DRAWN, INK, axes_for, colour_of, line_of, marker_of, plain_axes

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
    shape = tuple(X.shape[1:])
    row_bytes = 8 * int(np.prod(shape))
    total = np.zeros(shape)
    for part in blocks(X.shape[0], row_bytes):
        total += to_numpy(X[part]).sum(axis=0, dtype=np.float64)
    mean = total / X.shape[0]
    grams = [np.zeros((size, size)) for size in shape]
    for part in blocks(X.shape[0], row_bytes):
        centred = to_numpy(X[part]) - mean
        for mode, gram in enumerate(grams):
            unfolded = np.moveaxis(centred, mode + 1, 0).reshape(shape[mode], -1)
            gram += unfolded @ unfolded.T
    return [np.sqrt(np.clip(np.linalg.eigvalsh(gram)[::-1], 0, None)) for gram in grams]


@dataclass(eq=False, repr=False)
class EnergyDisplay:
    """Show how much of the data each mode keeps with so many directions.

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
        owner = type(self).__name__
        check_option(values, "values", owner, VALUES)
        ax = axes_for(owner, ax, (5.6, 3.2))
        self.lines_ = []
        for mode, spectrum in enumerate(self.spectra):
            spectrum = np.asarray(spectrum, dtype=float)
            curve = spectrum
            if values == "share":
                energy = np.cumsum(spectrum**2)
                curve = energy / energy[-1] if energy[-1] > 0 else np.ones_like(energy)
            (line,) = ax.plot(
                np.arange(1, len(curve) + 1),
                curve,
                color=colour_of(mode),
                marker=marker_of(mode),
                markersize=4,
                linestyle=line_of(mode),
                label=f"mode {mode + 1}",
            )
            self.lines_.append(line)
            if self.ranks is not None:
                rank = int(self.ranks[mode])
                ring = {
                    "s": 110,
                    "facecolors": "none",
                    "edgecolors": INK,
                    "linewidths": 1.4,
                    "zorder": 4,
                }
                ax.scatter([rank], [curve[rank - 1]], **ring)
        if values == "share":
            ax.set_ylabel("share of energy kept")
            ax.set_ylim(0, 1.04)
        else:
            ax.set_ylabel("singular value")
            ax.set_yscale("log")
        ax.set_xlabel("number of directions")
        ax.xaxis.get_major_locator().set_params(integer=True)
        rings = "" if self.ranks is None else "; rings mark the ranks of the model"
        ax.set_title(f"How few directions each mode needs{rings}", fontsize=9)
        ax.legend(frameon=False, fontsize=8)
        plain_axes(ax)
        self.ax_, self.figure_ = ax, ax.figure
        return self
