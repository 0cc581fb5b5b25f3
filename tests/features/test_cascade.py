import numpy as np
import pytest

from tuckermix.features import _cascade
from tuckermix.features._cascade import Cascade, CascadeSettings, along_axes
from tuckermix.features._wavelets import averaging_matrix, layout_for, morlet, padding_matrix


def by_definition(image, J, L, order, border):
    """Follow the formulas at full resolution: no subsampling before the last step, no trick."""
    d = image.ndim
    pads = [padding_matrix(n, J, border) for n in image.shape]
    x = along_axes(pads, image[..., None])[..., 0]
    averages = [averaging_matrix(n, J, 1, border) for n in x.shape]
    angles = range(L if d == 2 else 1)
    wavelets = {(j, a): morlet(x.shape, j, a, L) for j in range(J) for a in angles}

    def modulus(u, key):
        return np.abs(np.fft.ifftn(np.fft.fftn(u) * wavelets[key]))

    def mean(u):
        return along_axes(averages, u[..., None])[..., 0]

    first = {key: modulus(x, key) for key in wavelets}
    paths = [mean(x), *(mean(u) for u in first.values())]
    if order == 2:
        paths += [
            mean(modulus(u, key))
            for start, u in first.items()
            for key in wavelets
            if key[0] > start[0]
        ]
    return np.stack(paths)


@pytest.fixture
def settings(monkeypatch):
    """Give a function that changes settings of the cascade."""

    def change(**values):
        monkeypatch.setattr(_cascade, "SETTINGS", CascadeSettings(**values))
        layout_for.cache_clear()

    yield change
    layout_for.cache_clear()


@pytest.mark.parametrize("shape", [(32, 32), (28, 19), (50,)])
def test_subsampling_changes_next_to_nothing(rng, shape):
    image = rng.random(shape)
    for J, order, border in (
        (1, 2, "mirror"),
        (2, 1, "periodic"),
        (2, 2, "periodic"),
        (3, 2, "mirror"),
        (3, 2, "zero"),
    ):
        expected = by_definition(image, J, 4, order, border)
        found = Cascade(layout_for(shape, J, 4, order, border), image)(image[..., None])[0]
        assert found.shape == expected.shape
        # A band is subsampled where it has all but vanished: what folds over is below a hundredth.
        assert np.linalg.norm(found - expected) < 0.01 * np.linalg.norm(expected)
        assert np.allclose(found[0], expected[0], rtol=1e-12)
        first = slice(1, 1 + (4 if len(shape) == 2 else 1))
        assert np.allclose(found[first], expected[first], rtol=1e-10)


def test_matrix_products_agree_with_fast_transforms(rng, xp, settings):
    for shape in ((32, 32), (28, 19), (50,)):
        for J in (1, 2, 3):
            columns = xp.asarray(rng.random((*shape, 5)))
            settings()
            by_matrices = np.asarray(
                Cascade(layout_for(shape, J, 4, 2, "mirror"), columns)(columns)
            )
            settings(matrix_side=0)
            by_transforms = np.asarray(
                Cascade(layout_for(shape, J, 4, 2, "mirror"), columns)(columns)
            )
            assert np.allclose(by_matrices, by_transforms, rtol=1e-10, atol=1e-13)


def test_the_size_of_pieces_does_not_matter(rng, settings):
    columns = rng.random((16, 16, 5))
    expected = Cascade(layout_for((16, 16), 2, 3, 2, "zero"), columns)(columns)
    for pieces in (1, 3, 10**9):
        settings(host_bytes=pieces * 2 * 3 * 24 * 24 * 8)
        cascade = Cascade(layout_for((16, 16), 2, 3, 2, "zero"), columns)
        assert cascade.block_size == 2 * pieces
        assert np.allclose(cascade(columns), expected, rtol=1e-12)


def test_the_images_are_not_written_to(rng):
    columns = rng.random((16, 16, 5))
    before = columns.copy()
    Cascade(layout_for((16, 16), 2, 3, 2, "zero"), columns)(columns)
    assert np.array_equal(columns, before)
