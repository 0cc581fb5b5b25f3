import pytest

from tuckermix.experiments import fingerprint
from tuckermix.experiments.fingerprint import code_fingerprint


def test_a_class_is_followed_into_what_it_imports():
    path = "tuckermix.clustering:TuckerClustering"
    before = code_fingerprint(path)
    assert len(before) == 12
    assert before == code_fingerprint(path)
    assert before != code_fingerprint("tuckermix.baselines:MultiplicativeNMF")


@pytest.fixture
def package(tmp_path, monkeypatch):
    """A small package in place of this one."""
    monkeypatch.setattr(fingerprint, "_path_of", lambda name: paths.get(name))
    paths = {}

    def write(name, text):
        paths[name] = tmp_path / f"{name}.py"
        paths[name].write_text(text)
        fingerprint._module_fingerprint.cache_clear()

    write("tuckermix.a", "from tuckermix.b import f\n\nclass A:\n    pass\n")
    write("tuckermix.b", "def f():\n    '''Say.'''\n    return 1\n")
    write("tuckermix.c", "from tuckermix.a import A\n")
    yield write
    fingerprint._module_fingerprint.cache_clear()


def test_code_counts_and_remarks_do_not(package):
    before = code_fingerprint("tuckermix.a:A")
    package("tuckermix.b", "# A remark.\ndef f():\n    '''Say more.'''\n    return 1\n")
    assert code_fingerprint("tuckermix.a:A") == before
    package("tuckermix.b", "def f():\n    return 2\n")
    assert code_fingerprint("tuckermix.a:A") != before


def test_a_name_handed_on_by_a_package_is_followed(package):
    assert code_fingerprint("tuckermix.c:A") == code_fingerprint("tuckermix.a:A")


def test_the_runner_itself_does_not_count(package):
    before = code_fingerprint("tuckermix.a:A")
    package("tuckermix.experiments.x", "value = 1\n")
    package("tuckermix.b", "def f():\n    import tuckermix.experiments.x\n    return 1\n")
    changed = code_fingerprint("tuckermix.a:A")
    assert changed != before
    package("tuckermix.experiments.x", "value = 2\n")
    assert code_fingerprint("tuckermix.a:A") == changed


def test_a_function_is_its_own_source():
    def one():
        return 1

    def two():
        return 2

    assert code_fingerprint(one) != code_fingerprint(two)
    assert code_fingerprint(len) == ""
