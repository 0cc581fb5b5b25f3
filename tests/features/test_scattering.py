import threading

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from tests.cases import each

from tuckermix import TuckerClustering
from tuckermix.features import Scattering
from tuckermix.features._pictures import resizing_matrix


@each("kind", [np.float32, np.float64])
@each("J", [2, 3])
@each("order", [1, 2])
def test_coefficients_are_those_of_kymatio(kymatio_scattering, images, J, order, kind):
    X = images.astype(kind)
    expected = kymatio_scattering(J=J, shape=(32, 32), L=8, max_order=order)(X)
    found = Scattering(J=J, L=8, order=order).fit_transform(X)
    assert found.dtype == kind
    assert found.shape == expected.shape
    assert np.abs(found - expected).max() < 1e-6 * np.abs(expected).max()
    # One by one too; the smallest are 3000 times smaller, and single precision rounds both sides.
    assert np.allclose(found, expected, rtol=1e-5 if kind is np.float64 else 3e-5, atol=0)


def test_images_that_come_with_their_frame_are_those_of_kymatio(kymatio_scattering, images):
    framed = np.pad(images, ((0, 0), (8, 8), (8, 8)))
    expected = kymatio_scattering(J=3, shape=(32, 32), pre_pad=True)(framed)
    found = Scattering(J=3, border="periodic").fit_transform(framed)
    assert np.allclose(found[..., 1:-1, 1:-1], expected, rtol=1e-5, atol=0)
    assert np.allclose(Scattering(J=3, border="zero").fit_transform(images), expected, rtol=1e-5)


@pytest.mark.parametrize("log", [False, True])
def test_single_precision_suffices(images, log):
    double = Scattering(log=log).fit_transform(images)
    single = Scattering(log=log).fit_transform(images.astype(np.float32))
    assert single.dtype == np.float32
    assert np.abs(single - double).max() < 1e-5 * np.abs(double).max()


def test_energy_is_not_created(rng):
    for X in (rng.normal(size=(6, 32, 32)), np.eye(32)[None], rng.random((3, 32, 32))):
        S = Scattering(border="periodic").fit_transform(X)
        cells = 8 * 8  # one coefficient stands for this many pixels
        energy = (S**2).sum(axis=(1, 2, 3)) * cells
        assert np.all(energy <= 1.001 * (X**2).sum(axis=(1, 2)))


def test_the_second_order_holds_what_the_first_one_loses(images):
    detail = images - images.mean(axis=(1, 2), keepdims=True)
    total = (detail**2).sum(axis=(1, 2))
    shares = []
    for order in (1, 2):
        S = Scattering(order=order, border="periodic").fit_transform(detail)
        shares.append((S**2).sum(axis=(1, 2, 3)) * 64 / total)
    assert np.all(shares[1] > shares[0])


def test_a_shift_by_a_pixel_moves_coefficients_little(rng, images):
    S = Scattering(border="periodic").fit_transform(images)
    shifted = Scattering(border="periodic").fit_transform(np.roll(images, 1, axis=2))
    change = np.linalg.norm(S - shifted) / np.linalg.norm(S)
    in_pixels = np.linalg.norm(images - np.roll(images, 1, axis=2)) / np.linalg.norm(images)
    assert change < 0.1
    assert change < in_pixels / 4


def test_a_shift_by_a_cell_moves_cells(images):
    S = Scattering(border="periodic").fit_transform(images)
    shifted = Scattering(border="periodic").fit_transform(np.roll(images, 8, axis=1))
    assert np.allclose(shifted, np.roll(S, 1, axis=2), atol=1e-12)


@pytest.mark.parametrize("size", [1e-200, 1e-3, 1e200])
def test_coefficients_follow_the_size_of_the_numbers(images, size):
    S = Scattering(J=2).fit_transform(images)
    assert np.allclose(Scattering(J=2).fit_transform(size * images) / size, S, rtol=1e-10)
    log = Scattering(J=2, log=True).fit_transform(images)
    assert np.allclose(Scattering(J=2, log=True).fit_transform(size * images), log, rtol=1e-9)


@pytest.mark.parametrize("size", [1e-30, 1e30])
def test_squares_do_not_leave_single_precision(images, size):
    X = images.astype(np.float32)
    found = Scattering(J=2).fit_transform(X * np.float32(size)) / np.float32(size)
    assert np.allclose(found, Scattering(J=2).fit_transform(X), rtol=1e-4)


