"""Fixtures: methods and data that take no time, and the command line."""

import os
import subprocess
import sys
from pathlib import Path

for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(_name, "1")
os.environ.setdefault("MPLBACKEND", "Agg")

import pytest

# The processes of a run import the fakes by name, and inherit this path.
sys.path.insert(0, str(Path(__file__).parent))
os.environ["PYTHONPATH"] = os.pathsep.join(
    filter(None, [str(Path(__file__).parent), os.environ.get("PYTHONPATH")])
)

import fakes as fake_methods


@pytest.fixture
def fakes():
    fake_methods.register()
    yield fake_methods
    fake_methods.unregister()


@pytest.fixture(params=range(2))
def seed(request):
    return request.param


@pytest.fixture
def run(capfd):
    """Return a function that runs the command line in this process."""
    from tuckermix.cli import main

    def call(*words):
        code = main([str(word) for word in words])
        out, err = capfd.readouterr()
        return code, out, err

    return call


@pytest.fixture
def shell():
    """Return a function that runs the command line in a process of its own."""

    def call(*words, **options):
        return subprocess.run(
            [sys.executable, "-m", "tuckermix", *map(str, words)],
            capture_output=True,
            text=True,
            timeout=120,
            **options,
        )

    return call


@pytest.fixture
def fails(run):
    """Return a function that runs a command which must fail with one line."""

    def call(*words, code=2):
        got, out, err = run(*words)
        assert (got, out) == (code, "")
        assert err.startswith("tuckermix: ")
        assert err.count("\n") == 1
        return err

    return call


@pytest.fixture
def data_home():
    """The folder with the datasets, or a skip."""
    home = os.environ.get("TUCKERMIX_DATA")
    if not home:
        pytest.skip("needs the datasets: set TUCKERMIX_DATA")
    return Path(home)
