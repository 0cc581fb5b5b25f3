"""The search over numbers of clusters."""

import numpy as np
import pytest

from tuckermix.selection.record import Trial
from tuckermix.selection.search import choose


class Told:
    """Stand in for a resampler: stabilities follow a curve that is given, and calls are noted."""

    def __init__(self, curves, n_samples=1000):
        self.curves, self.n_samples = curves, n_samples
        self.candidates = dict.fromkeys(curves)
        self.calls, self.prepared = [], []

    def prepare(self, name):
        self.prepared.append(name)

    def trial(self, n_clusters, name, n_subsamples):
        self.calls.append((n_clusters, name, n_subsamples))
        stability = self.curves[name](n_clusters)
        return None if stability is None else Trial(n_clusters, name, stability, 1.0, n_subsamples)

    def labels(self, n_clusters, name):
        return np.arange(self.n_samples) % n_clusters


def peak_at(best):
    return lambda k: float(np.exp(-abs(np.log2(k / best))))


@pytest.mark.parametrize("best", [2, 3, 7, 11, 13, 24, 37, 68, 91, 100])
def test_a_single_peak_is_found_wherever_it_is(best):
    told = Told({"a": peak_at(best)})
    shares = []
    chosen = choose(told, None, lambda share, doing: shares.append(share))
    assert chosen.n_clusters == best
    assert shares[0] == 0.0
    assert shares == sorted(shares)
    assert max(shares) <= 1.0


def test_the_first_pass_ends_when_the_score_has_fallen():
    told = Told({"a": peak_at(4)})
    choose(told, None, lambda share, doing: None)
    assert max(number for number, _, _ in told.calls) < 20


def test_leaders_get_more_subsamples():
    told = Told({"a": peak_at(5), "b": lambda k: 0.97 * peak_at(5)(k), "c": lambda k: 0.1})
    chosen = choose(told, None, lambda share, doing: None)
    counts = {(t.n_clusters, t.view): t.n_subsamples for t in chosen.trials}
    assert counts[5, "a"] == counts[5, "b"] == 20
    assert counts[5, "c"] == 4
    assert counts[2, "a"] == 4
    assert told.prepared == ["a", "b", "c"]


def test_a_given_number_leaves_the_view():
    told = Told({"a": lambda k: 0.5, "b": lambda k: 0.8})
    chosen = choose(told, 9, lambda share, doing: None)
    assert {number for number, _, _ in told.calls} == {9}
    assert chosen.view == "b"


def test_where_nothing_can_be_tried_the_first_view_is_taken():
    told = Told({"a": lambda k: None, "b": lambda k: None})
    chosen = choose(told, 9, lambda share, doing: None)
    assert (chosen.n_clusters, chosen.view) == (9, "a")
    chosen = choose(Told({"a": peak_at(3)}, n_samples=1), None, lambda share, doing: None)
    assert chosen.n_clusters == 1
