"""Labels of samples by the votes of their nearest landmarks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from tuckermix._array_api import Array, asarray_like, blocks, device, get_namespace, to_numpy
from tuckermix.labels.graph import rank_weights
from tuckermix.labels.neighbors import nearest_neighbors


@dataclass(frozen=True)
class GraphLabels:
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
    """

    landmarks: Array
    landmark_labels: Array
    n_clusters: int
    n_neighbors: int

    kind = "graph"
    uses = "subspace"

    def predict_proba(self, Z: Array, U: Array | None = None) -> Array:
        """Return the share of the votes of each label, of shape (n_samples, n_clusters).

        Parameters
        ----------
        Z : array of shape (n_samples, n_features)
            Rows of unit length.
        U : array, optional
            Not used.

        Returns
        -------
        P : array of shape (n_samples, n_clusters)
            Rows that sum to 1; the label is the place of the largest entry.
        """
        get_namespace(Z, self.landmarks)
        indices, _ = nearest_neighbors(Z, self.landmarks, self.n_neighbors)
        return self.count_votes(indices)

    def count_votes(self, indices: Array) -> Array:
        """Return the shares of the labels of landmarks `indices` (n_samples, n_votes)."""
        labels, dtype = self.landmark_labels, self.landmarks.dtype
        xp = get_namespace(labels)
        n_votes = int(indices.shape[1])
        weights = rank_weights(n_votes)
        weights = weights / weights.sum()
        names = xp.arange(self.n_clusters, dtype=xp.int64, device=device(labels))
        parts = []
        for cut in blocks(int(indices.shape[0]), 24 * self.n_clusters):
            votes = xp.take(labels, xp.reshape(indices[cut, :], (-1,)), axis=0)
            votes = xp.reshape(votes, (-1, n_votes))
            shares = xp.zeros((votes.shape[0], self.n_clusters), dtype=dtype, device=device(labels))
            for rank in range(n_votes):
                hits = xp.astype(votes[:, rank : rank + 1] == names[None, :], dtype)
                shares += float(weights[rank]) * hits
            parts.append(shares / xp.sum(shares, axis=1, keepdims=True))
        return xp.concat(parts, axis=0)

    def to_arrays(self) -> dict[str, Any]:
        """Return arrays and numbers from which `from_arrays` makes the same labeller."""
        return {
            "landmarks": self.landmarks,
            "landmark_labels": self.landmark_labels,
            "n_clusters": self.n_clusters,
            "n_neighbors": self.n_neighbors,
        }

    @classmethod
    def from_arrays(cls, arrays: dict[str, Any]) -> GraphLabels:
        """Make a labeller from what `to_arrays` returned."""
        return cls(
            landmarks=arrays["landmarks"],
            landmark_labels=arrays["landmark_labels"],
            n_clusters=int(arrays["n_clusters"]),
            n_neighbors=int(arrays["n_neighbors"]),
        )


def elect(
    Z: Array, labels: np.ndarray, indices: np.ndarray, n_clusters: int
) -> tuple[GraphLabels, np.ndarray]:
    """Let as many landmarks vote as leaves every label to at least one of them.

    Votes smooth the labels, and a cluster much smaller than the neighbourhood would be outvoted on
    its own ground. The number of votes is halved until no label is lost; a single vote loses none.

    Parameters
    ----------
    Z : array of shape (n_landmarks, n_features)
        The landmarks, no two of them equal.
    labels : ndarray of shape (n_landmarks,)
        Their labels.
    indices : ndarray of shape (n_landmarks, n_neighbors)
        Their nearest neighbours, themselves excluded.
    n_clusters : int
        The number of labels.

    Returns
    -------
    labeller : GraphLabels
        The labeller.
    won : ndarray of shape (n_landmarks,)
        The labels that it gives to the landmarks.
    """
    xp = get_namespace(Z)
    held = asarray_like(labels, Z, dtype=xp.int64)
    voters = np.concatenate([np.arange(len(labels))[:, None], indices], axis=1)
    wanted = len(np.unique(labels))
    n_votes = max(1, indices.shape[1])
    while True:
        labeller = GraphLabels(Z, held, n_clusters, n_votes)
        shares = labeller.count_votes(asarray_like(voters[:, :n_votes], Z, dtype=xp.int64))
        won = to_numpy(xp.argmax(shares, axis=1))
        if n_votes == 1 or len(np.unique(won)) == wanted:
            return labeller, won
        n_votes //= 2
