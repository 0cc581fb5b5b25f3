"""The rank parameter in all its forms."""

import numpy as np
import pytest

from tuckermix.decomposition.ranks import DEFAULT_ENERGY, check_ranks, ranks_from_energy
from tuckermix.sources import as_source


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (None, DEFAULT_ENERGY),
        (3, (3, 3)),
        (100, (6, 5)),
        (0.8, 0.8),
        ((2, 5), (2, 5)),
        ([2, 5], (2, 5)),
        (np.array([2, 5]), (2, 5)),
        (np.int64(3), (3, 3)),
    ],
)
def test_every_form_is_understood(given, expected):
    assert check_ranks(given, (6, 5), "Model") == expected


@pytest.mark.parametrize(
    "bad", [0, -1, 1.0, 1.5, 0.0, True, "all", (2,), (2, 2, 2), (2, 0), (2, 2.5), {2: 3}]
)
def test_what_is_no_rank_is_refused_with_the_rule(bad):
    with pytest.raises(ValueError, match=r"The 'ranks' parameter of Model must be .* Got"):
        check_ranks(bad, (6, 5), "Model")


def test_ranks_beyond_a_mode_name_the_mode():
    with pytest.raises(ValueError, match="rank 7 of feature mode 1 is larger than 5"):
        check_ranks((6, 7), (6, 5), "Model")


def test_a_trailing_mode_of_size_one_needs_no_rank():
    assert check_ranks((4,), (6, 1), "Model") == (4, 1)


def test_energy_finds_planted_ranks(seed):
    rng = np.random.default_rng(seed)
    U = np.linalg.qr(rng.standard_normal((12, 3)))[0]
    V = np.linalg.qr(rng.standard_normal((15, 2)))[0]
    X = np.einsum("mab,ia,jb->mij", rng.standard_normal((60, 3, 2)), U, V) + 7.0
    X += 1e-3 * rng.standard_normal(X.shape)
    source = as_source(X)
    assert ranks_from_energy(source, source.mode_grams(), 0.95) == (3, 2)


def test_small_modes_are_kept_whole_and_constant_data_get_rank_one():
    source = as_source(np.random.default_rng(0).standard_normal((9, 3)))
    assert ranks_from_energy(source, source.mode_grams(), 0.1) == (3,)
    source = as_source(np.ones((9, 8)))
    assert ranks_from_energy(source, source.mode_grams(), 0.95) == (1,)
