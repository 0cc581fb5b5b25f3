import numpy as np
import pytest

from tuckermix.features._frequencies import basis, coarsen, filter_blocks, order_frequencies


@pytest.mark.parametrize(("size", "n_halvings"), [(8, 0), (24, 2), (48, 3), (40, 2)])
def test_the_basis_is_orthonormal(size, n_halvings):
    rows = basis(size, order_frequencies(size, n_halvings))
    assert np.allclose(rows @ rows.T, np.eye(size), atol=1e-12)


@pytest.mark.parametrize("factor", [1, 2, 4])
def test_groups_are_closed_under_subsampling(factor):
    order = order_frequencies(48, 2)
    fine, coarse = basis(48, order), basis(48 // factor, coarsen(order, factor))
    mixed = np.abs(coarse @ fine[:, ::factor].T) > 1e-12
    groups = mixed.reshape(24 // factor, 2, 24 // factor, 2 * factor).any(axis=(1, 3))
    assert np.array_equal(groups, np.eye(24 // factor, dtype=bool))


@pytest.mark.parametrize("shape", [(24,), (24, 16)])
@pytest.mark.parametrize("factor", [1, 2, 4])
def test_blocks_filter_and_subsample(rng, shape, factor):
    """Compare with a product in Fourier space and slices of the result."""
    filters = rng.normal(size=(3, *shape))
    maps = rng.normal(size=shape)
    axes = tuple(range(1, len(shape) + 1))
    expected = np.fft.ifftn(filters * np.fft.fftn(maps), axes=axes)
    for axis in axes:
        expected = np.take(expected, range(0, shape[axis - 1], factor), axis=axis)

    orders = [order_frequencies(n, 2) for n in shape]
    blocks = filter_blocks(filters, orders, factor)
    spectrum = maps
    for axis, (n, order) in enumerate(zip(shape, orders, strict=True)):
        spectrum = np.moveaxis(np.tensordot(basis(n, order), spectrum, (1, axis)), 0, axis)
    if len(shape) == 1:
        spectrum = spectrum.reshape(-1, 2 * factor, 1)
    else:
        groups = [n // factor // 2 for n in shape]
        spectrum = spectrum.reshape(groups[0], 2 * factor, groups[1], 2 * factor)
        spectrum = spectrum.transpose(0, 2, 1, 3).reshape(*groups, -1, 1)
    found = (blocks @ spectrum)[..., 0]
    found = found.reshape(*found.shape[: len(shape)], *(2,) * len(shape), 2, 3)
    if len(shape) == 2:
        found = found.transpose(0, 2, 1, 3, 4, 5)
    found = found.reshape(*(n // factor for n in shape), 2, 3)
    for axis, (n, order) in enumerate(zip(shape, orders, strict=True)):
        back = basis(n // factor, coarsen(order, factor)).T
        found = np.moveaxis(np.tensordot(back, found, (1, axis)), 0, axis)
    found = found[..., 0, :] + 1j * found[..., 1, :]
    assert np.allclose(np.moveaxis(found, -1, 0), expected, atol=1e-12)
