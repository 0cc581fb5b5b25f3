"""From points or mixing weights to labels: four ways, one interface.

`fit_labels` learns a labeller from samples (or landmarks); its `predict_proba` serves training and
new samples alike, so that labels, predictions and soft labels always agree. The ways are declared
in `LABELLINGS`; the labellers are records that renumber and store themselves.
"""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.exceptions import ConvergenceWarning

from tuckermix._array_api import (
    Array,
    asarray_like,
    blocks,
    device,
    double,
    epsilon,
    get_namespace,
    is_numpy,
    take_rows,
    to_numpy,
)
from tuckermix._estimators import Settings, declare
from tuckermix._names import ARGMAX, GRAPH, MEMBERSHIPS, SUBSPACE
from tuckermix._records import Record
from tuckermix._threads import in_threads, one_blas_thread
from tuckermix._validation import Rules, check_integer, check_option, check_real, check_stored
from tuckermix.labels.graph import COPY_POWER, distinct_rows, graph_partition, rank_weights
from tuckermix.numerics.points import MANY_QUERIES, NearestPoints, kmeans, nearest_alike


@dataclass(frozen=True)
class LabelSettings(Settings):
    """How labels are learned.

    Attributes
    ----------
    faint : float
        What a label without any vote counts as: nothing is impossible.
    max_raises : int
        Rounds, per component, in which components without a sample are raised. Few are ever needed.
    clear : int
        A raised component exceeds the others by this many times the rounding of the rows at least:
        less would be a tie again in soft labels, which have their type. Distances to centres count
        as equal within as many times their own rounding.
    told_apart : float
        Centres nearer to each other than this part of their size are one: the distances of samples
        to them come from products, whose rounding is the square of a tenth of it.
    least_raise : float
        A raised component exceeds the others by this part where the rounding is finer.
    """

    faint: float = 0.0001
    max_raises: int = 20
    clear: int = 8
    told_apart: float = 1e-07
    least_raise: float = 1e-09


@declare
class GraphLabels(BaseEstimator):
    """Options of labels from the graph, for ``TuckerClustering(assign_labels=GraphLabels(...))``.

    Parameters
    ----------
    n_neighbors : int, default=15
        The number of neighbours in the graph and in votes.
    ridge_edge : float, default=4.0
        Where the weights of directions fall to a half: at direction ``ridge_edge * n_clusters``.
        See :doc:`/labels`.
    ridge_power : float, default=1.0
        The power to which these weights are raised: 1 compares what ridge regression predicts for
        samples, 0.5 takes its hat matrix for their products, 0 whitens all directions alike.

    Examples
    --------
    >>> from tuckermix import TuckerClustering
    >>> from tuckermix.labels import GraphLabels
    >>> model = TuckerClustering(3, assign_labels=GraphLabels(n_neighbors=8))
    >>> model.set_params(assign_labels__n_neighbors=10).assign_labels
    GraphLabels(n_neighbors=10)
    """

    n_neighbors: int = 15
    ridge_edge: float = 4.0
    ridge_power: float = 1.0

    _rules: ClassVar[Rules] = {
        "n_neighbors": check_integer,
        "ridge_edge": check_real,
        "ridge_power": check_real,
    }


