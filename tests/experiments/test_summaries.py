from dataclasses import replace

import numpy as np
import pytest

from tuckermix.experiments.store import RunRecord
from tuckermix.experiments.summaries import agreements, standings, summarize
from tuckermix.experiments.tables import EXPERIMENTS, Experiment, Row

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
    found = cell.metrics["AC"]
    assert found.mean == pytest.approx(scores.mean())
    assert found.variance == pytest.approx(scores.var(ddof=1))
    assert (found.worst, found.best) == (scores.min(), scores.max())
    assert found.paper.mean == 0.7140
    assert found.difference == pytest.approx(scores.mean() - 0.7140)
    assert cell.seconds == 2.0
    assert (cell.done, cell.expected, cell.explanation) == (5, 5, "")


def test_the_best_of_a_row_is_marked_per_metric_and_ties_share_it():
    records = [
        record("MM", 0, 0.7, nmi=0.2),
        record("ALS", 0, 0.70001, nmi=0.1),
        record("PGM", 0, 0.6, nmi=0.3),
    ]
    marks = {
        method: (cell.metrics["AC"].first, cell.metrics["NMI"].first)
        for method in ("MM", "ALS", "PGM")
        if (cell := cell_of(records, method))
    }
    assert marks == {"MM": (True, False), "ALS": (True, False), "PGM": (False, True)}


def test_a_single_run_has_no_variance():
    assert cell_of([record("MM", 0, 0.5)]).metrics["AC"].variance is None


def test_gaps_are_explained():
    failed = record("MM", 1, None, None, status="failed", error="It broke.")
    cell = cell_of([record("MM", 0, 0.5), failed])
    assert (cell.done, cell.expected) == (1, 5)
    assert cell.explanation == "1 of 5 failed: It broke. 3 of 5 not computed yet."
    missing = [
        record("MM", run, None, None, status="missing", error="No file.") for run in range(5)
    ]
    cell = cell_of(missing)
    assert cell.metrics == {}
    assert cell.papers["AC"].mean == 0.7140
    assert cell.explanation == "5 of 5 without its data: No file."


def test_a_row_on_other_data_shows_the_paper_but_no_difference():
    found = cell_of([record("MM", 0, 0.5, row="K=3")], row="K=3").metrics["AC"]
    assert found.paper.mean == 0.9173
    assert found.difference is None


def test_records_of_other_tables_and_profiles_are_passed_over():
    stranger = replace(record("MM", 0, 0.9), experiment="table4")
    quick = replace(record("MM", 1, 0.9), profile="quick")
    assert cell_of([stranger, quick, record("MM", 2, 0.5)]).metrics["AC"].mean == 0.5


def test_methods_of_ones_own_become_columns():
    assert summarize(TABLE, [record("mine", 0, 0.5)]).methods == (*TABLE.methods, "mine")


def test_fixed_classes_are_named_and_mixed_code_is_noticed():
    records = [
        record("MM", 0, 0.5, fingerprint="a"),
        record("MM", 1, 0.5, fingerprint="b"),
        record("MM", 0, 0.5, row="K=3", classes=[1, 2, 3]),
        record("MM", 1, 0.5, row="K=3", classes=[1, 2, 4]),
    ]
    summary = summarize(TABLE, records)
    assert summary.rows[1].classes == (2, 3, 7, 9)
    assert summary.rows[0].classes == ()
    assert summary.codes["MM"] == ("", "a", "b")


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
    assert (accuracy.rival, accuracy.place) == ("MM", 1)
    assert (information.rival, information.place) == ("PCA-Multinomial", 2)
    assert accuracy.speedup == pytest.approx(200.0)


def test_a_row_without_ours_or_without_a_rival_is_left_out(summaries):
    assert {found.row for found in standings(summaries)} == {"K=4"}


def test_agreement_is_within_two_standard_errors(summaries):
    accuracy, information = agreements(summaries)
    assert accuracy.agrees  # the mean is the paper's
    assert information.agrees is False
    assert accuracy.error == pytest.approx(((2.5e-4 + 4.906e-4) / 5) ** 0.5)


def test_a_variant_stands_beside_the_same_column_of_the_paper():
    one = record("PCA-Multinomial-1", 0, 0.7, 0.4)
    found = agreements([summarize(EXPERIMENTS["table3"], [one])])
    assert [(a.method, a.printed) for a in found] == [
        ("PCA-Multinomial-1", 0.6800),
        ("PCA-Multinomial-1", 0.4360),
    ]


def test_single_runs_neither_agree_nor_disagree():
    one = RunRecord("paper", "table5", "YaleB", "PCA-Multinomial", 0, "d", "ok", ac=0.3, nmi=0.4)
    found = agreements([summarize(EXPERIMENTS["table5"], [one])])
    assert [agreement.agrees for agreement in found] == [None, None]
