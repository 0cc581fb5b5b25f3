"""Columns beyond the paper's: later rivals, and ablations of the package's own method.

The rivals of :mod:`tuckermix.baselines` are named by their paths; those that other packages have
are built here, and so are the ablations, each of which replaces one part of our method by another.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tuckermix._optional import require
from tuckermix.experiments.methods import CHEAP, LONG, MODERATE, Method, register_method

__all__ = ["ABLATIONS", "ON_MM", "ON_SCATTERING", "OURS_ON_SCATTERING", "RIVALS", "TRUER"]

PCA_DIRECTIONS = 50
"""Principal directions before spectral clustering, a usual choice for images of this size."""

SPECTRAL_NEIGHBORS = 10
"""scikit-learn's default, said here because the columns are compared by it."""

UMAP_NEIGHBORS, UMAP_DIRECTIONS = 15, 10
"""The package's default neighbours, and as many directions as it advises for clustering."""

SCATTERING_DIRECTIONS = 500
"""Principal directions of scattering coefficients, as many as the authors of EnSC, SSC-OMP, A-DSSC
and AutoSC keep."""

SMALLEST_CLUSTER = 5
"""scikit-learn's default for HDBSCAN."""


def _spectral(n_clusters: int, seed: int) -> Any:
    from sklearn.cluster import SpectralClustering

    return SpectralClustering(
        n_clusters,
        affinity="nearest_neighbors",
        n_neighbors=SPECTRAL_NEIGHBORS,
        random_state=seed,
    )


class _After:
    """A clusterer on what a function makes of the flattened samples."""

    def __init__(self, prepare: Any, clusterer: Any) -> None:
        self.prepare, self.clusterer = prepare, clusterer

    def fit(self, X: np.ndarray) -> _After:
        rows = self.prepare(np.reshape(X, (X.shape[0], -1)))
        self.labels_ = self.clusterer.fit(rows).labels_
        return self


def _whitened(rows: np.ndarray, count: int, seed: int) -> np.ndarray:
    from sklearn.decomposition import PCA

    count = min(count, rows.shape[0] - 1, rows.shape[1])
    return PCA(count, whiten=True, random_state=seed).fit_transform(rows)


def whitened_spectral(n_clusters: int, ranks: Any, seed: int) -> Any:
    """Build spectral clustering on whitened principal components."""
    return _After(lambda rows: _whitened(rows, PCA_DIRECTIONS, seed), _spectral(n_clusters, seed))


def unit_spectral(n_clusters: int, ranks: Any, seed: int) -> Any:
    """Build spectral clustering on flattened samples of norm 1."""
    from sklearn.preprocessing import normalize

    return _After(normalize, _spectral(n_clusters, seed))


def umap_kmeans(n_clusters: int, ranks: Any, seed: int) -> Any:
    """Build k-means on an embedding by UMAP."""
    from sklearn.cluster import KMeans

    def embed(rows: np.ndarray) -> np.ndarray:
        umap = require("umap", "The column UMAP + k-means", "rivals", package="umap-learn")
        # One thread: a seed rules out more, and UMAP warns of it unless told.
        reducer = umap.UMAP(
            UMAP_NEIGHBORS, UMAP_DIRECTIONS, min_dist=0.0, random_state=seed, n_jobs=1
        )
        return reducer.fit_transform(rows)

    return _After(embed, KMeans(n_clusters, n_init=10, random_state=seed))


def hdbscan(n_clusters: int, ranks: Any, seed: int) -> Any:
    """Build scikit-learn's HDBSCAN, which finds a number of clusters of its own."""
    from sklearn.cluster import HDBSCAN

    return _After(np.asarray, HDBSCAN(min_cluster_size=SMALLEST_CLUSTER, copy=True))


class _GraphLabels:
    """Our labels, taken from rows that a function makes of the samples."""

    def __init__(self, place: Any, n_clusters: int, seed: int) -> None:
        self.place, self.n_clusters, self.seed = place, n_clusters, seed

    def fit(self, X: np.ndarray) -> _GraphLabels:
        from sklearn.preprocessing import normalize

        from tuckermix.labels import fit_labels

        rng = np.random.default_rng(self.seed)
        rows = normalize(self.place(X))
        labeller = fit_labels("graph", rows, self.n_clusters, rng=rng)
        self.labels_ = np.argmax(labeller.predict_proba(rows), axis=1)
        return self


def our_labels_on_mm(n_clusters: int, ranks: Any, seed: int, **settings: Any) -> Any:
    """Build our labels on the coefficients of MM, with as many components as our model has."""
    from tuckermix.baselines import MultiplicativeNMF

    def place(X: np.ndarray) -> np.ndarray:
        count = min(2 * n_clusters + 1, len(X))
        return MultiplicativeNMF(count, random_state=seed, **settings).fit(X).memberships_

    return _GraphLabels(place, n_clusters, seed)


