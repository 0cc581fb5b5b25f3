"""The record of a choice."""

import numpy as np
import pytest

from tuckermix.selection.record import (
    Selection,
    Trial,
    best_views,
    by_merit,
    share_nested,
    summarize,
    weight_of,
)

TRIALS = [
    Trial(2, "a", 0.9, 0.3, 4),
    Trial(2, "b", 0.8, 0.9, 4),
    Trial(3, "b", 1.0, 0.6, 4),
    Trial(3, "a", 0.7, 0.6, 4),
    Trial(4, "a", 0.95, 0.64, 4),
]
LABELS = {
    2: np.array([0, 0, 0, 1, 1, 1]),
    3: np.array([0, 0, 1, 2, 2, 2]),
    4: np.array([0, 0, 1, 2, 3, 3]),
}


def test_the_view_goes_by_stability_and_the_number_by_the_product():
    chosen = summarize(TRIALS, ["a", "b"], LABELS, 6)
    # For two clusters view b has the larger product, 0.72, but is less stable.
    assert [(t.n_clusters, t.view) for t in chosen.curve] == [(2, "a"), (3, "b"), (4, "a")]
    assert (chosen.n_clusters, chosen.view) == (3, "b")
    assert chosen.next_n_clusters == 4
    assert chosen.behind == pytest.approx(1 - 0.608 / 0.6 * (8 / 9) ** 0.5)
    scores = [t.stability * t.modularity / (1 - 1 / t.n_clusters) ** 0.5 for t in chosen.trials]
    np.testing.assert_allclose([row["score"] for row in chosen.table], scores)
    assert [(t.n_clusters, t.view) for t in chosen.trials[:3]] == [(2, "a"), (2, "b"), (3, "a")]


def test_good_partitions_that_nest_are_named():
    chosen = summarize(TRIALS, ["a", "b"], LABELS, 6)
    assert chosen.nested == [{"n_clusters": 4, "share": 1.0, "nested": True}]
    assert "The 4 clusters nest in the 3" in str(chosen)
    assert "Next number of clusters: 4, 4.5% behind." in str(chosen)
    crossing = {**LABELS, 4: np.array([0, 1, 2, 0, 1, 3])}
    chosen = summarize(TRIALS, ["a", "b"], crossing, 6)
    assert chosen.nested[0]["share"] == pytest.approx(4 / 6)
    assert "do not nest" in str(chosen)


@pytest.mark.parametrize("n_clusters", [1, 2, 3, 10, 100])
def test_modularity_counts_the_more_the_more_clusters_there_are(n_clusters):
    assert weight_of(1.0, n_clusters) == 1.0
    if n_clusters <= 2:
        assert weight_of(0.3, n_clusters) == weight_of(-0.1, n_clusters) == 1.0
    else:
        assert weight_of(0.3, n_clusters) == pytest.approx(0.3 ** (4 - 8 / n_clusters))
        assert weight_of(-0.1, n_clusters) == 0.0
        assert weight_of(0.3, n_clusters) > weight_of(0.3, n_clusters + 1)


def test_the_view_goes_by_stability_times_weight():
    trials = [Trial(6, "light", 0.9, 0.73, 20, 0.92, 0.66), Trial(6, "persons", 0.85, 0.8, 20)]
    assert [trial.view for trial in best_views(trials)] == ["persons"]
    chosen = summarize(trials, ["light", "persons"], {6: np.arange(6)}, 6)
    assert chosen.view == "persons"
    assert [trial.view for trial in chosen.of(6)] == ["persons", "light"]
    assert "Next view: 'light', stability 0.900, modularity 0.730." in str(chosen)


def test_one_number_has_no_next():
    chosen = summarize(TRIALS[:2], ["a", "b"], LABELS, 6)
    assert chosen.next_n_clusters is None
    assert chosen.behind is None
    assert "Next view: 'b'" in str(chosen)
    assert chosen.views == ["a", "b"]
    assert [trial.view for trial in chosen.of(2)] == ["a", "b"]


def test_nesting_is_a_share_of_samples():
    coarse = np.repeat([0, 1], 10)
    fine = np.repeat([0, 1, 2, 3], 5)
    assert share_nested(fine, coarse) == 1.0
    fine[0] = 3
    assert share_nested(fine, coarse) == pytest.approx(19 / 20)
    assert share_nested(np.arange(20), coarse) == 1.0


def test_best_views_keep_the_first_of_equals():
    equal = [Trial(2, "a", 0.5, 0.1, 4), Trial(2, "b", 0.5, 0.9, 4)]
    assert best_views(equal)[0].view == "a"
    assert Selection(equal, 2, "a")["trials"] == equal


def test_parts_of_groups_that_hardly_touch_do_not_win():
    groups = Trial(4, "a", 1.0, 0.75, 20, within=1.0)
    parts = Trial(12, "a", 0.99, 0.85, 20, within=0.93)
    assert parts.score > groups.score
    assert by_merit([parts, groups])[0] is groups


def test_one_group_that_stands_apart_does_not_hide_the_others():
    apart = Trial(2, "a", 1.0, 0.4, 20, within=1.0)
    every = Trial(10, "a", 0.92, 0.83, 20, within=0.93)
    assert by_merit([apart, every])[0] is every
    # Of two clear partitions the finer one leads.
    finer = Trial(3, "a", 1.0, 0.66, 20, within=0.995)
    assert by_merit([apart, finer, every])[0] is finer


def test_a_clear_partition_that_is_far_behind_does_not_lead():
    """Persons of whom one stands apart in all pictures, as they were seen: the others count too."""
    apart = Trial(2, "scattering", 1.0, 0.416, 20, within=0.998)
    persons = Trial(10, "pixels", 0.954, 0.76, 20, within=0.868)
    assert apart.clear
    assert apart.share_of_possible > persons.share_of_possible
    assert by_merit([apart, persons])[0] is persons
    # Four groups of persons that hardly touch, and the persons, who hardly touch either.
    groups = Trial(4, "pixels", 1.0, 0.74, 20, within=0.999)
    persons = Trial(34, "pixels", 0.985, 0.96, 20, within=0.989)
    assert groups.clear
    assert not persons.clear
    assert groups.share_of_possible > persons.share_of_possible
    assert by_merit([groups, persons])[0] is persons


def test_the_score_is_even_handed_between_few_and_many_clusters():
    """Groups that share no edge score the root of the most they can have, parts of them less."""
    for n_clusters in (2, 5, 20):
        perfect = Trial(n_clusters, "a", 1.0, 1 - 1 / n_clusters, 4)
        assert perfect.share_of_possible == pytest.approx(1.0)
        assert perfect.score == pytest.approx((1 - 1 / n_clusters) ** 0.5)
    # Two kinds of pictures as they were seen, and four parts of them.
    kinds, parts = Trial(2, "a", 0.98, 0.47, 20), Trial(4, "a", 0.75, 0.7, 20)
    assert kinds.score > parts.score
    assert kinds.stability * kinds.modularity < parts.stability * parts.modularity


def test_fewer_clusters_lead_where_more_are_no_better():
    def trial(n_clusters, score):
        return Trial(n_clusters, "a", score, (1 - 1 / n_clusters) ** 0.5, 12)

    same, better, many = [0.838, 0.840], [0.82, 0.84], [0.838, 0.840]
    for number, scores, first in ((10, same, 10), (10, better, 11), (100, many, 101)):
        curve = [trial(number, scores[0]), trial(number + 1, scores[1])]
        assert by_merit(curve)[0].n_clusters == first
