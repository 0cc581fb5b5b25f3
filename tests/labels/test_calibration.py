"""What votes are worth: agreement of independent fits, learned from halves."""

from dataclasses import replace

import numpy as np
import pytest
from tests.cases import each

from tuckermix import TuckerClustering, load, save
from tuckermix._array_api import to_numpy
from tuckermix.datasets import make_tensor_clusters
from tuckermix.labels import VoteLabels
from tuckermix.labels.calibration import (
    CERTAIN,
    N_SPLITS,
    USUAL_RATIO,
    learn_agreement,
    matched,
    ranks_in,
)


def overlapping(seed, n_samples=240, noise=2.5):
    """Draw clusters that run into each other."""
    return make_tensor_clusters(
        n_samples=n_samples, shape=(6, 6), n_clusters=4, noise=noise, random_state=seed
    ).X


def labeller_of(rng, n_landmarks=60, n_clusters=5, n_neighbors=10):
    landmarks = rng.normal(size=(n_landmarks, 3))
    names = rng.permutation(np.arange(n_landmarks) % n_clusters)
    return VoteLabels(landmarks, names, n_clusters, n_neighbors)


def test_matching_undoes_other_names(rng):
    labels = rng.integers(0, 6, size=200)
    names = rng.permutation(6)
    np.testing.assert_array_equal(matched(labels, names[labels], 6), labels)


@pytest.mark.parametrize("level", [0.21, 0.5, 0.9, 0.999])
def test_probabilities_keep_the_label_and_sum_to_one(xp, rng, level):
    plain = labeller_of(rng)
    knots = xp.asarray(np.array([[0.0, 1.0], [0.205, level]]))
    fields = {**plain.to_dict(), "knots": knots}
    fields |= {key: xp.asarray(fields[key]) for key in ("landmarks", "landmark_labels")}
    rows = rng.normal(size=(100, 3))
    votes = plain.predict_proba(rows)
    P = to_numpy(VoteLabels(**fields).predict_proba(xp.asarray(rows)))
    np.testing.assert_allclose(P.sum(axis=1), 1.0, rtol=1e-12)
    np.testing.assert_array_equal(P.argmax(axis=1), votes.argmax(axis=1))
    assert P.min() > 0
    expected = np.interp(plain.scores(votes), [0, 1], [0.205, level])
    np.testing.assert_allclose(P.max(axis=1), expected, rtol=1e-12)


def test_the_other_labels_keep_their_order(rng):
    plain = labeller_of(rng)
    calibrated = replace(plain, knots=np.array([[0.0, 1.0], [0.5, 0.9]]))
    rows = rng.normal(size=(50, 3))
    votes, P = plain.predict_proba(rows), calibrated.predict_proba(rows)
    for before, after in zip(votes, P, strict=True):
        assert (np.diff(after[np.argsort(before, kind="stable")]) >= -1e-12).all()


def test_small_clusters_are_not_punished():
    """A cluster of three landmarks that wins all it can win is as sure as a large one."""
    landmarks = np.concatenate([np.zeros((40, 2)), np.full((3, 2), 50.0)])
    landmarks += 0.01 * np.arange(43)[:, None]
    labeller = VoteLabels(landmarks, np.repeat([0, 1], [40, 3]), 2, 10)
    votes = labeller.predict_proba(landmarks)
    assert votes[-1, 1] < 0.9
    np.testing.assert_allclose(labeller.scores(votes)[[0, -1]], 1.0)


@pytest.mark.parametrize("truth", [0.6, 0.95])
def test_agreement_is_found_where_it_is_known(rng, truth):
    """Fits that agree with that probability, whatever the votes say."""
    n_samples, n_clusters = 2000, 3
    base = rng.integers(0, n_clusters, size=n_samples)

    def fit_part(indices):
        # Each of two fits gives the right name with probability q; both agree about as often.
        q = truth**0.5
        wrong = (base + rng.integers(1, n_clusters, size=n_samples)) % n_clusters
        names = np.where(rng.random(n_samples) < q, base, wrong)
        fits.append((indices, names))
        return names, np.full(n_samples, 0.8)

    fits: list = []
    knots = learn_agreement(fit_part, n_samples, n_clusters, rng, np.full(9, 0.8))
    apart = [np.mean(one != two) for (_, one), (_, two) in zip(fits[::2], fits[1::2], strict=True)]
    # First halves, then quarters, which agree no less here.
    halves, quarters = np.mean(apart[:N_SPLITS]), np.mean(apart[N_SPLITS:])
    # Halves of different pairs, on samples of none and of one of them, which are alike here too.
    across: dict = {0: [], 1: [], 2: []}
    for place, (part, one) in enumerate(fits[: 2 * N_SPLITS]):
        for other, two in fits[: place - place % 2]:
            held = np.isin(np.arange(n_samples), part) * 1 + np.isin(np.arange(n_samples), other)
            for within, collected in across.items():
                collected.append((one != two)[held == within])
    none, single = (np.concatenate(across[within]).mean() for within in (0, 1))
    expected = min(1, halves / quarters) * halves * max(1, none / single)
    expected = 1 - min(expected, none)
    np.testing.assert_allclose(knots[1], min(expected, 1 - CERTAIN), atol=1e-9)
    np.testing.assert_allclose(expected, 1 - halves, atol=0.02)


