r"""The fitted model: where samples lie, what they are mixed from, which cluster they belong to.

Labels compare samples by ridge regression. With B the projected and centred samples, λ_j the energy
along their j-th principal direction and u_j the coordinates of the samples along it, of unit norm,
ridge regression on B turns any target y into the predictions H y with

.. math:: H = B (B^\top B + \lambda_e I)^{-1} B^\top = \sum_j w_j\, u_j u_j^\top,
          \qquad w_j = \frac{\lambda_j}{\lambda_j + \lambda_e}.

Two samples are alike where rows of H are: no target of unit norm has predictions that differ by
more than the distance of the rows. All directions take part; strong ones count in full, those at
the edge λ_e for a half, and weak ones fade. The edge is the energy of direction 4 K, so that a
cluster has about four directions to be told apart by.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any, NamedTuple

import numpy as np

from tuckermix._array_api import (
    BLOCK_BYTES,
    Array,
    asarray_like,
    blocks,
    device,
    double,
    epsilon,
    get_namespace,
    is_double,
    is_numpy,
    take_rows,
    to_numpy,
)
from tuckermix._estimators import Settings
from tuckermix._records import Record
from tuckermix._validation import check_stored, tuple_of
from tuckermix.decomposition import Decomposition
from tuckermix.labels import LABELLINGS, GraphLabels, Labeller, Learned
from tuckermix.labels.calibration import learn_agreement
from tuckermix.labels.labellers import learn_labels
from tuckermix.labels.outliers import Reference, fade, learn_reference, threshold_at
from tuckermix.memberships import SIMPLICES
from tuckermix.numerics import linalg
from tuckermix.numerics.simplex import simplex_least_squares
from tuckermix.numerics.tensor import mode_dot, multi_mode_dot, squared_norm
from tuckermix.sources import Blocks, add_parts, as_blocks

FLAT_BELOW = 10.0
"""Below about this many directions the length of a row counts, see `Model.place`. With rows of
plain unit length a ring around a blob or a small group far out is bent out of shape."""

MOST_MORE = 256
"""The most directions beyond the edge where an iteration has to find them: their weights fall, and
finding all of them would take longer than the fit."""

NEGLIGIBLE = 0.01
"""The last directions that together hold less than this share of the squared weights are left out.
For faces, whose energy falls quickly, that halves the work."""


WELL_CONDITIONED = 1e5
"""Ratio of the eigenvalues of a Gram matrix up to which it is whitened to eleven digits at once."""


@dataclass(frozen=True)
class FitSettings(Settings):
    """Facts about the samples of a fit.

    Attributes
    ----------
    quartiles : tuple
        What is kept of how much of the samples lies outside the view: of outliers a few per cent
        may be among them.
    tenths : tuple
        What is kept of how strong samples are. A tenth that is weaker or stronger is a cluster, and
        no group of outliers.
    renumberings : int
        Rounds of numbering clusters by size. Other numbers break ties of votes otherwise, which may
        change the sizes; one round is nearly always enough.
    landmark_bytes, least_landmarks : int
        Of samples with thousands of projected entries fewer are landmarks: as many as take this
        memory, but never fewer than the second figure.
    """

    quartiles: tuple[float, ...] = (0.5, 0.75)
    tenths: tuple[float, ...] = (0.1, 0.5, 0.9)
    renumberings: int = 3
    landmark_bytes: int = 2**28
    least_landmarks: int = 2048


class Way(NamedTuple):
    """How samples get labels.

    Attributes
    ----------
    name : str
        A labelling, see `LABELLINGS`.
    graph : GraphLabels
        The options of the graph.
    n_clusters, n_init : int
        The number of labels, and of the starts of k-means.
    calibrate : bool
        Whether soft labels become probabilities.
    false_alarms : float or None
        The share of ordinary samples that may get the label -1; None labels no outliers.
    """

    name: str
    graph: GraphLabels
    n_clusters: int
    n_init: int
    calibrate: bool = False
    false_alarms: float | None = None

    def learn(self, rows: Array, rng: np.random.Generator, **options: Any) -> Learned:
        """Learn labels from the rows that they compare."""
        options |= {"n_neighbors": self.graph.n_neighbors, "n_init": self.n_init, "rng": rng}
        return learn_labels(self.name, rows, self.n_clusters, **options)


class Landmarks(NamedTuple):
    """Samples from which labels are learned.

    Attributes
    ----------
    blocks : Blocks
        All samples where these are the landmarks, or else the projected landmarks.
    rows : array of shape (n_landmarks, d)
        What labels compare.
    projected, residues : arrays of shapes (n_landmarks, n_projected) and (n_landmarks, 2), or None
        What `Model.project` and `Model.residues` return for them, where labels need it.
    whole : bool
        Whether these are all samples.
    """

    blocks: Blocks
    rows: Array
    projected: Array | None = None
    residues: Array | None = None
    whole: bool = False


@dataclass(frozen=True)
class Model(Record):
    """All that is needed to place, weigh, label and rebuild samples.

    The methods take samples in memory, a block at a time or all at once; over many samples, or a
    Dask array, send them with ``as_blocks(X).map(model.label)``.

    Attributes
    ----------
    factors : list of arrays of shape (d_n, r_n)
        Orthonormal factors.
    core : array of shape (n_components, r_1, ...)
        The components in the projected space.
    mean : array of shape (n_projected,)
        The mean of the projected samples.
    directions : array of shape (n_projected, n_components - 1)
        Directions of the subspace in the projected space.
    vertices : array of shape (n_components, n_components - 1)
        The components relative to the mean, along the directions.
    spread : float
        The standard deviation of the fitted samples along the first direction.
    view : array of shape (n_projected, d)
        Scaled directions in which labels compare samples, in units of `spread`: at first those of
        the model, along each of which the fitted samples have the variance 1.
    labeller : Labeller or None
        What gives samples their labels, once it is learned.
    leftover : tuple of (float, float) or None
        The median and the upper quartile, over samples from which labels are learned, of the
        squares of their parts outside the view.
    strengths : tuple of (float, float, float) or None
        The quantiles 0.1, 0.5 and 0.9, over the same samples, of their strengths, see
        `residues`; None in files of earlier versions, whose scores do not look at them.
    threshold : float or None
        The outlier score beyond which samples get the label -1; None where all samples have labels
        of clusters.
    """

    factors: list[Array]
    core: Array
    mean: Array
    directions: Array
    vertices: Array
    spread: float
    view: Array
    labeller: Labeller | None = None
    leftover: tuple[float, float] | None = None
    strengths: tuple[float, float, float] | None = None
    threshold: float | None = None

    @classmethod
    def from_decomposition(
        cls, fit: Decomposition, simplex: str, rng: np.random.Generator, outside: float = 0.0
    ) -> tuple[Model, Array, float, float]:
        """Choose the simplex for a decomposition and gather what places samples.

        Parameters
        ----------
        fit : Decomposition
            The model without labels.
        simplex : str
            Which simplex gives the mixing weights, see `SIMPLICES`; a solver that determines the
            weights has chosen one already.
        rng : numpy.random.Generator
            The source of randomness.
        outside : float, default=0.0
            The share of samples that the smallest simplex may leave outside.

        Returns
        -------
        model : Model
            The model, without a labeller.
        memberships : array of shape (n_samples, n_components)
            The mixing weights of the fitted samples.
        gap : float
            Their distance from the optimum.
        cost : float
            Half the squared error with these weights and components.
        """
        xp = get_namespace(fit.core)
        core_rows = xp.reshape(double(fit.core), (fit.core.shape[0], -1))
        if fit.memberships is None:
            scales = fit.singular_values
            chosen = SIMPLICES[simplex](fit.Q[:, 1:], rng, scales=scales, outside=outside)
            memberships, cost = chosen.weights, fit.cost + 0.5 * chosen.squared_error
            # Coordinates are in units of the singular values, vertices in units of the samples.
            vertices = chosen.vertices * scales
            gap = fit.gap + (1.0 - fit.gap) * _missed_share(memberships, fit.Q, core_rows)
        else:
            memberships, gap, cost = fit.memberships, fit.gap, fit.cost
            small = xp.matmul(double(fit.Q).T, double(memberships))  # memberships = Q @ small
            vertices = xp.matmul(xp.linalg.solve(small, core_rows) - fit.mean, fit.directions)
        rows = xp.matmul(vertices, fit.directions.T) + fit.mean
        deviations = fit.singular_values / fit.Q.shape[0] ** 0.5
        if deviations.shape[0]:
            spread = float(deviations[0])
        else:  # all samples are equal: the size of their entries is what there is
            spread = float(xp.max(xp.abs(fit.mean))) or 1.0
        model = cls(
            factors=fit.factors,
            core=asarray_like(xp.reshape(rows, (rows.shape[0], *fit.core.shape[1:])), fit.core),
            mean=asarray_like(fit.mean, fit.core),
            directions=asarray_like(fit.directions, fit.core),
            vertices=asarray_like(vertices, fit.core),
            spread=spread,
            view=asarray_like(fit.directions * (spread / deviations), fit.core),
        )
        return model, memberships, gap, cost

    def check(self, sample_shape: tuple[int, ...], n_clusters: int) -> None:
        """Raise where the parts, which a file may have made up, do not fit together.

        Parameters
        ----------
        sample_shape : tuple of int
            The shape of the samples that the model is for.
        n_clusters : int
            The number of labels.
        """
        if not isinstance(self.factors, list) or len(self.factors) != len(sample_shape):
            count = len(self.factors) if isinstance(self.factors, list) else "no"
            raise ValueError(f"factors has {count} entries for samples of shape {sample_shape}")
        for mode, (factor, size) in enumerate(zip(self.factors, sample_shape, strict=True)):
            check_stored(factor, f"factors[{mode}]", (size, None))
        ranks = tuple(int(factor.shape[1]) for factor in self.factors)
        n_components = int(check_stored(self.core, "core", (None, *ranks)).shape[0])
        n_projected = math.prod(ranks)
        check_stored(self.mean, "mean", (n_projected,))
        check_stored(self.directions, "directions", (n_projected, n_components - 1))
        check_stored(self.vertices, "vertices", (n_components, n_components - 1))
        view = check_stored(self.view, "view", (n_projected, None))
        types = {array.dtype for array in (*self.factors, self.core, self.mean, view)}
        types |= {self.directions.dtype, self.vertices.dtype}
        if len(types) > 1:
            raise ValueError(f"its arrays are of several types, {', '.join(map(str, types))}")
        if not isinstance(self.spread, float) or not 0.0 < self.spread < math.inf:
            raise ValueError(f"spread must be a number > 0, not {self.spread!r}")
        if not isinstance(self.labeller, Labeller):
            raise ValueError("it lacks a labeller")
        width = int(view.shape[1]) + 1 if self.labeller.uses == "points" else n_components
        self.labeller.check(width, n_clusters)
        for name, word, size in (("leftover", "two", 2), ("strengths", "three", 3)):
            held: Any = getattr(self, name)
            fits = held is None or tuple_of(float, size)(held)
            if not fits or (held and [0.0, *held] != sorted([0.0, *held])):
                raise ValueError(f"{name} must be {word} numbers >= 0, rising, not {held!r}")
        if self.threshold is not None and (
            not isinstance(self.threshold, float)
            or not math.isfinite(self.threshold)
            or self.leftover is None
            or not self.labeller.has_landmarks
        ):
            raise ValueError(f"its labeller takes no threshold such as {self.threshold!r}")

    def with_landmarks(
        self,
        samples: Blocks,
        way: Way,
        rng: np.random.Generator,
        most: int,
        axes: Array | None = None,
    ) -> tuple[Model, Landmarks]:
        """Place the samples from which labels are learned.

        Parameters
        ----------
        samples : Blocks
            The samples.
        way : Way
            How they get labels.
        rng : numpy.random.Generator
            By which some of many samples are drawn.
        most : int
            The most landmarks.
        axes : array of shape (n_projected, d) or None, default=None
            The principal directions of all samples if they are known.

        Returns
        -------
        model : Model
            The same, with what it looks at.
        marks : Landmarks
            All samples, if these are in memory and few enough, or some of them.
        """
        use, labelling = FitSettings.current(), LABELLINGS[way.name]
        row_bytes = math.prod(self.core.shape[1:]) * (8 if is_double(self.core) else 4)
        most = min(most, max(use.least_landmarks, use.landmark_bytes // row_bytes))
        whole = samples.n_samples <= most and not samples.lazy
        rows_of = samples.map
        if not whole:
            some = np.arange(samples.n_samples)
            if samples.n_samples > most:
                some = rng.choice(samples.n_samples, most, replace=False, shuffle=False)
            rows_of = partial(samples.take, np.sort(some))
        if not labelling.looks_beyond:
            rows = rows_of(self.place if labelling.uses == "points" else self.weigh)
            return self, Landmarks(samples, rows, whole=whole)
        traits = rows_of(self.traits)
        projected, residues = traits[:, :-2], traits[:, -2:]
        blocks = samples if whole else as_blocks(projected)
        edge, power = round(way.graph.ridge_edge * way.n_clusters), way.graph.ridge_power
        model = self.with_wide_view(projected, edge, power, axes if whole else None)
        outside = to_numpy(blocks.map(lambda _, *known: model.outside(*known), projected, residues))
        leftover: Any = tuple(map(float, np.quantile(outside, use.quartiles)))
        strengths: Any = tuple(map(float, np.quantile(to_numpy(residues[:, 1]), use.tenths)))
        model = replace(model, leftover=leftover, strengths=strengths)
        rows = blocks.map(model.place, projected)
        return model, Landmarks(blocks, rows, projected, residues, whole)

    def labelled(
        self, marks: Landmarks, way: Way, rng: np.random.Generator
    ) -> tuple[Model, Array | None]:
        """Return the model with a labeller learned from placed landmarks.

        Where these are all samples, the landmarks that vote on each of them come with it, if votes
        alone make the labels.
        """
        learned = way.learn(marks.rows, rng, cuts=marks.blocks.parts if marks.whole else None)
        model = replace(self, labeller=learned.labeller)
        if way.calibrate:
            model = replace(model, labeller=model._calibrated(marks, way, rng)).ready()
        if way.false_alarms is not None:
            _ = model.reference  # once, and not by every worker
            known = marks.projected, marks.residues
            scores = to_numpy(marks.blocks.map(model.outlier_scores, *known))
            model = model._with(threshold=threshold_at(scores, way.false_alarms))
        votes_alone = not way.calibrate and model.threshold is None
        return model, learned.voters if votes_alone else None

    def _calibrated(self, marks: Landmarks, way: Way, rng: np.random.Generator) -> Labeller:
        """Learn from halves of the landmarks what votes are worth."""
        labeller: Any = self.labeller
        X: Any = marks.projected
        edge, power = round(way.graph.ridge_edge * way.n_clusters), way.graph.ridge_power

        def fit_part(indices: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
            rows = take_rows(X, indices)
            view = self.with_wide_view(rows, edge, power)
            part: Any = way.learn(as_blocks(rows).map(view.place, rows), rng).labeller
            votes = part.votes_of_others(marks.blocks.map(view.place, X))
            return to_numpy(votes).argmax(axis=1), to_numpy(part.scores(votes))

        whole = labeller.scores_of_landmarks()
        knots = learn_agreement(fit_part, X.shape[0], way.n_clusters, rng, whole)
        return replace(labeller, knots=asarray_like(knots, labeller.landmarks))

    def numbered(
        self, samples: Blocks, marks: Landmarks, voters: Array | None, way: Way
    ) -> tuple[Model, Array, Array | None, Array]:
        """Give clusters numbers by the labels of all samples, the largest first.

        Other numbers may break ties of votes otherwise. Few samples are then labelled again; for
        many, another pass over them would cost more than that matters.

        Parameters
        ----------
        samples : Blocks
            The samples.
        marks : Landmarks
            Those from which labels were learned.
        voters : array of shape (n_samples, n_votes) or None
            The landmarks that vote on each sample, where that is known.
        way : Way
            How samples get labels.

        Returns
        -------
        model : Model
            The same with other numbers.
        labels : array of shape (n_samples,)
            The labels.
        nearest : array of shape (n_samples,) or None
            For each sample the nearest landmark of its label; None where they are the landmarks.
        means : array of shape (n_clusters, n_directions)
            The mean offset of each cluster along the directions of the model.
        """
        use, model = FitSettings.current(), self
        xp = get_namespace(samples.like)
        known = marks.projected is not None
        rows = (marks.projected,) if marks.whole and known else ()
        # Soft labels of k-means round otherwise under other numbers, and -1 has no other number.
        moves = not samples.lazy and known and self.threshold is None
        count = partial(self.cluster_sums, n_clusters=way.n_clusters)
        nearest = renamed = None
        for done in range(use.renumberings + 1):
            labeller: Any = model.labeller
            if renamed is not None and not marks.whole:
                labels = renamed
            elif voters is not None:
                labels = xp.argmax(labeller.count_votes(voters), axis=1)
            elif marks.whole and not labeller.has_landmarks:  # these are the samples, with copies
                labels = samples.map(model.label)
            else:
                pairs = samples.map(model.assign)
                labels, nearest = pairs[:, 0], pairs[:, 1]
            if done == 0 or (
                marks.whole and (renamed is None or not bool(xp.all(labels == renamed)))
            ):
                sums, counts = samples.reduce(count, add_parts, labels, *rows)
            order = np.argsort(-to_numpy(counts), kind="stable")
            if done == use.renumberings or np.all(order[1:] > order[:-1]):
                break
            model = model.renumbered(order)
            sums, counts = take_rows(sums, order), take_rows(counts, order)
            if moves:
                renamed = xp.take(asarray_like(np.argsort(order), labels), labels, axis=0)
        means = sums / get_namespace(sums).clip(counts, 1.0, None)[:, None]
        return model, labels, nearest, means

    def with_wide_view(
        self, projected: Array, edge: int, power: float = 1.0, axes: Array | None = None
    ) -> Model:
        """Let labels look beyond the directions of the model, see the text of this module.

        Parameters
        ----------
        projected : array of shape (n_samples, n_projected)
            What `project` returns for the samples from which labels are learned, in memory.
        edge : int
            The direction, counted from 0, whose energy is the ridge; the last one where there are
            not as many.
        power : float, default=1.0
            The power p to which weights are raised: 1 compares rows of H; with ½ the matrix H holds
            the products of the points; 0 is plain whitening.
        axes : array of shape (n_projected, d) or None, default=None
            The principal directions of these samples, strongest first, where they are known;
            `mean` is theirs then.

        Returns
        -------
        model : Model
            The same with a wider view. Along column j of the view the centred samples have a
            variance proportional to ``w_j^2p``, and 1 on average. The model itself where there is
            nothing to see beyond it.
        """
        B, mean = (projected - self.mean) / self.spread, double(self.mean) / self.spread
        if axes is None:  # a part of the samples has a mean of its own
            B, rest = linalg.centre_rows(B)
            mean = mean + rest
        xp = get_namespace(B)
        n_samples, n_directions = B.shape[0], self.directions.shape[1]
        width = min(B.shape)
        many = width > linalg.DENSE_SIDE
        if many:
            width = min(width, max(edge, n_directions) + MOST_MORE)
        basis = linalg.leading_directions(B, width, rough=many) if axes is None else axes
        basis = basis[:, : min(width, n_samples - 1, basis.shape[1])]
        if basis.shape[1] <= n_directions:
            return self
        along = double(linalg.times(B, basis))
        values = xp.sqrt(xp.sum(along * along, axis=0))
        host = to_numpy(values)
        norm = (n_samples * float(xp.vecdot(mean, mean)) + float(np.max(host)) ** 2) ** 0.5
        rank = linalg.rank_of(host, norm, epsilon(B))
        if rank <= n_directions:
            return self
        values = values[:rank]
        ridge = values[min(edge, rank - 1)]
        weights = (values**2 / (values**2 + ridge**2)) ** power
        squares = to_numpy(weights) ** 2
        rest = np.cumsum(squares[::-1])[::-1]
        keep = int(np.sum(rest > NEGLIGIBLE * rest[0]))
        scales = (weights / values)[:keep] * (n_samples / float(np.mean(squares[:keep]))) ** 0.5
        return replace(self, view=asarray_like(basis[:, :keep] * scales, self.core))

    def project(self, X: Array) -> Array:
        """Return the projected samples as rows, of shape (n_samples, n_projected)."""
        small = multi_mode_dot(X, self.factors, transpose=True)
        return get_namespace(X).reshape(small, (small.shape[0], math.prod(small.shape[1:])))

    def place(self, X: Array, projected: Array | None = None) -> Array:
        """Return the points that labels compare: where samples lie in the view, on a sphere.

        ``Z = rows of [c, q_1, …, q_d] / norm`` with ``c = sqrt(1 + (10 / d)²)`` and q the
        coordinates in the view. For d well above 10 that is the direction of ``[1, q]``: the
        length is one of many coordinates then, and says more of brightness than of shape. For
        small d it is a good part of what there is to know; the larger constant keeps it, because a
        small cap of a sphere is flat. Where `projected` is given, nothing else is looked at.
        """
        rows = self.project(X) if projected is None else projected
        xp = get_namespace(rows)
        coordinates = xp.matmul((rows - self.mean) / self.spread, self.view)
        constant = math.hypot(1.0, FLAT_BELOW / max(1, coordinates.shape[1]))
        first = xp.full((rows.shape[0], 1), constant, dtype=rows.dtype, device=device(rows))
        rows = xp.concat([first, coordinates], axis=1)
        return rows / xp.sqrt(xp.sum(rows * rows, axis=1, keepdims=True))

    def weigh(self, X: Array, projected: Array | None = None) -> Array:
        """Return the best convex mixture of the components for each sample."""
        rows = self.project(X) if projected is None else projected
        offsets = get_namespace(X).matmul(rows - self.mean, self.directions)
        return simplex_least_squares(offsets, self.vertices)

    def _look(self, X: Array) -> tuple[Array, Array | None]:
        """Return what labels compare, and outlier scores where there is a threshold."""
        assert self.labeller is not None
        rows = self.project(X)
        points = (self.place if self.labeller.uses == "points" else self.weigh)(X, rows)
        if self.threshold is None:
            return points, None
        return points, self._score(rows, self.residues(X, rows), points)

    def _judge(self, X: Array) -> tuple[Array, Array | None]:
        """Return soft labels, and outlier scores where there is a threshold."""
        points, scores = self._look(X)
        shares = self.labeller.predict_proba(points)  # type: ignore[union-attr]
        faded = shares if self.threshold is None else fade(shares, scores, self.threshold)
        return faded, scores

    def soft_labels(self, X: Array) -> Array:
        """Return the soft labels of samples, of shape (n_samples, n_clusters)."""
        return self._judge(X)[0]

    def label(self, X: Array) -> Array:
        """Return the label of each sample, -1 for outliers where there is a threshold."""
        xp, (shares, scores) = get_namespace(X), self._judge(X)
        labels = xp.argmax(shares, axis=1)
        return labels if scores is None else xp.where(scores > self.threshold, -1, labels)

    def assign(self, X: Array) -> Array:
        """Return labels and nearest landmarks of these labels, of shape (n_samples, 2).

        Outliers have the label -1 and the landmark -1.
        """
        xp, (points, scores) = get_namespace(X), self._look(X)
        pairs = xp.stack(self.labeller.assign(points), axis=1)  # type: ignore[union-attr]
        return pairs if scores is None else xp.where((scores > self.threshold)[:, None], -1, pairs)

    def renumbered(self, order: np.ndarray) -> Model:
        """Return the same with label k in place of the old label ``order[k]``."""
        assert self.labeller is not None
        return self._with(labeller=self.labeller.renumbered(order))

    def _with(self, **changes: Any) -> Model:
        """Return the same with changes on which what is usual does not depend."""
        model = replace(self, **changes)
        if "reference" in vars(self):
            vars(model)["reference"] = self.reference
        return model

    def ready(self) -> Model:
        """Learn what `label` needs beside the model, once and not by every worker; return self."""
        if self.threshold is not None:
            _ = self.reference
        if self.labeller is not None:
            self.labeller.ready()
        return self

    def traits(self, X: Array) -> Array:
        """Return what `project` and `residues` return, of shape (n_samples, n_projected + 2).

        Labels of samples that are landmarks are learned from these rows alone.
        """
        rows = self.project(X)
        return get_namespace(X).concat([rows, self.residues(X, rows)], axis=1)

    def residues(self, X: Array, projected: Array) -> Array:
        """Return what projections leave out, of shape (n_samples, 2).

        The square of the part of a sample that the factors leave out, in units of `spread`, and its
        strength, the mean absolute entry: how bright an image is, how loud a sound.
        """
        xp = get_namespace(X)
        cuts = _pieces(X)
        if len(cuts) > 1:
            return np.concatenate([self.residues(X[cut], projected[cut]) for cut in cuts])
        small = xp.reshape(projected, (projected.shape[0], *self.core.shape[1:]))
        outside = multi_mode_dot(small, self.factors)
        outside -= X  # in place where the library can: samples are large
        outside /= self.spread
        outside = xp.reshape(outside, (X.shape[0], math.prod(X.shape[1:])))
        flat = xp.reshape(X, outside.shape)
        left = xp.vecdot(outside, outside)
        del outside
        # Divided first: a sum of very large entries may be too large.
        shares = xp.abs(flat)
        shares /= flat.shape[1]
        return xp.stack([left, xp.sum(shares, axis=1)], axis=1)

    def outside(self, projected: Array, residues: Array) -> Array:
        """Return the squares of the parts of samples outside the view, in units of `spread`."""
        xp = get_namespace(projected)
        around = (projected - self.mean) / self.spread
        unit = self.view / xp.sqrt(xp.sum(self.view * self.view, axis=0))
        beyond = around - xp.matmul(xp.matmul(around, unit), unit.T)
        return residues[:, 0] + xp.vecdot(beyond, beyond)

    @cached_property
    def reference(self) -> Reference:
        """What is usual among the landmarks; learned when it is first asked for."""
        labeller: Any = self.labeller
        if labeller is None or not labeller.has_landmarks or self.leftover is None:
            raise ValueError(
                "Outlier scores compare samples with landmarks of assign_labels='graph', and this "
                "model has none, or is from a file of an earlier version: fit it again."
            )
        return learn_reference(
            labeller.landmarks,
            self._along_view(labeller.landmarks),
            to_numpy(labeller.landmark_labels),
            self.leftover,
            labeller.n_neighbors,
            self.strengths,
        )

    def outlier_scores(
        self, X: Array, projected: Array | None = None, residues: Array | None = None
    ) -> Array:
        """Return how unlike the landmarks samples are, see `tuckermix.labels.outliers`."""
        rows = self.project(X) if projected is None else projected
        residues = self.residues(X, rows) if residues is None else residues
        return self._score(rows, residues, self.place(X, rows))

    def _score(self, projected: Array, residues: Array, points: Array) -> Array:
        outside, along = self.outside(projected, residues), self._along_view(points)
        return self.reference.score(points, along, outside, residues[:, 1])

    def _along_view(self, points: Array) -> Array:
        """Return where points of `place` lie along the view's directions, in units of `spread`."""
        xp = get_namespace(points)
        rows = double(points)
        constant = math.hypot(1.0, FLAT_BELOW / max(1, rows.shape[1] - 1))
        coordinates = rows[:, 1:] * (constant / rows[:, :1])
        return coordinates / xp.sqrt(xp.sum(double(self.view) ** 2, axis=0))

    def rebuild(self, weights: Array) -> Array:
        """Return the samples that the model has for given mixing weights."""
        return multi_mode_dot(mode_dot(self.core, weights, 0), self.factors)

    def lift(self, offsets: Array) -> Array:
        """Return the points of sample space at given offsets along the directions."""
        xp = get_namespace(offsets)
        rows = xp.matmul(asarray_like(offsets, self.core), self.directions.T) + self.mean
        small = xp.reshape(rows, (rows.shape[0], *self.core.shape[1:]))
        return multi_mode_dot(small, self.factors)

    def squared_error(self, X: Array) -> tuple[float]:
        """Return the squared error of the rebuilt samples, summed, in a tuple for `add_parts`."""
        total = 0.0
        for cut in _pieces(X):
            wrong = self.rebuild(self.weigh(X[cut, ...]))
            wrong -= X[cut, ...]  # in place where the library can: samples are large
            total += squared_norm(wrong)
        return (total,)

    def cluster_sums(
        self, X: Array, labels: Array, projected: Array | None = None, *, n_clusters: int
    ) -> tuple[Array, Array]:
        """Return the sum of the offsets of each cluster and the number of its samples.

        Offsets are relative to the mean, along the directions. Outliers, of label -1, are in none.
        """
        xp = get_namespace(X)
        names = xp.arange(n_clusters, dtype=labels.dtype, device=device(X))
        one_hot = xp.astype(labels[:, None] == names, xp.float64)
        rows = self.project(X) if projected is None else projected
        offsets = xp.matmul(rows - self.mean, self.directions)
        return xp.matmul(one_hot.T, double(offsets)), xp.sum(one_hot, axis=0)


