"""Figures in README, CHANGELOG and docs equal the stored results that they come from."""

import importlib.util
import json
import re
from pathlib import Path

import pytest
from tests.cases import each

ROOT = Path(__file__).resolve().parent.parent
SCRIPT = ROOT / "docs" / "check_numbers.py"

README = """\
| What | Result | Command |
|---|---|---|
| a fit of 3 kinds | 4.6 times faster {source} | `make bench` |
| nothing to count | [a page](docs/12.md) with `n_init=10` | `make bench` |
"""


@pytest.fixture(scope="module")
def check():
    if not SCRIPT.is_file():
        pytest.skip("the documentation is not part of this copy")
    spec = importlib.util.spec_from_file_location("check_numbers", SCRIPT)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def root(tmp_path):
    rows = [{"ratio": "4.62× faster", "seconds": 0.0351, "many": 1234567}]
    (tmp_path / "r.json").write_text(json.dumps({"rows": rows}))
    (tmp_path / "o.md").write_text(
        "# A\n\n| table | first | tied first |\n|---|---|---|\n"
        "| table2 | 3 | 1 |\n| table3 | 15 × | 1 |\n| table4 | 7 | 0 |\n\n"
        "| table | other |\n|---|---|\n| table2 | 9 |\n"
    )
    (tmp_path / "w.md").write_text(
        "| a | b | c, d |\n|---|---|---|\n| x y | MM | 1 |\n| x y | ALS | 0.25 |\n"
        "| **x** | MM | 3 |\n"
    )
    (tmp_path / "t.csv").write_text("row,method,ac\nK=4,MM,0.7167\nK=4,ALS,0.5\n")
    return tmp_path


def test_every_figure_with_a_source_is_what_is_stored(check):
    problems = []
    for path in check.pages():
        name = path.relative_to(ROOT).as_posix()
        problems += check.check_text(path.read_text(encoding="utf-8"), name)
    assert problems == []


@pytest.mark.parametrize(
    "pattern", [r"(?<=accuracy )0\.\d+", r"(?<=k-means )0\.\d+", r"(?<=reaches )0\.\d+"]
)
def test_a_changed_figure_of_the_readme_fails(check, pattern):
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    figure = re.search(pattern, text).group()
    digit = "9" if figure[0] != "9" else "8"
    assert check.check_text(text.replace(figure, digit + figure[1:]), "README.md")


@each(
    "source, place, value",
    [
        ("r.json", "rows.0.ratio", 4.62),
        ("r.json", "rows.0.seconds*1000", 35.1),
        ("o.md", "table2 tied first", 1),
        ("o.md", "table3 first", 15),
        ("o.md", "table2..table3 first", 18),
        ("o.md", "table2 other", 9),
        ("w.md", "x y > ALS > c, d", 0.25),
        ("w.md", "**x** > MM > c, d", 3),
        ("w.md", "**x** > MM > c, d*100", 300),
        ("t.csv", "row=K=4, method=MM > ac", 0.7167),
    ],
)
def test_a_place_in_a_file(check, root, source, place, value):
    assert check.stored(source, place, root) == pytest.approx(value)


@each(
    "figure, value, right",
    [
        ("4.6", 4.62, True),
        ("4.6", 4.66, False),
        ("0.72", 0.7167, True),
        ("0.71", 0.7167, False),
        ("1,234,567", 1234567, True),
        ("-0.03", -0.0312, True),
        ("36", 36, True),
        ("36", 35, False),
    ],
)
def test_a_figure_is_the_stored_value_rounded(check, figure, value, right):
    assert check.rounds_to(value, figure) is right


def test_a_right_source_passes_and_a_wrong_one_is_named(check, root):
    right = README.format(source="<!-- 4.6 = r.json: rows.0.ratio -->")
    assert check.check_text(right, "README.md", root) == []
    wrong = README.format(source="<!-- 4.6 = r.json: rows.0.seconds -->")
    (problem,) = check.check_text(wrong, "README.md", root)
    assert problem.startswith("README.md, line 3: it says 4.6, but r.json has 0.0351")


def test_a_figure_without_a_source_fails_in_tables_of_results_only(check, root):
    bare = README.format(source="")
    assert check.check_text(bare, "README.md", root) == [
        "README.md, line 3: the figure 4.6 has no source."
    ]
    assert check.check_text(bare, "docs/other.md", root) == []