def our_labels_on_pca(n_clusters: int, ranks: Any, seed: int) -> Any:
    """Build our labels on whitened principal components, as many as our model has."""

    def place(X: np.ndarray) -> np.ndarray:
        return _whitened(X.reshape(len(X), -1), 2 * n_clusters, seed)

    return _GraphLabels(place, n_clusters, seed)


def ours_on_pixels(n_clusters: int, ranks: Any, seed: int, **settings: Any) -> Any:
    """Build our method on flattened samples."""
    from tuckermix.clustering import TuckerClustering

    return _After(np.asarray, TuckerClustering(n_clusters, random_state=seed, **settings))


class _OnScattering:
    """Our method on the scattering transform of images."""

    def __init__(self, n_clusters: int, seed: int, *, log: bool) -> None:
        from tuckermix.clustering import TuckerClustering
        from tuckermix.features import Scattering

        self.features = Scattering(log=log)
        self.clusterer = TuckerClustering(n_clusters, random_state=seed)

    def fit(self, X: np.ndarray) -> _OnScattering:
        self.labels_ = self.clusterer.fit(self.features.fit_transform(X)).labels_
        self.n_iter_ = self.clusterer.n_iter_
        return self


def ours_on_scattering(n_clusters: int, ranks: Any, seed: int, *, log: bool = False) -> Any:
    """Build our method on scattering coefficients, or on their logarithms."""
    return _OnScattering(n_clusters, seed, log=log)


def _leading(rows: np.ndarray, count: int) -> np.ndarray:
    """Project rows on their leading directions, without taking the mean out."""
    # The smaller of the two Gram matrices has the directions.
    if rows.shape[0] < rows.shape[1]:
        values, vectors = np.linalg.eigh(rows @ rows.T)
        return vectors[:, -count:] * np.sqrt(np.maximum(values[-count:], 0.0))
    return rows @ np.linalg.eigh(rows.T @ rows)[1][:, -count:]


class _RivalOnScattering:
    """A rival on scattering coefficients, prepared as the authors of these methods do."""

    def __init__(self, clusterer: Any) -> None:
        from tuckermix.features import Scattering

        self.features, self.clusterer = Scattering(), clusterer

    def fit(self, X: np.ndarray) -> _RivalOnScattering:
        # Each path of each image in units of its largest cell, then principal directions.
        paths = self.features.fit_transform(X)
        largest = np.abs(paths).max(axis=(2, 3), keepdims=True)
        rows = (paths / np.where(largest > 0, largest, 1.0)).reshape(len(X), -1)
        self.labels_ = self.clusterer.fit(_leading(rows, SCATTERING_DIRECTIONS)).labels_
        self.n_iter_ = getattr(self.clusterer, "n_iter_", None)
        return self


def lsr_on_scattering(n_clusters: int, ranks: Any, seed: int) -> Any:
    """Build LSR on scattering coefficients."""
    from tuckermix.baselines import LSR

    return _RivalOnScattering(LSR(n_clusters, random_state=seed))


def autosc_on_scattering(n_clusters: int, ranks: Any, seed: int) -> Any:
    """Build AutoSC on scattering coefficients."""
    from tuckermix.baselines import AutoSC

    return _RivalOnScattering(AutoSC(n_clusters, random_state=seed))


def adssc_on_scattering(n_clusters: int, ranks: Any, seed: int) -> Any:
    """Build A-DSSC on scattering coefficients."""
    from tuckermix.baselines import ADSSC

    return _RivalOnScattering(ADSSC(n_clusters, random_state=seed))


def ensc_on_scattering(n_clusters: int, ranks: Any, seed: int) -> Any:
    """Build EnSC on scattering coefficients."""
    from tuckermix.baselines import EnSC

    return _RivalOnScattering(EnSC(n_clusters, random_state=seed))


def sscomp_on_scattering(n_clusters: int, ranks: Any, seed: int) -> Any:
    """Build SSC-OMP on scattering coefficients."""
    from tuckermix.baselines import SSCOMP

    return _RivalOnScattering(SSCOMP(n_clusters, random_state=seed))


class _Searched:
    """DRCC at the setting of a grid that scores best, with the true classes in hand."""

    def __init__(self, n_clusters: int, seed: int, settings: dict[str, Any], count: int) -> None:
        self.n_clusters, self.seed, self.settings, self.count = n_clusters, seed, settings, count

    def fit(self, X: np.ndarray, y: np.ndarray) -> _Searched:
        from tuckermix.baselines import DRCC
        from tuckermix.baselines.drcc import penalty_grid
        from tuckermix.metrics import clustering_accuracy

        best = -1.0
        for choice in penalty_grid()[: self.count or None]:
            model = DRCC(self.n_clusters, random_state=self.seed, **choice, **self.settings).fit(X)
            score = clustering_accuracy(y, model.labels_)
            if score > best:
                best, self.labels_ = score, model.labels_
                self.n_iter_, self.stop_reason_ = model.n_iter_, model.stop_reason_
        return self


