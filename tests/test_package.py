"""The package as a whole: what it offers, what it pulls in, who may import whom."""

from __future__ import annotations

import ast
import importlib
import inspect
import itertools
import json
import re
import subprocess
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tuckermix

ROOT = Path(__file__).resolve().parent.parent
SOURCE = ROOT / "src" / "tuckermix"
TESTS = ROOT / "tests"

HEAVY = (
    *("torch", "jax", "dask", "matplotlib", "typer", "rich", "h5py", "pymanopt", "jinja2"),
    *("PIL", "av", "zarr", "numcodecs", "tifffile", "pandas", "nibabel", "pyarrow"),
)

# The reading order of the package. A module imports only from what stands before it.
ORDER = (
    *(
        "_version",
        "_optional",
        "_names",
        "_records",
        "_files",
        "_machine",
        "_reading",
        "_archives",
        "_tables",
        "_axes",
        "_pixels",
        "_sandbox",
        "_array_api",
        "_estimators",
        "_threads",
        "_validation",
    ),
    "numerics",
    *("datasets", "sources", "features"),
    *("manifolds", "objectives", "solvers"),
    *("decomposition", "labels", "memberships"),
    *("model", "clustering", "selection", "baselines"),
    *("metrics", "summary", "persistence"),
    *("plots", "report", "experiments", "cli", "__main__"),
)

# Edges against the order that are meant, as (module, imported top-level name): none so far.
ALLOWED: set[tuple[str, str]] = set()

# What shows users how to call the package.
EXAMPLES = sorted(
    path.relative_to(ROOT)
    for pattern in ("*.md", "docs/**/*.rst", "docs/**/*.md", "examples/**/*.py")
    for path in ROOT.glob(pattern)
)

# The public names of version 0.1.0 with the parameters that they take.
FIRST_VERSION = TESTS / "golden" / "public_0_1_0.json"

# What version 0.2 warned about and 0.3 takes away.
TAKEN_AWAY = {
    *("plots.MemberDisplay(nearest=)", "plots.MemberDisplay(farthest=)"),
    "sources.Source.cost_of",
}

# How long the way of one fit may become for whoever reads along.
MOST_FUNCTIONS, MOST_FILES, MOST_SWITCHES = 114, 16, 41

# Files that hold no behaviour of their own.
WITHOUT_TESTS = {"_version.py"}

PUBLIC = {
    "tuckermix": (
        *("TuckerClustering", "AutoClustering", "MultiViewClustering"),
        *("decompose", "save", "load", "__version__"),
    ),
    "tuckermix.selection": ("AutoClustering", "MultiViewClustering", "Selection", "Trial"),
    "tuckermix.baselines": (
        *("PCAMultinomial", "PCAB", "MultiplicativeNMF", "AlternatingNMF", "BayesianNMF"),
        *("ProjectedGradientNMF", "DRCC", "TriONTD", "ASIT"),
        *("LSR", "AutoSC", "ADSSC", "EnSC", "SSCOMP", "TAGCSC"),
    ),
    "tuckermix.metrics": ("clustering_accuracy", "normalized_mutual_information"),
    "tuckermix.objectives": ("MembershipObjective",),
    "tuckermix.manifolds": ("Multinomial", "to_pymanopt"),
    "tuckermix.solvers": ("trust_region",),
    "tuckermix.features": ("Network", "Scattering", "Scale"),
    "tuckermix.datasets": (
        "load",
        "read",
        "labels_like",
        "make_tensor_clusters",
        "make_dynamic_textures",
    ),
}


def _modules() -> list[Path]:
    return sorted(SOURCE.rglob("*.py"))