class Labeller(Record, ABC):
    """A rule that gives samples their labels: a record that renumbers and stores itself.

    Subclasses are frozen dataclasses whose fields are arrays, numbers and strings.

    Attributes
    ----------
    kind : str
        The name under which it is stored.
    uses : {"points", "weights"}
        What it looks at: the points at which a model places samples, or their mixing weights.
    by_label : tuple of str
        Fields with one row for each label, which are renumbered with the labels.
    has_landmarks : bool
        Whether landmarks vote, so that outlier scores may compare samples with them.
    landmarks : array of shape (n_landmarks, n_features) or None
        The rows that it was learned from; None where it keeps none.
    landmark_labels : array of shape (n_landmarks,) or None
        Their labels.
    """

    kind: ClassVar[str]
    uses: str
    by_label: ClassVar[tuple[str, ...]] = ()
    has_landmarks: ClassVar[bool] = False
    landmarks: Array | None
    landmark_labels: Array | None

    @abstractmethod
    def predict_proba(self, rows: Array) -> Array:
        """Return soft labels of rows.

        Parameters
        ----------
        rows : array of shape (n_samples, n_features)
            Points or mixing weights, see `uses`.

        Returns
        -------
        P : array of shape (n_samples, n_clusters)
            Rows that sum to 1; the label is the place of the largest entry.
        """

    def renumbered(self, order: np.ndarray) -> Self:
        """Return the same labeller with label k in place of the old label ``order[k]``."""
        changed = {name: take_rows(getattr(self, name), order) for name in self.by_label}
        held = getattr(self, "landmark_labels", None)
        if held is not None:
            changed["landmark_labels"] = get_namespace(held).take(
                asarray_like(np.argsort(order), held), held, axis=0
            )
        other: Any = replace(self, **changed)  # type: ignore[type-var]
        if "nearest" in vars(self):
            vars(other)["nearest"] = vars(self)["nearest"]
        return other

    @abstractmethod
    def check(self, n_features: int, n_clusters: int) -> None:
        """Raise where the fields, which a file may have made up, do not fit together.

        Parameters
        ----------
        n_features : int
            The width of the rows that it will be asked about.
        n_clusters : int
            The number of labels that it is to give.
        """

    def assign(self, rows: Array) -> tuple[Array, Array]:
        """Return the labels of rows, and for each the nearest landmark of that label.

        Parameters
        ----------
        rows : array of shape (n_samples, n_features)
            See `predict_proba`.

        Returns
        -------
        labels, nearest : arrays of shape (n_samples,)
            Labels, and places among the landmarks; -1 where there are no landmarks.
        """
        xp = get_namespace(rows)
        labels = xp.argmax(self.predict_proba(rows), axis=1)
        landmarks: Any = getattr(self, "landmarks", None)
        if landmarks is None:
            return labels, xp.full_like(labels, -1)
        return labels, nearest_alike(rows, labels, landmarks, to_numpy(self.landmark_labels))

    def ready(self) -> None:
        """Prepare what `predict_proba` needs, once and not by every worker."""

    def to_arrays(self) -> dict[str, Any]:
        """Return the fields by name, from which `from_arrays` makes the same labeller."""
        return self.to_dict()

    @classmethod
    def from_arrays(cls, arrays: dict[str, Any]) -> Labeller:
        """Make a labeller from what `to_arrays` returned."""
        return cls(**arrays)


