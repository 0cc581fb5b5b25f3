from collections import Counter
from dataclasses import replace

import pytest
from tests.cases import each

from tuckermix_bench.draws import DATASETS, seed_of
from tuckermix_bench.methods import METHODS, Method, register_method
from tuckermix_bench.summaries import summarize
from tuckermix_bench.tables import (
    EXPERIMENTS,
    FIGURES,
    PAPER_SCORES,
    QUICK_EXPERIMENTS,
    Experiment,
    Figure,
    PaperScore,
    Row,
    cells_of,
    columns_in,
    paper_score,
    resolve_targets,
)


def rows_of(name):
    return {row.name: row for row in EXPERIMENTS[name].rows}


def test_table_1_has_twenty_random_starts_on_24_whole_classes():
    rows = rows_of("table1")
    assert [row.runs for row in rows.values()] == [20, 1, 1]
    assert {(r.n_classes, r.per_class, r.ranks) for r in rows.values()} == {(24, 42, (12, 12))}
    assert len({row.draw for row in rows.values()}) == 1


def test_table_2_has_600_of_each_class():
    row = rows_of("table2")["CBCL"]
    assert (row.per_class, row.runs, row.paper_runs, row.ranks) == (600, 20, 10, (8, 8))


def test_table_3_has_100_of_each_digit():
    rows = rows_of("table3")
    assert list(rows) == [f"K={count}" for count in range(3, 11)]
    assert rows["K=4"].classes == (2, 3, 7, 9)
    for count, row in zip(range(3, 11), rows.values(), strict=True):
        assert row.parameters()["n_classes"] == count
        assert (row.per_class, row.runs, row.redraw) == (100, 20, "samples")


def test_table_4_has_the_counts_of_the_text():
    rows = rows_of("table4")
    counts = {row.n_classes: row.per_class for row in rows.values()}
    assert counts == {68: 9, 58: 11, 48: 13, 38: 16, 28: 21, 18: 33, 8: 42}
    assert {(row.runs, row.ranks, row.redraw) for row in rows.values()} == {
        (20, (12, 12), "classes")
    }


def test_table_5_draws_ten_subjects_and_takes_all_of_yale_b_once_and_ten_subjects_of_it():
    rows = rows_of("table5")
    for name in ("ORL", "YaleB, 10 persons"):
        assert (rows[name].n_classes, rows[name].runs, rows[name].redraw) == (10, 20, "classes")
    assert (rows["YaleB"].n_classes, rows["YaleB"].per_class, rows["YaleB"].runs) == (None, None, 1)


def test_table_6_has_the_totals_of_the_text_and_names_its_stand_ins():
    totals = {2: 200, 3: 270, 4: 360, 6: 480, 8: 600, 10: 600, 12: 660}
    for row in EXPERIMENTS["table6"].rows:
        assert not row.comparable
        if "DynTex clips" not in row.name:
            assert row.n_classes * row.per_class == totals[row.n_classes]
            assert row.runs == 5
            assert "stand-in" in row.name or "ModelNet10" in row.name


def test_every_column_of_the_paper_is_a_column_here():
    for name, scores in PAPER_SCORES.items():
        table = EXPERIMENTS[name]
        printed = {r.name if r.paper_row is None else r.paper_row for r in table.rows} - {""}
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


def test_rows_are_drawn_from_the_reporting_part_unless_they_need_everybody():
    full = {
        (table.name, row.name)
        for table in EXPERIMENTS.values()
        for row in table.rows
        if row.part == "all" and row.of is None and "planted" not in row.dataset
        if row.dataset != "dynamic-textures"
    }
    voxels = {("table6", row.name) for row in EXPERIMENTS["table6"].rows if "Model" in row.name}
    persons = {("table4", f"K={count}") for count in (38, 48, 58, 68)}
    sizes = {("sizes", row.name) for row in EXPERIMENTS["sizes"].rows}
    whole = {("beyond", name) for name in ("PIE, 68 persons", "MNIST, 70,000", "Samson, 3 × 300")}
    number = {("open", name) for name in ("PIE, 68 persons", "ORL, 40 persons")}
    number.add(("open", "Yale B, 38 persons"))
    assert full == voxels | persons | sizes | whole | number | {("table5", "YaleB")}
    assert not any(row.part == "tuning" for t in EXPERIMENTS.values() for row in t.rows)


def test_a_row_of_everything_keeps_the_parameters_that_it_had_before_there_were_parts():
    assert "part" not in Row("a", "digits", (2, 2)).parameters()
    assert Row("a", "digits", (2, 2), part="reporting").parameters()["part"] == "reporting"


