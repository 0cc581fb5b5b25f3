from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from threadpoolctl import threadpool_info, threadpool_limits

from tuckermix.experiments.cells import cells_of, execute
from tuckermix.experiments.methods import METHODS, Method, build, register_method
from tuckermix.experiments.summaries import summarize
from tuckermix.experiments.tables import (
    EXPERIMENTS,
    FIGURES,
    QUICK_EXPERIMENTS,
    Row,
    resolve_targets,
)


def test_the_whole_of_the_paper_has_the_expected_number_of_cells():
    cells = cells_of(*resolve_targets("all"), EXPERIMENTS)
    counts = Counter((cell.experiment, cell.method) for cell in cells)
    everywhere = {"table1": 22, "table2": 20, "table3": 160, "table4": 140, "table5": 41}
    everywhere |= {"table6": 65, "beyond": 147, "sizes": 75, "cores": 35, "curves": 230}
    assert {name: counts[name, "TuckerClustering"] for name in everywhere} == everywhere
    slow = {"table2": 5, "table3": 40, "table4": 35, "table5": 11, "beyond": 36}
    assert {name: counts[name, "EnSC"] for name in slow} == slow
    assert (counts["table4", "PGM"], counts["table3", "PGM"]) == (21, 160)
    # The minute's search for an upper bound stands in five rows, all of MNIST in six columns.
    assert sum(count for (_, name), count in counts.items() if name == "DRCC (searched)") == 20
    large = [cell for cell in cells if cell.row.name == "MNIST, 70,000"]
    assert len(large) == 6
    # The figures show runs that the tables have anyway.
    assert len(cells) == len(cells_of(resolve_targets("all")[0], [], EXPERIMENTS))


def test_a_row_of_another_table_is_computed_once_and_there():
    (row,) = [row for row in EXPERIMENTS["beyond"].rows if row.name == "CBCL, 2 × 600"]
    small = replace(EXPERIMENTS["beyond"], rows=(row,))
    cells = cells_of([small], [], EXPERIMENTS, methods=["k-means", "LSR, scattering"])
    assert {(cell.experiment, cell.row.name) for cell in cells} == {("table2", "CBCL")}
    both = cells_of([small, EXPERIMENTS["table2"]], [], EXPERIMENTS, methods=["k-means"])
    assert len(both) == 20


def test_a_row_leaves_out_columns_even_if_they_are_asked_for():
    (row,) = [row for row in EXPERIMENTS["beyond"].rows if row.name == "MNIST, 70,000"]
    small = replace(EXPERIMENTS["beyond"], rows=(row,))
    assert cells_of([small], [], EXPERIMENTS, methods=["A-DSSC"]) == []


def test_cheap_methods_come_first_and_tables_fill_evenly():
    cells = cells_of(*resolve_targets("all"), EXPERIMENTS)
    costs = [METHODS[cell.method].cost for cell in cells]
    assert costs == sorted(costs)
    for cost in set(costs):
        runs = [cell.run for cell, found in zip(cells, costs, strict=True) if found == cost]
        assert runs == sorted(runs)


def test_figures_alone_need_few_cells():
    three = cells_of([], [FIGURES["figure3"]], EXPERIMENTS)
    assert [(cell.row.name, cell.method) for cell in three] == [
        ("HOSVD I", "PCA-Multinomial"),
        ("HOSVD II", "PCA-Multinomial"),
    ]
    four = cells_of([], [FIGURES["figure4"]], EXPERIMENTS, methods=["TuckerClustering"])
    assert [(cell.row.name, cell.run) for cell in four] == [("K=4", 0)]


def test_runs_replace_those_of_rows_that_repeat():
    cells = cells_of([EXPERIMENTS["table5"]], [], EXPERIMENTS, runs=2, methods=["MM"])
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
    cells = cells_of([replace(table, rows=(*table.rows, single))], [], {})
    counts = Counter((cell.row.name, cell.method) for cell in cells)
    assert counts["K=2", "random"] == counts["K=3", "random"] == 7
    assert counts["K=2", "slow"] == 3
    assert counts["one", "random"] == counts["one", "slow"] == 1
    asked = cells_of([table], [], {}, runs=2)
    assert {cell.run for cell in asked} == {0, 1}
    cell = summarize(table, []).rows[0].cells["random"]
    assert cell.explanation == "7 of 7 not computed yet."


