import pytest

from tuckermix.experiments.paper import PAPER_SCORES, PAPER_STARTS, PaperScore, paper_score

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


@pytest.mark.parametrize(("table", "row", "method", "metric", "expected"), PRINTED)
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


def test_starts_are_ordered():
    for starts in PAPER_STARTS.values():
        assert starts.worst < starts.mean < starts.best