@dataclass(frozen=True)
class VoteLabels(Labeller):
    """Rank-weighted votes of the nearest landmarks.

    ``p_k(z) = sum of exp(-6 (r - 1) / n) over the ranks r ≤ n whose landmark has label k``,
    divided by the sum of all weights. A sample that is itself a landmark has the first vote.

    Attributes
    ----------
    landmarks : array of shape (n_landmarks, n_features)
        Rows of Z, no two of them equal.
    landmark_labels : array of shape (n_landmarks,)
        Their labels.
    n_clusters : int
        The number of labels.
    n_neighbors : int
        The number n of votes. Smaller than the neighbourhood of the graph where that many votes
        would leave a small cluster without any sample.
    knots : array of shape (2, n_knots) or None, default=None
        How probable it is that an independent fit agrees with a vote, as scores and probabilities,
        see `tuckermix.labels.calibration`; None leaves votes as they are.
    """

    landmarks: Array
    landmark_labels: Array
    n_clusters: int
    n_neighbors: int
    knots: Array | None = None

    kind = "graph"
    uses = "points"
    has_landmarks = True

    def predict_proba(self, rows: Array) -> Array:
        """Return the share of the votes of each label, see `Labeller.predict_proba`."""
        votes = self.count_votes(self.find_voters(rows))
        return votes if self.knots is None else calibrated(votes, self.scores(votes), self.knots)

    def find_voters(self, rows: Array) -> Array:
        """Return the landmarks nearest to each row, of shape (n_samples, n_votes)."""
        # One more than vote: which of several at the same distance comes last is then a matter of
        # their order, and not of rounding, which differs with what else is compared meanwhile.
        wanted = min(self.n_neighbors + 1, int(self.landmarks.shape[0]))
        indices, _ = self.nearest.find(rows, wanted, at_once=MANY_QUERIES)
        return indices[:, : self.n_neighbors]

    def assign(self, rows: Array) -> tuple[Array, Array]:
        """Return labels and nearest landmarks of these labels, see `Labeller.assign`."""
        voters = self.find_voters(rows)
        labels = get_namespace(voters).argmax(self.count_votes(voters), axis=1)
        return labels, first_voter([voters], labels, self.landmark_labels)

    @cached_property
    def nearest(self) -> NearestPoints:
        """The landmarks, prepared for many blocks of samples."""
        return NearestPoints(self.landmarks)

    def ready(self) -> None:
        """Prepare the landmarks, see `Labeller.ready`."""
        _ = self.nearest

    def __getstate__(self) -> dict[str, Any]:
        return self.to_dict()  # without what can be made again

    def scores(self, votes: Array) -> Array:
        """Return the largest vote as a part of the largest that a cluster of its size can get.

        A cluster with fewer landmarks than there are votes never wins all of them; what it can win
        at most is the weight of as many nearest neighbours as it has landmarks.
        """
        return relative_votes(asarray_like(votes, self.landmarks), self.attainable())

    def attainable(self) -> np.ndarray:
        """Return the largest vote that each cluster can get, see `scores`."""
        sizes = np.bincount(to_numpy(self.landmark_labels), minlength=self.n_clusters)
        weights = rank_weights(self.n_neighbors)
        return np.cumsum(weights / weights.sum())[np.clip(sizes, 1, self.n_neighbors) - 1]

    def scores_of_landmarks(self) -> np.ndarray:
        """Return the scores of the landmarks, each without its own vote: as if it were new."""
        if self.landmarks.shape[0] < 2:
            return np.ones(1)
        return to_numpy(self.scores(self.votes_of_others(self.landmarks)))

    def votes_of_others(self, rows: Array) -> Array:
        """Return votes as `predict_proba` counts them, but none of a landmark on itself.

        Parameters
        ----------
        rows : array of shape (n_samples, n_features)
            Points, some of them landmarks.

        Returns
        -------
        votes : array of shape (n_samples, n_clusters)
            Rows that sum to 1.
        """
        count = min(self.n_neighbors, int(self.landmarks.shape[0]) - 1)
        if count < 1:
            return self.count_votes(self.nearest.find(rows, 1)[0])
        indices, squares = self.nearest.find(rows, count + 1)
        own = squares[:, :1] <= epsilon(rows) ** (2 * COPY_POWER)
        return self.count_votes(get_namespace(rows).where(own, indices[:, 1:], indices[:, :-1]))

    def check(self, n_features: int, n_clusters: int) -> None:
        """Raise where the fields do not fit together, see `Labeller.check`."""
        if self.landmarks is None:
            raise ValueError("its labeller has no landmarks")
        _check_landmarks(self, n_features, n_clusters)
        if self.n_clusters != n_clusters:
            raise ValueError(f"its labeller has {self.n_clusters!r} labels, and it {n_clusters}")
        n_landmarks = len(self.landmarks)
        if check_integer(self.n_neighbors, "n_neighbors", "VoteLabels") > n_landmarks:
            raise ValueError(f"{self.n_neighbors} of {n_landmarks} landmarks cannot vote")
        if self.knots is not None:
            check_knots(self.knots)

    def count_votes(self, indices: Array) -> Array:
        """Return the shares of the labels of landmarks `indices` (n_samples, n_votes)."""
        labels, dtype = self.landmark_labels, self.landmarks.dtype
        xp = get_namespace(labels)
        n_votes = int(indices.shape[1])
        weights = rank_weights(n_votes)
        weights = weights / weights.sum()
        names = xp.arange(self.n_clusters, dtype=xp.int64, device=device(labels))
        parts = []
        for cut in blocks(int(indices.shape[0]), 6 * n_votes * self.n_clusters):
            votes = xp.take(labels, xp.reshape(indices[cut, :], (-1,)), axis=0)
            votes = xp.reshape(votes, (-1, n_votes))
            if is_numpy(votes):
                n_rows = len(votes)
                places = votes + self.n_clusters * np.arange(n_rows)[:, None]
                each = np.broadcast_to(weights, votes.shape).ravel()
                shares = np.bincount(places.ravel(), each, n_rows * self.n_clusters)
                shares = shares.reshape(n_rows, self.n_clusters).astype(dtype)
            else:  # the standard cannot add to places that occur several times
                hits = xp.astype(votes[:, :, None] == names, dtype)
                shares = xp.sum(hits * asarray_like(weights, hits)[:, None], axis=1)
            parts.append(shares / xp.sum(shares, axis=1, keepdims=True))
        return xp.concat(parts, axis=0)


