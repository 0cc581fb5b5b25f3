"""The samples of the report as plain values: clusters at every level, places, pictures."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import zip_longest
from pathlib import Path
from typing import Any

import numpy as np
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components
from scipy.spatial import cKDTree
from sklearn.neighbors import NearestNeighbors

from tuckermix._array_api import is_dask, to_numpy
from tuckermix._records import Record
from tuckermix.plots.fitted import as_fitted, even_subsample, typical_members
from tuckermix.plots.layout import neighbor_map
from tuckermix.plots.pictures import picture_kind
from tuckermix.report import _images
from tuckermix.report._images import FILMS, PageSettings, Pictures
from tuckermix.summary import sizes_text

NOUNS = {"image": "picture", "colour": "picture", "signal": "sample", "channels": "sample"}
"""Words for a sample; others are called by their kind."""

CAPTIONS = {
    "volume": "The middle slices of {} voxels, one along each axis",
    "channels": "Channels of {}, some of them",
}
"""Words on pictures that show several views of a sample."""


@dataclass(frozen=True)
class Subject(Record):
    """The contents of a report: a fitted model, its samples, and what is known of them."""

    model: Any
    X: Any
    labels: np.ndarray
    proba: np.ndarray
    names: list[str]
    places: Any
    """Where the samples lie in the learned subspace."""
    truth: Any = None
    kind: str = "auto"
    images: Any = None
    """Images to show in place of `X`, where `X` holds features of images."""
    outliers: Any = None
    """Which samples have the label -1: outliers, or what was set aside by hand."""
    named: bool = False
    """Whether the names were given; others follow from the places of the samples."""
    cluster_names: dict[int, str] = field(default_factory=dict)
    """Names of clusters."""
    unlike: Callable[[], Any] | None = None
    """Returns the outlier scores of the samples, see `Placed`."""


def embedding(Z: np.ndarray) -> np.ndarray:
    """Return points in few dimensions as bytes: near enough to tell which samples are alike."""
    n, width = Z.shape
    some = Z[even_subsample(n, 5000)].astype(float)
    mean = some.mean(axis=0)
    _, _, axes = np.linalg.svd(some - mean, full_matrices=False)
    few = (Z - mean) @ axes[: min(16 if n <= 20_000 else 8, width)].T
    reach = np.abs(few).max() or 1.0
    return np.rint(127.5 * (few / reach + 1)).astype(np.uint8)


def positions(Z: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """Place samples on the map, as whole numbers; beyond `placed`, beside their neighbours."""
    chosen = even_subsample(len(Z), PageSettings.current().placed)
    laid = neighbor_map(Z[chosen], labels[chosen])
    if len(chosen) < len(Z):
        few = embedding(Z).astype(float)
        _, near = cKDTree(few[chosen]).query(few, 3)
        rest = laid[near].mean(axis=1)
        rest[chosen] = laid
        laid = rest
    low, high = laid.min(axis=0), laid.max(axis=0)
    # Axes of a map mean nothing, so each may have its own scale, up to a factor of two.
    factors = np.array([4000.0, 2400.0]) / np.maximum(high - low, 1e-12)
    return np.rint((laid - low) * np.minimum(factors, 2 * factors.min())).astype(int)


def levels_of(model: Any, X: Any, labels: np.ndarray, few: np.ndarray) -> dict[str, Any]:
    """Return the levels of the tree of clusters, as labels of the finest clusters of the page.

    Parameters
    ----------
    model : estimator
        The fitted model; without a tree there is one level.
    X : array of shape (n_samples, d_1, ...)
        The samples.
    labels : array of shape (n_samples,)
        The labels at the chosen level.
    few : array of shape (n_samples, d)
        Where samples lie, to find a leaf for outliers and for samples that were moved.

    Returns
    -------
    tree : dict
        "leaf" of each sample; "levels": for each number of clusters the label of each leaf;
        "chosen"; "marked": levels whose last split comes back in parts of the samples.
    """
    n_clusters, tree = int(labels.max()) + 1, tree_of(model)
    if tree is None or len(np.unique(tree.clusters)) < n_clusters:
        levels = {n_clusters: list(range(n_clusters))}
        return {"leaf": labels, "levels": levels, "chosen": n_clusters, "marked": []}
    chosen, finest = int(tree.n_clusters), finest_level(tree)
    leaves = to_numpy(tree.leaves)
    bottom = tree.cut(finest)
    _, first = np.unique(bottom, return_index=True)
    if len(leaves) == len(labels):
        leaf = np.where(leaves < 0, -1, bottom[leaves])
    else:
        leaf = to_numpy(model.predict(as_fitted(model, X), n_clusters=finest))
    levels = {count: tree.cut(count)[first].tolist() for count in range(min(2, chosen), finest + 1)}
    table = np.array(levels[chosen])
    wrong = (leaf < 0) | (table[leaf] != labels)
    for cluster in np.unique(labels[wrong]):
        asking, sure = wrong & (labels == cluster), ~wrong & (labels == cluster)
        leaf[asking] = np.flatnonzero(table == cluster)[0]
        if sure.any():
            leaf[asking] = leaf[sure][cKDTree(few[sure]).query(few[asking])[1]]
    score = {count: float(tree.stability[tree.n_leaves - count]) for count in levels if count > 1}
    steps = {count: own - score.get(count + 1, 0.0) for count, own in score.items() if own > 0.7}
    marked = sorted(sorted(steps, key=steps.__getitem__)[-5:])
    return {"leaf": leaf, "levels": levels, "chosen": chosen, "marked": marked}


def page_levels(model: Any, X: Any, labels: np.ndarray, Z: np.ndarray) -> dict[str, Any]:
    """Return the levels of the page whose samples lie at `Z`, see `levels_of`."""
    return levels_of(model, X, labels, embedding(Z))


def page_marks(model: Any, labeller: Any) -> np.ndarray:
    """Return the leaf of the page to which each landmark of a labeller belongs."""
    tree = tree_of(model)
    if tree is None:
        return to_numpy(labeller.landmark_labels)
    return tree.cut(finest_level(tree))[tree.landmarks]


def finest_level(tree: Any) -> int:
    """Return the number of clusters to which the page goes down."""
    return min(tree.n_leaves, max(PageSettings.current().levels, int(tree.n_clusters) + 20))


def tree_of(model: Any) -> Any:
    """Return the tree of clusters of a model, or None where it has none."""
    try:
        tree = model.tree_
    except (AttributeError, NotImplementedError, ValueError):
        return None
    return None if is_dask(tree.leaves) or tree.n_leaves < 2 else tree


def near_duplicates(Z: np.ndarray) -> list[list[int]]:
    """Return groups of samples that are far closer to each other than neighbours usually are."""
    if len(Z) < 3 or len(Z) > PageSettings.current().placed:
        return []
    distance, other = (one[:, 0] for one in NearestNeighbors(n_neighbors=1).fit(Z).kneighbors())
    close = np.flatnonzero(distance <= 0.15 * np.median(distance))
    if len(close) > len(Z) // 4:  # most samples have a copy: that says nothing of any of them
        close = close[distance[close] == 0]
    links = coo_array((np.ones(len(close)), (close, other[close])), shape=(len(Z), len(Z)))
    _, group = connected_components(links, directed=False)
    found: dict[int, list[int]] = {}
    for place in np.unique(np.concatenate([close, other[close]])).tolist():
        found.setdefault(int(group[place]), []).append(place)
    return list(found.values())[:200]


def unusual(subject: Subject, outliers: np.ndarray) -> list[int]:
    """Return the samples that fit no cluster well, the strangest first; `outliers` are known."""
    n = len(subject.labels)
    if len(outliers) or n > PageSettings.current().placed or subject.unlike is None:
        return outliers.tolist()
    try:
        scores = to_numpy(subject.unlike())
    except (ValueError, AttributeError):  # without landmarks there are no scores
        return []
    order = np.argsort(-scores, kind="stable")[: max(3, n // 50)]
    return order[scores[order] > 1.5].tolist()


def content(subject: Subject, files: Sequence[Path | None] = ()) -> dict[str, Any]:
    """Gather what the page shows of the samples, as plain values.

    Parameters
    ----------
    subject : Subject
        What the report is about.
    files : sequence of (Path or None), default=()
        The picture file of each sample, where there is one.

    Returns
    -------
    content : dict
        "data": what the script knows of each listed sample, in few bytes. "first": the first
        pictures of each cluster. "pictures": those of other samples. "films": frames and slices.
        "sheet": thumbnails.
    """
    use = PageSettings.current()
    labels, images = subject.labels, subject.X if subject.images is None else subject.images
    kind, shape = picture_kind(tuple(images.shape[1:]), subject.kind), sizes_text(images.shape[1:])
    pictures = Pictures(images, kind, files if len(labels) <= use.originals else ())
    listed = even_subsample(len(labels), use.listed)
    sure = subject.proba[np.arange(len(labels)), labels]
    Z = to_numpy(subject.places)
    few = embedding(Z)
    tree = levels_of(subject.model, subject.X, labels, few)
    first = _first_seen(few, labels, sure)
    marked = even_subsample(len(listed), use.placed)
    # The first of all clusters come before the second of any: there may not be room for all.
    ranks = zip_longest(*([*typical, *doubtful] for _, typical, doubtful in first))
    shown = [place for rank in ranks for place in rank if place is not None]
    films = _films(pictures, shown)
    room = use.picture_bytes - sum(map(len, films.values()))
    held, thumbs, left = _drawn(pictures, shown, listed[marked], room, is_dask(images))
    views = pictures.views(np.arange(1), use.frames, whole=True)[0]
    sheet = _images.sprite_sheet([thumbs[int(place)] for place in listed[marked]])
    ratios = [round(100 * thumb.width / thumb.height) for thumb in thumbs.values()]
    place_of = np.full(len(labels), -1)
    place_of[listed] = np.arange(len(listed))
    where: list[int] = place_of.tolist()
    truth = subject.truth
    classes, kinds = (None, None) if truth is None else np.unique(truth, return_inverse=True)
    spread = positions(Z, labels)[listed]
    beyond = np.flatnonzero(subject.outliers if subject.outliers is not None else ())
    outside = [where[place] for place in beyond.tolist() if where[place] >= 0]
    # If the model does not tell outliers apart, -1 is the label of what was set aside.
    told_apart = getattr(subject.model, "outliers", "keep") == "label"
    strange = unusual(subject, beyond if told_apart else beyond[:0])
    groups = []
    for cluster, typical, doubtful in first:
        members = [
            {
                "place": where[place],
                "name": subject.names[place],
                "address": held[place],
                "doubtful": place in doubtful,
            }
            for place in (*typical, *doubtful)
            if place in held
        ]
        called, size = subject.cluster_names.get(cluster, ""), int((labels == cluster).sum())
        groups.append({"cluster": cluster, "name": called, "size": size, "pictures": members})
    data = {
        "total": len(labels),
        "samples": None if len(listed) == len(labels) else listed.tolist(),
        "names": [subject.names[index] for index in listed] if subject.named else None,
        "leaf": tree["leaf"][listed].tolist(),
        "levels": tree["levels"],
        "chosen": tree["chosen"],
        "steady": tree["marked"],
        "called": {str(key): name for key, name in subject.cluster_names.items()},
        "sure": np.rint(1000 * sure[listed]).astype(int).tolist(),
        "near": base64.b64encode(np.ascontiguousarray(few[listed]).tobytes()).decode(),
        "at": spread.reshape(-1).tolist(),
        "twins": [[where[one] for one in group] for group in near_duplicates(Z)],
        "strange": [where[one] for one in strange if where[one] >= 0],
        "out": outside if told_apart else [],
        "aside": [] if told_apart else outside,
        "classes": None if classes is None else [str(value) for value in classes],
        "truth": None if kinds is None else kinds.reshape(-1)[listed].tolist(),
        "marks": None if len(marked) == len(listed) else marked.tolist(),
        "sheet": [*sheet.tile, sheet.columns, sheet.rows],
        "sizes": sheet.sizes if len(set(sheet.sizes)) > 1 else sheet.sizes[:1],
        "ratios": ratios if len(set(ratios)) > 1 else ratios[:1],
        "kind": kind,
        "noun": NOUNS.get(kind, kind),
        "caption": CAPTIONS.get(kind, "").format(shape),
        "frames": len(views) if kind in FILMS else 0,
        "fine": not pictures.still and max(views.shape[1:3]) <= use.tiny,
    }
    on_page = set(shown)
    data["id"] = hashlib.sha256(json.dumps([data["names"], data["leaf"]]).encode()).hexdigest()[:16]
    return {
        "data": data,
        "first": groups,
        "pictures": {where[one]: text for one, text in held.items() if one not in on_page},
        "films": {where[place]: text for place, text in films.items()},
        "sheet": sheet.address,
        "n_listed": len(listed),
        # The others can be shown from their files, if these are pictures.
        "left": left + len(labels) - len(marked) if pictures.still and any(files) else 0,
    }


def _first_seen(
    few: np.ndarray, labels: np.ndarray, sure: np.ndarray
) -> list[tuple[int, list[int], list[int]]]:
    """Return each cluster with its typical and its doubtful members, the largest cluster first.

    This order is that of the script: by the share in thousandths, then by the distance from the
    middle, then by the number.
    """
    use, found = PageSettings.current(), []
    listed = even_subsample(len(labels), use.listed)
    points, own, sizes = few[listed].astype(float), labels[listed], np.bincount(labels)
    middles = np.zeros((len(sizes), points.shape[1]))
    np.add.at(middles, own, points)
    middles /= np.maximum(np.bincount(own, minlength=len(sizes)), 1)[:, None]
    away = np.linalg.norm(points - middles[own], axis=1).round(3)
    shares = np.rint(1000 * sure[listed])
    sides = typical_members(own, shares, away, len(sizes), use.first_seen)
    for cluster in np.argsort(-sizes, kind="stable").tolist():
        typical, rest = (listed[side[cluster]].tolist() for side in sides)
        doubtful = [place for place in rest if sure[place] < 0.6][: use.first_doubtful]
        if typical:
            found.append((cluster, typical[: use.first_seen - len(doubtful)], doubtful))
    return found


def _drawn(
    pictures: Pictures, first: list[int], marked: np.ndarray, room: int, slow: bool
) -> tuple[dict[int, str], dict[int, Any], int]:
    """Draw samples, each of them once.

    Returns
    -------
    held : dict of int to str
        Pictures as addresses, those of `first` in front.
    thumbs : dict of int to image
        Small pictures of those of the map, in their order.
    left : int
        Pictures for which there was no room.
    """
    use, left, whole = PageSettings.current(), 0, room
    held: dict[int, str] = {}
    thumbs: dict[int, Any] = dict.fromkeys(marked.tolist())
    others = np.random.default_rng(0).permutation(np.setdiff1d(marked, first)).tolist()
    room = int(use.first_share * whole)
    for indices, sides in ((first, use.first_sides), (others, use.other_sides)):
        if not indices:
            continue
        side = _images.fitting_side(pictures, indices, room, sides)
        for index, picture in zip(indices, pictures.drawn(indices, side), strict=True):
            if index in thumbs:
                thumbs[index] = _images.thumbnail(picture, use.sheet_side)
            if sides is use.other_sides and _images.is_tiny(picture):
                continue  # the sheet has each of its pixels
            if room <= 0 or (sides is use.other_sides and slow):
                left += 1
                continue
            held[index] = _images.address(picture)
            room -= len(held[index])
        room = whole - sum(map(len, held.values()))
    return held, thumbs, left


def _films(pictures: Pictures, indices: list[int]) -> dict[int, str]:
    """Return the frames of videos and the slices of volumes, of as many as there is room for."""
    use, films = PageSettings.current(), dict[int, str]()
    if pictures.kind not in FILMS:
        return films
    room = int(use.film_share * use.picture_bytes)
    side = _images.fitting_side(pictures, indices, room, use.film_sides, whole=True)
    for index, picture in zip(indices, pictures.drawn(indices, side, whole=True), strict=True):
        film = _images.address(picture)
        room -= len(film)
        if room < 0:
            break
        films[index] = film
    return films