def test_a_slow_method_gets_five_runs():
    table = EXPERIMENTS["table4"]
    assert table.runs_of(table.rows[0], "PGM") == 3
    assert table.runs_of(table.rows[0], "ALS") == 5
    assert table.runs_of(table.rows[0], "MM") == 20
    assert table.runs_of(table.rows[0], "DRCC (searched)") == 0
    rows = EXPERIMENTS["table5"]
    assert rows.runs_of(rows.row("ORL"), "PCA-Multinomial") == 20
    assert rows.runs_of(rows.row("YaleB, 10 persons"), "PCA-Multinomial") == 20
    assert table.runs_of(table.row("K=8"), "PCA-Multinomial") == 20
    assert table.runs_of(table.row("K=18"), "PCA-Multinomial") == 5
    assert EXPERIMENTS["table3"].runs_of(EXPERIMENTS["table3"].rows[0], "PGM") == 20
    yale = EXPERIMENTS["table5"].row("YaleB")
    assert EXPERIMENTS["table5"].runs_of(yale, "PGM") == 1
    assert table.runs_of(table.rows[0], "a method of one's own") == 20


def test_quick_tables_need_no_files():
    for table in QUICK_EXPERIMENTS.values():
        assert {row.dataset for row in table.rows} <= {"digits", "quick-videos"}
        assert all(row.paper_row == "" for row in table.rows)


def test_targets_come_in_the_papers_order_and_once():
    tables, figures = resolve_targets(["figure4", "table3", "table1", "table3"])
    assert [table.name for table in tables] == ["table1", "table3"]
    assert [figure.name for figure in figures] == ["figure4"]
    tables, figures = resolve_targets("all")
    assert (len(tables), len(figures)) == (13, 3)
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


def test_rows_of_other_tables_exist_and_have_the_same_data():
    shown = [row for table in EXPERIMENTS.values() for row in table.rows if row.of]
    assert len(shown) == 5
    for row in shown:
        source = EXPERIMENTS[row.of[0]].row(row.of[1])
        assert (row.dataset, row.ranks) == (source.dataset, source.ranks)
        columns = set(EXPERIMENTS["beyond"].methods) - set(row.without)
        assert columns <= set(EXPERIMENTS[row.of[0]].methods)


def test_points_of_a_curve_see_the_same_draws():
    by_curve = {}
    for row in EXPERIMENTS["curves"].rows:
        by_curve.setdefault(row.on[0], []).append(row)
    assert [len(rows) for rows in by_curve.values()] == [5, 5, 5, 5, 3]
    for rows in by_curve.values():
        places = [row.on[1] for row in rows]
        assert places == sorted(places)
        assert len({row.draw for row in rows}) == 1


def test_an_unknown_change_is_refused():
    with pytest.raises(ValueError, match="'change' parameter of Row must be one of 'noise'"):
        Row("a", "digits", (2, 2), change={"colour": 1.0})


def test_an_unknown_redraw_is_refused():
    with pytest.raises(ValueError, match="'redraw' parameter of Row must be one of 'classes'"):
        Row("a", "digits", (2, 2), redraw="everything")


def test_fixed_classes_and_another_number_of_classes_are_refused():
    with pytest.raises(ValueError, match="fixes 2 classes but has n_classes=3"):
        Row("a", "digits", (2, 2), n_classes=3, classes=(1, 2))


def test_an_unknown_row_is_named_with_those_there_are():
    table = Experiment("mine", "", (Row("a", "digits", (2, 2)),), ())
    with pytest.raises(ValueError, match="mine has no row 'b': its rows are 'a'"):
        table.row("b")


def test_remarks_are_no_parameters():
    plain = Row("a", "digits", (2, 2))
    remarked = Row("a", "digits", (2, 2), note="A remark.", paper_row="b", comparable=False)
    assert plain.parameters() == remarked.parameters()
    assert plain.parameters() != Row("a", "digits", (2, 3)).parameters()


# Read off the printed tables by eye, one or two a table.
PRINTED = [
    ("table2", "CBCL", "DRCC", "AC", PaperScore(0.7352, 1.367e-3)),
    ("table2", "CBCL", "Tri-ONTD", "NMI", PaperScore(0.0824, 1.836e-4)),
    ("table3", "K=3", "MM", "AC", PaperScore(0.9173, 2.8e-4)),
    ("table3", "K=8", "ALS", "NMI", PaperScore(0.5496, 6.968e-4)),
    ("table3", "K=10", "PCA-Multinomial", "AC", PaperScore(0.5126, 1.785e-3)),
    ("table4", "K=68", "PCA-Multinomial", "NMI", PaperScore(0.8634, 2.484e-4)),
    ("table4", "K=8", "PCA-B", "AC", PaperScore(0.4785, 3.036e-2)),
    ("table5", "ORL", "PCA-Multinomial", "AC", PaperScore(0.7340, 2.23e-3)),
    ("table5", "YaleB", "DRCC", "AC", PaperScore(0.1002)),
    ("table6", "K=2", "PCA-Multinomial", "AC", PaperScore(0.7901)),
    ("table6", "K=12", "PCA-B", "NMI", PaperScore(0.2520, 9.549e-5)),
    ("table1", "HOSVD I", "PCA-Multinomial", "AC", PaperScore(0.7620)),
]


