"""Which samples a run sees: datasets by name, their parts, draws that all methods share.

Every default that is chosen by looking at results looks at the *tuning* part of a dataset; tables
and benchmarks report the *reporting* part, or say how much of what they use tuning has seen. Faces
are divided by persons, so that no person is in both parts; digits and the like by images; voxels as
the dataset divides itself; generated data by seed.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Any

import numpy as np

from tuckermix import datasets
from tuckermix._records import Record
from tuckermix._validation import check_option
from tuckermix_bench.methods import add_entry

if TYPE_CHECKING:
    from tuckermix_bench.tables import Row

__all__ = [
    "DATASETS",
    "PARTS",
    "SEED",
    "DatasetEntry",
    "Draw",
    "draw",
    "draw_indices",
    "part_indices",
    "part_seed",
    "register_dataset",
    "restrict",
    "seed_of",
    "seen_share",
]


@dataclass(frozen=True)
class DatasetEntry(Record):
    """A dataset that rows can name.

    Attributes
    ----------
    name : str
        The name.
    load : callable
        ``load(data_home)`` returns a record with ``X`` and ``labels``; it raises FileNotFoundError
        with directions where the files are missing. For several processes it must be importable.
    scale : float, default=1.0
        Values are divided by this.
    title : str, default=""
        The name for people.
    """

    name: str
    load: Callable[[Any], Any]
    scale: float = 1.0
    title: str = ""


@dataclass(frozen=True)
class Draw(Record):
    """The samples of one run.

    Attributes
    ----------
    X : ndarray of shape (n_samples, d_1, ...)
        The samples, scaled, float64.
    labels : ndarray of shape (n_samples,)
        Their classes.
    indices : ndarray of shape (n_samples,)
        Their places in the dataset.
    seen : float or None
        Which share of them belongs to the part of the dataset that choices look at; None for a
        dataset without such a part.
    """

    X: np.ndarray
    labels: np.ndarray
    indices: np.ndarray
    seen: float | None = None


SEED = 2015
"""The seed of all draws, together with the names of table and row and the number of the run."""

EIGHT_BITS = 255.0
"""Grey values are divided by their largest possible value, for all methods alike."""
DIGITS_LEVELS = 16.0
"""scikit-learn's digits run from 0 to 16."""
CACHED_DATASETS = 8
"""A process keeps this many datasets: the tables take turns, and all together need 0.4 GB."""
SEED_BITS = 31
"""scikit-learn takes seeds below 2**32; 31 bits also fit a signed integer of any database."""

DATASETS: dict[str, DatasetEntry] = {}
"""The datasets by name."""


def register_dataset(entry: DatasetEntry, *, replace: bool = False) -> DatasetEntry:
    """Make a dataset known by its name.

    Parameters
    ----------
    entry : DatasetEntry
        The dataset.
    replace : bool, default=False
        Whether it may take the place of another of that name.

    Returns
    -------
    entry : object
        The same.
    """
    return add_entry(DATASETS, entry, "dataset", replace)


def _named(name: str, data_home: Any) -> Any:
    return datasets.load(name, data_home=data_home)


def _textures(n_classes: int, per_class: int, size: int, data_home: Any) -> Any:
    return datasets.make_dynamic_textures(
        n_samples=n_classes * per_class,
        n_classes=n_classes,
        shape=(size, size),
        n_frames=size,
        random_state=seed_of("dynamic textures", n_classes, per_class, size),
    )


def _planted(ways: int, data_home: Any) -> Any:
    return datasets.make_tensor_clusters(
        PLANTED_CLUSTERS * PLANTED_POOL,
        PLANTED_SHAPES[ways],
        PLANTED_CLUSTERS,
        noise=PLANTED_NOISE,
        random_state=seed_of("planted", ways),
    )


PLANTED_SHAPES = {2: (1024,), 3: (32, 32), 4: (16, 8, 8)}
"""Samples of 1024 entries, with which the samples make an array of 2, 3 or 4 ways."""
PLANTED_CLUSTERS, PLANTED_POOL, PLANTED_NOISE = 10, 100, 6.0
"""Planted clusters, samples of each from which the runs draw, and noise: so much that flattened
samples are not separated exactly any more."""
TEXTURE_CLASSES, TEXTURE_VIDEOS, TEXTURE_SIZE = 36, 100, 20
"""Classes and videos a class as in DynTex++; the side is 20, not 50, to fit small machines."""
QUICK_CLASSES, QUICK_VIDEOS, QUICK_SIZE = 4, 20, 8

