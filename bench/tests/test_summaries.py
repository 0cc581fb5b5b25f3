from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import sem, ttest_rel
from tests.cases import each

from tuckermix_bench.methods import METHODS, Method, register_method
from tuckermix_bench.store import RunRecord
from tuckermix_bench.summaries import (
    agreements,
    paired_difference,
    place,
    scores_of,
    share_of,
    standings,
    summarize,
)
from tuckermix_bench.tables import EXPERIMENTS, Experiment, Row, cells_of

TABLE = EXPERIMENTS["table3"]


def record(method, run, ac, nmi=0.5, row="K=4", **fields):
    values = {"digest": "d", "status": "ok", "cpu_seconds": 2.0, "classes": [2, 3, 7, 9]} | fields
    return RunRecord("paper", "table3", row, method, run, ac=ac, nmi=nmi, **values)


def cell_of(records, method="MM", row="K=4"):
    summary = summarize(TABLE, records)
    return next(found for found in summary.rows if found.name == row).cells[method]


@pytest.mark.parametrize("seed", range(3))
def test_mean_and_variance_are_those_of_numpy(seed):
    scores = np.random.default_rng(seed).random(5)
    cell = cell_of([record("MM", run, ac) for run, ac in enumerate(scores)])
    assert cell.mean("AC") == pytest.approx(scores.mean())
    assert cell.variance("AC") == pytest.approx(scores.var(ddof=1))
    assert cell.scores["AC"] == list(scores)
    assert cell.papers["AC"].mean == 0.7140
    assert cell.difference("AC") == pytest.approx(scores.mean() - 0.7140)
    assert cell.seconds == 2.0
    assert (cell.done, cell.expected) == (5, 20)
    assert cell.explanation == "15 of 20 not computed yet."


def columns(**scores):
    return [record(name, run, ac) for name in scores for run, ac in enumerate(scores[name])]


def marks(records, metric="AC"):
    (row,) = [found for found in summarize(TABLE, records).rows if found.name == "K=4"]
    return {
        name: cell.standing(metric) for name, cell in row.cells.items() if cell.standing(metric)
    }


@pytest.mark.parametrize("seed", range(5))
def test_a_paired_difference_is_that_of_a_paired_t_test(seed):
    rng = np.random.default_rng(seed)
    ours, theirs = rng.random((2, 9))
    found = paired_difference(dict(enumerate(ours)), dict(enumerate(theirs)))
    test = ttest_rel(ours, theirs)
    assert found.mean == pytest.approx((ours - theirs).mean())
    assert found.mean / found.error == pytest.approx(test.statistic)
    assert found.pairs == 9
    assert found.ahead == (test.statistic > 2)
    assert found.behind == (test.statistic < -2)
    assert found.ahead + found.behind + found.tied == 1


def test_only_draws_that_both_have_are_compared():
    found = paired_difference({0: 0.5, 1: 0.7, 2: 0.1}, {1: 0.6, 2: 0.2, 3: 0.9})
    assert (found.mean, found.pairs) == (pytest.approx(0.0), 2)
    assert paired_difference({0: 0.5}, {1: 0.5}) is None


def test_first_is_more_than_two_standard_errors_ahead_of_everybody():
    # The spread of the draws is large, that of the differences is not.
    hard = np.array([0.0, 0.3, 0.1, 0.2, 0.4])
    jitter = np.array([0.01, -0.01, 0.02, -0.02, 0.0])
    ahead = columns(MM=0.6 + hard, ALS=0.5 + hard + jitter, PGM=0.4 + hard)
    assert marks(ahead) == {"MM": "first"}
    near = columns(MM=0.6 + hard, ALS=0.5 + hard + jitter, PGM=0.6 + hard + jitter)
    assert marks(near) == {"MM": "tied first", "PGM": "tied first"}


def test_a_higher_mean_alone_is_a_tie():
    records = columns(MM=[0.9, 0.5, 0.7], ALS=[0.6, 0.7, 0.7])
    assert marks(records) == {"MM": "tied first", "ALS": "tied first"}


def test_perfect_scores_are_ties():
    assert marks(columns(MM=[1.0, 1.0], ALS=[1.0, 1.0], PGM=[0.9, 1.0])) == {
        "MM": "tied first",
        "ALS": "tied first",
        "PGM": "tied first",
    }