@pytest.mark.parametrize("power", [0.0, 0.5, 1.0])
def test_fits_to_more_samples_agree_more(rng, power):
    """Where disagreement falls as a power of the number of samples, so does what is foretold."""
    n_samples, n_clusters = 6000, 4
    base = rng.integers(0, n_clusters, size=n_samples)
    sizes = []

    def fit_part(indices):
        sizes.append(len(indices))
        # One of two fits is always right, the other wrong in a share that falls with its size.
        share = 0.1 * (n_samples / len(indices)) ** power if len(sizes) % 2 else 0.0
        names = np.where(rng.random(n_samples) < share, (base + 1) % n_clusters, base)
        return names, np.full(n_samples, 0.5)

    _, values = learn_agreement(fit_part, n_samples, n_clusters, rng, np.full(9, 0.5))
    assert sizes == [3000] * 2 * N_SPLITS + [1500] * 2 * N_SPLITS
    np.testing.assert_allclose(values, 1 - 0.1, atol=0.02)  # the share for all samples


def test_few_samples_have_no_quarters(rng):
    n_samples, n_clusters = 70, 10
    base = rng.integers(0, n_clusters, size=n_samples)
    sizes, differ = [], []

    def fit_part(indices):
        sizes.append(len(indices))
        wrong = rng.random(n_samples) < 0.2
        differ.append(wrong)
        return np.where(wrong, (base + 1) % n_clusters, base), np.full(n_samples, 0.5)

    _, values = learn_agreement(fit_part, n_samples, n_clusters, rng, np.full(9, 0.5))
    assert set(sizes) == {35}
    halves = np.mean([one != two for one, two in zip(differ[::2], differ[1::2], strict=True)])
    np.testing.assert_allclose(values, 1 - USUAL_RATIO * halves, atol=0.03)


