"""The search over numbers of clusters."""

from dataclasses import replace

import numpy as np
import pytest
from tests.cases import each

from tuckermix.selection.record import Trial
from tuckermix.selection.search import at_the_end, choose, is_behind, numbers_to_scan


class Told:
    """Stand in for a resampler: stabilities follow a curve that is given, and calls are noted."""

    def __init__(self, curves, n_samples=1000, spread=0.0, noise=0.1):
        self.curves, self.n_samples, self.spread = curves, n_samples, spread
        self.candidates, self.judge = dict.fromkeys(curves), None
        self.looks, self.noise = dict.fromkeys(curves, ()), noise
        self.calls, self.scans, self.prepared = {}, [], []

    def prepare(self):
        for name in self.candidates:
            self.prepared.append(name)
            yield name

    def one(self, n_clusters, name, count):
        stability = self.curves[name](n_clusters)
        if stability is None:
            return None
        return Trial(n_clusters, name, stability, even(n_clusters), count)

    def scan(self, rung, numbers, names, count):
        self.scans += [(number, name) for number in numbers for name in names]
        found = [self.one(number, name, count) for number in numbers for name in names]
        return [trial for trial in found if trial]

    def compare(self, keys, count):
        self.calls.update(dict.fromkeys(keys, count))
        found = [self.one(*key, count) for key in keys]
        return [trial for trial in found if trial]

    def agreements(self, n_clusters, name):
        count = self.calls[n_clusters, name]
        wave = self.spread * np.sin(1.0 + np.arange(count) + len(name))
        return self.curves[name](n_clusters) + wave

    def labels(self, n_clusters, name):
        return np.arange(self.n_samples) % n_clusters

    def of_noise(self, names, place):
        level = self.noise + 0.01 * (-1) ** place
        return Told(dict.fromkeys(names, lambda k: level), self.n_samples)


def even(n_clusters):
    """Return the modularity at which the score is the stability."""
    return (1 - 1 / max(2, n_clusters)) ** 0.5


def peak_at(best):
    return lambda k: float(np.exp(-abs(np.log2(k / best))))


def quiet(share, doing):
    pass


@each("n_samples", [8, 9, 30, 1000, 1500, 6000])
def test_the_scan_reaches_a_quarter_of_the_samples(n_samples):
    numbers = numbers_to_scan(n_samples)
    assert numbers[0] == 2
    assert numbers[-1] == n_samples // 4
    ratios = np.array(numbers[1:]) / numbers[:-1]
    assert np.all(ratios > 1)
    assert np.all(ratios <= 1.5)


def test_few_samples_leave_nothing_to_scan():
    assert numbers_to_scan(7) == []
    assert choose(Told({"a": peak_at(2)}, n_samples=7), None, quiet).n_clusters == 1


@each("best", [2, 3, 7, 11, 13, 24, 37, 68, 100, 177, 249])
def test_a_single_peak_is_found_wherever_it_is(best):
    told = Told({"a": peak_at(best)})
    shares = []
    chosen = choose(told, None, lambda share, doing: shares.append(share))
    assert chosen.n_clusters == best
    assert shares[0] == 0.0
    assert shares == sorted(shares)
    assert max(shares) <= 1.0
    assert at_the_end(chosen) == (best * 4 * 1.4 >= 1000)


def test_two_clear_groups_do_not_hide_a_hundred_persons():
    """Numbers between are far worse than both."""
    stabilities = {2: 0.99, 100: 0.97}
    told = Told({"a": lambda k: stabilities.get(k, 0.9 if 80 <= k <= 120 else 0.3)})
    plain = told.one

    def one(n_clusters, name, count):
        return replace(plain(n_clusters, name, count), modularity=0.9 * (1 - 1 / n_clusters))

    told.one = one
    chosen = choose(told, None, quiet)
    assert chosen.n_clusters == 100
    assert chosen.coarser == 2
    assert chosen.finer is None


def test_a_peak_beside_one_that_comes_near_is_found_too():
    """The scan has 15, 21, 29: the best of these is not beside the best of all."""
    curve = {15: 0.9, 21: 0.905, 23: 0.9, 25: 1.0, 29: 0.895}
    told = Told({"a": lambda k: curve.get(k, 0.85 - 0.01 * abs(k - 22))})
    assert choose(told, None, quiet).n_clusters == 25