def test_a_source_for_a_figure_that_is_not_there_fails(check, root):
    text = "It takes 5 s. <!-- 4.6 = r.json: rows.0.ratio -->"
    (problem,) = check.check_text(text, "docs/other.md", root)
    assert "the figure 4.6 has a source but is not there" in problem


def test_comments_of_restructured_text_speak_of_the_paragraph_above(check, root):
    text = "Much text.\n\nIt is 4.6 times\nfaster.\n\n.. {} = r.json: rows.0.ratio\n"
    assert check.check_text(text.format("4.6"), "docs/a.rst", root) == []
    (problem,) = check.check_text(text.replace("4.6", "4.8").format("4.8"), "docs/a.rst", root)
    assert "it says 4.8" in problem
    (problem,) = check.check_text(text.format("4.7"), "docs/a.rst", root)
    assert "not there" in problem


@pytest.mark.parametrize(
    ("source", "words"),
    [
        ("4.6 = no.json: rows", "there is no no.json"),
        ("4.6 = r.json: rows.7.ratio", "r.json has no 'rows.7.ratio'"),
        ("4.6 = o.md: table9 first", "o.md has no row 'table9' with a column 'first'"),
        ("4.6 = t.csv: row=K=5 > ac", "t.csv has no line 'row=K=5' with a column 'ac'"),
        ("4.6 = t.csv: row=K=4 > method", "'MM' holds no number"),
    ],
)
def test_a_source_that_cannot_be_found_is_named(check, root, source, words):
    (problem,) = check.check_text(f"4.6 <!-- {source} -->", "docs/a.md", root)
    assert words in problem


# ---- the table of the front page --------------------------------------------------------------


@pytest.fixture
def front(check):
    return check.front_table


def runs(method, scores, *, table="table5", row="ORL", nmi=None, seen=None):
    from tuckermix_bench import RunRecord

    return [
        RunRecord(
            *("paper", table, row, method, run, "d", "ok"),
            ac=score,
            nmi=score if nmi is None else nmi[run],
            cpu_seconds=1800.0,
            extras={} if seen is None else {"seen": seen},
        )
        for run, score in enumerate(scores)
    ]


def test_the_front_page_is_what_the_records_give(front):
    assert front.problems() == []


def test_the_front_table_tells_winners_and_losses(front):
    records = [
        *runs("TuckerClustering", (0.8, 0.9, 0.7), seen=0.25),
        *runs("AutoClustering", (0.5, 0.6, 0.4), nmi=(0.9, 0.9, 0.9)),
        *runs("k-means", (0.3, 0.3, 0.3)),
        *runs("LSR", (0.7, 0.8, 0.6)),
        *runs("DRCC (searched)", (1.0, 1.0, 1.0)),  # a bound
        *runs("LSR", (0.9, 0.8), table="cores", row="8 × 8"),  # one setting varied
        *runs("TuckerClustering", (0.1, 0.1), table="cores", row="8 × 8"),
    ]
    text = front.render(records)
    (line,) = [line for line in text.splitlines() if line.startswith("| ORL")]
    cells = [cell.strip() for cell in line.strip("|").split("|")]
    assert cells[0].endswith("(25% for choices)")
    assert cells[1:] == [
        *("3", "0.300 / 0.300", "– / –", "0.700 / 0.700 LSR"),
        *("**0.800 / 0.800**", "0.500 / 0.900", "1800 / 1800"),
    ]
    assert "`TuckerClustering`: 2 comparisons, first in 2." in text
    assert "`AutoClustering`: 2 comparisons, first in 1, behind in 1." in text
    assert "- table5, ORL: AC 0.500, LSR 0.700" in text
    assert f"are {len(records)} fits, {len(records) / 2} hours" in text


@pytest.mark.slow
def test_a_changed_record_makes_the_front_page_wrong(front, tmp_path):
    for name in (front.RECORDS, front.PAGE):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text((ROOT / name).read_text(encoding="utf-8"), encoding="utf-8")
    assert front.problems(tmp_path) == []
    (tmp_path / front.PAGE).unlink()
    assert [text.split()[0] for text in front.problems(tmp_path)] == [front.PAGE]
    records = (tmp_path / front.RECORDS).read_text(encoding="utf-8").splitlines()
    (tmp_path / front.RECORDS).write_text("\n".join(records[: len(records) // 2]))
    assert len(front.problems(tmp_path)) == 1
