import pytest

from tuckermix.experiments.draws import DATASETS
from tuckermix.experiments.methods import METHODS
from tuckermix.experiments.paper import PAPER_SCORES
from tuckermix.experiments.specs import Experiment, Row
from tuckermix.experiments.tables import EXPERIMENTS, FIGURES, QUICK_EXPERIMENTS, resolve_targets


def rows_of(name):
    return {row.name: row for row in EXPERIMENTS[name].rows}


def test_table_1_has_twenty_random_starts_on_24_whole_classes():
    rows = rows_of("table1")
    assert [row.runs for row in rows.values()] == [20, 1, 1]
    assert {(r.n_classes, r.per_class, r.ranks) for r in rows.values()} == {(24, 42, (12, 12))}
    assert len({row.draw for row in rows.values()}) == 1


def test_table_2_has_600_of_each_class_and_ten_runs():
    row = rows_of("table2")["CBCL"]
    assert (row.per_class, row.runs, row.ranks) == (600, 10, (8, 8))


def test_table_3_has_100_of_each_digit_and_five_runs():
    rows = rows_of("table3")
    assert list(rows) == [f"K={count}" for count in range(3, 11)]
    assert rows["K=4"].classes == (2, 3, 7, 9)
    for count, row in zip(range(3, 11), rows.values(), strict=True):
        assert row.parameters()["n_classes"] == count
        assert (row.per_class, row.runs, row.redraw) == (100, 5, "samples")


def test_table_4_has_the_counts_of_the_text():
    rows = rows_of("table4")
    counts = {row.n_classes: row.per_class for row in rows.values()}
    assert counts == {68: 9, 58: 11, 48: 13, 38: 16, 28: 21, 18: 33, 8: 42}
    assert {(row.runs, row.ranks, row.redraw) for row in rows.values()} == {
        (5, (12, 12), "classes")
    }


def test_table_5_draws_ten_subjects_five_times_and_takes_all_of_yale_b():
    rows = rows_of("table5")
    assert (rows["ORL"].n_classes, rows["ORL"].runs, rows["ORL"].redraw) == (10, 5, "classes")
    assert (rows["YaleB"].n_classes, rows["YaleB"].per_class, rows["YaleB"].runs) == (None, None, 1)


def test_table_6_has_the_totals_of_the_text_and_names_its_stand_ins():
    totals = {2: 200, 3: 270, 4: 360, 6: 480, 8: 600, 10: 600, 12: 660}
    for row in EXPERIMENTS["table6"].rows:
        assert row.n_classes * row.per_class == totals[row.n_classes]
        assert row.runs == (1 if row.n_classes == 2 else 5)
        assert "stand-in" in row.name or "ModelNet10" in row.name
        assert not row.comparable


def test_every_column_of_the_paper_is_a_column_here():
    for name, scores in PAPER_SCORES.items():
        table = EXPERIMENTS[name]
        printed = {r.name if r.paper_row is None else r.paper_row for r in table.rows}
        assert {method for _, method, _ in scores} <= set(table.methods)
        assert {row for row, _, _ in scores} == printed


@pytest.mark.parametrize("tables", [EXPERIMENTS, QUICK_EXPERIMENTS], ids=["paper", "quick"])
def test_all_names_are_registered(tables):
    for table in tables.values():
        assert set(table.methods) <= set(METHODS)
        assert {row.dataset for row in table.rows} <= set(DATASETS)
    for figure in FIGURES.values():
        table = tables[figure.experiment]
        assert set(figure.methods) <= set(table.methods)
        assert all(table.row(name) for name in figure.rows)


def test_quick_tables_need_no_files():
    for table in QUICK_EXPERIMENTS.values():
        assert {row.dataset for row in table.rows} <= {"digits", "quick-videos"}
        assert all(row.paper_row == "" for row in table.rows)


def test_targets_come_in_the_papers_order_and_once():
    tables, figures = resolve_targets(["figure4", "table3", "table1", "table3"])
    assert [table.name for table in tables] == ["table1", "table3"]
    assert [figure.name for figure in figures] == ["figure4"]
    tables, figures = resolve_targets("all")
    assert (len(tables), len(figures)) == (6, 2)
    assert resolve_targets("table2", quick=True)[0] == [QUICK_EXPERIMENTS["table2"]]


def test_an_unknown_target_is_refused():
    with pytest.raises(
        ValueError, match="'targets' parameter of reproduce must be one of 'table1'"
    ):
        resolve_targets("table7")


def test_ones_own_experiment_must_not_take_a_name_of_the_paper():
    own = Experiment("table3", "", (Row("a", "digits", (2, 2)),), ("k-means",))
    with pytest.raises(ValueError, match="cannot be called 'table3'"):
        resolve_targets(own)
