import sys
import textwrap

import numpy as np
import pytest
from sklearn.cluster import DBSCAN, KMeans
from sklearn.decomposition import PCA
from sklearn.mixture import GaussianMixture
from sklearn.pipeline import make_pipeline

from tuckermix import TuckerClustering
from tuckermix.datasets import make_tensor_clusters
from tuckermix.experiments.own import OwnMethod, checked_labels, clusterer, own_method
from tuckermix.features import Scattering
from tuckermix.metrics import clustering_accuracy

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


@pytest.mark.parametrize(
    ("found", "rows"),
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
    ids=lambda value: getattr(value, "__name__", type(value).__name__),
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


@pytest.mark.parametrize(
    ("found", "text"),
    [
        (None, "The method returned None"),
        ([[0, 1], [2]], "The method returned no array"),
        (np.zeros(4, int), r"an array of shape \(4,\)\."),
        (np.zeros((5, 3)), r"an array of shape \(5, 3\): take argmax"),
        (np.asarray(3), r"an array of shape \(\)\."),
        (["a", "b", "a", "b", "a"], "str_ values such as 'a': number the clusters"),
        ([0.0, 1.0, float("nan"), 1.0, 0.0], "NaN or infinity for 1"),
        ([0.5, 1.0, 1.0, 1.0, 0.0], "fractions such as 0.5"),
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


def run(method, X=DATA.X):
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
    found = run(method)
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
    assert run(method).labels_[:3].tolist() == [0, 1, 0]
    assert own_method("own_package.absent:f").version == "1"
    assert "No module named" in run(own_method("own_package.absent:f")).failure_


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
        found = run(own_method(f"own_views:{wanted}", view=view))
        assert not hasattr(found, "failure_"), found.failure_
        assert sys.modules["own_views"].seen.pop() == shape
    del sys.modules["own_views"]


@pytest.mark.parametrize(
    ("code", "text"),
    [
        ("raise ValueError('no\\nluck')", "ValueError: no luck (own_errors.py, line 3)"),
        ("import sys; sys.exit(3)", "The method ended the program by sys.exit. (own_errors.py, "),
        ("return None", "labels must be one whole number for each of the 45 samples. The method"),
    ],
)
def test_errors_are_outcomes_with_their_line(module, code, text):
    sys.modules.pop("own_errors", None)
    module("own_errors", f"\ndef f(X, n_clusters):\n    {code}\n")
    found = run(own_method("own_errors:f"))
    assert found.stop_reason_ == "failed"
    assert found.failure_.startswith(text)
    assert found.labels_.shape == (45,)


def test_what_cannot_be_imported_is_an_outcome(module):
    module("own_broken", "import nothing_of_this_name\n")
    found = run(own_method("own_broken:f"))
    assert found.failure_ == (
        "ModuleNotFoundError: No module named 'nothing_of_this_name' (own_broken.py, line 1)"
    )
    module("own_named", "def cluster(X):\n    pass\n")
    found = run(own_method("own_named:f"))
    assert "own_named has no 'f': check the name. It has cluster." in found.failure_


def test_what_a_method_prints_does_not_reach_the_results(module, capsys):
    module(
        "own_words", "print('at import')\n\ndef f(X):\n    print('in the fit')\n    return [0] * 45"
    )
    run(own_method("own_words:f"))
    out, err = capsys.readouterr()
    assert out == ""
    assert err == "at import\nin the fit\n"


def test_ctrl_c_is_no_outcome(module):
    module("own_interrupt", "def f(X):\n    raise KeyboardInterrupt\n")
    with pytest.raises(KeyboardInterrupt):
        run(own_method("own_interrupt:f"))


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