def first_voter(voters: Sequence[Array], labels: Array, landmark_labels: Array) -> Array:
    """Return the landmark with most votes among those of the label of each sample.

    Parameters
    ----------
    voters : sequence of arrays of shape (n_samples, n_votes)
        The landmarks that vote on each sample, nearest first, in one view or in several.
    labels : array of shape (n_samples,)
        The label that they give.
    landmark_labels : array of shape (n_landmarks,)
        The labels of landmarks.

    Returns
    -------
    nearest : array of shape (n_samples,)
        Places among the landmarks.
    """
    xp = get_namespace(labels)
    weights = [rank_weights(int(some.shape[1])) for some in voters]
    weight = asarray_like(np.concatenate([w / w.sum() for w in weights]), voters[0], xp.float64)
    every = xp.concat(list(voters), axis=1)
    n_votes, found = int(every.shape[1]), []
    for cut in blocks(int(every.shape[0]), 9 * n_votes**2):
        some = every[cut, :]
        own = xp.take(landmark_labels, xp.reshape(some, (-1,)), axis=0)
        total = xp.broadcast_to(weight, some.shape)
        if len(voters) > 1:
            same = some[:, :, None] == some[:, None, :]
            total = xp.sum(xp.where(same, weight, 0.0), axis=2)
        total = xp.where(xp.reshape(own, some.shape) == labels[cut][:, None], total, -1.0)
        best = xp.argmax(total, axis=1)
        found.append(xp.take_along_axis(some, best[:, None], axis=1)[:, 0])
    return xp.concat(found, axis=0)


def relative_votes(votes: Array, attainable: np.ndarray) -> Array:
    """Return the largest vote of each row as a part of what its label can get at most.

    Parameters
    ----------
    votes : array of shape (n_samples, n_clusters)
        Rows that sum to 1.
    attainable : ndarray of shape (n_clusters,)
        The largest vote that each label can get.

    Returns
    -------
    scores : array of shape (n_samples,)
        From 0 to 1.
    """
    xp = get_namespace(votes)
    most = xp.take(asarray_like(attainable, votes), xp.argmax(votes, axis=1), axis=0)
    return xp.clip(xp.max(votes, axis=1) / most, 0.0, 1.0)


def calibrated(votes: Array, scores: Array, knots: Array) -> Array:
    """Turn votes into the probabilities that an independent fit gives each label.

    The largest vote becomes the probability p of its score. The rest goes to the other labels in
    proportion to their votes, none of them nothing, and more evenly where one would exceed p.

    Parameters
    ----------
    votes : array of shape (n_samples, n_clusters)
        Rows that sum to 1.
    scores : array of shape (n_samples,)
        What the largest vote of each row is, from 0 to 1.
    knots : array of shape (2, n_knots)
        Scores and probabilities, see `tuckermix.labels.calibration`.

    Returns
    -------
    P : array of shape (n_samples, n_clusters)
        Rows that sum to 1, the largest entry where it was, no entry 0.
    """
    use = LabelSettings.current()
    xp, n_clusters = get_namespace(votes), int(votes.shape[1])
    if n_clusters == 1:
        return votes
    at, values = to_numpy(knots)
    p = asarray_like(np.interp(to_numpy(scores), at, values), votes, dtype=xp.float64)[:, None]
    names = xp.arange(n_clusters, device=device(votes))
    first = xp.argmax(votes, axis=1)[:, None] == names[None, :]
    others = xp.where(first, 0.0, double(votes) + use.faint)
    others = others / xp.sum(others, axis=1, keepdims=True)
    # Mix with even shares until the largest of the others is below p, by a margin.
    even = 1.0 / (n_clusters - 1)
    largest = xp.max(others, axis=1, keepdims=True)
    allowed = (1.0 - use.faint) * p / (1.0 - p)
    excess = xp.where(largest > even, largest - even, 1.0)
    mix = xp.clip((largest - allowed) / excess, 0.0, 1.0)
    shares = (1.0 - p) * xp.where(first, 0.0, (1.0 - mix) * others + mix * even)
    return xp.astype(xp.where(first, p, shares), votes.dtype)


def check_knots(knots: Any) -> None:
    """Raise where knots, which a file may have made up, are not valid."""
    at, values = check_stored(knots, "knots", (2, None))
    inside = np.all((values > 0) & (values < 1)) and np.all(np.diff(values) >= 0)
    if not inside or np.any(np.diff(at) <= 0):
        raise ValueError("knots must be rising scores and probabilities between 0 and 1")


