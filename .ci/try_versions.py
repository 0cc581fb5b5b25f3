"""Run core tests with the oldest versions that are allowed, and with the newest on newer Pythons.

Run as ``python .ci/try_versions.py FOLDER``; each environment is made there once. The oldest
versions are the lower bounds in ``pyproject.toml``, on the oldest Python. Before the tests comes
what users do, without SciPy's switch for other array libraries, which they need not know of.
"""

from __future__ import annotations

import glob
import os
import subprocess
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent

OLDEST = "3.11"
NEWER = ("3.12", "3.13")

TOOLS = ("pytest", "pytest-timeout", "pytest-xdist", "hypothesis", "pandas", "array-api-strict")

WITH_OLDEST = (
    "tests/numerics tests/decomposition tests/sources/test_source.py tests/labels "
    "tests/memberships tests/test_solvers.py tests/selection/test_auto.py "
    "tests/baselines/test_base.py tests/test_clustering.py tests/test_model.py "
    "tests/test_estimator_checks.py"
)
WITH_NEWEST = (
    "tests/numerics/test_linalg.py tests/decomposition/test_fit.py tests/sources/test_source.py "
    "tests/labels/test_labellers.py tests/test_clustering.py tests/test_model.py "
    "tests/test_estimator_checks.py tests/test_persistence.py"
)

WITHOUT_SWITCH = """
import os, warnings
import numpy as np
from tuckermix import AutoClustering, TuckerClustering

assert "SCIPY_ARRAY_API" not in os.environ
warnings.simplefilter("error")
rng = np.random.default_rng(0)
TuckerClustering(3).fit(rng.random((30, 1)))
TuckerClustering(3, memberships="archetypes").fit(rng.random((30, 6, 5), dtype=np.float32))
AutoClustering(features="pixels", max_samples=60).fit(rng.random((60, 16, 16)))
"""
"""What a user does, with nothing set."""


def find_python(version: str) -> str | None:
    """Return an interpreter of a version that works, also one that pyenv does not show."""
    hidden = os.environ.get("PYENV_ROOT") or os.path.expanduser("~/.pyenv")
    for name in (
        f"python{version}",
        *sorted(glob.glob(f"{hidden}/versions/{version}.*/bin/python")),
    ):
        try:
            done = subprocess.run([name, "-c", "import venv"], capture_output=True)
        except OSError:
            continue
        if done.returncode == 0:
            return name
    return None


def lower_bounds() -> list[str]:
    """Return the dependencies, each at the oldest version allowed."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    return [needed.replace(">=", "==") for needed in project["dependencies"]]


def try_versions(home: Path, python: str, packages: list[str], tests: str) -> None:
    """Make an environment with the packages, and run the tests there."""
    inside = str(home / "bin" / "python")
    stamp = home / "made-with.txt"
    wanted = "\n".join([*packages, *TOOLS])
    if not stamp.exists() or stamp.read_text() != wanted:
        subprocess.run([python, "-m", "venv", "--clear", str(home)], check=True)
        install = [inside, "-m", "pip", "install", "-qq", "--disable-pip-version-check"]
        subprocess.run([*install, *packages, *TOOLS, "--editable", str(ROOT)], check=True)
        stamp.write_text(wanted)
    environment = {
        key: text
        for key, text in os.environ.items()
        if key not in ("SCIPY_ARRAY_API", "PYTHONPATH")
    }
    subprocess.run([inside, "-c", WITHOUT_SWITCH], check=True, env=environment)
    options = ["-q", "-m", "not slow", "-n", "2", "-p", "no:cacheprovider", "--no-header"]
    done = subprocess.run([inside, "-m", "pytest", *options, *tests.split()], cwd=ROOT)
    if done.returncode:
        sys.exit(f"The tests in {home} failed.")


def main(folder: Path) -> None:
    """Try the oldest versions, then the newest on each newer Python that is here."""
    plan = [(OLDEST, "oldest", lower_bounds(), WITH_OLDEST)]
    plan += [(version, "newest", [], WITH_NEWEST) for version in NEWER]
    for version, which, packages, tests in plan:
        python = find_python(version)
        if python is None:
            print(f"Python {version} is not here: not tried with the {which} versions.", flush=True)
            continue
        print(f"The {which} versions on Python {version}:", *packages, flush=True)
        try_versions(folder.resolve() / f"{which}-{version}", python, packages, tests)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