def test_a_start_reaches_the_methods_that_take_one():
    cells = cells_of([EXPERIMENTS["table1"]], [], EXPERIMENTS, runs=1)
    assert {cell.settings["init"] for cell in cells} == {"random", "hosvd", "hosvd-samples"}


def test_keys_digests_and_seeds_tell_cells_apart():
    cells = cells_of(*resolve_targets("all"), EXPERIMENTS)
    quick = cells_of(*resolve_targets("all", quick=True), QUICK_EXPERIMENTS, profile="quick")
    everything = [*cells, *quick]
    assert len({cell.key for cell in everything}) == len(everything)
    assert len({cell.digest for cell in everything}) == len(everything)
    assert len({cell.seed for cell in cells}) == len(cells)


def test_rows_ask_for_what_figures_need(fakes):
    class Fitted(fakes.Random):
        def fit(self, X):
            super().fit(X)
            self.history_ = [{"iteration": 0, "cost": 1.0, "gap": float("nan"), "point": X}]
            self.components_ = X[:2]
            return self

    register_method(Method("random", Fitted), replace=True)
    table = fakes.table("random")
    row = Row("a", "blobs", (2, 2), keep=("history", "components"))
    cell = cells_of([type(table)("t", "", (row,), ("random",))], [], {})[0]
    extras = execute(cell)["extras"]
    assert extras["history"] == [{"iteration": 0.0, "cost": 1.0, "gap": None}]
    assert np.shape(extras["components"]) == (2, 3, 4)
    assert "centroids" not in extras


def test_warnings_become_part_of_the_outcome(fakes):
    class Warning_(fakes.Random):
        def fit(self, X):
            import warnings

            warnings.warn("Not converged.", RuntimeWarning, stacklevel=2)
            return super().fit(X)

    register_method(Method("random", Warning_), replace=True)
    cell = cells_of([fakes.table("random")], [], {})[0]
    assert execute(cell)["warnings"] == ["RuntimeWarning: Not converged."]


def test_an_impossible_draw_is_a_failed_cell(fakes):
    table = fakes.table("random")
    row = Row("a", "blobs", (2, 2), per_class=13)
    cell = cells_of([type(table)("t", "", (row,), ("random",))], [], {})[0]
    outcome = execute(cell)
    assert outcome["status"] == "failed"
    assert "lower per_class" in outcome["error"]


@pytest.mark.filterwarnings("ignore:Graph is not fully connected")
@pytest.mark.parametrize("name", ["k-means", "spectral"])
def test_methods_on_pixels_cluster_planted_groups(fakes, name):
    blobs = fakes.load_blobs(None)
    model = build(METHODS[name], 5, (2, 2), 0, METHODS[name].settings).fit(blobs.X)
    groups = {tuple(np.unique(blobs.labels[model.labels_ == k])) for k in range(5)}
    assert groups == {(k,) for k in range(5)}


def test_the_papers_method_with_one_start_gives_labels(fakes):
    blobs = fakes.load_blobs(None)
    model = build(METHODS["PCA-Multinomial-1"], 5, (2, 2), 0, {"init": "hosvd"}).fit(blobs.X)
    assert set(model.labels_) == set(range(5))
    assert model.n_iter_ >= 1


def test_a_name_of_a_method_is_taken_once_and_its_role_is_known(fakes):
    with pytest.raises(ValueError, match="method called 'MM' is already registered"):
        register_method(Method("MM", fakes.Random))
    with pytest.raises(ValueError, match="'role' parameter of Method must be one of 'paper'"):
        Method("a", fakes.Random, role="guest")


def test_ctrl_c_inside_a_foreign_limit_leaves_the_threads_as_they_were(fakes):
    class Cut(fakes.Random):
        def fit(self, X):
            # As scikit-learn's k-means does, cut before the numbers are given back.
            threadpool_limits(1, user_api="blas")
            raise KeyboardInterrupt

    def numbers():
        return {one["num_threads"] for one in threadpool_info() if one["user_api"] == "blas"}

    register_method(Method("random", Cut), replace=True)
    cell = cells_of([fakes.table("random")], [], {})[0]
    with threadpool_limits(2, user_api="blas"):
        with pytest.raises(KeyboardInterrupt):
            execute(cell)
        assert numbers() == {2}
