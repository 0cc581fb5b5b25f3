import csv
import io
import sys
import textwrap
from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import sem
from sklearn.cluster import DBSCAN, KMeans
from sklearn.decomposition import PCA
from sklearn.mixture import GaussianMixture
from sklearn.pipeline import make_pipeline
from tests.cases import each

from tuckermix import TuckerClustering
from tuckermix.datasets import make_tensor_clusters
from tuckermix.features import Scattering
from tuckermix.metrics import clustering_accuracy
from tuckermix_bench import DATASETS, METHODS, DatasetEntry, Method
from tuckermix_bench.methods import MethodError
from tuckermix_bench.places import (
    BESIDE_QUICK,
    ON_REQUEST,
    PLACE_FIELDS,
    PLACES_VERSION,
    OwnMethod,
    benchmark,
    checked_labels,
    choose_rows,
    clusterer,
    own_method,
    places_csv,
)
from tuckermix_bench.runner import reproduce
from tuckermix_bench.store import read_records, read_store, records_csv
from tuckermix_bench.tables import EXPERIMENTS, LIBRARIES, QUICK_EXPERIMENTS

DATA = make_tensor_clusters(45, (8, 8), 3, noise=0.05, random_state=0)


class OnlyFit:
    def __init__(self, K):
        self.K = K

    def fit(self, X):
        self.labels_ = KMeans(self.K, n_init=10, random_state=0).fit_predict(X.reshape(len(X), -1))


class Settable:
    n_clusters = 8

    def fit_predict(self, X):
        return OnlyFit(self.n_clusters).fit(X) or TuckerClustering(
            self.n_clusters, random_state=0
        ).fit_predict(X)


class FitThenPredict:
    def __init__(self, **options):
        self.options = options

    def fit(self, X):
        self.model = TuckerClustering(**self.options, random_state=0).fit(X)
        return self

    def predict(self, X):
        return self.model.predict(X)


def labels_by_name(X, k, seed=None):
    assert seed == 7
    return TuckerClustering(k, random_state=seed).fit_predict(X)


def labels_by_position(X, groups):
    return TuckerClustering(groups, random_state=0).fit_predict(X)


def finds_the_number(X):
    return TuckerClustering(3, random_state=0).fit_predict(X)


def factory(n_clusters, random_state):
    return TuckerClustering(n_clusters, random_state=random_state)


@each(
    "found, rows",
    [
        (TuckerClustering, False),
        (TuckerClustering(8), False),
        (KMeans, True),
        (KMeans(8, n_init=10), True),
        (GaussianMixture, True),
        (GaussianMixture(8, covariance_type="spherical"), True),
        (make_pipeline(PCA(5), KMeans(8, n_init=10)), True),
        (make_pipeline(Scattering(J=2), TuckerClustering(8)), False),
        (OnlyFit, False),
        (Settable(), False),
        (FitThenPredict, False),
        (labels_by_name, False),
        (labels_by_position, False),
        (finds_the_number, False),
        (factory, False),
    ],
)
def test_whatever_clusters_is_told_the_number_of_clusters(found, rows):
    cluster, takes_rows = clusterer(found, 3, 7)
    assert takes_rows == rows
    X = DATA.X.reshape(45, -1) if rows else DATA.X
    assert clustering_accuracy(DATA.labels, checked_labels(cluster(X), 45)) == 1.0


def test_a_ready_made_model_stays_as_it_is_and_gets_the_seed():
    ready = make_pipeline(PCA(5), KMeans(8, n_init=1))
    model = clusterer(ready, 3, 7)[0].args[0]
    assert ready.get_params()["kmeans__n_clusters"] == 8
    found = model.get_params()
    assert found["kmeans__n_clusters"] == 3
    assert found["pca__n_components"] == 5
    assert found["kmeans__random_state"] == found["pca__random_state"] == 7
    assert clusterer(KMeans(8, random_state=1), 3, 7)[0].args[0].random_state == 1


def test_a_model_without_a_number_finds_its_own():
    model = clusterer(DBSCAN(eps=0.3), 3, 7)[0].args[0]
    assert model.get_params() == DBSCAN(eps=0.3).get_params()


