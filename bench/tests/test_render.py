import csv
import io

import pytest

from tuckermix_bench import reproduce, show
from tuckermix_bench.render import (
    overview_markdown,
    table_csv,
    table_markdown,
    table_text,
)
from tuckermix_bench.store import RunRecord
from tuckermix_bench.summaries import summarize
from tuckermix_bench.tables import EXPERIMENTS

HOSTILE = "<script>alert('x')</script> | a\nb"


def record(method, run, ac, table="table3", row="K=4", **fields):
    values = {"digest": "d", "status": "ok", "cpu_seconds": 0.5, "classes": [2, 3, 7, 9]} | fields
    values["machine"] = "A machine"
    values["versions"] = {"numpy": "2.0"}
    return RunRecord("paper", table, row, method, run, ac=ac, **{"nmi": ac} | values)


RECORDS = [
    *(record("MM", run, 0.70 + 0.01 * run) for run in range(5)),
    *(record("TuckerClustering", run, 0.9) for run in range(5)),
    record("ALS", 0, None, status="failed", error=HOSTILE),
]


@pytest.fixture
def summary():
    return summarize(EXPERIMENTS["table3"], RECORDS)


def test_text_has_mean_and_paper_and_marks_the_best(summary):
    text = table_text(summary)
    block = text[text.index("K=4 (2, 3, 7, 9)") : text.index("K=5")].splitlines()
    line = next(line for line in block if line.startswith("  MM "))
    assert line.split() == ["MM", "0.7200", "0.7140", "0.7200", "0.4654", "0.50", "s", "5/20"]
    best = next(line for line in block if line.startswith("  TuckerClustering"))
    assert best.count("0.9000*") == 2
    assert "not computed yet" in text


def test_markdown_has_one_line_for_each_method_and_measure(summary):
    text = table_markdown(summary)
    lines = [line for line in text.splitlines() if line.startswith("| MM |")]
    assert len(lines) == 5  # AC, NMI, time, memory, what it is
    assert "## Adjusted Rand index" not in text
    assert "| MM | nonnegative matrix factorisation by multiplicative updates | pixels |" in text
    assert "11 records belong to other draws or settings" in text
    assert "0.7200<br>(2.500e-04; 5)<br>paper 0.7140 (8.518e-04)<br>+0.0060" in lines[0]
    ours = next(line for line in text.splitlines() if line.startswith("| TuckerClustering |"))
    assert "**0.9000**" in ours
    header = next(line for line in text.splitlines() if "| K=4 (2, 3, 7, 9) |" in line)
    assert all(line.count("|") == header.count("|") for line in (ours, *lines[:4]))
    assert "ALS (K=4): 1 of 20 failed" in text
    assert "A machine" in text
    assert "numpy 2.0" in text


def test_table_1_has_the_papers_statistics():
    records = [record("PCA-Multinomial", n, 0.7 + n / 100, "table1", "random") for n in range(20)]
    text = table_markdown(summarize(EXPERIMENTS["table1"], records))
    assert "| AC | paper | 0.7120 | 0.0394 | 0.7630 | 0.6150 |" in text
    assert "| AC | PCA-Multinomial | 0.7950 | 0.0592 | 0.8900 | 0.7000 |" in text


def test_csv_can_be_read_back(summary):
    rows = list(csv.DictReader(io.StringIO(table_csv(summary))))
    assert len(rows) == 8 * len(summary.methods)
    found = next(row for row in rows if row["row"] == "K=4" and row["method"] == "MM")
    assert float(found["ac_mean"]) == pytest.approx(0.72)
    assert float(found["ac_paper"]) == 0.7140
    assert found["runs"] == "5"
    assert (float(found["ac_low"]), float(found["ac_high"])) == (0.70, 0.74)
    assert found["ac_standing"] == ""
    best = next(row for row in rows if row["row"] == "K=4" and row["method"] == "TuckerClustering")
    assert best["ac_standing"] == "first"
    failed = next(row for row in rows if row["row"] == "K=4" and row["method"] == "ALS")
    assert failed["ac_mean"] == ""
    assert "alert" in failed["explanation"]


def beside(method, ac, nmi, seconds):
    return [
        record(
            method,
            run,
            ac + 0.01 * (run - 2) * (method == "PCA-Multinomial"),
            nmi=nmi,
            cpu_seconds=seconds,
        )
        for run in range(5)
    ]


COMPARED = [
    *beside("TuckerClustering", 0.8, 0.3, 0.1),
    *beside("PCA-Multinomial", 0.68, 0.6, 20),
    *beside("MM", 0.7, 0.2, 1),
]


def test_the_overview_has_all_comparisons():
    text = overview_markdown([summarize(EXPERIMENTS["table3"], COMPARED)])
    ahead = "| table3 | K=4 | AC | 0.8000 | MM | 0.7000 | +0.1000 ± 0.0000 | 5 | **first** |  |"
    assert ahead in text
    lost = "| 0.3000 | PCA-Multinomial | 0.6000 | -0.3000 ± 0.0000 | 5 | behind | PCA-Multinomial |"
    assert f"| table3 | K=4 | NMI {lost}" in text
    assert (
        "| table3 | K=4 | PCA-Multinomial | AC | 0.6800 | 0.6800 | +0.0000 | 0.0243 | yes |" in text
    )


