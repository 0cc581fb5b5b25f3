import subprocess
import sys

import pytest
from tests.cases import each

from tuckermix import TuckerClustering, _names
from tuckermix.decomposition import INITS, SOLVERS
from tuckermix.labels import LABELLINGS
from tuckermix.memberships import SIMPLICES

# A name, the parameter that takes it, and the table that has it as a key.
TABLES = [
    ("SOLVERS", "solver", SOLVERS),
    ("INITS", "init", INITS),
    ("SIMPLICES", "memberships", SIMPLICES),
    ("LABELLINGS", "assign_labels", LABELLINGS),
    ("OUTLIERS", "outliers", _names.OUTLIERS),
    ("MISSING", "missing", _names.MISSING),
]


@each("names, parameter, table", TABLES)
def test_every_word_is_one_that_the_estimator_takes(names, parameter, table):
    for word in getattr(_names, names):
        assert word in table
        TuckerClustering(**{parameter: word}).check_params()
    with pytest.raises(ValueError, match=f"'{parameter}' parameter of TuckerClustering"):
        TuckerClustering(**{parameter: "another"}).check_params()


def test_tables_have_no_further_words_and_names_cost_nothing():
    """In a process of its own: whoever adds a solver here has it in the table only."""
    code = (
        "import sys; from tuckermix import _names; print('numpy' in sys.modules);"
        "from tuckermix.decomposition import SOLVERS; from tuckermix.labels import LABELLINGS;"
        "from tuckermix.memberships import SIMPLICES;"
        "print(tuple(SOLVERS) == _names.SOLVERS, tuple(LABELLINGS) == _names.LABELLINGS,"
        " tuple(SIMPLICES) == _names.SIMPLICES)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False", "True", "True", "True"]


def test_the_command_line_has_the_defaults_of_the_estimator():
    pytest.importorskip("typer")
    from tuckermix.cli.cluster import Model

    defaults, options = TuckerClustering().get_params(), Model.usual()
    shared = (defaults.keys() & options.keys()) - {"missing"}  # "none" for None
    assert len(shared) > 8
    for name in shared:
        assert options[name] == defaults[name], name


@pytest.mark.parametrize("scale", _names.SCALES)
def test_scales_are_those_of_the_transformer(scale, rng):
    from tuckermix.features import Scale

    X = rng.random((4, 3, 3))
    assert Scale(scale).fit_transform(X).shape == X.shape


@each("kind", _names.KINDS[1:])
def test_kinds_are_those_of_pictures(kind):
    from tuckermix.plots.pictures import picture_kind

    assert picture_kind((6, 7, 3), kind) == kind
