"""The columns of the tables: each can be built, and gets what its row gives."""

import hashlib
import inspect

import numpy as np
import pytest

from tuckermix import TuckerClustering
from tuckermix.baselines import _labels
from tuckermix.experiments import METHODS, Method, methods, rivals
from tuckermix.experiments.methods import build, code_fingerprint, select_methods
from tuckermix.experiments.tables import EXPERIMENTS

RANKS = (2, 3)


@pytest.mark.parametrize("name", METHODS)
def test_every_method_is_built_with_seed_and_settings(name):
    method = METHODS[name]
    settings = {**method.settings, **method.quick_settings}
    estimator = build(method, 3, RANKS, 7, settings)
    if isinstance(method.factory, str):
        parameters = estimator.get_params()
        assert parameters["n_clusters"] == 3
        assert parameters["random_state"] == 7
        assert {key: parameters[key] for key in settings} == settings
        assert (parameters.get("ranks") == RANKS) == method.takes_ranks
    assert "X" in inspect.signature(estimator.fit).parameters


@pytest.mark.parametrize("table", EXPERIMENTS)
def test_every_column_of_the_paper_is_known(table):
    experiment = EXPERIMENTS[table]
    chosen = select_methods(None, experiment.methods)
    assert [method.name for method in chosen] == list(experiment.methods)


def test_chosen_columns_keep_their_order():
    names = ["k-means", "MM"]
    assert [method.name for method in select_methods(names, ["DRCC"])] == names


def test_unknown_columns_are_refused():
    with pytest.raises(ValueError, match=r"'methods' parameter of reproduce must be one of"):
        select_methods(["no-such-method"], [])


def test_a_function_gets_clusters_ranks_seed_and_settings():
    seen = {}

    def factory(n_clusters, ranks, seed, **settings):
        seen.update(n_clusters=n_clusters, ranks=ranks, seed=seed, **settings)
        return "estimator"

    assert build(Method("mine", factory), 4, RANKS, 1, {"depth": 2}) == "estimator"
    assert seen == {"n_clusters": 4, "ranks": RANKS, "seed": 1, "depth": 2}


def test_kmeans_on_pixels_has_as_many_starts_as_the_other_methods():
    assert METHODS["k-means"].settings["n_init"] == _labels.KMEANS_STARTS


def test_pixels_are_flattened_for_methods_that_need_vectors():
    X = np.concatenate([np.zeros((6, 2, 3, 2)), np.ones((6, 2, 3, 2))])
    model = build(METHODS["k-means"], 2, RANKS, 0, {"n_init": 1}).fit(X)
    assert len(set(model.labels_[:6])) == len(set(model.labels_[6:])) == 1
    assert model.labels_[0] != model.labels_[-1]


def test_a_class_is_followed_into_what_it_imports():
    path = "tuckermix:TuckerClustering"
    before = code_fingerprint(path)
    assert len(before) == 12
    assert before == code_fingerprint(path)
    assert before != code_fingerprint("tuckermix.baselines:MultiplicativeNMF")


@pytest.fixture
def package(tmp_path, monkeypatch):
    """A small package in place of this one."""
    monkeypatch.setattr(methods, "_path_of", lambda name: paths.get(name))
    paths = {}

    def write(name, text):
        paths[name] = tmp_path / f"{name}.py"
        paths[name].write_text(text)
        methods._module_fingerprint.cache_clear()

    write("tuckermix.a", "from tuckermix.b import f\n\nclass A:\n    pass\n")
    write("tuckermix.b", "def f():\n    '''Say.'''\n    return 1\n")
    yield write
    methods._module_fingerprint.cache_clear()


def test_code_counts_and_remarks_do_not(package):
    before = methods._module_fingerprint("tuckermix.a")
    package("tuckermix.b", "# A remark.\ndef f():\n    '''Say more.'''\n    return 1\n")
    assert methods._module_fingerprint("tuckermix.a") == before
    package("tuckermix.b", "def f():\n    return (\n        1  # one\n    )\n")
    wrapped = methods._module_fingerprint("tuckermix.a")
    package("tuckermix.b", "def f():\n    return ( 1 )  # 1\n")
    assert methods._module_fingerprint("tuckermix.a") == wrapped
    package("tuckermix.b", "def f():\n    return 2\n")
    assert methods._module_fingerprint("tuckermix.a") != before
    package("tuckermix.b", "def f():\n    return f'{1:#x} # no remark'\n")
    text = methods._module_fingerprint("tuckermix.a")
    package("tuckermix.b", "def f():\n    return f'{1:#x} # no'\n")
    assert methods._module_fingerprint("tuckermix.a") != text


def test_a_fingerprint_does_not_depend_on_the_version_of_python(package):
    """Records are compared across machines: only the text of the code counts."""
    package("tuckermix.b", "def f(x: int = 1) -> str:\n    return f'{x!r}' if x else '{{}}'\n")
    code = (
        "tuckermix.a\nfromtuckermix.bimportfclassA:pass\n"
        "tuckermix.b\ndeff(x:int=1)->str:returnf'{x!r}'ifxelse'{{}}'\n"
    )
    expected = hashlib.sha256(code.encode()).hexdigest()[:12]
    assert methods._module_fingerprint("tuckermix.a") == expected


def test_a_name_handed_on_by_a_package_is_followed():
    where = TuckerClustering.__module__
    assert where != "tuckermix"
    expected = code_fingerprint(f"{where}:TuckerClustering")
    assert code_fingerprint("tuckermix:TuckerClustering") == expected


@pytest.mark.parametrize("path", ["tuckermix.absent:A", "tuckermix.baselines:Absent"])
def test_what_cannot_be_imported_has_no_fingerprint(path):
    assert code_fingerprint(path) == ""


def test_the_runner_itself_does_not_count(package):
    before = methods._module_fingerprint("tuckermix.a")
    package("tuckermix.experiments.x", "value = 1\n")
    package("tuckermix.b", "def f():\n    import tuckermix.experiments.x\n    return 1\n")
    changed = methods._module_fingerprint("tuckermix.a")
    assert changed != before
    package("tuckermix.experiments.x", "value = 2\n")
    assert methods._module_fingerprint("tuckermix.a") == changed


def test_a_function_is_followed_into_what_it_imports(package):
    def build_it():
        from tuckermix.b import f

        return f

    before = code_fingerprint(build_it)
    package("tuckermix.b", "def f():\n    return 2\n")
    assert code_fingerprint(build_it) != before


def test_a_function_is_followed_into_its_own_module(monkeypatch):
    before = code_fingerprint(METHODS["PCA, our labels"].factory)
    monkeypatch.setattr(rivals, "_whitened", rivals._leading)
    assert code_fingerprint(METHODS["PCA, our labels"].factory) != before


def test_a_function_is_its_own_source():
    def one():
        return 1

    def two():
        return 2

    assert code_fingerprint(one) != code_fingerprint(two)
    assert code_fingerprint(len) == ""
