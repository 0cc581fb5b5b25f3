import re

import numpy as np
import pytest
from tests.cases import each

from tuckermix.datasets import DatasetNotFound, load
from tuckermix.datasets._registry import KNOWN
from tuckermix_bench import EXPERIMENTS


@each("name", KNOWN)
def test_all_that_a_person_needs_is_there(name):
    known = KNOWN[name]
    assert known.name == name
    assert known.title
    assert known.description.endswith(".")
    assert known.terms
    assert known.source
    assert known.layouts or name == "digits"
    assert not known.class_names or len(known.class_names) == known.n_classes
    for layout in known.layouts:
        assert layout.says
        assert all(pattern == pattern.lower() for pattern in layout.patterns)
    for file, digest in known.sha256.items():
        assert re.fullmatch("[0-9a-f]{64}", digest)
        assert any(file in layout.patterns for layout in known.layouts)


@pytest.mark.data
@pytest.mark.parametrize("name", KNOWN)
def test_the_files_have_the_sizes_that_are_stated(name, data_home):
    known = KNOWN[name]
    try:
        data = load(name, data_home=data_home)
    except DatasetNotFound:
        pytest.skip(f"{name} is not among the data")
    assert data.sample_shape == known.sample_shape
    assert np.unique(data.labels).size == known.n_classes


def test_tables_draw_no_more_classes_than_a_dataset_has():
    for table in EXPERIMENTS.values():
        for row in table.rows:
            known = KNOWN.get(row.dataset)
            if known is not None:
                assert len(row.ranks) == len(known.sample_shape)
                assert (row.n_classes or 0) <= known.n_classes
                sides = zip(row.ranks, known.sample_shape, strict=True)
                assert all(rank <= side for rank, side in sides)
