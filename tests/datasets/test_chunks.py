import numpy as np
import pytest

from tuckermix.datasets import _chunks
from tuckermix.datasets._chunks import covering, gather, whole


@pytest.mark.parametrize(
    "index",
    [
        (slice(2, 7), slice(None), slice(1, 2)),
        (3, slice(0, 4, 2)),
        (slice(8, 1, -3), -1, slice(None, None, -1)),
        (slice(5, 5),),
        slice(-4, None),
        (0, 0, 0),
    ],
    ids=str,
)
def test_an_index_is_a_region_and_what_to_take_of_it(index):
    X = np.arange(9 * 5 * 3).reshape(9, 5, 3)
    region, rest = covering(index, X.shape)
    part = X[tuple(slice(low, high) for low, high in region)]
    assert np.array_equal(part[rest], X[index])


@pytest.mark.parametrize("probes", [0, 10_000])
def test_a_region_from_its_chunks(monkeypatch, rng, probes):
    monkeypatch.setattr(_chunks, "MAX_PROBES", probes)
    X = rng.random((9, 5, 4))
    shape = (2, 5, 3)
    absent = (1, 0, 0)
    padded = np.zeros((10, 5, 6))
    padded[:9, :, :4] = X
    read = []

    def chunk(index):
        read.append(index)
        if index == absent:
            return None
        return padded[tuple(slice(a * b, a * b + b) for a, b in zip(index, shape, strict=True))]

    def stored():
        return [i for i in np.ndindex(5, 1, 2) if i != absent]

    expected = X.copy()
    expected[2:4, :, :3] = -1.0
    assert np.array_equal(gather(whole(X.shape), shape, X.dtype, -1.0, stored, chunk), expected)
    read.clear()
    region = ((3, 6), (1, 2), (0, 3))
    part = gather(region, shape, X.dtype, -1.0, stored, chunk)
    assert np.array_equal(part, expected[3:6, 1:2, :3])
    assert set(read) - {absent} == {(2, 0, 0)}
