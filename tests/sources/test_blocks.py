"""Blocks of samples in memory."""

import operator

import numpy as np
import pytest

from tuckermix._array_api import to_numpy
from tuckermix.sources import MemoryBlocks, as_blocks, blocks
from tuckermix.sources.blocks import add_parts


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch):
    monkeypatch.setattr(blocks, "HOST_BLOCK_BYTES", 200)
    monkeypatch.setattr(blocks, "LARGE_HOST_BLOCK_BYTES", 1000)
    monkeypatch.setattr(blocks, "HOST_BLOCK_SAMPLES", 3)
    monkeypatch.setattr(blocks, "DEVICE_BLOCK_BYTES", 200)


def test_map_gives_a_row_for_each_sample(xp):
    X = xp.asarray(np.random.default_rng(0).standard_normal((23, 3, 2)))
    rows = as_blocks(X).map(lambda block: xp.sum(block, axis=2))
    np.testing.assert_allclose(to_numpy(rows), to_numpy(X).sum(axis=2), atol=1e-14)


def test_reduce_sees_every_sample_once_with_its_rows(xp):
    X = xp.asarray(np.random.default_rng(0).standard_normal((23, 3, 2)))
    weights = xp.asarray(np.arange(23.0))
    seen = []

    def weigh(block, part):
        seen.append(block.shape[0])
        return float(xp.sum(block * part[:, None, None]))

    total = as_blocks(X).reduce(weigh, operator.add, weights)
    expected = np.einsum("mij,m->", to_numpy(X), to_numpy(weights))
    assert total == pytest.approx(expected, rel=1e-12)
    assert sum(seen) == 23
    assert len(seen) > 1


def test_take_and_attributes():
    X = np.arange(24.0).reshape(6, 2, 2)
    samples = MemoryBlocks(X)
    np.testing.assert_array_equal(samples.take(np.array([1, 4])), X[[1, 4]])
    assert samples.sample_shape == (2, 2)
    assert not samples.lazy


def test_add_parts_keeps_none_and_the_kind_of_container():
    assert add_parts((1, None), (2, None)) == (3, None)
    assert add_parts([1, 2], [3, 4]) == [4, 6]


@pytest.mark.parametrize(("size", "expected"), [(5, 5), (20, 3), (50, 2), (200, 1)])
def test_blocks_of_large_samples_hold_several_of_them(size, expected):
    # Within 200 bytes; then 3 samples, as long as these take no more than 1000 bytes.
    seen = []
    as_blocks(np.ones((30, size))).map(lambda block: seen.append(len(block)) or block)
    assert seen[0] == expected
