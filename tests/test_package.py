"""The package as a whole: what it offers, what it pulls in, who may import whom."""

from __future__ import annotations

import ast
import importlib
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import tuckermix

ROOT = Path(__file__).resolve().parent.parent
SOURCE = ROOT / "src" / "tuckermix"

HEAVY = (
    *("torch", "dask", "matplotlib", "typer", "rich", "h5py", "zarr", "pymanopt", "jinja2"),
    *("PIL", "av", "imageio", "tifffile", "pandas"),
)

# The reading order of the package. A module imports only from what stands before it.
ORDER = (
    *("_version", "_records", "_files", "_array_api", "_validation", "tensor"),
    *("datasets", "sources"),
    *("manifolds", "objectives", "solvers"),
    *("decomposition", "memberships", "labels", "clustering", "baselines"),
    *("metrics", "persistence", "experiments"),
    *("plots", "report", "cli"),
)

# Edges against the order that are meant, as (module, imported top-level name): none so far.
ALLOWED: set[tuple[str, str]] = set()

PUBLIC = {
    "tuckermix": "__version__",
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


def test_import_is_light():
    code = f"import sys, tuckermix; print(*sorted(set({HEAVY!r}) & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == []


@pytest.mark.parametrize("path", _modules(), ids=_name)
def test_imports_follow_the_reading_order(path):
    parts = _name(path).split(".")
    if len(parts) == 1:
        return  # the package itself gathers from everywhere
    assert parts[1] in ORDER, f"{path.name}: give {parts[1]!r} its place in ORDER"
    for target in _imported(path):
        top = target.split(".")[1] if "." in target else "tuckermix"
        if (_name(path), top) in ALLOWED:
            continue
        assert top in ORDER, f"{_name(path)} imports {target}: import from the module that defines"
        assert ORDER.index(top) <= ORDER.index(parts[1]), f"{_name(path)} imports {target}"


@pytest.mark.parametrize("module", PUBLIC)
def test_public_names(module):
    namespace = importlib.import_module(module)
    names = PUBLIC[module].split()
    assert [name for name in names if not hasattr(namespace, name)] == []
    assert set(names) <= set(namespace.__all__)
    assert [name for name in namespace.__all__ if not hasattr(namespace, name)] == []


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