def _pieces(X: Array) -> list[slice]:
    """Cut few large samples into pieces, for what takes as much memory as they do."""
    if is_numpy(X) and X.nbytes > BLOCK_BYTES // 2 and X.shape[0] > 1:
        return list(blocks(X.shape[0], 2 * X[:1].nbytes))
    return [slice(None)]


def _missed_share(memberships: Array, Q: Array, core_rows: Array) -> float:
    """Return the share of the centred energy of `Q` that the columns of the memberships miss."""
    xp = get_namespace(core_rows)
    peak = float(xp.max(xp.abs(core_rows[1:, :]))) if core_rows.shape[0] > 1 else 0.0
    if peak == 0.0:
        return 0.0
    rows = core_rows[1:, :] / peak
    # One whitening leaves an error of the square of the condition; a second one removes it.
    basis = xp.eye(memberships.shape[1], dtype=xp.float64, device=device(core_rows))
    for _ in range(2):
        gram, cross = as_blocks(memberships).reduce(partial(_products, basis=basis), add_parts, Q)
        values, vectors = linalg.leading_eigenvectors(gram, gram.shape[0])
        # Archetypes that nobody is mixed from leave the columns of the memberships dependent.
        rank = linalg.rank_of(to_numpy(values), float(values[0]), epsilon(values))
        whiten = vectors[:, :rank] / xp.sqrt(values[:rank])
        basis = xp.matmul(basis, whiten)
        if float(values[0]) < WELL_CONDITIONED * float(values[rank - 1]):
            break
    reached = squared_norm(xp.matmul(xp.matmul(whiten.T, cross[:, 1:]), rows))
    return max(0.0, 1.0 - reached / squared_norm(rows))


def _products(memberships: Array, Q: Array, basis: Array) -> tuple[Array, Array]:
    xp = get_namespace(memberships)
    U = xp.matmul(double(memberships), basis)
    return xp.matmul(U.T, U), xp.matmul(U.T, double(Q))