def test_what_is_no_method_is_told():
    with pytest.raises(TypeError, match="must be a class, a function or an object with fit_pred"):
        clusterer(3, 3, 0)

    def makes_nothing(n_clusters):
        return n_clusters

    with pytest.raises(TypeError, match="makes_nothing must make an object with fit_predict or"):
        clusterer(makes_nothing, 3, 0)


@each(
    "found, text",
    [
        (None, "The method returned None"),
        (np.zeros(4, int), r"an array of shape \(4,\)\."),
        (np.zeros((5, 3)), r"an array of shape \(5, 3\): take argmax"),
        (np.asarray(3), r"an array of shape \(\)\."),
        (["a", "b", "a", "b", "a"], "returned 'a': number the clusters"),
        ([0.0, 1.0, float("nan"), 1.0, 0.0], "returned nan"),
        ([0.5, 1.0, 1.0, 1.0, 0.0], "returned 0.5"),
    ],
)
def test_labels_that_are_none_are_told(found, text):
    with pytest.raises(ValueError, match=f"one whole number for each of the 5 samples.*{text}"):
        checked_labels(found, 5)


@pytest.mark.parametrize("kind", [list, tuple, np.float32, bool])
def test_labels_of_other_kinds_become_integers(kind):
    values = [0, 1, 1, 0]
    found = kind(values) if kind in (list, tuple) else np.asarray(values, dtype=kind)
    labels = checked_labels(found, 4)
    assert labels.dtype == int
    np.testing.assert_array_equal(labels, values)


def test_labels_of_another_array_library():
    xp = pytest.importorskip("array_api_strict")
    np.testing.assert_array_equal(checked_labels(xp.asarray([2, 0, 1]), 3), [2, 0, 1])


