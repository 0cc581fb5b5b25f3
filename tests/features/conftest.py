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


@pytest.fixture(scope="session")
def small_network():
    """Give a network of PyTorch with a shortcut, a shared activation and a pooled end."""
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    nn = torch.nn

    class Small(nn.Module):
        def __init__(self):
            super().__init__()
            self.stem = nn.Sequential(
                nn.Conv2d(3, 8, 3, 2, 1), nn.BatchNorm2d(8), nn.ReLU(inplace=True)
            )
            self.body = nn.Conv2d(8, 8, 3, 1, 1)
            self.act = nn.ReLU(inplace=True)
            self.head = nn.Conv2d(8, 16, 3, 2, 1)
            self.pool = nn.AdaptiveAvgPool2d(1)
            self.fc = nn.Linear(16, 5)

        def forward(self, x):
            x = self.stem(x)
            x = self.act(x + self.body(x))
            x = self.act(self.head(x))
            return self.fc(self.pool(x).flatten(1))

    torch.manual_seed(0)
    return Small()


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
