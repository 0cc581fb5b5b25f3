"""The choice of a source."""

import numpy as np

from tuckermix.sources import MemorySource, as_source


def test_arrays_in_memory_get_the_memory_source():
    source = as_source(np.ones((4, 3, 2)))
    assert isinstance(source, MemorySource)
    assert source.n_samples == 4
    assert source.sample_shape == (3, 2)