@pytest.fixture
def module(tmp_path, monkeypatch):
    """Return a function that writes a module into the current folder."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))

    def write(name, text):
        path = tmp_path / f"{name}.py"
        path.parent.mkdir(exist_ok=True)
        path.write_text(textwrap.dedent(text))
        return path

    return write


def fit_once(method, X=DATA.X):
    return method.factory(3, (2, 2), 7).fit(X)


def test_a_module_of_the_current_folder(module):
    path = module(
        "own_first",
        """
        from tuckermix import TuckerClustering

        class Mine(TuckerClustering):
            pass
        """,
    )
    method = own_method("own_first:Mine", name="mine")
    assert "own_first" not in sys.modules  # nothing of it has run
    assert method.name == "mine"
    found = fit_once(method)
    assert clustering_accuracy(DATA.labels, found.labels_) == 1.0
    by_path = own_method("own_first.py:Mine")
    assert by_path.name == "own_first.py:Mine"
    assert by_path.version == method.version
    assert by_path.factory == method.factory
    path.write_text(path.read_text() + "# another version\n")
    assert own_method("own_first:Mine").version != method.version


def test_a_module_within_a_package(module):
    module("own_package/__init__", "")
    module(
        "own_package/inner", "def f(X):\n    return [0, 1] * (len(X) // 2) + [2] * (len(X) % 2)\n"
    )
    method = own_method("own_package.inner:f")
    assert method.version != "1"
    assert fit_once(method).labels_[:3].tolist() == [0, 1, 0]
    assert own_method("own_package.absent:f").version == "1"
    with pytest.raises(MethodError, match="No module named"):
        fit_once(own_method("own_package.absent:f"))


@pytest.mark.parametrize(
    ("view", "shapes"),
    [
        ("auto", ((45, 8, 8), (45, 64))),
        ("tensors", ((45, 8, 8), (45, 8, 8))),
        ("pixels", ((45, 64), (45, 64))),
        ("scattering", ((45, 217, 1, 1), (45, 217))),
    ],
)
def test_what_a_method_is_given(module, view, shapes):
    module(
        "own_views",
        """
        from sklearn.base import BaseEstimator, ClusterMixin

        seen = []

        def tensors(X):
            seen.append(X.shape)
            return [0] * len(X)

        class Rows(ClusterMixin, BaseEstimator):
            def fit_predict(self, X):
                return tensors(X)
        """,
    )
    for wanted, shape in zip(("tensors", "Rows"), shapes, strict=True):
        fit_once(own_method(f"own_views:{wanted}", view=view))
        assert sys.modules["own_views"].seen.pop() == shape
    del sys.modules["own_views"]


@pytest.mark.parametrize(
    ("code", "text"),
    [
        ("raise ValueError('no\\nluck')", "ValueError: no luck (own_errors.py, line 3)"),
        ("import sys; sys.exit(3)", "The method ended the program by sys.exit. (own_errors.py, "),
        (
            "return None",
            "ValueError: labels must be one whole number for each of the 45 samples. The",
        ),
    ],
)
def test_errors_are_told_with_their_line(module, code, text):
    sys.modules.pop("own_errors", None)
    module("own_errors", f"\ndef f(X, n_clusters):\n    {code}\n")
    with pytest.raises(MethodError) as caught:
        fit_once(own_method("own_errors:f"))
    assert str(caught.value).startswith(text)


def test_what_cannot_be_imported_is_told(module):
    module("own_broken", "import nothing_of_this_name\n")
    with pytest.raises(MethodError) as caught:
        fit_once(own_method("own_broken:f"))
    assert str(caught.value) == (
        "ModuleNotFoundError: No module named 'nothing_of_this_name' (own_broken.py, line 1)"
    )
    module("own_named", "def cluster(X):\n    pass\n")
    with pytest.raises(MethodError, match="module 'own_named' has no attribute 'f'"):
        fit_once(own_method("own_named:f"))


def test_what_a_method_prints_does_not_reach_the_results(module, capsys):
    module(
        "own_words", "print('at import')\n\ndef f(X):\n    print('in the fit')\n    return [0] * 45"
    )
    fit_once(own_method("own_words:f"))
    out, err = capsys.readouterr()
    assert out == ""
    assert err == "at import\nin the fit\n"


def test_ctrl_c_is_no_outcome(module):
    module("own_interrupt", "def f(X):\n    raise KeyboardInterrupt\n")
    with pytest.raises(KeyboardInterrupt):
        fit_once(own_method("own_interrupt:f"))


def test_wrong_names(module):
    with pytest.raises(ValueError, match="must be named as module:object, such as mymethod:cl"):
        own_method("mymethod")
    with pytest.raises(ValueError, match="There is no module 'not_there' in "):
        own_method("not_there:f")
    with pytest.raises(ValueError, match="names a file that is not there: check the path"):
        own_method("not_there.py:f")
    with pytest.raises(ValueError, match="A column called 'k-means' is already there"):
        own_method("sklearn.cluster:KMeans", name="k-means")
    with pytest.raises(ValueError, match="'view' parameter of own_method must be one of"):
        own_method("sklearn.cluster:KMeans", view="cubes")


def test_a_module_without_a_file_has_a_version(tmp_path):
    (tmp_path / "own_folder").mkdir()
    method = own_method("own_folder:f", folder=tmp_path)
    assert method.version == "1"
    assert method.factory == OwnMethod("own_folder", "f", "auto", str(tmp_path.resolve()), "")


class Merging:
    """Labels by the mean of a sample: the blobs differ by nothing else."""

    def __init__(self, n_clusters, ranks, seed):
        self.n_clusters = n_clusters

    def fit(self, X):
        means = X.reshape(len(X), -1).mean(axis=1)
        cuts = np.sort(means)[:: len(X) // self.n_clusters][1:]
        self.labels_ = np.searchsorted(cuts, means, side="right")
        return self


class Wrong:
    def __init__(self, n_clusters, ranks, seed):
        self.n_clusters = n_clusters

    def fit(self, X):
        if self.n_clusters == 3:
            raise ArithmeticError("no third cluster")
        self.labels_ = np.arange(len(X)) % 2


def names_of(tables):
    return {table.name: [row.name for row in table.rows] for table in tables}


def test_rows_by_table_by_name_and_by_dataset():
    everything = choose_rows(None, EXPERIMENTS)
    assert set(names_of(everything)) == set(EXPERIMENTS) - set(ON_REQUEST)
    assert names_of(choose_rows(["table1"], EXPERIMENTS)) == names_of([EXPERIMENTS["table1"]])
    some = names_of(choose_rows(["table3:K=4", "table5:ORL", "table3:K=3"], EXPERIMENTS))
    assert some == {"table3": ["K=3", "K=4"], "table5": ["ORL"]}
    cbcl = choose_rows(["cbcl"], EXPERIMENTS)
    assert {row.dataset for table in cbcl for row in table.rows} == {"cbcl"}
    assert not set(names_of(cbcl)) & set(ON_REQUEST)


def test_rows_that_show_those_of_another_table_stand_for_them():
    shown = {row.name: row.of for row in EXPERIMENTS["beyond"].rows if row.of is not None}
    table, name = shown["ORL, 10 persons"]
    for words in ("beyond:ORL, 10 persons", f"{table}:{name}"):
        assert names_of(choose_rows([words], EXPERIMENTS)) == {table: [name]}
    everything = names_of(choose_rows(None, EXPERIMENTS))
    assert not set(shown) & set(everything["beyond"])
    for table, name in shown.values():
        assert name in everything[table]


def test_wrong_rows():
    with pytest.raises(ValueError, match=r"There are no rows 'table99': name a table \(table1, "):
        choose_rows(["table99"], EXPERIMENTS)
    with pytest.raises(ValueError, match="table5 has no row 'K=3': its rows are 'ORL'"):
        choose_rows(["table5:K=3"], EXPERIMENTS)


@pytest.fixture
def library(fakes, monkeypatch):
    """One table on blobs, and published records of three columns."""
    table = fakes.table("random", "failing", runs=4)
    monkeypatch.setitem(LIBRARIES, "paper", {table.name: table})
    return table


@pytest.fixture
def published(library, tmp_path):
    reproduce(library, jobs=0, db=tmp_path / "published.jsonl", progress=None)
    records = read_store(tmp_path / "published.jsonl")
    path = tmp_path / "records.csv"
    path.write_text(records_csv(records))
    return path


def run(methods, tmp_path, published, **options):
    return benchmark(
        methods,
        **{"db": tmp_path / "own.jsonl", "jobs": 0, "progress": None, "records": published}
        | options,
    )


def test_a_method_is_placed_among_the_published_columns(tmp_path, published):
    result = run(Method("merging", Merging), tmp_path, published)
    assert [(one.row, one.metric) for one in result.places] == [
        (row, metric) for row in ("K=2", "K=3") for metric in ("AC", "NMI", "ARI")
    ]
    for one in result.places:
        assert one.mean == pytest.approx(1.0)  # the blobs are one apart
        assert (one.verdict, one.rival, one.rank, one.columns) == ("first", "random", 1, 2)
        assert (one.draws, one.lead.pairs, one.dataset) == (4, 4, "blobs")
        assert one.n_samples == 6 * one.n_clusters
    theirs = [
        one.ac for one in read_records(published) if (one.row, one.method) == ("K=2", "random")
    ]
    assert result.places[0].rival_mean == pytest.approx(np.mean(theirs))
    assert result.places[0].lead.error == pytest.approx(sem(1.0 - np.asarray(theirs)))
    tally = result.tally("merging", "AC")
    assert (tally["rows"], tally["first"], tally["median_rank"]) == (2, 2, 1)
    assert "merging" not in METHODS  # a guest


def test_a_run_continues_and_starts_anew_on_request(tmp_path, published):
    method = Method("merging", Merging)
    assert run(method, tmp_path, published, runs=2).report.computed == 4
    assert run(method, tmp_path, published).report.computed == 4
    assert run(method, tmp_path, published).report.computed == 0
    assert run(method, tmp_path, published, refresh=True).report.computed == 8
    changed = replace(method, version="2")
    assert run(changed, tmp_path, published, runs=1).report.computed == 2


def test_a_failing_method_costs_its_own_cells_only(tmp_path, published):
    result = run([Method("wrong", Wrong), Method("merging", Merging)], tmp_path, published, runs=2)
    assert {(one.row, one.error) for one in result.failures} == {
        ("K=3", "ArithmeticError: no third cluster")
    }
    assert {(one.method, one.row) for one in result.places} == {
        ("wrong", "K=2"),
        ("merging", "K=2"),
        ("merging", "K=3"),
    }
    # Guests are not measured against each other.
    assert {one.rival for one in result.places} == {"random"}


def test_columns_beside_are_computed_here(tmp_path, published, library):
    result = run(
        Method("merging", Merging), tmp_path, published, beside=["random", "giving-up"], runs=2
    )
    assert result.report.computed == 12
    assert {one.columns for one in result.places} == {2}  # one of the two gives up
    stored = read_store(tmp_path / "own.jsonl")
    here = [one.ac for one in stored if (one.method, one.row) == ("random", "K=2")]
    assert result.places[0].rival_mean == pytest.approx(np.mean(here))


def test_records_of_other_draws_and_variants_do_not_count(tmp_path, published, library, fakes):
    records = read_records(published)
    bound = replace(METHODS["random"], name="bound", uses_truth=True)
    variant = replace(METHODS["random"], name="variant", variant_of="random")
    lines = [replace(one, digest="older") if one.run == 0 else one for one in records]
    METHODS.update(bound=bound, variant=variant)
    try:
        lines += [
            replace(one, method=name, ac=1.0)
            for name in ("bound", "variant")
            for one in records
            if one.method == "random"
        ]
        published.write_text(records_csv(lines))
        result = run(Method("merging", Merging), tmp_path, published)
    finally:
        METHODS.pop("bound")
        METHODS.pop("variant")
    assert result.older == 4  # two rows of two columns
    assert {(one.lead.pairs, one.columns) for one in result.places} == {(3, 2)}


def test_rows_without_their_data_are_left_out(tmp_path, published, library, monkeypatch):
    rows = (*library.rows, replace(library.rows[0], name="far away", dataset="mnist"))
    monkeypatch.setitem(LIBRARIES, "paper", {library.name: replace(library, rows=rows)})
    result = run(Method("merging", Merging), tmp_path, published, runs=1, data=tmp_path)
    assert set(result.report.absent) == {"mnist"}
    assert {one.row for one in result.places} == {"K=2", "K=3"}
    with pytest.raises(FileNotFoundError, match="The rows need mnist, which are not on this mach"):
        run(Method("other", Merging), tmp_path, published, rows=["mnist"], data=tmp_path)


def test_the_quick_tables_have_columns_beside_them(tmp_path):
    result = benchmark(
        Method("merging", Merging),
        rows=["table3:K=3"],
        quick=True,
        runs=2,
        jobs=0,
        db=tmp_path / "quick.jsonl",
        progress=None,
    )
    assert {one.columns for one in result.places} == {1 + len(BESIDE_QUICK)}
    assert result.places[0].dataset == QUICK_EXPERIMENTS["table3"].rows[0].dataset


def test_the_names_of_guests_are_their_own(tmp_path, published):
    with pytest.raises(ValueError, match="'random' is already registered"):
        run([Method("merging", Merging), Method("random", Merging)], tmp_path, published)
    assert "merging" not in METHODS


def test_places_as_csv(tmp_path, published):
    result = run(Method("merging", Merging), tmp_path, published, runs=2)
    lines = list(csv.DictReader(io.StringIO(places_csv(result.places))))
    assert list(lines[0]) == ["schema_version", *PLACE_FIELDS]
    assert {line["schema_version"] for line in lines} == {str(PLACES_VERSION)}
    for line, one in zip(lines, result.places, strict=True):
        assert float(line["mean"]) == one.mean
        assert float(line["lead"]) == one.lead.mean
        assert line["winners"] == "|".join(one.winners)
    ahead = replace(result.places[0], winners=("a", "b"), lead=None)
    (line,) = csv.DictReader(io.StringIO(places_csv([ahead])))
    assert (line["winners"], line["lead"], line["common_draws"]) == ("a|b", "", "0")


def test_every_dataset_of_the_tables_can_be_asked_for(fakes):
    entries = {row.dataset for table in EXPERIMENTS.values() for row in table.rows}
    assert entries <= set(DATASETS)
    assert all(isinstance(DATASETS[name], DatasetEntry) for name in entries)