for _name, _scale, _title in (
    ("pie", EIGHT_BITS, "CMU PIE, pose 27"),
    ("cbcl", EIGHT_BITS, "CBCL faces"),
    ("mnist", EIGHT_BITS, "MNIST"),
    ("orl", EIGHT_BITS, "ORL"),
    ("yaleb", EIGHT_BITS, "Extended Yale B"),
    ("coil20", EIGHT_BITS, "COIL-20"),
    ("yale", EIGHT_BITS, "Yale"),
    ("cifar10", EIGHT_BITS, "CIFAR-10"),
    ("clothing", EIGHT_BITS, "clothes"),
    ("signs", EIGHT_BITS, "hand signs"),
    ("fruits", EIGHT_BITS, "fruit"),
    ("dyntex-clips", EIGHT_BITS, "DynTex clips cut as in DynTex++"),
    ("modelnet10", 1.0, "ModelNet10 voxels"),
    ("samson", 1.0, "Samson scene, spectra of pixels"),
    ("digits", DIGITS_LEVELS, "scikit-learn's digits"),
):
    register_dataset(DatasetEntry(_name, partial(_named, _name), _scale, _title))
for _name, _make, _title in (
    (
        "dynamic-textures",
        partial(_textures, TEXTURE_CLASSES, TEXTURE_VIDEOS, TEXTURE_SIZE),
        "dynamic-texture stand-in",
    ),
    (
        "quick-videos",
        partial(_textures, QUICK_CLASSES, QUICK_VIDEOS, QUICK_SIZE),
        "small synthetic videos",
    ),
    *((f"planted-{ways}", partial(_planted, ways), f"planted, {ways}-way") for ways in (2, 3, 4)),
):
    register_dataset(DatasetEntry(_name, _make, 1.0, _title))


def seed_of(*parts: object) -> int:
    """Derive a seed from names and numbers, the same on every machine and in every process."""
    text = "\x1f".join(str(part) for part in (SEED, *parts))
    digest = hashlib.sha256(text.encode()).digest()
    return int.from_bytes(digest[:8], "big") >> (64 - SEED_BITS)


TUNING, REPORTING, EVERYTHING = "tuning", "reporting", "all"
PARTS = (TUNING, REPORTING, EVERYTHING)
"""The two parts, and both together."""