def test_single_runs_decide_nothing():
    assert marks(columns(MM=[0.9], ALS=[0.5])) == {}
    assert set(marks(columns(MM=[0.9], ALS=[0.9]))) == {"MM", "ALS"}


def test_one_column_alone_is_not_first():
    assert marks(columns(MM=[0.9, 0.8])) == {}


def test_a_variant_is_neither_marked_nor_in_the_way():
    records = columns(
        **{"PCA-Multinomial-1": [0.9, 0.9, 0.9], "MM": [0.8, 0.8, 0.8], "ALS": [0.5] * 3}
    )
    assert marks(records) == {"MM": "first"}


def test_our_columns_are_no_rivals_of_each_other():
    scores = {"MM": [0.5, 0.6, 0.5], "TuckerClustering": [0.7, 0.8, 0.8]}
    scores["AutoClustering"] = [0.9, 0.9, 1.0]
    found = marks([record(name, run, ac) for name in scores for run, ac in enumerate(scores[name])])
    assert found == {"TuckerClustering": "first", "AutoClustering": "first"}


def test_the_share_counts_rows_and_names_who_is_ahead():
    def scores(method, row, level):
        return [record(method, run, level + 0.01 * run, nmi=level, row=row) for run in range(3)]

    records = []
    for row, level in (("K=3", 0.9), ("K=4", 0.5), ("K=5", 0.7)):
        records += [*scores("AutoClustering", row, level), *scores("MM", row, 0.7)]
    records += [record("AutoClustering", 0, 0.1, row="K=6"), record("MM", 0, 0.2, row="K=6")]
    found = standings([summarize(TABLE, records)], "AutoClustering")
    assert share_of(found) == (2, 3)  # the single run of K=6 decides nothing
    assert {(one.row, one.winners) for one in found if one.verdict == "behind"} == {
        ("K=4", ("MM",))
    }


def test_a_row_of_another_table_shows_its_records_and_counts_once():
    beyond = EXPERIMENTS["beyond"]
    records = [
        replace(record(method, run, level + 0.01 * run, row="K=10"), method=method)
        for method, level in (("AutoClustering", 0.9), ("MM", 0.5))
        for run in range(3)
    ]
    (row,) = [row for row in summarize(beyond, records).rows if row.name == "MNIST, 10 × 100"]
    assert row.borrowed
    assert row.cells["AutoClustering"].mean("AC") == pytest.approx(0.91)
    both = [summarize(TABLE, records), summarize(beyond, records)]
    assert {found.table for found in standings(both, "AutoClustering")} == {"table3"}


def test_runs_of_other_draws_are_shown_and_not_compared():
    (cell,) = [
        cell
        for cell in cells_of([TABLE], methods=["TuckerClustering"])
        if (cell.row.name, cell.run) == ("K=4", 0)
    ]
    ours = record("TuckerClustering", 0, 0.9, digest=cell.digest)
    found = cell_of([ours, record("MM", 0, 0.5)])
    assert found.mean("AC") == 0.5
    assert found.places["AC"].lead is None
    older = cell_of([record("TuckerClustering", 0, 0.9), record("MM", 0, 0.5)])
    assert older.places["AC"].lead.mean == pytest.approx(-0.4)


def test_a_column_that_nobody_asked_for_has_no_gaps():
    records = [record("UMAP + k-means", 0, 0.5)]
    assert cell_of(records, "UMAP + k-means").explanation == ""
    assert cell_of(records, "UMAP + k-means", row="K=5").explanation == ""
    assert cell_of(records, "DRCC (searched)", row="K=5").explanation == ""


def test_what_tuning_has_seen_is_the_mean_over_the_draws():
    records = [
        record(method, run, 0.5, extras={"seen": share})
        for method in ("MM", "ALS")
        for run, share in enumerate([0.5, 0.4])
    ]
    shares = {
        row.name: row.seen for row in summarize(TABLE, [*records, record("PGM", 0, 0.5)]).rows
    }
    assert shares["K=4"] == pytest.approx(0.45)
    assert shares["K=3"] is None


def test_reasons_to_stop_are_counted():
    records = [
        record("MM", run, 0.5, stop_reason=reason)
        for run, reason in enumerate(["max_iter", "tolerance", "max_iter", None])
    ]
    assert cell_of(records).stops == {"max_iter": 2, "tolerance": 1}


