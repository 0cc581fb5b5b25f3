"""A kymatio that imports, for comparison."""

import json
import zipfile

import numpy as np
import pytest
import scipy.special


@pytest.fixture
def rng():
    """Give one generator: no transform draws numbers, so that one seed serves."""
    return np.random.default_rng(0)


@pytest.fixture
def kymatio_scattering(monkeypatch):
    """Give kymatio's `Scattering2D` in NumPy, or skip."""
    if not hasattr(scipy.special, "sph_harm"):
        # kymatio 0.3 imports this name, which SciPy 1.17 no longer has, for transforms of volumes.
        monkeypatch.setattr(scipy.special, "sph_harm", None, raising=False)
    module = pytest.importorskip("kymatio.numpy", reason="kymatio is not installed")
    return module.Scattering2D


@pytest.fixture
def images(rng):
    """Give images with edges and texture, 32 by 32, from 0 to 1."""
    y, x = np.mgrid[:32, :32] / 32
    waves = rng.uniform(5, 40, size=(12, 2, 1, 1))
    picture = np.sin(waves[:, 0] * x + waves[:, 1] * y) > rng.uniform(-0.5, 0.5, (12, 1, 1))
    return 0.7 * picture + 0.3 * rng.random((12, 32, 32))


@pytest.fixture
def rewritten():
    """Give a function that writes a model file with another header beside it."""

    def rewrite(path, change):
        with zipfile.ZipFile(path) as archive:
            members = {name: archive.read(name) for name in archive.namelist()}
        header = json.loads(members["header.json"])
        change(header)
        members["header.json"] = json.dumps(header).encode()
        other = path.with_name("rewritten")
        with zipfile.ZipFile(other, "w") as archive:
            for name, content in members.items():
                archive.writestr(name, content)
        return other

    return rewrite
