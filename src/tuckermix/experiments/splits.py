"""Which samples choices may look at, and which are kept for reports.

Every default that is chosen by looking at results looks at the *tuning* part of a dataset; tables
and benchmarks report the *reporting* part, or say how much of what they use tuning has seen. Faces
are divided by persons, so that no person is in both parts; digits and the like by images; voxels as
the dataset divides itself; generated data by seed.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from tuckermix._validation import check_option

__all__ = [
    "BY_CLASSES",
    "BY_MARK",
    "BY_SAMPLES",
    "EVERYTHING",
    "GENERATED",
    "PARTS",
    "REPORTING",
    "REPORTING_ONLY",
    "TUNING",
    "TUNING_CLASSES",
    "UNSPLIT",
    "part_indices",
    "part_seed",
    "restrict",
    "seen_share",
]

TUNING, REPORTING, EVERYTHING = "tuning", "reporting", "all"
PARTS = (TUNING, REPORTING, EVERYTHING)
"""The two parts, and both together."""

TUNING_CLASSES = {"pie": 34, "orl": 20, "yaleb": 19}
"""How many persons are for tuning: half of 68, 40 and 38."""
BY_CLASSES = tuple(TUNING_CLASSES)
BY_SAMPLES = ("mnist", "cbcl", "digits")
"""Half of the images of each class are for tuning."""
BY_MARK = ("modelnet10",)
"""The dataset's own test part is for reporting, the rest for tuning."""
REPORTING_ONLY = ("coil20", "yale")
"""Never looked at when something is chosen."""
GENERATED = ("dynamic-textures", "quick-videos")
"""Drawn from a generator with a seed that :func:`part_seed` gives to no choice."""
UNSPLIT = ("samson", *(f"planted-{ways}" for ways in (2, 3, 4)))
"""Without parts: one scene, and data planted for a single curve. Records do not say how much of
them choices have seen."""

SPLIT_SEED = 1906
"""The seed of all splits. It must stay: with another one, choices would have seen both parts."""


def _is_tuning(name: str, labels: np.ndarray, is_test: np.ndarray | None) -> np.ndarray:
    """Mark the samples of the tuning part."""
    if name in BY_CLASSES:
        classes = np.unique(labels)
        chosen = np.random.default_rng(SPLIT_SEED).permutation(classes)[: TUNING_CLASSES[name]]
        return np.isin(labels, chosen)
    if name in BY_MARK:
        if is_test is None:
            raise ValueError(
                f"The split of {name!r} is the dataset's own: pass its mark is_test, which "
                "tuckermix.datasets.load returns in extra['is_test']."
            )
        return ~np.asarray(is_test, dtype=bool)
    marked = np.zeros(labels.shape[0], dtype=bool)
    if name in BY_SAMPLES:
        rng = np.random.default_rng(SPLIT_SEED)
        for label in np.unique(labels):
            members = rng.permutation(np.flatnonzero(labels == label))
            marked[members[: members.size // 2]] = True
    return marked


def _check_known(name: str) -> None:
    known = (*BY_CLASSES, *BY_SAMPLES, *BY_MARK, *REPORTING_ONLY, *GENERATED)
    check_option(name, "name", "splits", known)


def part_indices(
    name: str, part: str, labels: np.ndarray, *, is_test: np.ndarray | None = None
) -> np.ndarray:
    """Return the places of a part of a dataset.

    Parameters
    ----------
    name : str
        The dataset's name, as in :func:`tuckermix.datasets.load`.
    part : {"tuning", "reporting", "all"}
        Which part.
    labels : ndarray of shape (n_samples,)
        The classes of all samples.
    is_test : ndarray of shape (n_samples,) or None, default=None
        The dataset's own mark, for those that are divided by it.

    Returns
    -------
    indices : ndarray
        In increasing order; the two parts have nothing in common, and together everything.
    """
    check_option(part, "part", "part_indices", PARTS)
    labels = np.asarray(labels)
    if part == EVERYTHING:
        return np.arange(labels.shape[0])
    _check_known(name)
    if part == TUNING and name in (*REPORTING_ONLY, *GENERATED):
        raise ValueError(
            f"{name!r} is for reporting only, nothing may be chosen by it: tune on one of "
            f"{', '.join((*BY_CLASSES, *BY_SAMPLES, *BY_MARK))}, or on generated data with "
            "part_seed('tuning', number)."
        )
    marked = _is_tuning(name, labels, is_test)
    return np.flatnonzero(marked if part == TUNING else ~marked)


def restrict(data: Any, name: str, part: str) -> Any:
    """Cut a dataset down to one part.

    Parameters
    ----------
    data : Dataset
        What :func:`tuckermix.datasets.load` returned.
    name : str
        Its name.
    part : {"tuning", "reporting", "all"}
        Which part.

    Returns
    -------
    data : Dataset
        Its samples, labels and sample names of that part.
    """
    chosen = part_indices(name, part, data.labels, is_test=data.extra.get("is_test"))
    if part == EVERYTHING:
        return data
    return replace(
        data,
        X=data.X[chosen],
        labels=data.labels[chosen],
        names=None if data.names is None else [data.names[index] for index in chosen],
        extra={},
    )


def seen_share(
    name: str, indices: np.ndarray, labels: np.ndarray, *, is_test: np.ndarray | None = None
) -> float | None:
    """Return which share of a draw's samples belongs to the tuning part.

    Parameters
    ----------
    name : str
        The dataset's name.
    indices : ndarray of shape (n_drawn,)
        The draw, as places in the dataset.
    labels : ndarray of shape (n_samples,)
        The classes of all samples of the dataset.
    is_test : ndarray of shape (n_samples,) or None, default=None
        The dataset's own mark, for those that are divided by it.

    Returns
    -------
    share : float or None
        From 0 to 1; None for a dataset that has no split.
    """
    known = (*BY_CLASSES, *BY_SAMPLES, *BY_MARK, *REPORTING_ONLY, *GENERATED)
    if name not in known:
        return None
    return float(np.mean(_is_tuning(name, np.asarray(labels), is_test)[np.asarray(indices)]))


def part_seed(part: str, number: int) -> int:
    """Return a seed for generated data: even ones are for tuning, odd ones for reporting.

    Parameters
    ----------
    part : {"tuning", "reporting"}
        What the data are for.
    number : int
        Which of the draws, from 0.

    Returns
    -------
    seed : int
        Never the same for both parts.
    """
    check_option(part, "part", "part_seed", (TUNING, REPORTING))
    return 2 * number + (part == REPORTING)
