"""Columns beyond the paper's: rivals and ablations."""

import ast
import json
import re
import sys
import warnings
from pathlib import Path

import numpy as np
import pytest
from sklearn.cluster import SpectralClustering
from sklearn.datasets import load_digits
from sklearn.decomposition import PCA

from tuckermix import TuckerClustering
from tuckermix.baselines import DRCC
from tuckermix.baselines.drcc import penalty_grid
from tuckermix.experiments.cells import QUICK, cells_of, execute
from tuckermix.experiments.methods import METHODS, build
from tuckermix.experiments.rivals import (
    ABLATIONS,
    ON_MM,
    ON_SCATTERING,
    OURS_ON_SCATTERING,
    RIVALS,
    TRUER,
    _leading,
)
from tuckermix.experiments.tables import EXPERIMENTS, QUICK_EXPERIMENTS
from tuckermix.features import Scattering
from tuckermix.metrics import clustering_accuracy

RANKS = (4, 4)


@pytest.fixture(scope="module")
def digits():
    data = load_digits(n_class=3)
    return data.images[:90] / 16.0, data.target[:90]


# Few samples make graphs of several parts, and the quick setting stops early.
@pytest.mark.filterwarnings(
    "ignore:Graph is not fully connected", "ignore:.*stopped after max_iter"
)
@pytest.mark.parametrize(
    "name",
    [*RIVALS, *TRUER, *ABLATIONS, ON_MM, "HDBSCAN", *ON_SCATTERING, *OURS_ON_SCATTERING],
)
def test_columns_give_a_label_to_each_sample(digits, name):
    X, y = digits
    if name in ON_SCATTERING:  # made for images of 28 × 28: of 8 × 8 a single cell is left
        X = np.kron(X, np.ones((1, 4, 4)))
    method = METHODS[name]
    settings = {**method.settings, **method.quick_settings}
    model = build(method, 3, RANKS, 0, settings)
    model.fit(X, *([y] if method.uses_truth else []))
    assert len(model.labels_) == 90
    weak = {"HDBSCAN": 0.3, "SSC-OMP": 0.45, "PCA + spectral": 0.5}
    assert clustering_accuracy(y, model.labels_) > weak.get(name, 0.6)
    assert method.description
    assert method.on


@pytest.mark.parametrize("name", [*RIVALS, *ABLATIONS, ON_MM, *TRUER])
def test_columns_stand_in_the_tables(name):
    tables = ["table2", "table3", "table4", "table5"]
    if name not in (ON_MM, *TRUER) and "EnSC" not in name:
        tables.append("table6")
    if name in RIVALS:
        tables.append("beyond")
    assert all(name in EXPERIMENTS[table].methods for table in tables)


@pytest.mark.parametrize("name", [*ON_SCATTERING, *OURS_ON_SCATTERING])
def test_scattering_stands_in_the_tables_of_images(name):
    tables = ["table2", "table3", "table5", "beyond"]
    assert all(name in EXPERIMENTS[table].methods for table in tables)
    for table in EXPERIMENTS.values():
        for row in table.rows:
            if len(row.ranks) != 2 or row.dataset == "digits":
                assert name not in table.columns_of(row)


@pytest.mark.parametrize("name", [*RIVALS, *ABLATIONS, ON_MM, *TRUER])
def test_quick_cells_succeed(name):
    cells = cells_of(
        [QUICK_EXPERIMENTS["table2"]], [], QUICK_EXPERIMENTS, methods=[name], runs=1, profile=QUICK
    )
    outcome = execute(cells[0])
    assert outcome["status"] == "ok", outcome.get("error")


@pytest.mark.parametrize("shape", [(20, 50), (50, 20)])
def test_leading_directions_keep_the_products_of_rows(shape):
    rows = np.random.default_rng(0).random(shape)
    np.testing.assert_allclose(_leading(rows, 500) @ _leading(rows, 500).T, rows @ rows.T)
    U, s, _ = np.linalg.svd(rows, full_matrices=False)
    found = _leading(rows, 3)
    assert found.shape == (shape[0], 3)
    np.testing.assert_allclose(found @ found.T, (U[:, :3] * s[:3] ** 2) @ U[:, :3].T)


def test_ours_on_scattering_is_the_pipeline(digits):
    X, _ = digits
    for name, log in zip(OURS_ON_SCATTERING, (False, True), strict=True):
        found = build(METHODS[name], 3, RANKS, 0, METHODS[name].settings).fit(X).labels_
        rows = Scattering(log=log).fit_transform(X)
        expected = TuckerClustering(3, random_state=0).fit(rows).labels_
        np.testing.assert_array_equal(found, expected)