@dataclass(frozen=True)
class CenterLabels(Labeller):
    """The nearest of the cluster means, with Gaussian soft labels.

    ``p_k(x) ∝ exp(-|x - c_k|² / (2 s))`` with s the mean squared distance of the fitted samples
    to their centres, per dimension.

    Attributes
    ----------
    centers : array of shape (n_clusters, n_features)
        The means, float64; NaN for labels that no sample has, because there are fewer distinct
        samples than labels.
    scale : float
        The variance s; 0 where every sample is its own centre, and soft labels are 0 and 1.
    uses : {"points", "weights"}
        What is compared with the centres.
    landmarks, landmark_labels : arrays or None, default=None
        See `Labeller`.
    """

    centers: Array
    scale: float
    uses: str
    landmarks: Array | None = None
    landmark_labels: Array | None = None

    kind = "center"
    by_label = ("centers",)

    def predict_proba(self, rows: Array) -> Array:
        """Return the soft labels of rows, see `Labeller.predict_proba`."""
        use = LabelSettings.current()
        xp = get_namespace(rows, self.centers)
        absent = xp.isnan(self.centers[:, 0])
        center = self.centers[0, :]  # the largest cluster, which is never absent
        centers = xp.where(absent[:, None], 0.0, self.centers - center)
        squares = xp.where(absent, xp.inf, xp.sum(centers * centers, axis=1))
        largest = xp.max(xp.where(absent, 0.0, squares))
        names = xp.arange(int(centers.shape[0]), device=device(rows))
        parts = []
        for cut in blocks(int(rows.shape[0]), 8 * (3 * int(centers.shape[0]) + int(rows.shape[1]))):
            products = 2.0 * xp.matmul(double(rows[cut, :]) - center, centers.T)
            scores = squares[None, :] - products
            gaps = scores - xp.min(scores, axis=1, keepdims=True)
            # Centres that rounding alone tells apart are equally near, and the first has the
            # sample: the numbers of the clusters enter the rounding, and must not enter the labels.
            rounding = use.clear * epsilon(products) * (largest + xp.max(xp.abs(products), axis=1))
            nearest = xp.argmax(xp.astype(gaps <= rounding[:, None], products.dtype), axis=1)
            sharp = self.scale <= 0
            shares = xp.zeros_like(gaps) if sharp else xp.exp(-gaps / (2.0 * self.scale))
            shares = xp.where(nearest[:, None] == names[None, :], 1.0, shares)
            parts.append(xp.astype(shares / xp.sum(shares, axis=1, keepdims=True), rows.dtype))
        return xp.concat(parts, axis=0)

    def check(self, n_features: int, n_clusters: int) -> None:
        """Raise where the fields do not fit together, see `Labeller.check`."""
        centers = check_stored(self.centers, "centers", (n_clusters, n_features), finite=False)
        absent = np.isnan(centers).all(axis=1)
        # The first cluster is the largest; one that has no sample has no centre at all.
        if absent[0] or not np.isfinite(centers[~absent]).all():
            raise ValueError("centers holds numbers that are not finite")
        _check_landmarks(self, n_features, n_clusters)
        check_real(self.scale, "scale", "CenterLabels")
        check_option(self.uses, "uses", "CenterLabels", ("points", "weights"))

    @classmethod
    def from_arrays(cls, arrays: dict[str, Any]) -> CenterLabels:
        """Make a labeller from what `to_arrays` returned; version 0.1.0 stored a number."""
        if "on" in arrays:
            on = {1: "points", 2: "weights"}[int(arrays["on"])]
            return cls(arrays["centers"], float(arrays["scale"]), on)
        return cls(**arrays)


@dataclass(frozen=True)
class ArgmaxLabels(Labeller):
    """The component with the largest membership.

    ``p_k(u) ∝ s_k u_{order(k)}``. The factors s are 1, save for components that are nobody's
    largest: they are raised until they are somebody's.

    Attributes
    ----------
    order : array of shape (n_clusters,)
        The component that each label stands for, int64.
    scale : array of shape (n_clusters,)
        The factors s, float64; 0 for labels that have no component.
    landmarks, landmark_labels : arrays or None, default=None
        See `Labeller`.
    """

    order: Array
    scale: Array
    landmarks: Array | None = None
    landmark_labels: Array | None = None

    kind = "argmax"
    by_label = ("order", "scale")
    uses = "weights"

    def predict_proba(self, rows: Array) -> Array:
        """Return the scaled weights in the order of the labels, see `Labeller.predict_proba`."""
        xp = get_namespace(rows, self.order)
        shares = double(xp.take(rows, self.order, axis=1)) * self.scale[None, :]
        return xp.astype(shares / xp.sum(shares, axis=1, keepdims=True), rows.dtype)

    def check(self, n_features: int, n_clusters: int) -> None:
        """Raise where the fields do not fit together, see `Labeller.check`."""
        order = check_stored(self.order, "order", (n_clusters,), kind="i")
        scale = check_stored(self.scale, "scale", (n_clusters,))
        if order.min() < 0 or order.max() >= n_features:
            raise ValueError(f"order must lie between 0 and {n_features - 1}")
        _check_landmarks(self, n_features, n_clusters)
        used = order[scale > 0]
        if scale.min() < 0 or sorted(used) != list(range(n_features)):
            raise ValueError("each component must be one label, with a scale above 0")


