"""The samples that a run sees: datasets by name, their parts, draws that all methods share.

Every default that is chosen by looking at results looks at the *tuning* part of a dataset; tables
and benchmarks report the *reporting* part, or say how much of what they use tuning has seen.
``declared.toml`` says how each dataset is divided: faces by persons, so that no person is in both
parts; digits and the like by images; voxels and clips as the dataset divides itself.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Any

import numpy as np

from tuckermix import datasets
from tuckermix._records import Record
from tuckermix._validation import check_option
from tuckermix_bench.methods import add_entry, declared

if TYPE_CHECKING:
    from tuckermix_bench.tables import Row

SEED = 2015
"""The seed of all draws, together with the names of table and row and the number of the run."""
SPLIT_SEED = 1906
"""The seed of all splits. It must stay: with another one, choices would have seen both parts."""
CACHED_DATASETS = 8
"""A process keeps this many datasets: the tables take turns, and all together need 0.4 GB."""

TUNING, REPORTING, EVERYTHING = PARTS = ("tuning", "reporting", "all")
"""The two parts, and both together."""
SPLITS = ("classes", "samples", "turns", "mark", "reporting only", "")
"""How a dataset is divided: some classes are for tuning; half of the samples of each class; every
second sample of each class; those that the dataset itself does not mark as test; or none, as they
were never looked at when something was chosen. Without a split records do not say how much choices
have seen."""


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
    split : str, default=""
        How it is divided, one of `SPLITS`.
    tuning_classes : int, default=0
        How many classes are for tuning, where it is divided by classes.
    """

    name: str
    load: Callable[[Any], Any]
    scale: float = 1.0
    title: str = ""
    split: str = ""
    tuning_classes: int = 0


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
    check_option(entry.split, "split", "DatasetEntry", SPLITS)
    return add_entry(DATASETS, entry, "dataset", replace)


def seed_of(*parts: object) -> int:
    """Derive a seed from names and numbers, the same on every machine and in every process."""
    text = "\x1f".join(str(part) for part in (SEED, *parts))
    # 31 bits fit a signed integer anywhere; scikit-learn takes seeds below 2**32.
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big") >> 33


def _named(name: str, data_home: Any) -> Any:
    return datasets.load(name, data_home=data_home)


def _textures(n_classes: int, per_class: int, size: int, data_home: Any) -> Any:
    seed = seed_of("dynamic textures", n_classes, per_class, size)
    return datasets.make_dynamic_textures(
        n_classes * per_class, n_classes, shape=(size, size), n_frames=size, random_state=seed
    )


def _planted(shape: tuple[int, ...], data_home: Any) -> Any:
    """Plant ten clusters, with noise that keeps flattened samples from being separated exactly."""
    seed = seed_of("planted", len(shape) + 1)
    return datasets.make_tensor_clusters(1000, shape, 10, noise=6.0, random_state=seed)


for _name, _facts in declared("datasets").items():
    _made: Callable[[Any], Any] = partial(_named, _name)
    if "textures" in _facts:
        _made = partial(_textures, *_facts.pop("textures"))
    elif "planted" in _facts:
        _made = partial(_planted, _facts.pop("planted"))
    register_dataset(DatasetEntry(_name, _made, **_facts))


def _is_tuning(name: str, labels: np.ndarray, is_test: np.ndarray | None) -> np.ndarray:
    """Mark the samples of the tuning part."""
    entry, marked = DATASETS[name], np.zeros(labels.shape[0], dtype=bool)
    rng, classes = np.random.default_rng(SPLIT_SEED), np.unique(labels)
    if entry.split == "classes":
        marked = np.isin(labels, rng.permutation(classes)[: entry.tuning_classes])
    elif entry.split == "mark":
        if is_test is None:
            raise ValueError(
                f"The split of {name!r} is the dataset's own: pass its mark is_test, which "
                "tuckermix.datasets.load returns in extra['is_test']."
            )
        marked = ~np.asarray(is_test, dtype=bool)
    elif entry.split in ("samples", "turns"):
        for label in classes:
            members = np.flatnonzero(labels == label)
            halved = rng.permutation(members)[: members.size // 2]
            marked[halved if entry.split == "samples" else members[1::2]] = True
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
    divided = [one.name for one in DATASETS.values() if one.split]
    check_option(name, "name", "splits", divided)
    if part == TUNING and DATASETS[name].split == "reporting only":
        raise ValueError(
            f"{name!r} is for reporting only, nothing may be chosen by it: tune on another of "
            f"{', '.join(divided)}, or on generated data with part_seed('tuning', number)."
        )
    marked = _is_tuning(name, labels, is_test)
    return np.flatnonzero(marked if part == TUNING else ~marked)


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
    if name not in DATASETS or not DATASETS[name].split:
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
    known, source = np.unique(labels), f"part {row.part!r} of dataset {row.dataset!r}"
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
