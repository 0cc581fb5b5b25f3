"""Which axis means what: letters for the axes of an array, and their order in a sample."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tuckermix._reading import Refusal

SAMPLES = "N"
"""The letter of the axis of the samples."""

ORDER = "NTZYXC"
"""All letters, in the order that samples get: samples, time, depth, height, width, channels."""

WORDS = {"N": "samples", "T": "time", "Z": "depth", "Y": "height", "X": "width", "C": "channels"}
"""The meaning of the letters, for messages."""

N_COLOURS = (3, 4)
"""Numbers of channels that are shown as colours: RGB, or RGB with opacity."""


def check_axes(axes: str) -> str | None:
    """Return the letters in capitals, or None where some are no axes or occur twice."""
    letters = axes.upper()
    known = bool(letters) and set(letters) <= set(ORDER) and len(set(letters)) == len(letters)
    return letters if known else None


def sample_letter(axes: str, shape: Sequence[int]) -> str:
    """Choose the axis whose entries are the samples: the one named, else time, depth, channels."""
    if SAMPLES in axes:
        return SAMPLES
    for letter in "TZC":
        if letter in axes and shape[axes.index(letter)] > 1:
            return letter
    raise Refusal(
        f"it holds one image of shape {tuple(shape)}, and samples are many",
        "Name the folder in which the images lie",
    )


def chosen_axes(asked: str | None, found: str, shape: Sequence[int]) -> str:
    """Return the letters that were asked for, one for each axis, or those of the file."""
    if asked is not None and len(asked) != len(shape):
        raise Refusal(
            f"axes={asked!r} names {len(asked)} axes, and it has {len(shape)}"
            + (f", {found} of shape {tuple(shape)}" if found else ""),
            "Give one letter for each axis",
        )
    return asked or found


def arrange(
    X: Any,
    axes: str,
    first: str | None = None,
    channels: Sequence[int | str] | None = None,
    names: Sequence[str] | None = None,
) -> tuple[Any, str]:
    """Bring the axes of an array into the order of samples, and keep some channels.

    Parameters
    ----------
    X : array
        NumPy or Dask.
    axes : str
        A letter for each axis.
    first : str or None, default=None
        The axis of the samples, which comes first; None where the array is one sample.
    channels : sequence of int or str, or None, default=None
        Which channels to keep, see `take_channels`.
    names : sequence of str or None, default=None
        What the file calls them.

    Returns
    -------
    X : array
        The entries, a view where the library can.
    axes : str
        The letters in the new order.
    """
    wanted = [letter for letter in ORDER if letter in axes and letter != first]
    letters = ([] if first is None else [first]) + wanted
    if letters != list(axes):
        X, axes = X.transpose([axes.index(letter) for letter in letters]), "".join(letters)
    return take_channels(X, axes, channels, names)


def take_channels(
    X: Any, axes: str, channels: Sequence[int | str] | None, names: Sequence[str] | None = None
) -> tuple[Any, str]:
    """Keep some channels, by number or by name; a single one loses its axis.

    Parameters
    ----------
    X : array
        NumPy or Dask, with an axis "C" among its `axes`.
    axes : str
        A letter for each axis.
    channels : sequence of int or str, or None
        Which to keep, in this order; None keeps all, in an array without channels too.
    names : sequence of str or None, default=None
        What the file calls them.

    Returns
    -------
    X : array
        With the channels that were asked for.
    axes : str
        Its axes.
    """
    if channels is None:
        return X, axes
    if "C" not in axes:
        raise Refusal(
            f"it has no channels to choose from (shape {tuple(X.shape)})",
            "Leave channels out, or say with axes which axis holds them",
        )
    axis = axes.index("C")
    count = int(X.shape[axis])
    numbers = []
    for channel in channels:
        number = channel
        if isinstance(channel, str):
            number = list(names).index(channel) if names and channel in names else -1
        if not isinstance(number, int) or not 0 <= number < count:
            known = f", named {', '.join(names)}" if names else ""
            raise Refusal(
                f"it has no channel {channel!r}: it has {count}, numbered from 0{known}",
                "Set channels to some of these",
            )
        numbers.append(number)
    index: list[Any] = [slice(None)] * X.ndim
    single = len(numbers) == 1
    index[axis] = numbers[0] if single else numbers
    return X[tuple(index)], axes.replace("C", "") if single else axes


def kind_of(axes: str, shape: Sequence[int]) -> str:
    """Tell how samples with these axes are drawn, which their shape alone does not say."""
    if not {"Y", "X"} <= set(axes):
        return "auto"
    channels = shape[axes.index("C")] if "C" in axes else None
    if channels is not None and channels not in N_COLOURS:
        return "channels"
    if "T" in axes:
        return "video"
    if "Z" in axes:
        return "volume"
    return "image" if channels is None else "colour"