def _check_landmarks(labeller: Labeller, n_features: int, n_clusters: int) -> None:
    """Raise where landmarks and their labels, which a file may have made up, do not fit."""
    if labeller.landmarks is None and labeller.landmark_labels is None:
        return
    landmarks = check_stored(labeller.landmarks, "landmarks", (None, n_features))
    held = check_stored(labeller.landmark_labels, "landmark_labels", (len(landmarks),), kind="i")
    if held.min() < 0 or held.max() >= n_clusters:
        raise ValueError(f"landmark_labels must lie between 0 and {n_clusters - 1}")


class Learned(NamedTuple):
    """A labeller and the labels of the rows that it learned from.

    Attributes
    ----------
    labeller : Labeller
        What labels these and other rows.
    labels : ndarray of shape (n_samples,)
        The labels that it gives to the rows.
    voters : array of shape (n_samples, n_votes) or None, default=None
        The landmarks that vote on each of the rows, where that is known.
    """

    labeller: Labeller
    labels: np.ndarray
    voters: Array | None = None


def _fit_graph(
    rows: Array,
    n_clusters: int,
    *,
    n_neighbors: int,
    n_init: int,
    rng: np.random.Generator,
    cuts: Sequence[slice] | None,
) -> Learned:
    """Partition the distinct samples: many copies of one must not fill its neighbourhood."""
    xp = get_namespace(rows)
    n_samples = int(rows.shape[0])
    member = np.arange(n_samples)
    while True:
        size = int(rows.shape[0])
        count = min(n_neighbors, size - 1)
        nearest = NearestPoints(rows)
        if cuts is not None and size == n_samples:
            # Sought as `VoteLabels` seeks the voters of a block, so that it finds the same.
            find = partial(nearest.find, n_neighbors=count + 1, at_once=MANY_QUERIES)
            found: list[tuple[Array, Array]] = []
            in_threads(find, [rows[cut, :] for cut in cuts], rows, found.append)
            indices, squares = (xp.concat(parts, axis=0) for parts in zip(*found, strict=True))
            # The sample itself goes last; among many copies it may be missing.
            own = xp.arange(size, dtype=xp.int64, device=device(rows))[:, None]
            order = xp.argsort(xp.astype(indices == own, xp.int8), axis=1, stable=True)[:, :count]
            indices = xp.take_along_axis(indices, order, axis=1)
            squares = xp.take_along_axis(squares, order, axis=1)
        else:
            indices, squares = nearest.find(rows, count, exclude_self=True)
        first, copies = distinct_rows(to_numpy(indices), to_numpy(squares), epsilon(rows))
        member = copies[member]
        if len(first) == size:
            break
        rows = take_rows(rows, first)
    labels = graph_partition([rows], [(indices, squares)], n_clusters, n_init=n_init, rng=rng)
    copied = nearest if size < n_samples else None
    labeller, won, voters = voting_labeller(rows, labels, indices, n_clusters, copied)
    vars(labeller)["nearest"] = nearest
    # Otherwise `predict_proba` may find other voters.
    same = cuts is not None and size == n_samples and labeller.n_neighbors == max(1, count)
    return Learned(labeller, won[member], voters if same else None)


