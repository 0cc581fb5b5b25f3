"""From named arrays in a file to a dataset: which array, which axis, which labels."""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from typing import Any

import numpy as np

from tuckermix._archives import NUMERIC_KINDS, Entry
from tuckermix._axes import SAMPLES, WORDS, arrange, chosen_axes, kind_of, sample_letter
from tuckermix._pixels import fitted, grey_array
from tuckermix._reading import Refusal, check_fits
from tuckermix.datasets._dataset import Dataset
from tuckermix.datasets._options import FOR_PICTURES, Options

SAMPLE_NAMES = ("images", "X", "x", "data", "fea", "videos", "volumes", "samples", "arr_0")
"""Names under which samples are commonly stored, the clearest first."""

LABEL_NAMES = ("labels", "label", "gnd", "targets", "target", "classes")
"""Names under which classes are commonly stored. A bare `y` counts beside an `X` only: elsewhere
it is as often a coordinate."""

STRING = np.dtype("U8")
"""The type in whose size strings of any length are counted until their length is known."""

LABEL_REMEDY = "Store one integer or string a sample, or pass label_key=False to read no labels"
"""The remedy for labels that are not valid."""

LISTED = 12
"""Arrays that an error message lists before it stops."""

Path = str | os.PathLike[str]


def assemble(
    path: Path, entries: Sequence[Entry], options: Options, *, matlab: bool = False
) -> Dataset:
    """Choose samples and labels among `entries`, read them and put the samples first.

    Parameters
    ----------
    path : str or path
        The file.
    entries : sequence of Entry
        What the file holds.
    options : Options
        What the caller asked for.
    matlab : bool, default=False
        Whether MATLAB wrote the arrays: stacks then have their samples last, and flat samples are
        unfolded column by column.

    Returns
    -------
    dataset : Dataset
        Samples and labels.
    """
    samples = _choose_samples(entries, options)
    if samples.colour is None:
        options.refuse(("size", "frames"), "stored arrays", FOR_PICTURES)
    label_entry = _choose_labels(entries, options, samples)
    labels = class_names = None
    if label_entry is not None:
        if label_entry.dtype.kind not in NUMERIC_KINDS + "SU":
            raise Refusal(f"the labels {label_entry.name!r} are {label_entry.kind}", LABEL_REMEDY)
        check_declared(label_entry, options)
        labels, class_names = encode_labels(label_entry.load(), label_entry.name)
    axes = chosen_axes(options.axes, samples.axes, samples.shape)
    axis, notes = _sample_axis(samples, axes, options, labels, matlab)
    X = _load(samples, options, axis)
    axes = axes and axes[axis] + axes.replace(axes[axis], "")
    X, extra = _as_samples(X, axes, samples, options, matlab)
    extra["notes"] = notes + extra["notes"]
    if labels is not None and labels.size != X.shape[0]:
        assert label_entry is not None
        raise Refusal(
            f"{label_entry.name!r} has {labels.size} labels, but {samples.name!r} of shape "
            f"{samples.shape} has {X.shape[0]} samples along axis {axis}",
            "Name the right arrays with key and label_key, or the axis with sample_axis; "
            "label_key=False reads no labels",
        )
    name = os.path.basename(os.path.normpath(path))
    return Dataset(X=X, labels=labels, class_names=class_names, name=name, extra=extra)