def test_ties_are_marked_as_ties():
    scores = {"MM": [0.7, 0.8, 0.9], "ALS": [0.8, 0.7, 0.9], "PGM": [0.2, 0.1, 0.2]}
    records = [record(name, run, ac) for name in scores for run, ac in enumerate(scores[name])]
    summary = summarize(EXPERIMENTS["table3"], records)
    assert table_markdown(summary).count("**0.8000** =") == 4
    assert table_text(summary).count("0.8000=") == 4


def test_what_tuning_has_seen_is_said_beside_the_row():
    records = [record("MM", run, 0.5, extras={"seen": 0.25}) for run in range(2)]
    text = table_markdown(summarize(EXPERIMENTS["table3"], records))
    assert "K=4 (2, 3, 7, 9; full set, 25 % of it for tuning)" in text
    assert '"Full set": the row needs more than the part' in text
    unseen = [record("MM", run, 0.5, extras={"seen": 0.0}) for run in range(2)]
    assert "ull set" not in table_markdown(summarize(EXPERIMENTS["table3"], unseen))


def test_both_of_our_columns_are_compared_with_all_rivals():
    records = [*COMPARED, *beside("AutoClustering", 0.75, 0.9, 9)]
    text = overview_markdown([summarize(EXPERIMENTS["table3"], records)])
    assert "**AutoClustering** is first or tied first in AC and NMI in 1 of 1 rows (100 %)" in text
    assert "**TuckerClustering** is first or tied first in AC and NMI in 0 of 1 rows (0 %)" in text
    assert "## AutoClustering beside the nearest rival of each row" in text


def test_pages_can_take_the_parts_of_the_overview_between_marks():
    text = overview_markdown([summarize(EXPERIMENTS["table3"], COMPARED)])
    names = ("shares", "agreement", "run")
    parts = {
        name: text.split(f"<!-- {name} -->")[1].split(f"<!-- end of {name}")[0] for name in names
    }
    assert "first or tied first" in parts["shares"]
    agreed = "agrees with the paper to two standard errors in 1 of 2 comparisons"
    assert agreed in parts["agreement"]
    assert "15 fits with scores, 0.0 hours of processor time" in parts["run"]
    assert "Machine: A machine." in parts["run"]


def test_the_adjusted_rand_index_stands_beside_where_it_is_known():
    records = [record("MM", run, 0.5, extras={"ari": 0.125, "seen": 0.25}) for run in range(2)]
    summary = summarize(EXPERIMENTS["table3"], records)
    assert "## Adjusted Rand index (ARI)" in table_markdown(summary)
    assert "0.1250" in table_markdown(summary)
    (found,) = [r for r in csv.DictReader(io.StringIO(table_csv(summary))) if r["ari_mean"]]
    assert (float(found["ari_mean"]), float(found["seen"])) == (0.125, 0.25)


def test_open_numbers_have_a_table_of_their_own():
    name, rows = "AutoClustering (K open)", EXPERIMENTS["open"].rows[:2]
    records = [
        record(method, run, 0.5, "open", row.name, classes=[1, 2, 3, 4], extras=extras)
        for row in rows
        for run, found in enumerate((4, 8))
        for method, extras in (
            ("AutoClustering", {"ari": 0.8}),
            (name, {"ari": 0.8 - 0.1 * (row is rows[1]), "found": found}),
        )
    ]
    text = table_markdown(summarize(EXPERIMENTS["open"], records))
    assert f"| {rows[0].name} | {name} | 4 | 4, 8 | 0.500 | 0.800 | 0.800 |" in text
    assert "Median over 2 rows of the octaves off: 0.500." in text
    assert "ARI at least 0.9 of that at the true number: 1 of 2 rows." in text


@pytest.fixture
def db(fakes, tmp_path):
    path = tmp_path / "r.jsonl"
    reproduce(fakes.table("random", "failing"), jobs=0, db=path)
    return path


def test_all_forms_come_from_the_records_alone(fakes, db, tmp_path):
    table = fakes.table("random", "failing")
    first = show(db, targets=table, out=tmp_path / "a")
    second = show(db, targets=table, out=tmp_path / "b")
    assert sorted(path.name for path in first.files) == [
        "fake.csv",
        "fake.md",
        "overview.md",
        "records.csv",
    ]
    assert first.text == second.text
    for one, other in zip(first.files, second.files, strict=True):
        assert one.read_bytes() == other.read_bytes()
    assert "The matrix is singular." in first.text


def test_without_a_folder_nothing_is_written(fakes, db):
    shown = show(db, targets=fakes.table("random"))
    assert shown.files == []
    assert shown.text


def test_tables_never_computed_are_shown_empty(db):
    text = show(db, targets="table5").text
    assert "YaleB" in text
    assert "1 of 1 not computed yet." in text