def voting_labeller(
    rows: Array,
    labels: np.ndarray,
    indices: Array,
    n_clusters: int,
    nearest: NearestPoints | None = None,
) -> tuple[VoteLabels, np.ndarray, Array]:
    """Let as many landmarks vote as leaves every label to at least one of them.

    Votes smooth the labels, and a cluster much smaller than the neighbourhood would be outvoted on
    its own ground. The number of votes is halved until no label is lost; a single vote loses none.

    Parameters
    ----------
    rows : array of shape (n_landmarks, n_features)
        The landmarks, no two of them equal.
    labels : ndarray of shape (n_landmarks,)
        Their labels.
    indices : array of shape (n_landmarks, n_neighbors)
        Their nearest neighbours, themselves excluded.
    n_clusters : int
        The number of labels.
    nearest : NearestPoints or None, default=None
        The landmarks, prepared, where samples have copies: voters are then sought as a prediction
        seeks them. Of landmarks at the same distance rounding may list others.

    Returns
    -------
    labeller : VoteLabels
        The labeller.
    won : ndarray of shape (n_landmarks,)
        The labels that it gives to the landmarks.
    voters : array of shape (n_landmarks, n_votes)
        The landmarks that vote on each of them.
    """
    xp = get_namespace(rows)
    held = asarray_like(labels, rows, dtype=xp.int64)
    own = xp.arange(len(labels), dtype=xp.int64, device=device(rows))[:, None]
    voters = xp.concat([own, asarray_like(indices, rows, dtype=xp.int64)], axis=1)
    wanted = len(np.unique(labels))
    n_votes = max(1, indices.shape[1])
    while True:
        labeller = VoteLabels(rows, held, n_clusters, n_votes)
        if nearest is not None:
            vars(labeller)["nearest"] = nearest
            voters = labeller.find_voters(rows)
        won = to_numpy(xp.argmax(labeller.count_votes(voters[:, :n_votes]), axis=1))
        if n_votes == 1 or len(np.unique(won)) == wanted:
            return labeller, won, voters[:, :n_votes]
        n_votes //= 2


def _fit_centers(
    rows: Array, n_clusters: int, *, n_init: int, rng: np.random.Generator, uses: str, **others: Any
) -> Learned:
    """Take the means of k-means as clusters."""
    result = kmeans(rows, n_clusters, n_init=n_init, rng=rng)
    centers = np.array(to_numpy(result.centers))
    # Which of two equal centres is nearer is a matter of rounding: one of them has to go.
    gaps = np.linalg.norm(centers[:, None, :] - centers[None, :, :], axis=2)
    size = np.abs(centers).max(initial=0.0)
    equal = gaps <= max(LabelSettings.current().told_apart, epsilon(rows) ** COPY_POWER) * size
    centers[np.triu(equal, 1).any(axis=0)] = np.nan
    scale = result.inertia / (int(rows.shape[0]) * max(1, int(rows.shape[1])))
    labeller = CenterLabels(asarray_like(centers, result.centers), scale, uses)
    return _with_landmarks(labeller, rows)


def _with_landmarks(labeller: Labeller, rows: Array) -> Learned:
    """Let a labeller keep the rows that it was learned from, and the labels that it gives them."""
    labels = get_namespace(rows).argmax(labeller.predict_proba(rows), axis=1)
    known: Any = replace(labeller, landmarks=rows, landmark_labels=labels)  # type: ignore[type-var]
    return Learned(known, to_numpy(labels))


def _fit_argmax(rows: Array, n_clusters: int, **options: Any) -> Learned:
    """Take components as clusters, and raise those that nobody has as the largest.

    Where there are fewer components than clusters, one has no weight in any sample, or the only
    samples of one are those of another, the largest weight cannot give every label: k-means on the
    weights does, as far as there are distinct samples.
    """
    use = LabelSettings.current()
    xp = get_namespace(rows)
    n_components = int(rows.shape[1])
    if n_components > n_clusters:
        raise ValueError(
            f"assign_labels='argmax' needs n_components={n_components} <= n_clusters={n_clusters}: "
            "set n_components, or use assign_labels='memberships'."
        )
    weights = double(rows)
    if n_components < n_clusters or not np.all(to_numpy(xp.max(weights, axis=0)) > 0):
        return _fit_centers(rows, n_clusters, uses="weights", **options)
    scale = np.ones(n_components)
    margin = max(use.least_raise, use.clear * epsilon(rows))
    for _ in range(use.max_raises * n_components):
        scaled = weights * asarray_like(scale, weights)
        owner = to_numpy(xp.argmax(scaled, axis=1))
        empty = np.flatnonzero(np.bincount(owner, minlength=n_components) == 0)
        if len(empty) == 0:
            break
        name = int(empty[0])
        # The least factor that makes the component the largest of some sample, and a bit more.
        own = weights[:, name]
        some = own > 0
        ratios = xp.where(some, xp.max(scaled, axis=1) / xp.where(some, own, 1.0), xp.inf)
        scale[name] = float(xp.min(ratios)) * (1 + margin)
    labeller = ArgmaxLabels(
        order=asarray_like(np.arange(n_components), rows, dtype=xp.int64),
        scale=asarray_like(scale, weights),
    )
    learned = _with_landmarks(labeller, rows)
    if len(np.unique(learned.labels)) < n_clusters:
        other = _fit_centers(rows, n_clusters, uses="weights", **options)
        if len(np.unique(other.labels)) > len(np.unique(learned.labels)):
            return other
    return learned


