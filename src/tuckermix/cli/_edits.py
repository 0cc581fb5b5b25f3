"""Corrections made by hand: what a file of edits may say, and what it changes about a model."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from types import UnionType
from typing import Any, get_args, get_origin, get_type_hints

import numpy as np

from tuckermix._array_api import to_numpy
from tuckermix._estimators import Settings
from tuckermix._records import Record
from tuckermix.cli._console import UsageError
from tuckermix.labels import VoteLabels
from tuckermix.numerics.linalg import add_parts
from tuckermix.numerics.points import NearestPoints
from tuckermix.persistence import bounded_json
from tuckermix.plots.fitted import Placed
from tuckermix.report import page_levels, page_marks
from tuckermix.selection.multiview import cluster_means
from tuckermix.selection.shared import Features
from tuckermix.summary import cluster_names, innermost


@dataclass(frozen=True)
class EditSettings(Settings):
    """How edits are read and what they weigh.

    Attributes
    ----------
    most_bytes : int
        The largest file of edits, and the memory that it may take: 100,000 moves are 10 MB.
    longest_name : int
        Letters of a cluster's name, as in the page.
    votes : int
        The votes of a picture that was moved by hand. Three of the usual fifteen, with the weights
        of the nearest, decide about its copies; those a little further off follow two of them.
    same : float
        The squared distance below which a landmark is the picture itself.
    """

    most_bytes: int = 2**28
    longest_name: int = 200
    votes: int = 3
    same: float = 1e-10


@dataclass(frozen=True)
class Edits(Record):
    """The contents of a file of edits; see :doc:`/report`. Splits come first, then merges."""

    n_clusters: int | None = None
    names: dict[int, str] = field(default_factory=dict)
    merge: list[list[int]] = field(default_factory=list)
    split: list[int] = field(default_factory=list)
    move: dict[str, int] = field(default_factory=dict)
    exclude: list[str] | None = None

    @classmethod
    def read(cls, path: Path) -> Edits:
        """Read a file of edits, which anybody may have written."""
        use = EditSettings.current()
        try:
            if path.stat().st_size > use.most_bytes:
                raise ValueError(f"it has more than {use.most_bytes} bytes")
            with path.open("rb") as stream:
                values = bounded_json(stream.read(use.most_bytes), 16 * use.most_bytes)
            return cls(**_checked(values))
        except (ValueError, RecursionError) as error:
            raise UsageError(
                f"Cannot read {path}: {str(error).rstrip('.')}. Save the edits again in the report."
            ) from error


def _checked(values: Any) -> dict[str, Any]:
    """Return the fields of edits, each of its type, or raise ValueError."""
    if not isinstance(values, dict) or type(values.get("format")) is not int:
        raise ValueError('it is no object with {"format": 1}')
    if values.pop("format") != 1:
        raise ValueError("its format is not 1, the only one that this version knows")
    kinds = get_type_hints(Edits)
    for key, value in values.items():
        if not _fits(value, kinds.get(key)):
            raise ValueError(f"its part {key[:40]!r} is not one that the report writes")
    names, longest = {}, EditSettings.current().longest_name
    for number, text in values.get("names", {}).items():
        if not (number.isascii() and number.isdigit() and len(number) < 10):
            raise ValueError(f"its 'names' have {number[:40]!r} where a number must be")
        names[int(number)] = "".join(c for c in text if c.isprintable()).strip()[:longest]
    return {**values, "names": names}


def _fits(value: Any, kind: Any) -> bool:
    """Tell whether a value of JSON is of a type such as ``dict[int, str]``, keys aside."""
    origin, inner = get_origin(kind), get_args(kind)
    if origin is UnionType:  # with None, which stands for what is not there
        return _fits(value, inner[0])
    if origin in (list, dict):
        values = value.values() if isinstance(value, dict) else value
        return isinstance(value, origin) and all(_fits(one, inner[-1]) for one in values)
    return type(value) is kind and (kind is str or 0 <= value < 10**9)


def apply_edits(
    model: Any, X: Any, at: Placed, labels: np.ndarray, *, names: list[str] | None, edits: Edits
) -> Placed:
    """Change a fitted model as edits ask.

    The tree of the page is cut at the level of the edits and its leaves are put together again.
    The landmarks get the labels of their leaves. A picture that was moved votes for its new
    cluster, with a few votes, and one that was set aside not at all.

    Parameters
    ----------
    model : estimator
        The fitted model, changed in place.
    X : array of shape (n_samples, d_1, ...)
        The samples.
    at : Placed
        What the model says of them.
    labels : ndarray of shape (n_samples,)
        Their labels so far; -1 for outliers and what was set aside.
    names : list of str or None
        The names of the samples; edits call them by their numbers where two have the same.
    edits : Edits
        The edits.

    Returns
    -------
    at : Placed
        What the model says of the samples now.
    """
    inner, Z = innermost(model), to_numpy(at.places)
    shown = np.where(labels < 0, to_numpy(at.proba).argmax(axis=1), labels)
    tree = page_levels(inner, X if at.seen is None else at.seen, shown, Z)
    group, target = _groups(tree, edits)
    found = group[tree["leaf"]]
    moved, out = _by_hand(edits, names, len(labels), target)
    if edits.exclude is not None and getattr(inner, "outliers", "keep") == "keep":
        # What was set aside before is taken back where the edits know of it no more.
        back = set(np.flatnonzero(labels < 0).tolist()) - out
        moved = {place: int(found[place]) for place in back} | moved
    called = _names_after(model, tree, group, target, edits)
    if not moved and not out and np.array_equal(group, tree["levels"][tree["chosen"]]):
        model.cluster_names_ = called
        return at
    voters, found = _voted(inner, Z, group, found, moved, out)
    # Clusters that lost all their landmarks are gone, and the others are numbered without gaps.
    kept = np.unique(voters[0].landmark_labels).tolist()
    number = {old: new for new, old in enumerate(kept)}
    place = np.array([number.get(old, -1) for old in range(int(target.max()) + 1)])
    model.cluster_names_ = {number[old]: text for old, text in called.items() if old in number}
    aside = labels < 0
    aside[list(moved)], aside[list(out)] = False, True
    voters = [_with_labels(voter, place[voter.landmark_labels]) for voter in voters]
    return set_labels(model, X, at, np.where(aside, -1, place[found]), voters)


def _by_hand(
    edits: Edits, names: list[str] | None, n_samples: int, target: np.ndarray
) -> tuple[dict[int, int], set[int]]:
    """Return the samples that were moved, with their clusters, and those that were set aside."""
    unique = names is not None and len(set(names)) == len(names)
    called = names if names is not None and unique else map(str, range(n_samples))
    who = {name: place for place, name in enumerate(called)}
    moved = {_place(who, name): _number(target, number) for name, number in edits.move.items()}
    out = {_place(who, name) for name in edits.exclude or ()}
    return {place: number for place, number in moved.items() if place not in out}, out


def _voted(
    inner: Any,
    Z: np.ndarray,
    group: np.ndarray,
    found: np.ndarray,
    moved: dict[int, int],
    out: set[int],
) -> tuple[list[VoteLabels], np.ndarray]:
    """Return labellers that vote as the edits ask, and the labels of the samples.

    Landmarks that were moved or set aside are taken away, and the moved ones vote for their
    clusters. Who would vote otherwise because of them, or for a cluster that is gone, follows.
    """
    voters = voters_of(inner)
    if not voters or not all(isinstance(voter, VoteLabels) for voter in voters):
        raise UsageError(
            "Only labels of the graph can be corrected: cluster again with --assign-labels "
            "graph. Names alone can be given to any."
        )
    plain = [_with_labels(voter, group[page_marks(inner, voter)]) for voter in voters]
    if not moved and not out:
        return plain, found
    use, parts = EditSettings.current(), split_places(Z, voters)
    places, squares = NearestPoints(_joined(plain)).find(Z[[*moved, *out]], 1)
    gone = places[squares[:, 0] <= use.same, 0]
    kept = np.setdiff1d(np.arange(len(plain[0].landmarks)), gone)
    who = np.repeat(np.array(list(moved), dtype=int), use.votes)
    ends = np.repeat(np.array(list(moved.values()), dtype=int), use.votes)
    labels = np.concatenate([plain[0].landmark_labels[kept], ends])
    if not len(labels):
        raise UsageError("These edits leave no sample in any cluster.")
    voters = []
    for voter, Y in zip(plain, parts, strict=True):
        rows = np.concatenate([voter.landmarks[kept], Y[who].astype(voter.landmarks.dtype)])
        voters.append(_with_labels(voter, labels, rows))
    old, new = _votes(plain, parts), _votes(voters, parts)
    found = np.where((old == new) & np.isin(found, labels), found, new)
    found[list(moved)] = list(moved.values())
    return voters, found


def _groups(tree: dict[str, Any], edits: Edits) -> tuple[np.ndarray, np.ndarray]:
    """Return the cluster of each leaf after splits and merges, and of each number before merges."""
    levels = tree["levels"]
    level = tree["chosen"] if edits.n_clusters is None else edits.n_clusters
    if level not in levels:
        raise UsageError(
            f"The edits are of {level} clusters, and the result has levels from {min(levels)} to "
            f"{max(levels)}: save them again in its own report."
        )
    number = np.array(levels[level])
    for torn in edits.split:
        part = np.flatnonzero(number == _number(np.arange(number.max() + 1), torn))
        cuts = (np.array(levels[count])[part] for count in sorted(levels))
        cut = next((one for one in cuts if one.min() < one.max()), None)
        if cut is None:
            raise UsageError(f"The edits split the cluster {torn}, which has no parts.")
        number[part[cut != cut.min()]] = number.max() + 1
    target = np.arange(number.max() + 1)
    for merged in edits.merge:
        ends = [_number(target, one) for one in merged]
        target[np.isin(target, ends)] = min(ends, default=0)
    return target[number], target


def _number(target: np.ndarray, number: int) -> int:
    if number >= len(target):
        raise UsageError(f"The edits name the cluster {number}, and the last is {len(target) - 1}.")
    return int(target[number])


def _place(who: dict[str, int], name: str) -> int:
    if name not in who:
        raise UsageError(f"The edits name the sample {name[:80]!r}, which is not in the result.")
    return who[name]


def _names_after(
    model: Any, tree: dict[str, Any], group: np.ndarray, target: np.ndarray, edits: Edits
) -> dict[int, str]:
    """Return names of clusters: of those whose leaves are the same, and what the edits say."""
    chosen, called = np.array(tree["levels"][tree["chosen"]]), {}
    for number, text in cluster_names(model).items():
        ends = np.unique(group[chosen == number])
        if len(ends) == 1 and np.array_equal(group == ends[0], chosen == number):
            called[int(ends[0])] = text
    given: dict[int, str] = {}
    for number, text in sorted(edits.names.items()):
        now = _number(target, number)
        given[now] = given.get(now) or text
    return {number: text for number, text in (called | given).items() if text}


def voters_of(inner: Any) -> list[Any]:
    """Return the labellers of a fitted clustering, one for each view."""
    if hasattr(inner, "_voters_"):
        return list(inner._voters_)
    labeller = getattr(getattr(inner, "_model_", None), "labeller", None)
    return [] if labeller is None else [labeller]


def split_places(Z: np.ndarray, voters: list[Any]) -> list[np.ndarray]:
    """Take places of samples in several views apart again, see `Placed`."""
    ends = np.cumsum([voter.landmarks.shape[1] for voter in voters])[:-1]
    return [part * len(voters) ** 0.5 for part in np.split(Z, ends, axis=1)]


def _with_labels(voter: VoteLabels, labels: np.ndarray, rows: Any = None) -> VoteLabels:
    """Return a labeller with other labels of its landmarks, and with other landmarks."""
    rows = voter.landmarks if rows is None else rows
    return replace(
        voter,
        landmarks=rows,
        landmark_labels=labels,
        n_clusters=int(labels.max(initial=-1)) + 1,
        n_neighbors=min(voter.n_neighbors, max(1, len(rows))),
    )


def _joined(voters: list[Any]) -> np.ndarray:
    """Return landmarks in all views beside each other, as `Placed` has samples."""
    shares = [to_numpy(voter.landmarks) / len(voters) ** 0.5 for voter in voters]
    return np.concatenate(shares, axis=1)


def _votes(voters: list[VoteLabels], parts: list[np.ndarray]) -> np.ndarray:
    """Return the labels that landmarks vote for."""
    return sum(v.predict_proba(Y) for v, Y in zip(voters, parts, strict=True)).argmax(axis=1)


def set_labels(
    model: Any, X: Any, at: Placed, labels: np.ndarray, voters: list[Any] | None = None
) -> Placed:
    """Give a fitted model the labels of its samples, and labellers; return what it says now."""
    inner, seen = innermost(model), X if at.seen is None else at.seen
    voters = voters_of(inner) if voters is None else voters
    Z = to_numpy(at.places)
    n_clusters = voters[0].n_clusters if voters else int(inner.n_clusters)
    if hasattr(inner, "_voters_"):
        inner._voters_ = voters
        inner.centroids_ = cluster_means(seen, labels, n_clusters)
    elif voters:
        inner._model_ = fitted = replace(inner._model_, labeller=voters[0])
        count = partial(fitted.cluster_sums, n_clusters=n_clusters)
        sums, counts = inner._samples(seen, "predict").reduce(count, add_parts, labels)
        inner.centroids_ = fitted.lift(sums / np.clip(counts, 1.0, None)[:, None])
    inner.n_clusters, inner.labels_ = n_clusters, labels
    if all(voter.landmarks is not None for voter in voters):
        inner._nearest_, inner._tree_ = _nearest(Z, labels, voters), None
    if hasattr(inner, "memberships_") and len(inner.memberships_) != len(labels):
        inner.memberships_ = inner.transform(seen)
    if hasattr(model, "steps"):
        X, model = model[:-1].transform(X), model[-1]
    if hasattr(model, "best_estimator_"):
        model.n_clusters_, model.labels_ = n_clusters, labels
        if model._means_ is not None:
            model._means_ = cluster_means(X, labels, n_clusters)
    if hasattr(inner, "_voters_"):
        return replace(at, proba=inner._proba(split_places(Z, voters), Features(seen)))
    return replace(at, proba=inner.predict_proba(seen))


def _nearest(Z: np.ndarray, labels: np.ndarray, voters: list[Any]) -> np.ndarray:
    """Return for each sample the nearest landmark of its label, -1 for samples without one."""
    rows, held = _joined(voters), to_numpy(voters[0].landmark_labels)
    nearest = np.full(len(labels), -1)
    for label in np.unique(labels[labels >= 0]):
        some, own = np.flatnonzero(held == label), np.flatnonzero(labels == label)
        if len(some):
            nearest[own] = some[NearestPoints(rows[some]).find(Z[own], 1)[0][:, 0]]
    return nearest