def _as_samples(
    X: Any, axes: str, samples: Entry, options: Options, matlab: bool
) -> tuple[Any, dict[str, Any]]:
    """Give an array whose first axis is that of the samples the form that was asked for."""
    extra: dict[str, Any] = {"notes": []}
    first = axes[:1]
    if axes:
        X, axes = arrange(X, axes, first, options.channels, samples.channels)
    elif options.channels is not None:
        raise Refusal(
            "channels cannot be chosen in an array whose axes are not known",
            "Say with axes which axis is which, such as axes='NYXC'",
        )
    if options.sample_shape is not None:
        X, axes = unfold(X, options.sample_shape, matlab), ""
    if samples.colour is not None and (options.size is not None or options.grey is not None):
        if not isinstance(X, np.ndarray):
            remedy = "Leave out lazy and chunks"
            options.refuse(("size", "grey"), "pages that stay on disk", remedy)
        done = [fitted(one, axes[1:], samples.colour, options.grey, options.size) for one in X]
        X, axes = np.stack([page for page, _ in done]), first + done[0][1]
    elif options.grey:
        X = grey_array(X)
    if axes:
        if isinstance(X, np.ndarray) and not isinstance(X, np.memmap):
            X = np.ascontiguousarray(X)
        extra |= {"kind": kind_of(axes[1:], X.shape[1:]), "channels": list(samples.channels)}
        inner = len(samples.axes) > 3 or samples.axes[:1] != first
        if (options.axes, options.sample_axis) == (None, None) and inner and first != SAMPLES:
            shape = " × ".join(map(str, X.shape[1:]))
            extra["notes"].append(
                f"Samples are the {X.shape[0]} entries along {first} ({WORDS[first]}), each of "
                f"shape {shape}: set axes to say otherwise, with N for the samples, or name a "
                "folder of such files."
            )
    return X, extra


def check_declared(entry: Entry, options: Options) -> None:
    """Refuse an array whose declared size passes the limit, before anything is unpacked."""
    lazily = "pass lazy=True to leave it on disk, or " if entry.stays else ""
    remedy = f"If you trust the file, {lazily}raise max_bytes"
    check_fits(str(entry), entry.nbytes, options.max_bytes, remedy)


def encode_labels(values: Any, name: str) -> tuple[np.ndarray, list[str] | None]:
    """Return labels as int64, and the class names where the labels are strings."""
    values = np.asarray(values)
    if values.ndim != 1 and max(values.shape, default=0) == values.size:
        values = values.ravel()  # MATLAB keeps vectors as columns or rows
    if values.ndim != 1:
        raise Refusal(f"the labels {name!r} have shape {values.shape}", LABEL_REMEDY)
    if values.dtype.kind == "S":
        values = np.char.decode(values, "utf-8")
    if values.dtype.kind == "U":
        classes, codes = np.unique(values, return_inverse=True)
        return codes.astype(np.int64), [str(label) for label in classes]
    if values.dtype.kind == "f" and not np.array_equal(values, np.floor(values)):  # NaN too
        raise Refusal(f"the labels {name!r} are not whole numbers", LABEL_REMEDY)
    bounds = np.iinfo(np.int64)
    if values.size and not bounds.min <= values.min() <= values.max() < bounds.max:
        raise Refusal(f"the labels {name!r} do not fit into 64 bits", LABEL_REMEDY)
    return values.astype(np.int64), None


def _listing(entries: Sequence[Entry]) -> str:
    shown = ", ".join(str(entry) for entry in entries[:LISTED])
    return shown + (f" and {len(entries) - LISTED} more" if len(entries) > LISTED else "")


def _named(entries: Sequence[Entry], name: str, option: str) -> Entry:
    for entry in entries:
        if entry.name == name:
            return entry
    raise Refusal(
        f"it holds no array named {name!r}", f"Set {option} to one of these: {_listing(entries)}"
    )


def _choose_samples(entries: Sequence[Entry], options: Options) -> Entry:
    """Find the array of samples: the one named, a common name, or the only candidate."""
    if options.key is not None:
        chosen = _named(entries, options.key, "key")
    else:
        numeric = [entry for entry in entries if entry.numeric and len(entry.shape) >= 2]
        unlike = [entry for entry in numeric if not _looks_like_labels(entry)]
        candidates = {entry.name: entry for entry in unlike if entry.name != options.label_key}
        common = [candidates[name] for name in SAMPLE_NAMES if name in candidates]
        found = common[:1] or list(candidates.values()) or entries
        if not found:
            raise Refusal("it holds no arrays", "Store the samples as one numeric array")
        if len(found) > 1 and not candidates:
            raise Refusal(
                f"none of its arrays can hold samples ({_listing(entries)})",
                "Store the samples as one numeric array with at least two axes",
            )
        if len(found) > 1:
            raise Refusal(
                "it is not clear which of its arrays holds the samples",
                f"Set key to one of these: {_listing(found)}",
            )
        chosen = found[0]
    if not chosen.numeric:
        raise Refusal(
            f"{repr(chosen.name) if chosen.name else 'its array'} holds {chosen.kind}, and samples "
            "are real numbers",
            "Store the samples as an array of integers or floating-point numbers",
        )
    if len(chosen.shape) < 2 and options.sample_shape is None:
        raise Refusal(
            f"{chosen} has fewer than two axes",
            "Samples need one axis for themselves and one or more for their features",
        )
    if 0 in chosen.shape:
        raise Refusal(f"{chosen} is empty", "Check how the file was written")
    return chosen