@pytest.mark.filterwarnings("ignore:Graph is not fully connected")
def test_whitened_components_go_to_scikit_learn(digits):
    X, _ = digits
    rows = PCA(50, whiten=True, random_state=0).fit_transform(X.reshape(90, -1))
    theirs = SpectralClustering(
        3, affinity="nearest_neighbors", n_neighbors=10, random_state=0
    ).fit(rows)
    ours = build(METHODS["PCA + spectral"], 3, RANKS, 0, {}).fit(X)
    assert clustering_accuracy(theirs.labels_, ours.labels_) == 1


def test_ablations_change_one_part(digits):
    X, _ = digits
    flat = build(METHODS["ours on pixels"], 3, RANKS, 0, {}).fit(X)
    np.testing.assert_array_equal(
        flat.labels_, TuckerClustering(3, random_state=0).fit_predict(X.reshape(90, -1))
    )
    method = METHODS["ours, k-means"]
    model = build(method, 3, RANKS, 0, method.settings)
    assert (model.assign_labels, model.ranks) == ("subspace", RANKS)


def test_searched_setting_is_the_best_of_its_grid(digits):
    X, y = digits
    found = build(METHODS["DRCC (searched)"], 3, RANKS, 0, {"max_iter": 5, "n_settings": 4})
    scores = [
        clustering_accuracy(y, DRCC(3, max_iter=5, random_state=0, **choice).fit_predict(X))
        for choice in penalty_grid()[:4]
    ]
    assert clustering_accuracy(y, found.fit(X, y).labels_) == max(scores)


@pytest.mark.parametrize(
    ("column", "rival"),
    [
        ("LSR (tuned)", "LSR"),
        ("A-DSSC", "A-DSSC"),
        ("EnSC (tuned)", "EnSC"),
        ("SSC-OMP", "SSC-OMP"),
    ],
)
def test_tuned_columns_have_the_setting_that_the_tuning_parts_chose(column, rival):
    stored = Path(__file__).parents[2] / "benchmarks" / "results" / "rival_settings.json"
    if not stored.is_file():
        pytest.skip("the benchmarks are not part of this copy")
    chosen = json.loads(stored.read_text(encoding="utf-8"))["chosen"][rival]
    settings = {
        name: ast.literal_eval(value) for name, value in re.findall(r"(\w+)=([^,]+)", chosen)
    }
    model = build(METHODS[column], 3, RANKS, 0, METHODS[column].settings)
    assert settings.items() <= model.get_params().items()
    assert "benchmarks.rival_settings" in METHODS[column].notes


def test_umap_is_asked_for_by_name(monkeypatch):
    monkeypatch.setitem(sys.modules, "umap", None)
    with pytest.raises(ImportError, match=r"needs umap-learn: install tuckermix\[rivals\]"):
        build(METHODS["UMAP + k-means"], 3, RANKS, 0, {}).fit(np.ones((4, 2, 2)))


def test_umap_goes_before_kmeans(monkeypatch, digits):
    X, y = digits

    class Reducer:
        def __init__(self, n_neighbors, n_components, min_dist, random_state, n_jobs):
            assert n_jobs == 1  # a seed rules out more
            self.settings = (n_neighbors, n_components, min_dist, random_state)

        def fit_transform(self, rows):
            assert self.settings == (15, 10, 0.0, 5)
            return PCA(10, random_state=0).fit_transform(rows)

    class Module:
        UMAP = Reducer

    monkeypatch.setitem(sys.modules, "umap", Module)
    model = build(METHODS["UMAP + k-means"], 3, RANKS, 5, {}).fit(X)
    assert clustering_accuracy(y, model.labels_) > 0.8


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:Tensorflow not installed:ImportWarning")
def test_umap_itself_separates_digits():
    """Neighbourhoods tell four digits apart; the same seed gives the same labels."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ImportWarning)
        pytest.importorskip("umap", reason="needs umap-learn: install tuckermix[rivals]")
    data = load_digits(n_class=4)
    X, y = data.images / 16.0, data.target
    first, second = (build(METHODS["UMAP + k-means"], 4, RANKS, 0, {}).fit(X) for _ in range(2))
    assert clustering_accuracy(y, first.labels_) > 0.95
    np.testing.assert_array_equal(first.labels_, second.labels_)


def test_sweeps_of_the_first_experiment():
    sizes, cores = EXPERIMENTS["sizes"], EXPERIMENTS["cores"]
    assert [row.per_class for row in sizes.rows] == list(range(200, 1601, 100))
    assert [row.ranks for row in cores.rows] == [(size, size) for size in range(4, 11)]
    assert {row.per_class for row in cores.rows} == {600}
    assert len({row.draw for row in cores.rows}) == 1