TUNING_CLASSES = {"pie": 34, "orl": 20, "yaleb": 19}
"""How many persons are for tuning: half of 68, 40 and 38."""
BY_CLASSES = tuple(TUNING_CLASSES)
BY_SAMPLES = ("mnist", "cbcl", "digits")
"""Half of the images of each class are for tuning."""
BY_TURNS = ("cifar10", "clothing", "signs", "fruits")
"""Of each class the second, fourth, ... sample is for tuning."""
BY_MARK = ("modelnet10", "dyntex-clips")
"""The dataset's own test part is for reporting, the rest for tuning."""
REPORTING_ONLY = ("coil20", "yale")
"""Never looked at when something is chosen."""
GENERATED = ("dynamic-textures", "quick-videos")
"""Drawn from a generator with a seed that :func:`part_seed` gives to no choice."""
SPLIT = (*BY_CLASSES, *BY_SAMPLES, *BY_TURNS, *BY_MARK, *REPORTING_ONLY, *GENERATED)
UNSPLIT = ("samson", *(f"planted-{ways}" for ways in PLANTED_SHAPES))
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
    if name in BY_TURNS:
        for label in np.unique(labels):
            marked[np.flatnonzero(labels == label)[1::2]] = True
    return marked


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
    check_option(name, "name", "splits", SPLIT)
    if part == TUNING and name in (*REPORTING_ONLY, *GENERATED):
        raise ValueError(
            f"{name!r} is for reporting only, nothing may be chosen by it: tune on one of "
            f"{', '.join((*BY_CLASSES, *BY_SAMPLES, *BY_TURNS, *BY_MARK))}, or on generated data "
            "with part_seed('tuning', number)."
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
    if name not in SPLIT:
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


def draw_indices(
    row: Row, experiment: str, run: int, labels: np.ndarray, *, allowed: np.ndarray | None = None
) -> np.ndarray:
    """Choose the samples of a run.

    The choice depends on the names of experiment and row (or the row's `draw`) and on the number of
    the run alone: all methods see the same samples, whatever else is computed.

    Parameters
    ----------
    row : Row
        What to draw.
    experiment : str
        The table's name.
    run : int
        The number of the run.
    labels : ndarray of shape (n_samples,)
        The classes of all samples of the dataset.
    allowed : ndarray of shape (n_allowed,) or None, default=None
        The places from which to draw; None means all.

    Returns
    -------
    indices : ndarray of shape (n_drawn,)
        Places in the dataset, in random order.
    """
    if allowed is not None:
        return allowed[draw_indices(row, experiment, run, labels[allowed])]
    name = row.draw or row.name
    if "/" in name:
        experiment, name = name.split("/")
    source = f"dataset {row.dataset!r}"
    if row.part != EVERYTHING:
        source = f"the {row.part} part of {source}"
    known = np.unique(labels)
    if row.classes is not None:
        classes = np.asarray(row.classes)
    elif row.n_classes is None:
        classes = known
    else:
        if row.n_classes > known.size:
            raise ValueError(
                f"Row {row.name!r} of {experiment} draws {row.n_classes} classes, but {source} has "
                f"{known.size}: lower n_classes."
            )
        which = run if row.redraw == "classes" else "once"
        rng = np.random.default_rng(seed_of(experiment, name, "classes", which))
        classes = np.sort(rng.choice(known, row.n_classes, replace=False))
    which = "once" if row.redraw == "nothing" else run
    rng = np.random.default_rng(seed_of(experiment, name, "samples", which))
    chosen = []
    for label in classes:
        members = np.flatnonzero(labels == label)
        if row.per_class is not None:
            if row.per_class > members.size:
                raise ValueError(
                    f"Row {row.name!r} of {experiment} draws {row.per_class} samples of class "
                    f"{label}, but {source} has {members.size}: lower per_class."
                )
            members = rng.choice(members, row.per_class, replace=False)
        chosen.append(members)
    return rng.permutation(np.concatenate(chosen))


@lru_cache(maxsize=CACHED_DATASETS)
def _load(load: Callable[[Any], Any], data_home: str | None) -> Any:
    return load(data_home)


def changed(X: np.ndarray, change: Mapping[str, float], seed: int) -> np.ndarray:
    """Change the samples of a draw.

    Parameters
    ----------
    X : ndarray of shape (n_samples, d_1, ...)
        The samples.
    change : mapping
        "side": images are averaged, or interpolated, to so many pixels a side; "noise": normal
        noise of so many standard deviations of all entries is added; "missing": this share of the
        entries, chosen at random, becomes NaN. They happen in this order.
    seed : int
        Determines noise and gaps.

    Returns
    -------
    X : ndarray of shape (n_samples, d_1, ...)
        The changed samples.
    """
    rng = np.random.default_rng(seed)
    if "side" in change:
        X = _resized(X, int(change["side"]))
    if "noise" in change:
        X = X + change["noise"] * X.std() * rng.standard_normal(X.shape)
    if "missing" in change:
        X = np.where(rng.random(X.shape) < change["missing"], np.nan, X)
    return X


def _resized(X: np.ndarray, side: int) -> np.ndarray:
    """Bring images to another size: means of whole blocks where it divides, lines between else."""
    if X.shape[1] % side == 0 and X.shape[2] % side == 0:
        return X.reshape(len(X), side, X.shape[1] // side, side, -1).mean(axis=(2, 4))
    from scipy.ndimage import zoom

    # Pixels are areas, so that the picture stays where it is.
    return zoom(
        X, (1, side / X.shape[1], side / X.shape[2]), order=1, grid_mode=True, mode="nearest"
    )


def draw(
    row: Row, experiment: str, run: int, *, entry: DatasetEntry, data_home: str | None = None
) -> Draw:
    """Load a row's dataset and draw the samples of a run, scaled to [0, 1].

    Parameters
    ----------
    row : Row
        What to draw.
    experiment : str
        The table's name.
    run : int
        The number of the run.
    entry : DatasetEntry
        The dataset.
    data_home : str or None, default=None
        The folder of the files.

    Returns
    -------
    drawn : Draw
        Samples, classes and places.
    """
    dataset = _load(entry.load, data_home)
    if dataset.labels is None:
        raise ValueError(f"Dataset {entry.name!r} has no labels: draws by class need them.")
    labels = np.asarray(dataset.labels)
    is_test = getattr(dataset, "extra", {}).get("is_test")
    allowed = part_indices(entry.name, row.part, labels, is_test=is_test)
    indices = draw_indices(row, experiment, run, labels, allowed=allowed)
    X = np.asarray(dataset.X[indices], dtype=np.float64) / entry.scale
    if row.change:
        which = "once" if row.redraw == "nothing" else run
        X = changed(X, row.change, seed_of(experiment, row.draw or row.name, "change", which))
    seen = seen_share(entry.name, indices, labels, is_test=is_test)
    return Draw(X, labels[indices], indices, seen)
