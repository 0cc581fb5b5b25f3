import numpy as np
import pytest
from sklearn.pipeline import make_pipeline

import tuckermix
from tuckermix import TuckerClustering
from tuckermix.features import Scattering, Texture
from tuckermix.metrics import clustering_accuracy


def test_mean_and_change_in_every_library(rng, xp):
    for shape in ((5, 4, 3, 6), (5, 4, 3, 6, 7), (5, 4, 3, 6, 2, 7)):
        X = rng.random(shape)
        found = Texture().fit_transform(xp.asarray(X))
        assert type(found) is type(xp.asarray(X))
        rows = X.reshape(5, 4, -1)
        np.testing.assert_allclose(np.asarray(found)[..., 0], rows.mean(axis=2), rtol=1e-12)
        if len(shape) == 4:
            change = rows.std(axis=2)
        else:
            change = X.std(axis=-1).reshape(5, 4, -1).mean(axis=2)
        np.testing.assert_allclose(np.asarray(found)[..., 1], change, rtol=1e-12)


def test_it_does_not_see_where_or_when(rng):
    X = rng.random((3, 4, 5, 6, 7))
    texture = Texture().fit(X)
    moved = np.roll(X, (2, 3, 4), axis=(2, 3, 4))
    np.testing.assert_allclose(texture.transform(moved), texture.transform(X), rtol=1e-12)


def test_it_tells_what_moves_from_what_stands_still(rng):
    y, x, t = np.mgrid[:16, :16, :8]
    moves = np.repeat([0, 1], 30)
    phase = rng.uniform(0, 2 * np.pi, 60)
    waves = [np.sin(0.9 * x + 0.3 * y + 0.8 * m * t + p) for m, p in zip(moves, phase, strict=True)]
    X = np.stack(waves) + 0.2 * rng.normal(size=(60, 16, 16, 8))
    model = make_pipeline(Scattering(J=2, L=4), Texture(), TuckerClustering(2, random_state=0))
    assert clustering_accuracy(moves, model.fit(X)[-1].labels_) == 1


def test_a_dask_array_stays_lazy(rng):
    da = pytest.importorskip("dask.array", reason="Dask is not installed")
    X = rng.random((7, 4, 3, 6))
    found = Texture().fit_transform(da.from_array(X, chunks=(3, 2, 3, 6)))
    assert found.chunks[0] == (3, 3, 1)
    np.testing.assert_allclose(found.compute(), Texture().fit_transform(X), rtol=1e-12)


def test_it_is_stored(rng, tmp_path):
    X = rng.random((30, 16, 16, 6))
    steps = (Scattering(J=2, L=2), Texture(), TuckerClustering(2, random_state=0))
    model = make_pipeline(*steps).fit(X)
    tuckermix.save(model, tmp_path / "model")
    np.testing.assert_array_equal(tuckermix.load(tmp_path / "model").predict(X), model.predict(X))


def test_what_is_refused(rng):
    with pytest.raises(ValueError, match=r"Texture takes feature maps, .*Got an array of 3 axes"):
        Texture().fit(rng.random((3, 4, 5)))