def searched_drcc(
    n_clusters: int, ranks: Any, seed: int, *, n_settings: int = 0, **settings: Any
) -> Any:
    """Build DRCC at the best setting of its authors' grid; 0 tries all settings."""
    return _Searched(n_clusters, seed, settings, n_settings)


_OURS = "TuckerClustering"
_VECTORS: dict[str, Any] = {"on": "pixels of norm 1", "role": "extra"}
_DEAR = {"cost": LONG, "slow_on": ("table2", "table3", "table4", "table5", "table6", "beyond")}
_STARTS = "Twenty starts of k-means at the end."
_TUNED = "this is the best on the tuning parts (`python -m benchmarks.rival_settings`)."
_ABLATION: dict[str, Any] = {"variant_of": _OURS, "cost": CHEAP}
_SCATTERED: dict[str, Any] = {
    "on": f"{SCATTERING_DIRECTIONS} principal directions of the scattering transform, norm 1",
    "notes": "Settings as in the column on pixels. Each path in units of its largest cell, no mean "
    f"taken out, as in the programs of their authors. {_STARTS}",
}

# Name, class or function, description, and what differs from the defaults of `Method`.
for _name, _factory, _description, _options in (
    (
        "B-NMF (multinomial)",
        "BayesianNMF",
        "the multinomial model of the toolbox that the paper names",
        {
            "settings": {"method": "multinomial"},
            "quick_settings": {"max_iter": 20},
            "cost": LONG,
            "variant_of": "B-NMF",
            "slow_on": ("table3", "table4", "table5"),
            "on": "pixels",
            "notes": "A random start, always 1000 iterations. Checked against its formulas.",
        },
    ),
    (
        "DRCC (searched)",
        searched_drcc,
        "DRCC at the best of 50 settings, chosen with the true classes: an upper bound, no method",
        {
            "settings": {"max_iter": 100},
            "quick_settings": {"max_iter": 5, "n_settings": 3},
            "cost": LONG,
            "variant_of": "DRCC",
            "uses_truth": True,
            "on": "pixels",
            "notes": "Penalties 0.1 to 1000 and 1 to 10 neighbours, as its authors search.",
            "slow_on": ("table2", "table3", "table4", "table5"),
        },
    ),
    (
        "LSR",
        "LSR",
        "least squares regression of each sample on the others",
        _VECTORS
        | {
            "cost": CHEAP,
            "on": "6K principal directions of pixels, norm 1",
            "notes": "Its authors' setting for ten faces, penalty 0.004 and columns scaled, for "
            f"all data. {_STARTS} Checked against scikit-learn.",
        },
    ),
    (
        "LSR (tuned)",
        "LSR",
        "least squares regression at a setting of ours",
        _VECTORS
        | {
            "settings": {"penalty": 0.1},
            "cost": CHEAP,
            "on": "6K principal directions of pixels, norm 1",
            "notes": f"Penalty 0.1 for all data; of 16 settings, {_TUNED} {_STARTS}",
        },
    ),
    (
        "AutoSC",
        "AutoSC",
        "spectral clustering with the best of 66 affinities, by a measure of its own",
        _VECTORS
        | _DEAR
        | {
            "notes": f"Its authors' grid. {_STARTS} Checked against an independent evaluation.",
        },
    ),
    (
        "A-DSSC",
        "ADSSC",
        "doubly stochastic subspace clustering",
        _VECTORS
        | {
            "notes": "Weights 1 and 0.1 for all data; of the grid that its authors search, "
            f"{_TUNED} {_STARTS} Checked against alternating projections.",
        },
    ),
    (
        "EnSC",
        "EnSC",
        "elastic net subspace clustering",
        _VECTORS
        | _DEAR
        | {
            "notes": "gamma 200, tau 0.9 and three neighbours for all data: its authors' setting "
            f"for digits. {_STARTS} Checked against scikit-learn.",
        },
    ),
    (
        "EnSC (tuned)",
        "EnSC",
        "elastic net subspace clustering at the defaults of its authors' program but for tau",
        _VECTORS
        | _DEAR
        | {
            "settings": {"gamma": 50.0, "affinity": "symmetrized"},
            "notes": "gamma 50, tau 0.9 and no neighbours for all data; of four settings, "
            f"{_TUNED} {_STARTS}",
        },
    ),
    (
        "SSC-OMP",
        "SSCOMP",
        "sparse subspace clustering by orthogonal matching pursuit",
        _VECTORS
        | {
            "cost": CHEAP,
            "notes": "At most ten samples for one, for all data: its authors' setting for digits; "
            f"of their two, {_TUNED} {_STARTS} Checked against scikit-learn.",
        },
    ),
    (
        "PCA + spectral",
        whitened_spectral,
        "scikit-learn's spectral clustering on 50 whitened principal components",
        {"cost": CHEAP, "on": "whitened principal components", "notes": "Ten neighbours."},
    ),
    (
        "spectral, unit rows",
        unit_spectral,
        "scikit-learn's spectral clustering on pixels divided by their norm",
        {"cost": CHEAP, "on": "pixels of norm 1", "notes": "Ten neighbours."},
    ),
    (
        "UMAP + k-means",
        umap_kmeans,
        "k-means on ten directions of UMAP",
        {"cost": LONG, "on": "pixels", "notes": "Needs umap-learn. Ten starts of k-means."},
    ),
    (
        "HDBSCAN",
        hdbscan,
        "scikit-learn's HDBSCAN, which chooses the number of clusters itself",
        {"on": "pixels", "notes": "What it calls noise counts as one more cluster."},
    ),
    (
        "LSR, scattering",
        lsr_on_scattering,
        "LSR on scattering coefficients",
        _SCATTERED | _DEAR | {"cost": MODERATE},
    ),
    (
        "AutoSC, scattering",
        autosc_on_scattering,
        "AutoSC on scattering coefficients",
        _SCATTERED | _DEAR,
    ),
    (
        "A-DSSC, scattering",
        adssc_on_scattering,
        "A-DSSC on scattering coefficients",
        _SCATTERED | _DEAR | {"cost": MODERATE},
    ),
    (
        "EnSC, scattering",
        ensc_on_scattering,
        "EnSC on scattering coefficients",
        _SCATTERED | _DEAR,
    ),
    (
        "SSC-OMP, scattering",
        sscomp_on_scattering,
        "SSC-OMP on scattering coefficients",
        _SCATTERED,
    ),
    (
        "TuckerClustering, scattering",
        ours_on_scattering,
        "this package on the scattering transform: one fixed view of images",
        _ABLATION | {"on": "scattering transform"},
    ),
    (
        "TuckerClustering, log-scattering",
        ours_on_scattering,
        "the same on logarithms of the coefficients",
        _ABLATION | {"on": "logarithm of the scattering transform", "settings": {"log": True}},
    ),
    (
        "ours on pixels",
        ours_on_pixels,
        "this package on flattened samples: what the modes of a tensor are worth",
        _ABLATION | {"on": "pixels", "takes_start": True},
    ),
    (
        "ours, k-means",
        "tuckermix:TuckerClustering",
        "this package's model with labels by k-means: what the graph is worth",
        _ABLATION
        | {"takes_ranks": True, "settings": {"assign_labels": "subspace"}, "on": "tensors"},
    ),
    (
        "MM, our labels",
        our_labels_on_mm,
        "MM with 2K + 1 components and this package's labels: what the model is worth",
        _ABLATION
        | {
            "quick_settings": {"max_iter": 20},
            "cost": MODERATE,
            "on": "pixels",
            "slow_on": ("table2", "table3", "table4", "table5"),
        },
    ),
    (
        "PCA, our labels",
        our_labels_on_pca,
        "2K whitened principal components and this package's labels",
        _ABLATION | {"on": "whitened principal components"},
    ),
):
    if isinstance(_factory, str) and ":" not in _factory:
        _factory = f"tuckermix.baselines:{_factory}"
    register_method(Method(_name, _factory, description=_description, **_options))

VECTOR_RIVALS = ("LSR", "LSR (tuned)", "AutoSC", "A-DSSC", "EnSC", "EnSC (tuned)", "SSC-OMP")
RIVALS = (*VECTOR_RIVALS, "PCA + spectral", "spectral, unit rows")
"""The columns of rivals. UMAP and HDBSCAN are asked for by ``--methods``: the first needs a package
that nothing else does, the second gives a number of clusters of its own."""
ON_SCATTERING = tuple(f"{name}, scattering" for name in VECTOR_RIVALS if "tuned" not in name)
"""The rivals that their authors run on scattering coefficients, and LSR beside them."""
OURS_ON_SCATTERING = ("TuckerClustering, scattering", "TuckerClustering, log-scattering")
"""Our method on two fixed views of images, between which AutoClustering chooses among others."""
ABLATIONS = ("ours on pixels", "ours, k-means", "PCA, our labels")
"""The columns that replace one part of our method by another."""
ON_MM = "MM, our labels"
"""One more, for data that are not negative."""
TRUER = ("B-NMF (multinomial)", "DRCC (searched)")
"""The paper's methods as it or their authors probably ran them."""
