"""The search over numbers of clusters."""

from dataclasses import replace

import numpy as np
import pytest

from tuckermix.selection.record import Trial
from tuckermix.selection.search import choose, is_behind, is_near


class Told:
    """Stand in for a resampler: stabilities follow a curve that is given, and calls are noted."""

    def __init__(self, curves, n_samples=1000, spread=0.0):
        self.curves, self.n_samples, self.spread = curves, n_samples, spread
        self.candidates = dict.fromkeys(curves)
        self.calls, self.prepared = [], []

    def prepare(self, name):
        self.prepared.append(name)

    def trial(self, n_clusters, name, n_subsamples):
        self.calls.append((n_clusters, name, n_subsamples))
        stability = self.curves[name](n_clusters)
        return (
            None
            if stability is None
            else Trial(n_clusters, name, stability, even(n_clusters), n_subsamples)
        )

    def agreements(self, n_clusters, name):
        count = max(count for *key, count in self.calls if key == [n_clusters, name])
        wave = self.spread * np.sin(1.0 + np.arange(count) + len(name))
        return self.curves[name](n_clusters) + wave

    def labels(self, n_clusters, name):
        return np.arange(self.n_samples) % n_clusters


def even(n_clusters):
    """Return the modularity at which the score is the stability."""
    return (1 - 1 / max(2, n_clusters)) ** 0.5


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


def test_a_peak_beside_one_that_comes_near_is_found_too():
    """The grid has 18, 22, 26: the best of these is not beside the best of all."""
    curve = {20: 0.905, 22: 0.9, 24: 1.0, 26: 0.895}
    told = Told({"a": lambda k: curve.get(k, 0.85 - 0.01 * abs(k - 22))})
    assert choose(told, None, lambda share, doing: None).n_clusters == 24


def test_numbers_beside_a_late_winner_are_tried():
    """Few subsamples show five clusters, more of them eight, and seven beside them are best."""
    curve = {5: 0.6, 7: 0.95, 8: 0.88}
    told = Told({"a": lambda k: curve.get(k, 0.3), "bb": lambda k: 0.1})
    known = told.trial

    def trial(n_clusters, name, n_subsamples):
        found = known(n_clusters, name, n_subsamples)
        lucky = n_clusters == 5 and name == "a" and n_subsamples <= 4
        return Trial(5, "a", 0.93, even(5), n_subsamples) if lucky else found

    told.trial = trial
    shares = []
    assert choose(told, None, lambda share, doing: shares.append(share)).n_clusters == 7
    assert shares == sorted(shares)


def test_the_first_pass_ends_when_the_score_has_fallen():
    told = Told({"a": peak_at(4)})
    choose(told, None, lambda share, doing: None)
    assert max(number for number, _, _ in told.calls) < 20


def test_two_clear_groups_do_not_end_the_first_pass():
    """Two groups, and twenty clusters behind numbers that are worse than both."""
    stabilities = {2: 1.0, 20: 0.97}
    told = Told({"a": lambda k: stabilities.get(k, 0.8 if k < 20 else 0.6)})
    plain = told.trial

    def trial(n_clusters, name, n_subsamples):
        found = plain(n_clusters, name, n_subsamples)
        return Trial(n_clusters, name, found.stability, 1 - 1 / n_clusters, n_subsamples)

    told.trial = trial
    # The numbers from 3 to 6 have less than 0.85 of the score of two.
    stabilities.update(dict.fromkeys((3, 4, 5, 6), 0.6))
    assert trial(4, "a", 4).score < 0.85 * trial(2, "a", 4).score
    assert choose(told, None, lambda share, doing: None).n_clusters == 20


def test_leaders_get_more_subsamples_until_one_is_ahead():
    curves = {"a": peak_at(5), "bb": lambda k: 0.97 * peak_at(5)(k), "c": lambda k: 0.1}
    counts = {}
    for spread in (0.0, 0.5):
        told = Told(curves, spread=spread)
        chosen = choose(told, None, lambda share, doing: None)
        counts[spread] = {(t.n_clusters, t.view): t.n_subsamples for t in chosen.trials}
        assert told.prepared == ["a", "bb", "c"]
        assert (chosen.n_clusters, chosen.view) == (5, "a")
    assert counts[0.5][5, "a"] == counts[0.5][5, "bb"] == 20  # subsamples leave a doubt
    assert counts[0.0][5, "a"] == counts[0.0][5, "bb"] == 8
    for found in counts.values():
        assert found[5, "c"] == 2  # hopeless after the first look
        assert found[2, "a"] == 4


def test_views_that_are_the_same_are_not_told_apart_by_a_hair():
    told = Told({"a": lambda k: 0.9, "bb": lambda k: 0.899})
    chosen = choose(told, 6, lambda share, doing: None)
    assert chosen.view == "a"
    assert max(count for *_, count in told.calls) == 8


def test_a_view_without_a_second_look_gets_it_when_the_best_falls_behind():
    told = Told({"a": lambda k: 0.9, "bb": lambda k: 0.75})
    first_look = told.trial

    def trial(n_clusters, name, n_subsamples):
        found = first_look(n_clusters, name, n_subsamples)
        falls = name == "a" and n_subsamples > 2
        return Trial(n_clusters, name, 0.7, even(n_clusters), n_subsamples) if falls else found

    told.trial = trial
    chosen = choose(told, 6, lambda share, doing: None)
    assert chosen.view == "bb"
    assert min(trial.n_subsamples for trial in chosen.trials) >= 4


@pytest.mark.parametrize("seed", range(3))
def test_behind_is_beyond_doubt_or_the_same(seed):
    rng = np.random.default_rng(seed)
    common = rng.normal(0.8, 0.1, 12)  # what subsamples have in common does not count
    assert is_behind(common - 0.03 + rng.normal(0, 0.005, 12), common)
    assert not is_behind(common - 0.03 + rng.normal(0, 0.2, 12), common)
    assert is_behind(common.copy(), common)
    assert is_behind(common + rng.normal(0, 0.001, 12), common)


def test_only_subsamples_that_both_have_are_compared():
    """A number that an earlier pass tried more often meets one that is new."""
    rng = np.random.default_rng(0)
    common = rng.uniform(0.5, 1.0, 20)
    worse = common[:8] - 0.03 + rng.normal(0, 0.002, 8)
    assert is_behind(worse, common)
    assert not is_behind(common[:8] - 0.03 + rng.normal(0, 0.2, 8), common)


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


def test_margins_are_in_units_of_stability():
    """Weights make worths small; what is far behind stays so, and what is near too."""
    leader = Trial(10, "a", 0.9, 0.7, 4, weight=0.4)
    assert is_near(Trial(10, "b", 0.85, 0.7, 4, weight=0.4), leader, 0.1)
    assert not is_near(Trial(10, "b", 0.75, 0.7, 4, weight=0.4), leader, 0.1)
    assert not is_near(Trial(10, "b", 0.9, 0.6, 4, weight=0.3), leader, 0.1)
    assert is_near(Trial(10, "b", 0.85, 0.7, 4), Trial(10, "a", 0.9, 0.7, 4), 0.1)


@pytest.mark.parametrize("n_clusters", [6, None])
def test_a_less_stable_view_of_larger_weight_is_chosen(n_clusters):
    told = Told({"light": lambda k: 0.9, "persons": lambda k: 0.85})
    known, weights = told.trial, {"light": 0.6, "persons": 0.8}

    def trial(n_clusters, name, n_subsamples):
        return replace(known(n_clusters, name, n_subsamples), weight=weights[name])

    told.trial = trial
    assert choose(told, n_clusters, lambda share, doing: None).view == "persons"
