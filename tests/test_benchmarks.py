"""The benchmarks can be run: they are programs, and only some of them run with the tests."""

import importlib
from pathlib import Path

import numpy as np
import pytest

from tuckermix.datasets import load

FOLDER = Path(__file__).parents[1] / "benchmarks"
OPTIONAL = ("torch", "tensorly", "pymanopt", "dask", "umap", "matplotlib", "psutil", "zarr")

pytestmark = pytest.mark.skipif(not FOLDER.is_dir(), reason="benchmarks are part of a checkout")


@pytest.mark.parametrize("name", sorted(path.stem for path in FOLDER.glob("[!_]*.py")))
def test_each_can_be_imported(name, monkeypatch):
    monkeypatch.syspath_prepend(str(FOLDER.parent))
    monkeypatch.syspath_prepend(str(FOLDER))  # some are scripts
    try:
        importlib.import_module(f"benchmarks.{name}")
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in OPTIONAL:
            raise
        pytest.skip(f"{error.name} is not installed")


def test_defaults_are_compared_on_the_part_for_reports(monkeypatch, tmp_path):
    monkeypatch.syspath_prepend(str(FOLDER.parent))
    from benchmarks import compare_defaults

    (X, labels), *rest = compare_defaults.draws("digits", 10, 8, 2)
    assert X.shape == (80, 8, 8)
    assert len(rest) == 1
    assert np.bincount(labels).tolist() == [8] * 10
    indices = compare_defaults.reporting_indices("digits", load("digits"))
    assert 0 < len(indices) < 1797
    told = compare_defaults.draws("digits", 10, 8, 1, {"digits": indices})
    np.testing.assert_array_equal(next(told)[0], X)