def test_records_of_other_settings_are_counted():
    cell = next(
        cell
        for cell in cells_of([TABLE], methods=["MM"])
        if (cell.row.name, cell.run) == ("K=4", 1)
    )
    records = [record("MM", 0, 0.5), record("MM", 1, 0.5, digest=cell.digest)]
    assert summarize(TABLE, records).older == 1


def test_a_single_run_has_no_variance():
    assert cell_of([record("MM", 0, 0.5)]).variance("AC") is None


def test_gaps_are_explained():
    failed = record("MM", 1, None, None, status="failed", error="It broke.")
    cell = cell_of([record("MM", 0, 0.5), failed])
    assert (cell.done, cell.expected) == (1, 20)
    assert cell.explanation == "1 of 20 failed: It broke. 18 of 20 not computed yet."
    missing = [
        record("MM", run, None, None, status="timeout", error="Too slow.") for run in range(20)
    ]
    cell = cell_of(missing)
    assert cell.scores == {}
    assert cell.papers["AC"].mean == 0.7140
    assert cell.explanation == "20 of 20 stopped at the time limit: Too slow."


def test_a_row_on_other_data_shows_the_paper_but_no_difference():
    found = cell_of([record("MM", 0, 0.5, row="K=3")], row="K=3")
    assert found.papers["AC"].mean == 0.9173
    assert found.difference("AC") is None


def test_records_of_other_tables_and_profiles_are_passed_over():
    stranger = replace(record("MM", 0, 0.9), experiment="table4")
    quick = replace(record("MM", 1, 0.9), profile="quick")
    assert cell_of([stranger, quick, record("MM", 2, 0.5)]).mean("AC") == 0.5


def test_methods_of_ones_own_become_columns():
    assert summarize(TABLE, [record("mine", 0, 0.5)]).methods == (*TABLE.methods, "mine")


def test_fixed_classes_are_named():
    records = [
        record("MM", 0, 0.5),
        record("MM", 1, 0.5),
        record("MM", 0, 0.5, row="K=3", classes=[1, 2, 3]),
        record("MM", 1, 0.5, row="K=3", classes=[1, 2, 4]),
    ]
    summary = summarize(TABLE, records)
    assert summary.rows[1].classes == (2, 3, 7, 9)
    assert summary.rows[0].classes == ()


def test_the_order_of_the_records_does_not_matter():
    records = [record("MM", run, 0.1 * run) for run in range(5)]
    assert summarize(TABLE, records) == summarize(TABLE, records[::-1])


def test_an_empty_store_gives_an_empty_table():
    own = Experiment("own", "Mine", (Row("a", "digits", (2, 2), runs=2),), ("k-means",))
    cell = summarize(own, []).rows[0].cells["k-means"]
    assert cell.explanation == "2 of 2 not computed yet."


RECORDS = [
    *(record("TuckerClustering", run, 0.8, 0.3, cpu_seconds=0.1) for run in range(5)),
    *(
        record("PCA-Multinomial", run, 0.68 + 0.01 * (run - 2), 0.6, cpu_seconds=20)
        for run in range(5)
    ),
    *(record("MM", run, 0.7, 0.2) for run in range(5)),
    record("MM", 0, 0.5, 0.5, row="K=5"),
    record("TuckerClustering", 0, 0.5, 0.5, row="K=6"),
]


@pytest.fixture
def summaries():
    return [summarize(EXPERIMENTS["table3"], RECORDS)]


def test_our_place_rival_and_speed(summaries):
    accuracy, information = standings(summaries)
    assert (accuracy.rival, accuracy.verdict) == ("MM", "first")
    assert accuracy.lead.mean == pytest.approx(0.1)
    assert (information.rival, information.verdict) == ("PCA-Multinomial", "behind")
    assert information.winners == ("PCA-Multinomial",)


def test_a_lead_within_two_standard_errors_is_a_tie():
    records = columns(TuckerClustering=[0.9, 0.5, 0.8], MM=[0.7, 0.7, 0.7], ALS=[0.2] * 3)
    accuracy, information = standings([summarize(TABLE, records)])
    assert (accuracy.verdict, accuracy.ties, accuracy.winners) == ("tied first", ("MM",), ())
    assert (information.verdict, information.ties) == ("tied first", ("MM", "ALS"))


def test_a_single_run_is_called_so():
    accuracy, _ = standings([summarize(TABLE, columns(TuckerClustering=[0.9], MM=[0.7]))])
    assert accuracy.verdict == "single run"


