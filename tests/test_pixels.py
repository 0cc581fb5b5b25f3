import builtins

import numpy as np
import pytest

from tuckermix._pixels import as_grey_values, grey_array, match, resize
from tuckermix.datasets import ReadError


def test_grey():
    rng = np.random.default_rng(0)
    X = rng.integers(0, 256, (5, 4, 4, 3), dtype=np.uint8)
    grey = grey_array(X)
    assert grey.dtype == np.uint8
    assert np.abs(grey - X @ [0.299, 0.587, 0.114]).max() <= 0.5 + 1e-9
    same = np.repeat(rng.random((5, 4, 4, 1)), 3, axis=3)
    assert np.allclose(grey_array(same), same[..., 0])
    with pytest.raises(ReadError, match=r"grey=True needs a last axis .* shape \(4, 5\). Leave"):
        grey_array(np.zeros((3, 4, 5)))


def test_grey_values_take_one_byte():
    whole = np.array([[0.0, 3.0], [255.0, 7.0]])
    kept = as_grey_values(whole)
    assert kept.dtype == np.uint8
    assert np.array_equal(kept, whole)
    for odd in (-1.0, 256.0, 0.5, np.nan):
        other = np.array([[0.0, odd]])
        assert as_grey_values(other) is other


def test_match():
    colour, grey = np.ones((4, 5, 3)), np.ones((4, 5))
    assert match(colour, None).shape == match(grey, False).shape == (4, 5, 3)
    assert match(colour, True).shape == match(grey, None).shape == (4, 5)


@pytest.mark.parametrize("dtype", ["u1", "u2", "f4", "f8", "?"])
@pytest.mark.parametrize("shape", [(6, 8), (6, 8, 3)])
def test_constant_images_stay_constant(dtype, shape):
    pytest.importorskip("PIL", reason="pillow is not installed")
    image = np.ones(shape, dtype)
    small = resize(image, (3, 5))
    assert small.shape == (3, 5, *shape[2:])
    assert small.dtype == image.dtype
    assert np.allclose(small, 1)
    assert resize(image, (6, 8)) is image
    assert resize(image, None) is image


def test_resizing_without_pillow(monkeypatch):
    from tuckermix._pixels import resize

    real = builtins.__import__

    def without(module, *args, **kwargs):
        if module.split(".")[0] == "PIL":
            raise ImportError(module)
        return real(module, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(ImportError, match=r"Resizing images needs pillow: install tuckermix\[io\]"):
        resize(np.zeros((4, 4)), (2, 2))
