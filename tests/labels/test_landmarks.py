"""The subset on which labels are found."""

from __future__ import annotations

import numpy as np

from tuckermix.labels import MAX_LANDMARKS, choose_landmarks


def test_few_samples_are_all_kept_and_draw_nothing():
    rng = np.random.default_rng(0)
    assert choose_landmarks(MAX_LANDMARKS, rng) is None
    assert rng.random() == np.random.default_rng(0).random()


def test_many_samples_give_an_even_subset(seed):
    indices = choose_landmarks(50_000, np.random.default_rng(seed))
    assert indices.shape == (MAX_LANDMARKS,)
    assert (np.diff(indices) > 0).all()
    assert indices.min() >= 0
    assert indices.max() < 50_000
    quarters = np.bincount(indices // 12_500, minlength=4)
    assert (abs(quarters - MAX_LANDMARKS / 4) < 200).all()  # 5 standard deviations


def test_the_seed_decides():
    one, same, other = (choose_landmarks(20_000, np.random.default_rng(s)) for s in (1, 1, 2))
    np.testing.assert_array_equal(one, same)
    assert (one != other).any()