def test_the_mean_of_the_largest_numbers_is_found(images):
    X = images.astype(np.float32)
    found = Scattering(J=2, log=True).fit_transform(X / np.abs(X).max() * np.float32(1e38))
    assert np.allclose(found, Scattering(J=2, log=True).fit_transform(X), rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize(
    ("shape", "J", "wanted"),
    [
        ((28, 28), 3, (217, 4, 4)),
        ((19, 19), 3, (217, 3, 3)),
        ((50, 31), 2, (81, 13, 8)),
        ((5, 5), 3, (217, 1, 1)),
        ((128,), 4, (11, 8)),
        ((28, 20, 3), 2, (81, 7, 5, 3)),
        ((20, 20, 3, 2), 1, (9, 10, 10, 3, 2)),
    ],
)
def test_images_of_any_size(rng, shape, J, wanted):
    X = rng.random((2, *shape))
    found = Scattering(J=J).fit_transform(X)
    assert found.shape == (2, *wanted)
    assert np.isfinite(found).all()
    assert found.min() >= 0


@pytest.mark.parametrize("shape", [(64, 96), (70,)])
def test_large_images_are_shrunk(rng, shape):
    large = rng.random((3, *shape))
    small = large @ resizing_matrix(shape[-1], round(shape[-1] * 32 / min(shape))).T
    if len(shape) == 2:
        small = np.einsum("ij,njk->nik", resizing_matrix(shape[0], 32), small)
    found = Scattering(J=2, size=32).fit_transform(large)
    assert np.allclose(found, Scattering(J=2).fit_transform(small))
    whole = Scattering(J=2).fit_transform(large)
    assert np.allclose(Scattering(J=2, size=min(shape)).fit_transform(large), whole)


def test_large_images_take_fast_transforms(rng):
    X = rng.random((2, 200, 180))
    found = Scattering(J=2, L=4).fit_transform(X)
    assert found.shape == (2, 1 + 8 + 16, 50, 45)
    # Away from the border a part of the image has the coefficients of the whole, but for the faint
    # ripples that a filter has which is cut off at the highest frequency of a coarse grid.
    part = Scattering(J=2, L=4).fit_transform(X[:, 40:160, 40:160])
    assert np.allclose(part[:, :, 8:-8, 8:-8], found[:, :, 18:32, 18:32], rtol=1e-3)


def test_channels_are_transformed_one_by_one(rng):
    X = rng.random((3, 16, 20, 2))
    found = Scattering(J=2).fit_transform(X)
    for channel in range(2):
        alone = Scattering(J=2).fit_transform(X[..., channel])
        assert np.allclose(found[..., channel], alone, rtol=1e-12)
    moved = Scattering(J=2, space=(2, 3)).fit_transform(np.moveaxis(X, 3, 1))
    assert np.allclose(moved, found, rtol=1e-12)
    turned = Scattering(J=2, space=(-2, -3)).fit_transform(X)
    assert np.allclose(turned, Scattering(J=2).fit_transform(X.transpose(0, 2, 1, 3)), rtol=1e-12)


def test_signals_along_one_axis_of_an_image(rng):
    X = rng.random((3, 40, 6))
    found = Scattering(J=2, space=1).fit_transform(X)
    assert found.shape == (3, 4, 10, 6)
    assert np.allclose(found[..., 4], Scattering(J=2).fit_transform(X[..., 4]), rtol=1e-12)


def test_the_logarithm(images):
    plain = Scattering(J=2).fit_transform(images)
    scattering = Scattering(J=2, log=True).fit(images)
    median = np.median(plain[:, 0].mean(axis=(1, 2)))
    assert scattering.scale_ == pytest.approx(median, rel=1e-12)
    assert np.allclose(scattering.transform(images), np.log(plain / median + 0.001), rtol=1e-9)
    # New samples are measured by the fitted scale.
    assert np.allclose(scattering.transform(images[:1]), scattering.transform(images)[:1])
    assert np.allclose(scattering.transform(3 * images), np.log(3 * plain / median + 0.001))


def test_the_logarithm_of_coefficients_that_are_known(images):
    plain, log = Scattering(J=2).fit(images), Scattering(J=2, log=True).fit(images)
    np.testing.assert_array_equal(log.logarithm(plain.transform(images)), log.transform(images))


def test_the_logarithm_of_blank_images():
    X = np.zeros((5, 8, 8))
    blank = Scattering(J=2, log=True).fit(X)
    assert blank.scale_ == 1
    assert np.allclose(blank.transform(X), np.log(0.001))
    X[0] = 1  # most are blank: the mean serves, the median is zero
    assert Scattering(J=2, log=True).fit(X).scale_ == pytest.approx(0.2, rel=1e-3)


def test_the_logarithm_of_signed_values(rng):
    X = rng.normal(size=(5, 16, 16)) - 1
    assert np.isfinite(Scattering(J=2, log=True).fit_transform(X)).all()


@pytest.mark.parametrize("size", [1.0, 1e-150, 1e150])
def test_relative_coefficients(images, size):
    plain = Scattering(J=2).fit_transform(images)
    scattering = Scattering(J=2, relative=True).fit(size * images)
    found = scattering.transform(size * images)
    largest = np.abs(plain).max(axis=(2, 3))
    np.testing.assert_allclose(found * largest[:, :, None, None], plain, rtol=1e-9, atol=1e-15)
    np.testing.assert_allclose(np.abs(found).max(axis=(2, 3)), 1.0, rtol=1e-15)


@pytest.mark.parametrize("shape", [(32, 32), (40,), (12, 10, 2)])
def test_relative_coefficients_of_each_channel_and_of_known_ones(rng, shape):
    X = rng.normal(size=(5, *shape))
    X[2] = 0.0  # a blank sample stays blank
    scattering = Scattering(J=2, relative=True).fit(X)
    found = scattering.transform(X)
    cells = (2,) if len(shape) == 1 else (2, 3)
    largest = np.abs(found).max(axis=cells)
    np.testing.assert_allclose(np.delete(largest, 2, axis=0), 1.0, rtol=1e-15)
    assert not found[2].any()
    np.testing.assert_array_equal(scattering.from_plain(Scattering(J=2).fit_transform(X)), found)


@pytest.mark.parametrize("option", [{}, {"log": True}, {"relative": True}])
@pytest.mark.parametrize("shape", [(32, 32), (40,), (12, 10, 2)])
def test_libraries_agree(rng, xp, option, shape):
    X = rng.random((9, *shape))
    expected = Scattering(J=2, **option).fit_transform(X)
    found = Scattering(J=2, **option).fit_transform(xp.asarray(X))
    assert type(found) is type(xp.asarray(X))
    assert np.allclose(np.asarray(found), expected, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("kind", [np.float32, np.float64, np.uint8])
def test_a_dask_array_stays_lazy(images, kind):
    da = pytest.importorskip("dask.array", reason="Dask is not installed")
    X = (200 * images).astype(kind)
    lazy = da.from_array(X, chunks=(5, 16, 32))
    found = Scattering(J=2, log=True).fit_transform(lazy)
    expected = Scattering(J=2, log=True).fit_transform(X)
    assert found.chunks == ((5, 5, 2), (81,), (8,), (8,))
    assert found.dtype == expected.dtype == (np.float64 if kind is np.float64 else np.float32)
    assert np.allclose(found.compute(), expected, rtol=1e-5, atol=1e-5)


def test_the_number_of_samples_at_a_time_does_not_matter(rng):
    X = rng.random((100, 16, 16))
    S = Scattering(J=2).fit_transform(X)
    assert np.allclose(S[41:42], Scattering(J=2).fit_transform(X[41:42]), rtol=1e-12)


def test_in_a_pipeline(rng):
    """Clusters of textures that pixels cannot tell: the same waves at random places."""
    y, x = np.mgrid[:24, :24]
    kind = np.repeat([0, 1, 2], 30)
    angle = np.array([0.0, 1.0, 2.0])[kind]
    phase = rng.uniform(0, 2 * np.pi, 90)
    wave = np.cos(angle)[:, None, None] * x + np.sin(angle)[:, None, None] * y
    X = np.sin(1.5 * wave + phase[:, None, None]) + 0.3 * rng.normal(size=(90, 24, 24))
    pipeline = make_pipeline(Scattering(), TuckerClustering(3, random_state=0)).fit(X)
    labels = pipeline[-1].labels_
    assert len({*zip(kind, labels, strict=True)}) == 3
    assert np.array_equal(pipeline.predict(X), labels)
    assert np.array_equal(pipeline.predict_proba(X).argmax(axis=1), labels)
    again = clone(pipeline).fit(X)
    assert np.array_equal(again[-1].labels_, labels)


def test_in_a_grid_search(rng):
    X = rng.random((30, 16, 16))
    pipeline = make_pipeline(Scattering(J=2), TuckerClustering(2, random_state=0))
    grid = {"scattering__order": [1, 2], "scattering__log": [False, True]}
    search = GridSearchCV(pipeline, grid, cv=2).fit(X)
    assert len(search.cv_results_["params"]) == 4
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()


def test_what_is_refused(rng):
    X = rng.random((3, 8, 8, 8))
    for name, value, text in (
        ("J", 0, "'J' parameter of Scattering must be an integer >= 1"),
        ("L", 1.5, "'L' parameter of Scattering must be an integer >= 1"),
        ("order", 3, "'order' parameter of Scattering must be 1 or 2"),
        ("log", "yes", "'log' parameter of Scattering must be True or False"),
        ("relative", 1, "'relative' parameter of Scattering must be True or False"),
        ("border", "wrap", "'border' parameter of Scattering must be one of 'mirror'"),
        ("space", (1, 2, 3), "must name 1 or 2 axes; volumes go slice by slice"),
        ("space", (), "must name 1 or 2 axes"),
        ("space", (0, 1), "must name different axes of X from 1 to 3"),
        ("space", (1, 1), "must name different axes of X from 1 to 3"),
        ("space", 4, "must name different axes of X from 1 to 3"),
        ("space", "xy", "must be None, an axis or a tuple of axes"),
    ):
        with pytest.raises(ValueError, match=text):
            Scattering(**{name: value}).fit(X)
    with pytest.raises(ValueError, match="takes logarithms or relative coefficients: not both"):
        Scattering(log=True, relative=True).fit(X)


def test_threads_do_not_matter(rng):
    for shape, log in (((16, 16), False), ((12, 10, 2), True), ((40,), False)):
        X = rng.random((301, *shape))
        one = Scattering(J=2, log=log, n_jobs=1).fit(X)
        expected = one.transform(X)
        for n_jobs in (2, 5):
            np.testing.assert_array_equal(one.set_params(n_jobs=n_jobs).transform(X), expected)


def test_transforms_at_the_same_time(rng):
    data = [rng.random((120, 16, 16)) + k for k in range(4)]
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
