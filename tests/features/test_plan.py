import threading
import tracemalloc
import weakref

import numpy as np
import pytest

from tuckermix.features import Scattering, _plan
from tuckermix.features._cascade import Cascade, layout_for
from tuckermix.features._plan import Matrices, Plan, Plans


def planned(images, J, L, order, border):
    """Return what a plan makes of images or signals, (n, ...)."""
    layout = layout_for(images.shape[1:], J, L, order, border)
    found = np.full((len(images), layout.n_paths, *layout.cells), np.nan, dtype=images.dtype)
    plan = Plan(Matrices(layout, images.dtype), len(images))
    if images.ndim == 2:
        plan(images[..., None], found[..., None])
    else:
        plan(images, found)
    return found


@pytest.mark.parametrize("shape", [(28, 19), (5, 5), (1, 9), (50,), (7,)])
@pytest.mark.parametrize(("J", "L"), [(1, 8), (2, 1), (3, 3), (4, 2)])
@pytest.mark.parametrize("order", [1, 2])
@pytest.mark.parametrize("border", ["mirror", "zero", "periodic"])
def test_a_plan_takes_the_steps_of_the_cascade(rng, shape, J, L, order, border):
    images = rng.normal(size=(5, *shape))
    columns = np.moveaxis(images, 0, -1)
    expected = Cascade(shape, J, L, order, border, columns)(columns)
    found = planned(images, J, L, order, border)
    assert np.abs(found - expected).max() < 1e-13 * np.abs(expected).max()


@pytest.mark.parametrize("n_bytes", [1, 10**5, 10**6])
@pytest.mark.parametrize("narrow", [1, 10**4])
def test_the_size_of_pieces_does_not_matter(rng, limits, n_bytes, narrow):
    images = rng.normal(size=(7, 16, 24))
    expected = planned(images, 3, 5, 2, "mirror")
    limits(wavelet_piece_bytes=n_bytes, wavelet_narrow_product=narrow)
    assert np.allclose(planned(images, 3, 5, 2, "mirror"), expected, rtol=1e-12, atol=1e-14)


def test_blocks_hold_two_pieces_of_the_finest_scale(limits):
    layout = layout_for((16, 16), 2, 3, 2, "zero")
    for pieces in (1, 3, 100):
        limits(wavelet_piece_bytes=pieces * 2 * 3 * 24 * 24 * 8)
        assert Plans(layout, np.dtype(np.float64)).block_size == 2 * pieces


def test_single_precision_loses_what_it_must(rng):
    images = rng.random((5, 32, 32))
    double = planned(images, 3, 8, 2, "mirror")
    single = planned(images.astype(np.float32), 3, 8, 2, "mirror")
    assert single.dtype == np.float32
    assert np.abs(single - double).max() < 1e-6 * double.max()


def test_images_of_any_size_of_numbers_stand_in_one_plan(rng):
    sizes = np.array([1, 0, 1e-30, 1e37, -1], dtype=np.float32)
    image = rng.random((24, 24), dtype=np.float32)
    found = planned(image * sizes[:, None, None], 2, 8, 2, "mirror")
    assert np.allclose(found[2:4] / sizes[2:4, None, None, None], found[0], rtol=1e-5)
    assert not found[1].any()
    assert np.allclose(found[4, 0], -found[0, 0])
    assert np.allclose(found[4, 1:], found[0, 1:])


def test_a_plan_remembers_nothing_and_takes_no_memory(rng):
    layout = layout_for((28, 28), 3, 8, 2, "mirror")
    plan = Plan(Matrices(layout, np.dtype(np.float32)), 100)
    first, second = rng.random((2, 100, 28, 28), dtype=np.float32)
    found = np.empty((3, 100, layout.n_paths, *layout.cells), dtype=np.float32)
    plan(first, found[0])
    plan(second, found[1])
    tracemalloc.start()
    try:
        plan(first, found[2])
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert np.array_equal(found[0], found[2])
    assert not np.array_equal(found[0], found[1])
    assert peak < 0.1 * found[0].nbytes  # what NumPy takes for a call of many axes


def test_memory_goes_with_the_transform(rng, monkeypatch, limits):
    alive = []

    class Watched(Plan):
        def __init__(self, *args):
            super().__init__(*args)
            alive.append(weakref.ref(self))

    limits(wavelet_piece_bytes=10**5)
    monkeypatch.setattr(_plan, "Plan", Watched)
    X = rng.random((50, 16, 16))
    for n_jobs in (1, 3):
        Scattering(J=2, n_jobs=n_jobs).fit_transform(X)
    assert len(alive) >= 3  # for whole blocks and for the last one
    assert not any(plan() for plan in alive)


@pytest.mark.parametrize("log", [False, True])
@pytest.mark.parametrize("shape", [(16, 16), (12, 10, 2), (40,)])
def test_threads_do_not_matter(rng, limits, shape, log):
    limits(wavelet_piece_bytes=10**5)
    X = rng.random((61, *shape))
    one = Scattering(J=2, log=log, n_jobs=1).fit(X)
    expected = one.transform(X)
    for n_jobs in (2, 5):
        np.testing.assert_array_equal(one.set_params(n_jobs=n_jobs).transform(X), expected)


def test_transforms_at_the_same_time(rng, limits):
    limits(wavelet_piece_bytes=10**5)
    data = [rng.random((40, 16, 16)) + k for k in range(4)]
    expected = [Scattering(J=2, n_jobs=1).fit_transform(X) for X in data]
    found = [None] * len(data)

    def transform(k):
        found[k] = Scattering(J=2, n_jobs=3).fit_transform(data[k])

    threads = [threading.Thread(target=transform, args=(k,)) for k in range(len(data))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_array_equal(one, other)


def test_an_interrupted_transform_leaves_nothing_behind(rng, monkeypatch):
    X = rng.random((30, 16, 16))
    scattering = Scattering(J=2).fit(X)
    expected = scattering.transform(X)
    calls = _plan.Calls.__call__
    with monkeypatch.context() as patch:

        def interrupted(self):
            calls(self)
            raise KeyboardInterrupt

        patch.setattr(_plan.Calls, "__call__", interrupted)
        with pytest.raises(KeyboardInterrupt):
            scattering.transform(X)
    np.testing.assert_array_equal(scattering.transform(X), expected)