def test_a_row_without_ours_or_without_a_rival_is_left_out(summaries):
    assert {found.row for found in standings(summaries)} == {"K=4"}


def agreed(table, records):
    found = agreements(summarize(EXPERIMENTS[table], records))
    return [(cell.method, metric, error) for _, cell, metric, error in found]


def test_the_papers_method_is_compared_with_the_papers_numbers():
    (_, _, error), information = agreed("table3", RECORDS)
    assert error == pytest.approx(((2.5e-4 + 4.906e-4) / 5) ** 0.5)
    assert information[:2] == ("PCA-Multinomial", "NMI")


def test_a_variant_is_compared_with_the_same_column_of_the_paper():
    one = record("PCA-Multinomial-1", 0, 0.7, 0.4)
    found = agreements(summarize(EXPERIMENTS["table3"], [one]))
    assert [cell.papers[metric].mean for _, cell, metric, _ in found] == [0.6800, 0.4360]


def test_variants_of_other_columns_are_not_compared_as_the_papers_own():
    register_method(Method("MM again", "tuckermix.baselines:MultiplicativeNMF", variant_of="MM"))
    try:
        assert agreed("table3", [record("MM again", 0, 0.7)]) == []
    finally:
        del METHODS["MM again"]


def test_single_runs_neither_agree_nor_disagree():
    one = RunRecord("paper", "table5", "YaleB", "PCA-Multinomial", 0, "d", "ok", ac=0.3, nmi=0.4)
    assert [error for *_, error in agreed("table5", [one])] == [None, None]


def test_numbers_of_clusters_are_kept_where_they_are_found():
    found = cell_of([record("MM", run, 0.5, extras={"found": 3 + run}) for run in range(2)])
    assert found.found == ((4, 3), (4, 4))
    assert cell_of([record("MM", 0, 0.5, peak_memory=2_000_000)]).memory == 2e6


def one_record(run, ac, nmi=0.5, method="mine", **more):
    return RunRecord("paper", "t", "r", method, run, "d", "ok", ac=ac, nmi=nmi, **more)


def test_a_place_is_that_of_the_paired_differences():
    rng = np.random.default_rng(0)
    mine = rng.uniform(0.4, 0.6, 8)
    others = {
        "far ahead": mine + rng.uniform(0.2, 0.3, 8),
        "a little ahead": mine + rng.normal(0.001, 0.05, 8),
        "behind": mine - rng.uniform(0.2, 0.3, 8),
        "equal": mine,
    }
    records = [one_record(run, ac, seconds=2.0, cpu_seconds=1.0) for run, ac in enumerate(mine)]
    theirs = {name: dict(enumerate(scores)) for name, scores in others.items()}
    found = place(records, scores_of(records, "AC"), theirs, "AC")
    assert found.mean == pytest.approx(mine.mean())
    assert found.error == pytest.approx(sem(mine))
    assert found.rival == "far ahead"
    difference = mine - others["far ahead"]
    assert found.lead.mean == pytest.approx(difference.mean())
    assert found.lead.error == pytest.approx(sem(difference))
    assert found.rank == 1 + sum(scores.mean() > mine.mean() for scores in others.values())
    assert found.columns == 5
    assert (found.verdict, found.winners) == ("behind", ("far ahead",))
    assert set(found.ties) == {"a little ahead", "equal"}
    assert (found.seconds, found.cpu_seconds) == (2.0, 1.0)


@each(
    "others, verdict, rank",
    [
        ({}, "alone", 1),
        ({"a": {0: 0.1, 1: 0.2, 2: 0.1}}, "first", 1),
        ({"a": {0: 0.5, 1: 0.6, 2: 0.7}}, "tied first", 1),
        ({"a": {0: 0.9, 1: 0.9, 2: 0.8}}, "behind", 2),
        ({"a": {0: 0.9}}, "single run", 2),
        ({"a": {7: 0.9}}, "alone", 1),  # no common draw
    ],
)
def test_verdicts(others, verdict, rank):
    mine = [one_record(run, score) for run, score in enumerate((0.5, 0.6, 0.7))]
    found = place(mine, scores_of(mine, "AC"), others, "AC")
    assert (found.verdict, found.rank) == (verdict, rank)


def test_no_scores_no_place():
    failed = [replace(one_record(0, None), status="failed")]
    assert scores_of(failed, "AC") == {}
    assert place(failed, {}, {}, "AC") is None