def _is_vector(entry: Entry) -> bool:
    """Tell whether at most one axis is longer than 1; MATLAB knows no other vectors."""
    return max(entry.shape, default=0) == math.prod(entry.shape) > 0


def _looks_like_labels(entry: Entry) -> bool:
    return _is_vector(entry) and entry.name.rpartition("/")[2] in (*LABEL_NAMES, "y")


def _choose_labels(entries: Sequence[Entry], options: Options, samples: Entry) -> Entry | None:
    if options.label_key is False:
        return None
    if isinstance(options.label_key, str):
        return _named(entries, options.label_key, "label_key")
    folder, _, base = samples.name.rpartition("/")
    names = [*LABEL_NAMES, "y"] if base in ("X", "x") else LABEL_NAMES
    vectors = {entry.name: entry for entry in entries if entry is not samples and _is_vector(entry)}
    prefixed = [f"{folder}/{name}" if folder else name for name in names]
    return next((vectors[name] for name in prefixed if name in vectors), None)


def _sample_axis(
    samples: Entry, axes: str, options: Options, labels: np.ndarray | None, matlab: bool
) -> tuple[int, list[str]]:
    """Find the axis of the samples: the one named, the one as long as the labels, or a habit.

    Notes say what was taken where nobody said so and others would take another.
    """
    n_axes = len(samples.shape)
    if options.sample_axis is not None:
        if not -n_axes <= options.sample_axis < n_axes:
            raise Refusal(
                f"{samples} has no axis {options.sample_axis}",
                f"Set sample_axis between 0 and {n_axes - 1}",
            )
        return options.sample_axis % n_axes, []
    if axes:
        return axes.index(sample_letter(axes, samples.shape)), []
    habit = n_axes - 1 if matlab and n_axes > 2 else 0
    what = f"Samples are those of {samples} along axis"
    if labels is not None and labels.size in samples.shape:
        if samples.shape[habit] == labels.size:
            return habit, []
        axis = samples.shape.index(labels.size)
        return axis, [f"{what} {axis}, which is as long as the labels."]
    if habit and labels is None:
        note = f"{what} {habit}, the last, as MATLAB stacks them: "
        return habit, [f"{note}set sample_axis=0 if they are along the first."]
    return habit, []


def _load(entry: Entry, options: Options, axis: int) -> Any:
    """Read or open the samples and move their axis to the front."""
    too_large = options.lazy == "auto" and entry.stays and entry.nbytes > options.max_bytes
    if options.lazy is True or options.chunks is not None or too_large:
        if not entry.stays:
            raise Refusal(
                "this format cannot be left on disk",
                "Leave out lazy and chunks, or store the samples as .npy, HDF5 or Zarr",
            )
        return entry.lazy(axis, options.chunks)
    check_declared(entry, options)
    X = entry.load()
    native = X.dtype.newbyteorder("=")
    return np.ascontiguousarray(np.moveaxis(X, axis, 0), dtype=native)


def unfold(
    X: Any, shape: tuple[int, ...], matlab: bool = False, has: str = "a sample has {} entries"
) -> Any:
    """Give flat samples the shape asked for."""
    if math.prod(shape) != math.prod(X.shape[1:]):
        raise Refusal(
            f"{has.format(math.prod(X.shape[1:]))} and sample_shape={shape} has {math.prod(shape)}",
            "Set sample_shape so that the numbers agree",
        )
    if not matlab:
        return X.reshape((X.shape[0], *shape))
    # Column by column: unfold with the axes reversed, then turn them round.
    flat = X.transpose((0, *range(X.ndim - 1, 0, -1)))
    unfolded = flat.reshape((X.shape[0], *reversed(shape)))
    turned = unfolded.transpose((0, *range(len(shape), 0, -1)))
    return np.ascontiguousarray(turned) if isinstance(turned, np.ndarray) else turned
