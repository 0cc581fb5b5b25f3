import pytest

from tuckermix.experiments.overview import agreements, overview_markdown, standings
from tuckermix.experiments.store import RunRecord
from tuckermix.experiments.summaries import summarize
from tuckermix.experiments.tables import EXPERIMENTS


def record(method, run, ac, nmi, row="K=4", seconds=1.0):
    return RunRecord(
        "paper", "table3", row, method, run, "d", "ok", ac=ac, nmi=nmi, cpu_seconds=seconds
    )


RECORDS = [
    *(record("TuckerClustering", run, 0.8, 0.3, seconds=0.1) for run in range(5)),
    *(record("PCA-Multinomial", run, 0.68 + 0.01 * (run - 2), 0.6, seconds=20) for run in range(5)),
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


def test_a_table_without_the_papers_method_has_no_speed():
    few = [found for found in RECORDS if found.method != "PCA-Multinomial"]
    text = overview_markdown([summarize(EXPERIMENTS["table3"], few)])
    assert "| table3 | 2 of 2 | – | – | – | – |" in text


def test_markdown_has_all_tables(summaries):
    text = overview_markdown(summaries)
    assert "| table3 | K=4 | AC | 0.8000 | MM | 0.7000 | +0.1000 | **1** | 200 × |" in text
    assert (
        "| table3 | K=4 | NMI | 0.3000 | PCA-Multinomial | 0.6000 | -0.3000 | 2 | 200 × |" in text
    )
    assert "| table3 | 1 of 2 | K=4 NMI to PCA-Multinomial | 200.0 × | 200.0 × | 200.0 × |" in text
    assert "| table3 | K=4 | PCA-Multinomial | AC | 0.6800 | 0.6800 | " in text