@pytest.mark.parametrize("seed", range(3))
def test_halves_of_one_draw_are_opposites_and_draws_are_not(seed):
    """Where a cut hangs on what a part happens to have more of, its other half has less of it."""
    rng = np.random.default_rng(seed)
    n_samples = 1000
    one, other = rng.integers(0, 2, size=(2, n_samples))
    lean = rng.permutation(np.repeat([-1, 1], n_samples // 2))

    def fit_part(indices):
        return (one if lean[indices].sum() > 0 else other), np.full(n_samples, 0.5)

    _, values = learn_agreement(fit_part, n_samples, 2, rng, np.full(9, 0.5))
    differ = np.mean(one != matched(one, other, 2))
    # The other half cuts otherwise each time, unless both are even; an independent one every other.
    np.testing.assert_allclose(values, 1 - differ / 2, atol=0.05)


def test_new_samples_are_less_sure_than_those_of_a_half(rng):
    """Fits that never fail on their own samples fail on new ones, which are what is asked for."""
    n_samples, share = 4000, 0.1
    base = rng.integers(0, 3, size=n_samples)

    def fit_part(indices):
        new = ~np.isin(np.arange(n_samples), indices)
        wrong = new & (rng.random(n_samples) < share)
        return np.where(wrong, (base + 1) % 3, base), np.full(n_samples, 0.5)

    _, values = learn_agreement(fit_part, n_samples, 3, rng, np.full(9, 0.5))
    # Every sample is in one of two halves, which differ on a tenth of them, and new to one quarter
    # or to both; where it is new to both, either may be wrong.
    in_none = 2 * share * (1 - share)
    quarters = 0.5 * share + 0.5 * in_none
    expected = share / quarters * in_none
    np.testing.assert_allclose(values, 1 - expected, atol=0.01)


def test_votes_of_the_whole_are_worth_what_those_of_their_rank_are(rng):
    """Halves of small clusters have large votes, the whole smaller ones: the rank decides then."""
    n_samples = 4000
    base = rng.integers(0, 2, size=n_samples)
    clear = rng.random(n_samples) < 0.5

    def fit_part(indices):
        names = np.where(clear, base, rng.integers(0, 2, size=n_samples))
        return names, np.where(clear, 0.9, 0.7)

    whole = np.where(clear, 0.5, 0.25)
    at, values = learn_agreement(fit_part, n_samples, 2, rng, whole)
    found = np.interp([0.25, 0.5, 0.9], at, values)
    # Doubtful votes agree by chance, in half of the cases, in quarters too; clear ones always.
    np.testing.assert_allclose(found, [0.5, 1 - CERTAIN, 1 - CERTAIN], atol=0.1)
    assert (np.diff(values) >= 0).all()


def test_ranks_are_shares_below():
    pool = np.array([1.0, 2.0, 2.0, 3.0])
    np.testing.assert_allclose(ranks_in(pool, np.array([0.0, 1.0, 2.0, 9.0])), [0, 1 / 8, 1 / 2, 1])


@each("seed", range(3))
def test_votes_of_others_leave_landmarks_out_one_by_one(xp, seed):
    rng = np.random.default_rng(seed)
    plain = labeller_of(rng)
    rows = np.concatenate([plain.landmarks[:20], rng.normal(size=(20, 3))])
    given = {key: xp.asarray(getattr(plain, key)) for key in ("landmarks", "landmark_labels")}
    votes = to_numpy(replace(plain, **given).votes_of_others(xp.asarray(rows)))
    for place in range(20):
        others = np.arange(60) != place
        left = replace(
            plain,
            landmarks=plain.landmarks[others],
            landmark_labels=plain.landmark_labels[others],
        )
        np.testing.assert_allclose(votes[place], left.predict_proba(rows[[place]])[0])
    np.testing.assert_allclose(votes[20:], plain.predict_proba(rows[20:]))


def test_landmarks_do_not_vote_for_themselves():
    """In a pair of strangers each gets the vote of the other only."""
    landmarks = np.array([[0.0], [0.1], [0.3], [5.0], [5.1], [5.3]])
    labeller = VoteLabels(landmarks, np.array([0, 0, 0, 1, 1, 0]), 2, 2)
    weights = np.array([1.0, np.exp(-3.0)])
    split = weights[0] / weights.sum()  # one vote each, the nearer one for label 1
    expected = [1.0, 1.0, 1.0, split, split, 1.0]
    np.testing.assert_allclose(labeller.scores_of_landmarks(), expected)
    assert VoteLabels(landmarks[:1], np.array([0]), 1, 1).scores_of_landmarks().shape == (1,)


def test_probabilities_are_nearer_to_the_agreement_of_fits_than_votes():
    gaps = []
    for seed in range(6):
        X = overlapping(seed, 540)
        one = TuckerClustering(4, calibrate=True, random_state=0).fit(X[:180])
        votes = TuckerClustering(4, random_state=0).fit(X[:180])
        two = TuckerClustering(4, random_state=1).fit(X[180:360])
        labels = one.predict(X[360:])
        agree = np.mean(labels == matched(labels, two.predict(X[360:]), 4))
        sure = [fit.predict_proba(X[360:]).max(axis=1).mean() for fit in (one, votes)]
        gaps.append(np.array(sure) - agree)
    means = np.abs(np.mean(gaps, axis=0))
    assert means[0] < means[1]
    assert means[0] < 0.1


def test_calibration_changes_no_label_and_is_seeded_and_stored(seed, tmp_path):
    X = overlapping(seed, 120)
    plain = TuckerClustering(4, random_state=seed).fit(X)
    fitted = TuckerClustering(4, calibrate=True, random_state=seed).fit(X)
    again = TuckerClustering(4, calibrate=True, random_state=seed).fit(X)
    np.testing.assert_array_equal(fitted.labels_, plain.labels_)
    P = fitted.predict_proba(X)
    np.testing.assert_array_equal(P, again.predict_proba(X))
    np.testing.assert_array_equal(P.argmax(axis=1), fitted.labels_)
    assert P.min() > 0
    save(fitted, tmp_path / "model")
    np.testing.assert_array_equal(load(tmp_path / "model").predict_proba(X), P)


def test_stored_knots_are_checked(rng):
    labeller = replace(labeller_of(rng), knots=np.array([[0.0, 1.0], [0.9, 0.5]]))
    with pytest.raises(ValueError, match="knots must be rising scores"):
        labeller.check(3, 5)
    replace(labeller, knots=np.array([[0.0, 1.0], [0.5, 0.9]])).check(3, 5)


def test_only_votes_are_calibrated():
    with pytest.raises(
        ValueError, match="calibrate=True needs the landmarks of assign_labels='graph'"
    ):
        TuckerClustering(3, calibrate=True, assign_labels="subspace").fit(np.eye(9)[:, :4])