def test_the_best_of_all_has_been_compared():
    """The scan sees five clusters, a closer look does not, and seven are best."""
    curve = {7: 0.95, 8: 0.88}
    told = Told({"a": lambda k: curve.get(k, 0.3), "bb": lambda k: 0.1})
    known = told.scan

    def scan(rung, numbers, names, count):
        found = known(rung, numbers, names, count)
        lucky = (6, "a")
        return [replace(t, stability=0.93) if (t.n_clusters, t.view) == lucky else t for t in found]

    told.scan = scan
    chosen = choose(told, None, quiet)
    assert chosen.n_clusters == 7
    assert next(t for t in chosen.trials if (t.n_clusters, t.view) == (6, "a")).stability == 0.3


def test_wide_graphs_are_cut_in_the_views_that_lead():
    told = Told({name: lambda k, w=w: 0.1 + 0.1 * w for w, name in enumerate("abcdef")})
    choose(told, None, quiet)
    assert {name for number, name in told.scans if number <= 90} == set("abcdef")
    assert {name for number, name in told.scans if number > 91} == set("def")


def test_leaders_get_more_subsamples_until_one_is_ahead():
    curves = {"a": peak_at(5), "bb": lambda k: 0.97 * peak_at(5)(k), "c": lambda k: 0.1}
    counts = {}
    for spread in (0.0, 0.5):
        told = Told(curves, spread=spread)
        chosen = choose(told, None, quiet)
        counts[spread] = {(t.n_clusters, t.view): t.n_subsamples for t in chosen.trials}
        assert told.prepared == ["a", "bb", "c"]
        assert (chosen.n_clusters, chosen.view) == (5, "a")
    assert counts[0.5][5, "a"] == counts[0.5][5, "bb"] == 12  # subsamples leave a doubt
    assert counts[0.0][5, "a"] == counts[0.0][5, "bb"] == 8
    for found in counts.values():
        assert found[5, "c"] == 2
        assert found[2, "a"] == 2  # scanned only


def test_views_that_are_the_same_are_not_told_apart_by_a_hair():
    told = Told({"a": lambda k: 0.9, "bb": lambda k: 0.899})
    assert choose(told, 6, quiet).view == "a"
    assert max(told.calls.values()) == 8


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
    chosen = choose(told, 9, quiet)
    assert {number for number, _ in told.calls} == {9}
    assert told.scans == []
    assert chosen.view == "b"
    assert chosen.noise == []


def test_where_nothing_can_be_tried_the_first_view_is_taken():
    told = Told({"a": lambda k: None, "b": lambda k: None})
    chosen = choose(told, 9, quiet)
    assert (chosen.n_clusters, chosen.view) == (9, "a")
    for n_samples in (1, 4):
        chosen = choose(Told({"a": peak_at(3)}, n_samples=n_samples), None, quiet)
        assert chosen.n_clusters == 1
    assert choose(Told({"a": peak_at(3)}, n_samples=9), 9, quiet).n_clusters == 9


def test_what_noise_scores_as_well_is_one_cluster():
    told = Told({"a": lambda k: 0.5 * peak_at(4)(k)}, noise=0.47)
    chosen = choose(told, None, quiet)
    assert chosen.n_clusters == 1
    assert chosen.next_n_clusters == 4
    assert len(chosen.noise) == 32
    assert "nothing is clustered" in str(chosen)
    assert choose(told, 4, quiet).n_clusters == 4  # a number that is given is not questioned
    told.noise = 0.2
    assert choose(told, None, quiet).n_clusters == 4


def test_how_sure_the_choice_is():
    told = Told({"a": lambda k: {5: 0.9, 6: 0.88}.get(k, 0.5)}, spread=0.0)
    chosen = choose(told, None, quiet)
    assert chosen.sure == 1.0
    assert chosen.equal == []
    told = Told({"a": lambda k: {5: 0.9, 6: 0.9}.get(k, 0.5)})
    chosen = choose(told, None, quiet)
    assert chosen.equal == [6]
    assert chosen.sure == 0.5
    assert "5 and 6 clusters are about equally good." in str(chosen)


@pytest.mark.parametrize("n_clusters", [6, None])
def test_a_less_stable_view_of_larger_weight_is_chosen(n_clusters):
    told = Told({"light": lambda k: 0.9, "persons": lambda k: 0.85})
    known, weights = told.one, {"light": 0.6, "persons": 0.8}

    def one(number, name, count):
        return replace(known(number, name, count), weight=weights[name])

    told.one = one
    assert choose(told, n_clusters, quiet).view == "persons"