@each("table, row, method, metric, expected", PRINTED)
def test_a_printed_number_is_where_it_belongs(table, row, method, metric, expected):
    assert paper_score(table, row, method, metric) == expected


def test_every_table_is_complete():
    counts = {name: len(scores) for name, scores in PAPER_SCORES.items()}
    assert counts == {
        "table1": 3 * 1 * 2,
        "table2": 1 * 8 * 2,
        "table3": 8 * 7 * 2,
        "table4": 7 * 7 * 2,
        "table5": 2 * 7 * 2,
        "table6": 7 * 2 * 2,
    }


def test_variances_are_absent_for_single_runs_only():
    single = {("table5", "YaleB"), ("table6", "K=2"), ("table1", "HOSVD I"), ("table1", "HOSVD II")}
    for table, scores in PAPER_SCORES.items():
        for (row, _, _), score in scores.items():
            assert (score.variance is None) == ((table, row) in single)
            assert 0 < score.mean < 1


def test_the_papers_own_method_wins_where_the_paper_says_so():
    for row in ("K=68", "K=58", "K=48", "K=38", "K=28", "K=18"):
        scores = {
            method: score.mean
            for (name, method, metric), score in PAPER_SCORES["table4"].items()
            if name == row and metric == "AC"
        }
        assert max(scores, key=scores.get) == "PCA-Multinomial"


def test_a_cell_that_the_paper_lacks_is_none():
    assert paper_score("table3", "K=3", "Tri-ONTD", "AC") is None
    assert paper_score("table9", "K=3", "MM", "AC") is None


def test_random_starts_have_their_best_and_worst():
    for (row, _, _), score in PAPER_SCORES["table1"].items():
        if row == "random":
            assert score.worst < score.mean < score.best
        else:
            assert score.best is score.worst is None


def test_a_variant_stands_beside_the_column_that_it_repeats():
    for metric in ("AC", "NMI"):
        own = paper_score("table3", "K=4", "PCA-Multinomial", metric)
        assert own is not None
        assert paper_score("table3", "K=4", "PCA-Multinomial-1", metric) == own


def test_an_unknown_kind_of_figure_is_refused():
    with pytest.raises(ValueError, match="'kind' parameter of Figure must be one of 'errors'"):
        Figure("a", "", "table1", (), (), "drawings")


def test_the_rows_of_the_quick_setting_are_part_of_the_specification():
    assert [row.name for row in QUICK_EXPERIMENTS["table3"].rows] == ["K=3", "K=4"]
    assert [row.name for row in QUICK_EXPERIMENTS["table4"].rows] == ["K=68", "K=8"]
    assert [row.name for row in QUICK_EXPERIMENTS["table2"].rows] == ["CBCL"]


def test_sweeps_of_the_first_experiment():
    sizes, cores = EXPERIMENTS["sizes"], EXPERIMENTS["cores"]
    assert [row.per_class for row in sizes.rows] == list(range(200, 1601, 100))
    assert [row.ranks for row in cores.rows] == [(size, size) for size in range(4, 11)]
    assert {row.per_class for row in cores.rows} == {600}
    assert len({row.draw for row in cores.rows}) == 1


def test_the_whole_of_the_paper_has_the_expected_number_of_cells():
    cells = cells_of(*resolve_targets("all"))
    counts = Counter((cell.experiment, cell.method) for cell in cells)
    everywhere = {"table1": 22, "table2": 20, "table3": 160, "table4": 140, "table5": 41}
    everywhere |= {"table6": 85, "beyond": 147, "sizes": 75, "cores": 35, "curves": 230}
    everywhere |= {"photographs": 40}
    assert {name: counts[name, "TuckerClustering"] for name in everywhere} == everywhere
    # Five draws of the two rows of digits where a fit takes more than twenty seconds.
    slow = {"table2": 20, "table3": 130, "table4": 140, "table5": 41, "beyond": 141}
    assert {name: counts[name, "EnSC"] for name in slow} == slow
    assert (counts["table4", "PGM"], counts["table3", "PGM"]) == (57, 160)
    # The minute's search for an upper bound stands in five rows, all of MNIST in six columns.
    assert sum(count for (_, name), count in counts.items() if name == "DRCC (searched)") == 20
    large = [cell for cell in cells if cell.row.name == "MNIST, 70,000"]
    assert len(large) == 6
    # The figures show runs that the tables have anyway.
    assert len(cells) == len(cells_of(resolve_targets("all")[0]))


