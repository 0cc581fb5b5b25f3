"""Two dimensions out of many: where the map puts each sample.

The map is laid out here because nothing at hand does it: t-SNE of scikit-learn takes minutes for
the ten thousand samples of a report, its spectral embedding puts all clusters but a few on top of
each other, and UMAP would bring a compiler as a dependency. The forces are UMAP's, in a page.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.linalg import eigh
from scipy.spatial import cKDTree
from sklearn.neighbors import NearestNeighbors

from tuckermix._threads import one_blas_thread


@dataclass(frozen=True)
class MapSettings:
    """Settings of the maps."""

    ridge: float = 1e-6
    """Added to the scatter within clusters, relative to its mean, where it is singular."""
    n_neighbors: int = 10
    """Edges that pull. More of them make clusters rounder and hide bridges between them."""
    n_iterations: int = 200
    """After this many steps of falling length, marks move by less than their own size."""
    n_repelled: int = 5
    """Other samples that push each sample away in one step, drawn at each step."""
    repulsion: float = 12.0
    """The weight of a push relative to a pull: the least at which 1,797 digits do not overlap."""
    closest: float = 0.01
    """Softens the push between samples that lie on top of each other."""
    longest_step: float = 4.0
    """A sample moves by no more than this at once, so that no start can throw it out."""
    step: float = 0.15
    """The length of the first step relative to the force."""
    start_spread: float = 2.0
    """The standard deviation of the start: within reach of every pull."""
    gravity: float = 0.05
    """A pull to the middle, relative to the distance from it: keeps groups from flying off."""
    seed: int = 0
    """The draws are the same at every call: a map does not change when it is drawn again."""


@dataclass(frozen=True)
class SpreadSettings:
    """Settings of the steps that push marks apart."""

    spacing: float = 0.36
    """The distance kept between marks, relative to that of marks which fill the map evenly."""
    n_neighbors: int = 8
    """Neighbours that push in one step."""
    n_steps: int = 60
    """Steps, after which hardly any mark moves."""
    relaxation: float = 0.4
    """The part of the wanted move that is made in one step."""
    dither: float = 1e-3
    """Random shift relative to the spacing: samples at the same place get a direction to part."""
    seed: int = 0
    """The same draws at every call."""


MAP, SPREAD = MapSettings(), SpreadSettings()


def discriminant_map(Z: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """Project on the two directions that separate the clusters best.

    They maximise the scatter between clusters relative to the scatter within,
    ``S_b v = λ S_w v`` (linear discriminant analysis).

    Parameters
    ----------
    Z : array of shape (n, L)
        The samples in the subspace.
    labels : array of shape (n,)
        The cluster of each sample.

    Returns
    -------
    positions : array of shape (n, 2)
        The projections; the sign is fixed by the largest entry of each direction.
    """
    Z = np.asarray(Z, dtype=float)
    centred = Z - Z.mean(axis=0)
    n, dim = Z.shape
    if dim == 1:
        return np.column_stack([centred[:, 0], np.zeros(n)])
    _, codes = np.unique(labels, return_inverse=True)
    sizes = np.bincount(codes)
    means = np.zeros((len(sizes), dim))
    np.add.at(means, codes, centred)
    means /= sizes[:, None]
    inner = centred - means[codes]
    within = inner.T @ inner / n
    between = (means * (sizes / n)[:, None]).T @ means
    scale = np.trace(within) / dim or 1.0
    # The total scatter stands in for what the clusters leave open (a single cluster above all).
    between += MAP.ridge * (within + between)
    _, directions = eigh(between, within + MAP.ridge * scale * np.eye(dim))
    chosen = directions[:, -1:-3:-1]
    signs = np.sign(chosen[np.abs(chosen).argmax(axis=0), [0, 1]])
    return centred @ (chosen * np.where(signs == 0, 1, signs))


@one_blas_thread  # Ctrl-C inside the limit that scikit-learn sets itself would leave it behind
def neighbor_map(Z: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """Lay the samples out so that neighbours in the subspace are neighbours on the map.

    From the discriminant map on, each sample is pulled to its 10 nearest neighbours in `Z` with
    force ``2d/(1 + d²)`` and pushed away from other samples with ``2d/((ε + d²)(1 + d²))``, for
    200 steps of falling length (the forces of UMAP). Distances between far groups mean little.

    Parameters
    ----------
    Z : array of shape (n, L)
        The samples in the subspace.
    labels : array of shape (n,)
        The cluster of each sample, which only choose the start.

    Returns
    -------
    positions : array of shape (n, 2)
        The map, the same at every call.
    """
    Z = np.asarray(Z, dtype=float)
    n = Z.shape[0]
    start = discriminant_map(Z, labels)
    spread = start.std(axis=0)
    positions = start / np.where(spread > 0, spread, 1) * MAP.start_spread
    k = min(MAP.n_neighbors, n - 1)
    if k < 1:
        return positions
    neighbors = NearestNeighbors(n_neighbors=k + 1).fit(Z).kneighbors(Z, return_distance=False)
    heads, tails = np.repeat(np.arange(n), k + 1), neighbors.ravel()
    heads, tails = heads[heads != tails], tails[heads != tails]
    draws = np.random.default_rng(MAP.seed)
    for step in range(MAP.n_iterations):
        difference = positions[heads] - positions[tails]
        pull = 2 * difference / (1 + (difference**2).sum(axis=1))[:, None]
        pulls = [np.bincount(tails, one, n) - np.bincount(heads, one, n) for one in pull.T]
        force = np.column_stack(pulls) - MAP.gravity * positions
        for shift in draws.integers(1, n, size=MAP.n_repelled):
            away = positions - np.roll(positions, shift, axis=0)
            squared = (away**2).sum(axis=1)[:, None]
            push = MAP.repulsion * 2 * away / ((MAP.closest + squared) * (1 + squared))
            force += np.clip(push, -MAP.longest_step, MAP.longest_step)
        move = MAP.step * (1 - step / MAP.n_iterations) * force
        positions = positions + np.clip(move, -MAP.longest_step, MAP.longest_step)
    return spread_out(positions - positions.mean(axis=0))


def spread_out(positions: np.ndarray) -> np.ndarray:
    """Push marks apart that lie on top of each other, so that each can be seen and pointed at.

    Each sample is moved away from its nearest neighbours on the map until they are about a third
    of the spacing apart that all samples would have if they filled the map evenly.

    Parameters
    ----------
    positions : array of shape (n, 2)
        A map.

    Returns
    -------
    positions : array of shape (n, 2)
        The map with groups that were points as discs.
    """
    n = positions.shape[0]
    k = min(SPREAD.n_neighbors, n - 1)
    if k < 1:
        return positions
    draws = np.random.default_rng(SPREAD.seed)
    for _ in range(SPREAD.n_steps):
        extent = np.ptp(positions, axis=0)
        width, height = np.where(extent > 0, extent, 1.0)
        spacing = SPREAD.spacing * np.sqrt(width * height / n)
        positions = positions + SPREAD.dither * spacing * draws.normal(size=positions.shape)
        distances, neighbors = cKDTree(positions).query(positions, k + 1)
        close = (distances < spacing) & (neighbors != np.arange(n)[:, None])
        away = positions[:, None] - positions[neighbors]
        lengths = np.maximum(distances, SPREAD.dither * spacing)[..., None]
        push = np.where(close[..., None], (spacing / lengths - 1) * away, 0.0).sum(axis=1)
        positions = positions + SPREAD.relaxation * np.clip(push, -spacing, spacing)
    return positions