def _name(path: Path) -> str:
    parts = path.relative_to(SOURCE.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def _imported(path: Path) -> Iterator[str]:
    """Yield the dotted names of all modules of the package that a file imports, anywhere in it."""
    names = {_name(module) for module in _modules()}
    package = _name(path) if path.name == "__init__.py" else _name(path).rpartition(".")[0]
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (a.name for a in node.names if a.name.split(".")[0] == "tuckermix")
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:  # relative: climb from the package that holds the file
                parents = package.split(".")[: len(package.split(".")) - node.level + 1]
                base = ".".join([*parents, base] if base else parents)
            if base.split(".")[0] == "tuckermix":
                for alias in node.names:
                    submodule = f"{base}.{alias.name}"
                    yield submodule if submodule in names else base


def _loaded_by(code: str) -> set[str]:
    """Return the top-level packages that a fresh interpreter has loaded after running `code`."""
    code += "\nimport sys; print(*{name.split('.')[0] for name in sys.modules})"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return set(done.stdout.split())


def test_import_is_light():
    assert not _loaded_by("import tuckermix") & {*HEAVY, "sklearn", "scipy", "numpy"}


def test_using_the_public_names_is_light():
    loaded = _loaded_by("import tuckermix\nfor name in tuckermix.__all__: getattr(tuckermix, name)")
    # scikit-learn itself looks for pandas and rich, and pandas for pyarrow.
    assert loaded & set(HEAVY) <= {"pandas", "rich", "pyarrow"}


def test_imports_follow_the_reading_order():
    places = {name: place for place, name in enumerate(ORDER)}
    wrong = []
    for path in _modules():
        name = _name(path)
        if "." not in name:
            continue  # the package itself gathers from everywhere
        here = name.split(".")[1]
        if here not in places:
            wrong.append(f"{path.name}: give {here!r} its place in ORDER")
            continue
        for target in _imported(path):
            top = target.split(".")[1] if "." in target else "tuckermix"
            if (name, top) in ALLOWED:
                continue
            if top not in places:
                wrong.append(f"{name} imports {target}: import from the module that defines it")
            elif places[top] > places[here]:
                wrong.append(f"{name} imports {target}, which comes later")
    assert wrong == []


def _private_parts(code: str, home: str | None) -> list[str]:
    """List what code imports of packages other than `home` that starts with an underscore.

    A private module beside the packages serves them all, but nobody outside the source.
    """
    found = []
    for node in ast.walk(ast.parse(code)):
        if not isinstance(node, ast.Import | ast.ImportFrom):
            continue
        names = [alias.name for alias in node.names]
        if isinstance(node, ast.ImportFrom):
            names = [f"{node.module}.{name}" for name in names]
        for name in names:
            parts = name.split(".")
            inner = parts[1 if home is None else 2 :]
            hidden = [part for part in inner if re.match("_(?!_)", part)]
            if parts[0] == "tuckermix" and hidden and parts[1] != home:
                found.append(name)
    return found


def test_no_package_reaches_into_another():
    wrong = []
    for path in _modules():
        home = (*_name(path).split("."), "")[1]
        found = _private_parts(path.read_text(encoding="utf-8"), home)
        wrong += [f"{_name(path)} imports {name}" for name in found]
    assert wrong == []


def test_what_reaches_into_a_package_is_seen():
    reaching = "from tuckermix.datasets._read import read\nimport tuckermix.plots._a"
    assert len(_private_parts(reaching, "report")) == 2
    assert len(_private_parts("from tuckermix.sources.source import _moments", "model")) == 1
    assert _private_parts(reaching.splitlines()[0], "datasets") == []
    assert _private_parts("from tuckermix._files import write_text", "report") == []
    assert len(_private_parts("from tuckermix._files import write_text", None)) == 1


def test_examples_use_public_names_only():
    wrong = []
    for page in EXAMPLES:
        text = (ROOT / page).read_text(encoding="utf-8")
        if page.suffix != ".py":
            lines = re.findall(r"^ *(?:>>> )?((?:from|import) tuckermix.*)$", text, re.MULTILINE)
            text = "\n".join(line for line in lines if "(" not in line)
        wrong += [f"{page}: {name}" for name in _private_parts(text, None)]
    assert wrong == []


def test_names_of_the_first_version_are_still_there():
    """Each name, method and parameter that version 0.1.0 offered, unless it warns that it goes."""
    lost = []
    for name, parameters in json.loads(FIRST_VERSION.read_text(encoding="utf-8")).items():
        if name.startswith(("experiments.", "tensor.")):  # another distribution, `numerics`
            continue
        value: Any = tuckermix
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", DeprecationWarning)  # of a place that has moved
                for part in name.split("."):
                    value = getattr(value, part)
        except AttributeError:
            lost.append(name)
            continue
        if parameters is not None:
            taken = inspect.signature(value).parameters
            if not any(p.kind is p.VAR_KEYWORD for p in taken.values()):
                gone = [key for key in parameters if key not in taken]
                lost += [f"{name}({key}=)" for key in gone if not _still_taken(value, key)]
    assert set(lost) == TAKEN_AWAY


def _still_taken(call: Any, key: str) -> bool:
    """Tell whether a call takes a parameter that it no longer shows, and warns."""
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        try:
            call(**{key: 1})
        except TypeError:
            return False
    return any(issubclass(one.category, FutureWarning) for one in seen)


def test_each_source_file_has_a_test_file():
    missing = []
    for path in _modules():
        if path.name.startswith("__") or path.name in WITHOUT_TESTS:
            continue
        folder = TESTS / path.relative_to(SOURCE).parent
        wanted = {f"test_{path.name}", f"test_{path.name.lstrip('_')}"}
        if not any((folder / name).is_file() for name in wanted):
            missing.append(
                f"{_name(path)}: {folder.relative_to(ROOT)} has none of {sorted(wanted)}"
            )
    assert missing == []


def test_public_names():
    wrong = []
    for module, names in PUBLIC.items():
        namespace = importlib.import_module(module)
        wrong += [f"{module}.__all__ lacks {n}" for n in names if n not in namespace.__all__]
        wrong += [f"{module} has no {n}" for n in namespace.__all__ if not hasattr(namespace, n)]
    assert wrong == []


def test_one_fit_is_short_to_follow():
    """Functions, files and switches between files, in the order in which a fit enters them."""
    rng = np.random.default_rng(0)
    centers = rng.standard_normal((4, 9, 8))
    X = centers[np.repeat(np.arange(4), 60)] + 0.7 * rng.standard_normal((240, 9, 8))
    estimator = tuckermix.TuckerClustering(4, random_state=0)
    estimator.fit(X)  # imports and caches out of the way
    way: dict[tuple[str, str], None] = {}

    def note(frame: Any, event: str, _: Any) -> None:
        code = frame.f_code
        path = Path(code.co_filename)
        if event == "call" and path.is_relative_to(SOURCE) and not code.co_name.startswith("<"):
            way.setdefault((str(path), code.co_qualname))

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        type(estimator)(4, random_state=0).fit(X)
    finally:
        sys.setprofile(before)
    # Which array library it is stands aside from the way: all files ask.
    files = [path for path, _ in way if Path(path).name != "_array_api.py"]
    switches = sum(one != next_ for one, next_ in itertools.pairwise(files))
    assert len(files) <= MOST_FUNCTIONS, "\n".join(" ".join(step) for step in way)
    assert len(set(files)) <= MOST_FILES
    assert switches <= MOST_SWITCHES, "\n".join(" ".join(step) for step in way)


def test_versions_agree():
    yaml = pytest.importorskip("yaml")
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    assert str(citation["version"]) == tuckermix.__version__
    assert citation["preferred-citation"]["year"] == 2016
    changelog = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    assert re.search(rf"^## \[{re.escape(tuckermix.__version__)}\]", changelog, re.MULTILINE)


def test_constraints_are_plain_pins():
    lines = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    pins = [line for line in lines if line and not line.startswith("#")]
    assert pins
    assert [pin for pin in pins if not re.fullmatch(r"[A-Za-z0-9._-]+==[A-Za-z0-9.]+", pin)] == []