def test_a_row_of_another_table_is_computed_once_and_there():
    (row,) = [row for row in EXPERIMENTS["beyond"].rows if row.name == "CBCL, 2 × 600"]
    small = replace(EXPERIMENTS["beyond"], rows=(row,))
    cells = cells_of([small], methods=["k-means", "LSR (scattering)"])
    assert {(cell.experiment, cell.row.name) for cell in cells} == {("table2", "CBCL")}
    both = cells_of([small, EXPERIMENTS["table2"]], methods=["k-means"])
    assert len(both) == 20


def test_a_row_leaves_out_columns_even_if_they_are_asked_for():
    (row,) = [row for row in EXPERIMENTS["beyond"].rows if row.name == "MNIST, 70,000"]
    small = replace(EXPERIMENTS["beyond"], rows=(row,))
    assert cells_of([small], methods=["A-DSSC"]) == []


def test_cheap_methods_come_first_and_tables_fill_evenly():
    cells = cells_of(*resolve_targets("all"))
    costs = [METHODS[cell.method].cost for cell in cells]
    assert costs == sorted(costs)
    for cost in set(costs):
        runs = [cell.run for cell, found in zip(cells, costs, strict=True) if found == cost]
        assert runs == sorted(runs)


def test_figures_alone_need_few_cells():
    three = cells_of([], [FIGURES["figure3"]])
    assert [(cell.row.name, cell.method) for cell in three] == [
        ("HOSVD I", "PCA-Multinomial"),
        ("HOSVD II", "PCA-Multinomial"),
    ]
    four = cells_of([], [FIGURES["figure4"]], methods=["TuckerClustering"])
    assert [(cell.row.name, cell.run) for cell in four] == [("K=4", 0)]


def test_runs_replace_those_of_rows_that_repeat():
    cells = cells_of([EXPERIMENTS["table5"]], runs=2, methods=["MM"])
    assert [(cell.row.name, cell.run) for cell in cells] == [
        ("ORL", 0),
        ("YaleB", 0),
        ("YaleB, 10 persons", 0),
        ("ORL", 1),
        ("YaleB, 10 persons", 1),
    ]


def test_a_cheap_method_may_have_more_runs_than_its_row(fakes):
    register_method(Method("random", fakes.Random, runs=7), replace=True)
    table = fakes.table("random", "slow")
    single = Row("one", "blobs", (2, 2), runs=1)
    cells = cells_of([replace(table, rows=(*table.rows, single))])
    counts = Counter((cell.row.name, cell.method) for cell in cells)
    assert counts["K=2", "random"] == counts["K=3", "random"] == 7
    assert counts["K=2", "slow"] == 3
    assert counts["one", "random"] == counts["one", "slow"] == 1
    asked = cells_of([table], runs=2)
    assert {cell.run for cell in asked} == {0, 1}
    cell = summarize(table, []).rows[0].cells["random"]
    assert cell.explanation == "7 of 7 not computed yet."


def test_a_start_reaches_the_methods_that_take_one():
    cells = cells_of([EXPERIMENTS["table1"]], runs=1)
    assert {cell.settings["init"] for cell in cells} == {"random", "hosvd", "hosvd-samples"}


def test_keys_digests_and_seeds_tell_cells_apart():
    cells = cells_of(*resolve_targets("all"))
    quick = cells_of(*resolve_targets("all", quick=True), profile="quick")
    everything = [*cells, *quick]
    assert len({cell.key for cell in everything}) == len(everything)
    assert len({cell.digest for cell in everything}) == len(everything)
    assert len({cell.seed for cell in cells}) == len(cells)


def test_columns_with_a_network_stand_apart():
    network = set(EXPERIMENTS["network"].methods)
    assert network == set(columns_in(["@network"]))
    assert not any(network & set(t.methods) for t in EXPERIMENTS.values() if t.name != "network")
    assert all("ImageNet" in METHODS[name].on for name in network)
    # They see the samples of other tables, whose columns have no network.
    for row in EXPERIMENTS["network"].rows:
        table, name = row.draw.split("/")
        there = EXPERIMENTS[table].row(name)
        same = ("dataset", "n_classes", "per_class", "classes", "redraw", "part")
        assert all(getattr(row, fact) == getattr(there, fact) for fact in same), row.name


def test_no_name_of_a_column_has_a_comma():
    assert not [name for name in METHODS if "," in name]


def test_the_seed_of_a_column_stays_when_its_name_changes():
    cells = cells_of([EXPERIMENTS["table2"]], methods=["spectral (unit rows)"], runs=1)
    assert cells[0].seed == seed_of("table2", "CBCL", "spectral, unit rows", 0)