@dataclass(frozen=True)
class Labelling(Record):
    """Requirements of a way of labelling.

    Attributes
    ----------
    learn : callable
        ``learn(rows, n_clusters, *, n_neighbors, n_init, rng, cuts)`` returns `Learned`, labels
        in any numbers.
    uses : {"points", "weights"}
        What the rows are: the points at which a model places samples, or their mixing weights.
    per_cluster, further : int
        The number of components where none is given: ``per_cluster * n_clusters + further``.
    looks_beyond : bool
        Whether samples are placed with directions beyond those of the model.
    """

    learn: Callable[..., Learned]
    uses: str
    per_cluster: int = 1
    further: int = 0
    looks_beyond: bool = False


LABELLINGS: dict[str, Labelling] = {
    GRAPH: Labelling(_fit_graph, "points", per_cluster=2, further=1, looks_beyond=True),
    SUBSPACE: Labelling(partial(_fit_centers, uses="points"), "points"),
    MEMBERSHIPS: Labelling(partial(_fit_centers, uses="weights"), "weights"),
    ARGMAX: Labelling(_fit_argmax, "weights"),
}
"""The ways of labelling by name. Another one is another entry."""

LABELLERS: dict[str, type[Labeller]] = {
    labeller.kind: labeller for labeller in (VoteLabels, CenterLabels, ArgmaxLabels)
}
"""The labellers by the name under which they are stored."""


@one_blas_thread
def learn_labels(
    method: str,
    rows: Array,
    n_clusters: int,
    *,
    n_neighbors: int = 15,
    n_init: int = 10,
    rng: np.random.Generator,
    cuts: Sequence[slice] | None = None,
) -> Learned:
    """Learn to label samples from their points or from their mixing weights.

    Labels are numbered by decreasing size of the clusters, then by their first sample. On the
    samples given here, the largest entries of `predict_proba` use every label, as long as there are
    as many distinct samples as labels; equal samples always share a label.

    Parameters
    ----------
    method : {"graph", "subspace", "memberships", "argmax"}
        "graph": groups of the neighbour graph of the points. "subspace": k-means on the points.
        "memberships": k-means on the weights. "argmax": the largest weight.
    rows : array of shape (n_samples, n_features)
        Points of unit length, see `Model.place`, for the first two; mixing weights for the others.
    n_clusters : int
        The number of labels.
    n_neighbors : int, default=15
        The number of neighbours of "graph".
    n_init : int, default=10
        Starts of k-means.
    rng : numpy.random.Generator
        The source of random numbers.
    cuts : sequence of slice or None, default=None
        The blocks in which the labels of these same rows will be asked for: "graph" then says who
        votes on them.

    Returns
    -------
    learned : Learned
        What labels these and other samples, and the labels of these.
    """
    check_option(method, "method", "fit_labels", LABELLINGS)
    if rows.shape[0] < n_clusters:
        raise ValueError(f"n_samples={rows.shape[0]} must be >= n_clusters={n_clusters}.")
    learn = LABELLINGS[method].learn
    learned = learn(rows, n_clusters, n_neighbors=n_neighbors, n_init=n_init, rng=rng, cuts=cuts)
    labels = learned.labels
    sizes = np.bincount(labels, minlength=n_clusters)
    first = np.full(n_clusters, len(labels))
    names, places = np.unique(labels, return_index=True)
    first[names] = places
    if len(names) < n_clusters:
        warnings.warn(
            f"Only {len(names)} of n_clusters={n_clusters} clusters have samples: there are not "
            "that many distinct ones. Lower n_clusters, or look for duplicates in X.",
            ConvergenceWarning,
            stacklevel=4,
        )
    order = np.lexsort((first, -sizes))
    return Learned(learned.labeller.renumbered(order), np.argsort(order)[labels], learned.voters)


def fit_labels(method: str, rows: Array, n_clusters: int, **options: Any) -> Labeller:
    """Learn to label samples; return the labeller of `learn_labels`, which takes the same."""
    return learn_labels(method, rows, n_clusters, **options).labeller


def labeller_from_arrays(kind: str, arrays: dict[str, Any]) -> Labeller:
    """Make the labeller of this `kind` from what its `to_arrays` returned."""
    check_option(kind, "kind", "labeller_from_arrays", LABELLERS)
    return LABELLERS[kind].from_arrays(arrays)
