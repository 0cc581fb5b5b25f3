"""The list of the report: each sample with its name, its cluster and, if it fits, its picture."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import quote

import numpy as np

from tuckermix._array_api import blocks, is_dask
from tuckermix._records import Record
from tuckermix.plots.fitted import even_subsample, rows_of
from tuckermix.plots.pictures import views
from tuckermix.report import _images
from tuckermix.report._content import MAX_MARKS, Subject, shown_samples
from tuckermix.summary import sizes_text


@dataclass(frozen=True)
class Listing(Record):
    """Which samples are listed, in which order."""

    samples: np.ndarray  # array of shape (n_listed,): the samples, cluster by cluster
    # Array of shape (n_marks,): the places in `samples` of those that the map shows, in rising
    # order.
    marks: np.ndarray

    def places(self, samples: Any) -> list[int]:
        """Return where samples stand in the list."""
        where = {sample: place for place, sample in enumerate(self.samples.tolist())}
        return [where[int(sample)] for sample in samples]


MAX_LISTED = 100_000
"""The list holds no more samples than this: some ten bytes each, and labels.csv has them all."""

SURE_STEPS = 1000
"""Shares are stored as whole numbers of this part."""

BATCH_BYTES = 8_000_000
"""So much is read at once for pictures in full: little is wasted where the budget ends."""

TINY_SIDE = 28
"""Digits and icons: the sheet has each of their pixels, so that there is no more to show."""


def listing(labels: np.ndarray, always: Any = ()) -> Listing:
    """Choose the samples of the list, `always` among them, and those of the map.

    Parameters
    ----------
    labels : array of shape (n_samples,)
        The cluster of each sample.
    always : sequence of int, default=()
        Samples that are listed however many there are.

    Returns
    -------
    chosen : Listing
        At most `MAX_LISTED` samples beside `always`, evenly taken, and `MAX_MARKS` of them.
    """
    evenly = even_subsample(len(labels), MAX_LISTED)
    listed = np.union1d(evenly, np.asarray(always, dtype=int))
    shown = evenly[even_subsample(len(evenly), MAX_MARKS)]
    listed = listed[np.argsort(labels[listed], kind="stable")]
    return Listing(listed, np.flatnonzero(np.isin(listed, shown)))


def listing_data(
    subject: Subject, chosen: Listing, named: bool, base: str | None = None, missing: Any = ()
) -> dict[str, Any]:
    """Return what the script of the page knows of each listed sample, in few bytes.

    Parameters
    ----------
    subject : Subject
        What the report is about.
    chosen : Listing
        The samples.
    named : bool
        Whether the names were given; others follow from the place of the sample.
    base : str, default=None
        The folder of the files as an address, where there are files.
    missing : sequence of int, default=()
        Samples without a file there.

    Returns
    -------
    data : dict
        Values that JSON can hold.
    """
    samples, truth, outliers = chosen.samples, subject.truth, subject.outliers
    labels = subject.labels[samples]
    starts = np.flatnonzero(np.diff(labels, prepend=labels[:1] - 1))
    counts = np.diff(starts, append=len(labels))
    sure = subject.proba[samples, labels]
    classes, kinds = (None, None) if truth is None else np.unique(truth, return_inverse=True)
    return {
        "runs": [labels[starts].tolist(), counts.tolist()],
        "names": [subject.names[index] for index in samples] if named else None,
        "ids": None if named else samples.tolist(),
        "sure": np.rint(SURE_STEPS * sure).astype(int).tolist(),
        "classes": None if classes is None else [str(value) for value in classes],
        "truth": None if kinds is None else kinds.reshape(-1)[samples].tolist(),
        "marks": None if len(chosen.marks) == len(samples) else chosen.marks.tolist(),
        "outliers": [] if outliers is None else np.flatnonzero(outliers[samples]).tolist(),
        "played": _played(subject),
        "caption": _caption(subject),
        "base": base,
        "unlinked": chosen.places(np.intersect1d(missing, samples)) if len(missing) else [],
    }


def _played(subject: Subject) -> list[int]:
    """Return the number of frames in a picture in full and the gap between them; none if still."""
    if subject.shown_kind != "video":
        return []
    first = rows_of(subject.shown, np.arange(1))
    count = views(first, subject.kind, n_frames=_images.PLAYED_FRAMES).shape[1]
    return [count, _images.FULL_GAP]


def _caption(subject: Subject) -> str:
    """Say what is seen where a picture in full has several views; nothing where it is an image."""
    shape = sizes_text(subject.shown.shape[1:])
    return {
        "volume": f"The middle slices of {shape} voxels, one along each axis",
        "channels": f"Channels of {shape}, some of them",
    }.get(subject.shown_kind, "")


def linked(
    names: Any, folder: str | os.PathLike[str] | None, page: str | os.PathLike[str] | None
) -> tuple[str | None, list[int]]:
    """Find the files that names stand for, as seen from the page.

    Parameters
    ----------
    names : sequence of str or None
        The names of the samples: paths below `folder`.
    folder : path or None
        Where the files lie.
    page : path or None
        The folder of the page: links are relative to it, so that both can move together. None
        writes the whole path.

    Returns
    -------
    base : str or None
        The address of the folder, with a slash at its end; None where no name is a file.
    missing : list of int
        The samples whose name is no file there, or one that no address can hold.
    """
    if folder is None or names is None:
        return None, []
    root = Path(folder)
    missing = [index for index, name in enumerate(names) if not _is_file(root, str(name))]
    if len(missing) == len(names):
        return None, []
    base = root.resolve().as_uri().rstrip("/")
    if page is not None:
        with suppress(ValueError):  # another drive
            relative = os.path.relpath(root.resolve(), Path(page).resolve())
            base = quote(os.fsencode(relative.replace(os.sep, "/")))
    return f"{base}/", missing


def _is_file(root: Path, name: str) -> bool:
    """Say whether a name is a file below `root` that an address of plain text can name."""
    try:
        name.encode()
        return (root / name).is_file()
    except (OSError, ValueError):
        return False


def full_pictures(
    subject: Subject, chosen: Listing, first: Any, *, budget: int = _images.FULL_BYTES
) -> dict[int, str]:
    """Return pictures in full, by their place in the list, that take no more than `budget` bytes.

    Those of `first` come first; then samples from everywhere, so that each cluster has its share.

    Parameters
    ----------
    subject : Subject
        What the report is about.
    chosen : Listing
        The samples of the list.
    first : sequence of int
        Samples that people look at first.
    budget : int, default=FULL_BYTES
        The most bytes of all the addresses together.

    Returns
    -------
    pictures : dict of int to str
        Data addresses.
    """
    X, limits = shown_samples(subject)
    pictures: dict[int, str] = {}
    shape = views(rows_of(X, np.arange(1)), subject.kind, limits=limits).shape
    frames = {"n_frames": _images.PLAYED_FRAMES} if subject.shown_kind == "video" else {}
    draw = partial(views, kind=subject.kind, limits=limits, **frames)
    if shape[1] == 1 and max(shape[2:4]) <= TINY_SIDE:
        return pictures
    order = np.asarray(first, dtype=int)
    if not is_dask(X):  # there each sample from elsewhere costs the reading of a whole block
        others = np.random.default_rng(0).permutation(np.setdiff1d(chosen.samples, order))
        order = np.concatenate([order, others])
    places = chosen.places(order)
    spent = 0
    for place, address in zip(places, _addresses(X, order, draw), strict=False):
        spent += len(address)
        if spent > budget:
            break
        pictures[place] = address
    return pictures


def _addresses(
    X: Any, order: np.ndarray, draw: Callable[[np.ndarray], np.ndarray]
) -> Iterator[str]:
    """Yield the picture of each sample in full, reading some at a time, as they are asked for."""
    for part in blocks(len(order), 8 * int(np.prod(X.shape[1:])), BATCH_BYTES):
        for several in draw(rows_of(X, order[part])):
            yield _images.full_address(several)
