"""Tables as a pure function of stored records.

All methods of a row see the same draws, so columns are compared draw by draw: the mean of the
paired differences, and its standard error. A method is *first* in a row if it is more than two
standard errors ahead of every rival, *behind* if a rival is so far ahead of it, and *tied first*
otherwise.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from statistics import fmean, variance

import numpy as np

from tuckermix._records import Record
from tuckermix_bench import tables
from tuckermix_bench.draws import DATASETS
from tuckermix_bench.methods import METHODS
from tuckermix_bench.store import Key, RunRecord
from tuckermix_bench.tables import Experiment, PaperScore, Row

METRICS = ("AC", "NMI")
"""The paper's measures, by which columns are compared."""
SHOWN = (*METRICS, "ARI")
"""What is shown: the adjusted Rand index as well, which records from before it lack."""
STANDARD_ERRORS = 2.0
"""Two means agree if they differ by at most so many standard errors of their difference."""
ROUNDING = 1e-12
"""Scores that differ by less are equal: they are quotients of small integers and logarithms."""

VERDICTS = ("first", "tied first", "behind", "single run", "alone")
"""How a method stands in a row. A single run has no standard error and decides nothing; alone is a
method beside which no other has a record."""

Scores = dict[int, float]
"""Scores by the number of the run."""


@dataclass(frozen=True)
class Difference(Record):
    """One column minus another, draw by draw.

    Attributes
    ----------
    mean : float
        The mean of the differences over the draws that both have.
    error : float or None
        Its standard error; None for a single draw.
    pairs : int
        The number of these draws.
    """

    mean: float
    error: float | None
    pairs: int

    @property
    def text(self) -> str:
        """The mean with its standard error, for people."""
        return f"{self.mean:+.4f} " + ("(one run)" if self.error is None else f"± {self.error:.4f}")

    @property
    def ahead(self) -> bool:
        """Whether the first column is more than two standard errors ahead."""
        return self.error is not None and self.mean > STANDARD_ERRORS * self.error + ROUNDING

    @property
    def behind(self) -> bool:
        """Whether the first column is more than two standard errors behind."""
        return self.error is not None and -self.mean > STANDARD_ERRORS * self.error + ROUNDING

    @property
    def tied(self) -> bool:
        """Whether the draws cannot tell the columns apart; equal single runs are tied too."""
        if self.error is None:
            return abs(self.mean) <= ROUNDING
        return not self.ahead and not self.behind


def paired_difference(ours: Scores, theirs: Scores) -> Difference | None:
    """Compare two columns draw by draw.

    Parameters
    ----------
    ours, theirs : dict of int to float
        Scores by the number of the run; equal numbers mean equal draws.

    Returns
    -------
    difference : Difference or None
        `ours` minus `theirs`: d̄ ± s / √n over the n common draws; None if there are none.
    """
    common = sorted(ours.keys() & theirs.keys())
    if not common:
        return None
    found = [ours[run] - theirs[run] for run in common]
    return Difference(fmean(found), standard_error(found), len(found))


def standard_error(values: Collection[float]) -> float | None:
    """Return the standard error of a mean; None for a single value."""
    # Most of the time of a page goes into this: `variance` is exact, and ten times as slow.
    return float(np.std([*values], ddof=1)) / len(values) ** 0.5 if len(values) > 1 else None


def mean_of(values: Iterable[float | None]) -> float | None:
    """Return the mean of the values that are known; None where there are none."""
    known = [value for value in values if value is not None]
    return fmean(known) if known else None


@dataclass(frozen=True)
class Place(Record):
    """Where a method stands in one row, by one measure.

    Attributes
    ----------
    method : str
        Its name.
    table, row, dataset : str
        Where.
    n_samples, n_clusters : int
        The size of a draw.
    metric : str
        "AC", "NMI", …
    draws : int
        Runs with a score.
    mean : float
        The mean over them.
    error : float or None
        Its standard error; None for a single draw.
    rank, columns : int
        One more than the number of columns that are better on average over the common draws, and
        how many columns there are, this one included.
    verdict : {"first", "tied first", "behind", "single run", "alone"}
        "first" if more than two standard errors ahead of every column, "behind" if one of them is
        so far ahead, "tied first" otherwise; one run decides nothing.
    rival : str
        The column that it leads least, or that leads it most; empty without rivals.
    rival_mean : float or None
        The mean of that column over all its draws.
    lead : Difference or None
        This method minus that column, over the draws that both have.
    winners, ties : tuple of str
        The columns that are more than two standard errors ahead, and those that the draws cannot
        tell apart from it.
    seconds, cpu_seconds : float or None
        The mean time of a fit, by the clock and by the processor.
    """

    method: str
    table: str
    row: str
    dataset: str
    n_samples: int
    n_clusters: int
    metric: str
    draws: int
    mean: float
    error: float | None
    rank: int
    columns: int
    verdict: str
    rival: str
    rival_mean: float | None
    lead: Difference | None
    winners: tuple[str, ...]
    ties: tuple[str, ...]
    seconds: float | None
    cpu_seconds: float | None


def _verdict(leads: Collection[Difference]) -> str:
    """Say how a column stands, given its leads over all rivals."""
    if not leads:
        return "alone"
    if any(lead.behind for lead in leads):
        return "behind"
    if any(lead.error is None and not lead.tied for lead in leads):
        return "single run"
    return "first" if all(lead.ahead for lead in leads) else "tied first"


OTHER_DRAWS = 1_000_000
"""Added to the numbers of runs with other draws than the specification asks for now: such runs are
compared with each other and with no run of the present draws."""


def scores_of(records: Iterable[RunRecord], metric: str, older: Collection[Key] = ()) -> Scores:
    """Return the scores by the number of the run."""
    return {
        record.run + OTHER_DRAWS * (record.key in older): score
        for record in sorted(records, key=lambda record: record.run)
        if record.status == "ok" and (score := getattr(record, metric.lower())) is not None
    }


def place(
    records: Collection[RunRecord], scores: Scores, others: Mapping[str, Scores], metric: str
) -> Place | None:
    """Compare the runs of a method in a row with those of other columns.

    Parameters
    ----------
    records : collection of RunRecord
        The runs of the method in one row.
    scores : dict of int to float
        Their scores.
    others : mapping of str to dict
        The scores of the other columns in the same row, by name.
    metric : str
        The measure.

    Returns
    -------
    place : Place or None
        None if no run has a score.
    """
    if not scores:
        return None
    good = [record for record in records if record.status == "ok"]
    found = {name: paired_difference(scores, theirs) for name, theirs in others.items()}
    leads = {name: lead for name, lead in found.items() if lead is not None}
    rival = min(leads, key=lambda name: leads[name].mean, default="")
    return Place(
        method=good[0].method,
        table=good[0].experiment,
        row=good[0].row,
        dataset=good[0].dataset,
        n_samples=good[0].n_samples or 0,
        n_clusters=len(good[0].classes),
        metric=metric,
        draws=len(scores),
        mean=fmean(scores.values()),
        error=standard_error(list(scores.values())),
        rank=1 + sum(lead.mean < -ROUNDING for lead in leads.values()),
        columns=1 + len(leads),
        verdict=_verdict(leads.values()),
        rival=rival,
        rival_mean=mean_of(others[rival].values()) if rival else None,
        lead=leads.get(rival),
        winners=tuple(name for name, lead in leads.items() if lead.behind),
        ties=tuple(name for name, lead in leads.items() if lead.tied),
        seconds=mean_of(record.seconds for record in good),
        cpu_seconds=mean_of(record.cpu_seconds for record in good),
    )


def our_columns() -> list[str]:
    """Return the columns of this package, which are compared with all rivals."""
    return [name for name, method in METHODS.items() if method.role == "ours"]


def is_rival(name: str) -> bool:
    """Say whether a column counts: no variant of another, no bound that knows the truth."""
    method = METHODS.get(name)
    return method is None or not (method.variant_of or method.uses_truth)


@dataclass(frozen=True)
class CellSummary(Record):
    """What one method reached in one row.

    Attributes
    ----------
    method : str
        Its column.
    done, expected : int
        Runs with scores, and runs that the specification asks for.
    scores : dict of str to list of float
        Of each run, by "AC", "NMI" and, where it was stored, "ARI"; empty where there is no score.
    places : dict of str to Place
        How the column stands among its rivals, by measure; without variants of columns. Our own
        columns are no rivals of each other.
    papers : dict of str to PaperScore
        What the paper prints, also where there is no score here.
    comparable : bool
        Whether the data are the paper's.
    seconds, memory : float or None
        Processor time of a fit, and by how many bytes resident memory rose, means over the runs.
    found : tuple of (int, int)
        True and found number of clusters of each run, where the method finds it.
    stops : dict of str to int
        How often the method ended for which reason, where it names one.
    explanation : str
        Why there is no score or not every run has one; empty for a complete cell.
    """

    method: str
    done: int
    expected: int
    scores: dict[str, list[float]]
    places: dict[str, Place]
    papers: dict[str, PaperScore]
    comparable: bool
    seconds: float | None
    memory: float | None
    found: tuple[tuple[int, int], ...]
    stops: dict[str, int]
    explanation: str

    def mean(self, metric: str) -> float | None:
        """Return the mean over the runs."""
        return mean_of(self.scores.get(metric, ()))

    def variance(self, metric: str) -> float | None:
        """Return the sample variance over the runs; None for fewer than two."""
        scores = self.scores.get(metric, ())
        return variance(scores) if len(scores) > 1 else None

    def difference(self, metric: str) -> float | None:
        """Return the mean minus the paper's, where the data are the paper's."""
        mean, paper = self.mean(metric), self.papers.get(metric)
        return mean - paper.mean if self.comparable and mean is not None and paper else None

    def standing(self, metric: str) -> str:
        """Return "first", "tied first" or nothing."""
        verdict = self.places[metric].verdict if metric in self.places else ""
        return verdict if verdict in ("first", "tied first") else ""


@dataclass(frozen=True)
class RowSummary(Record):
    """A row of a table.

    Attributes
    ----------
    name : str
        From the specification.
    stand_in : str
        The data that stand in for those of the row in the quick setting.
    borrowed : bool
        Whether it shows the records of a row of another table, so that nothing counts twice.
    classes : tuple of int
        The classes drawn, where they are the same in all runs.
    seen : float or None
        Which share of the samples belongs to the part of the dataset that choices look at, the mean
        over the draws; None where it was not recorded.
    paper_runs : int
        The number of runs behind the paper's means.
    cells : dict of str to CellSummary
        By method.
    """

    name: str
    stand_in: str
    borrowed: bool
    classes: tuple[int, ...]
    seen: float | None
    paper_runs: int
    cells: dict[str, CellSummary]


@dataclass(frozen=True)
class TableSummary(Record):
    """A table ready for rendering.

    Attributes
    ----------
    name, title, note : str
        From the specification.
    methods : tuple of str
        The columns.
    rows : tuple of RowSummary
        The rows.
    machines, versions : tuple of str
        Where the records come from.
    spread : str
        A row whose best and worst runs are shown as well.
    older : int
        How many of the records belong to other draws or settings than the present specification;
        they are shown, and compared with each other only.
    """

    name: str
    title: str
    note: str
    methods: tuple[str, ...]
    rows: tuple[RowSummary, ...]
    machines: tuple[str, ...]
    versions: tuple[str, ...]
    spread: str
    older: int


def _explanation(records: list[RunRecord], expected: int) -> str:
    """Say in a sentence or two why a cell is not complete."""
    parts = []
    for status, words in (("failed", "failed"), ("timeout", "stopped at the time limit")):
        found = [record for record in records if record.status == status]
        if found:
            errors = "; ".join(dict.fromkeys(record.error or "" for record in found))
            parts.append(f"{len(found)} of {expected} {words}: {errors}")
    if expected > len(records):
        parts.append(f"{expected - len(records)} of {expected} not computed yet.")
    return " ".join(parts)


def _cell(
    table: Experiment,
    row: Row,
    method: str,
    records: list[RunRecord],
    scores: dict[str, dict[str, Scores]],
) -> CellSummary:
    good = [record for record in records if record.status == "ok"]
    # More runs than the specification asks for are welcome; fewer are explained. A column that the
    # table does not ask for has what somebody computed.
    asked = table.runs_of(row, method) if method in table.methods else 0
    expected = max(asked, len(records))
    papers, places, mine = {}, {}, set(our_columns())
    for metric in SHOWN:
        printed_row = row.name if row.paper_row is None else row.paper_row
        if (printed := tables.paper_score(table.name, printed_row, method, metric)) is not None:
            papers[metric] = printed
        rivals = {
            name: theirs
            for name, theirs in scores[metric].items()
            if name != method and is_rival(name) and not {name, method} <= mine
        }
        found = place(records, scores[metric][method], rivals, metric)
        if found is not None and is_rival(method):
            places[metric] = found
    return CellSummary(
        method=method,
        done=len(good),
        expected=expected,
        scores={m: list(scores[m][method].values()) for m in SHOWN if scores[m][method]},
        places=places,
        papers=papers,
        comparable=row.comparable,
        seconds=mean_of(record.cpu_seconds for record in good),
        memory=mean_of(record.peak_memory for record in good),
        found=tuple((len(one.classes), int(one.found)) for one in good if one.found is not None),
        stops=dict(Counter(record.stop_reason for record in good if record.stop_reason)),
        explanation=_explanation(records, expected),
    )


def _row(
    table: Experiment,
    row: Row,
    methods: Iterable[str],
    records: list[RunRecord],
    older: Collection[Key],
    profile: str,
) -> RowSummary:
    by_method: dict[str, list[RunRecord]] = defaultdict(list)
    for record in sorted(records, key=lambda record: record.run):
        by_method[record.method].append(record)
    scores = {
        metric: {method: scores_of(by_method[method], metric, older) for method in methods}
        for metric in SHOWN
    }
    # One draw per run, whatever the number of methods that saw it.
    seen = {record.run: record.seen for record in records if record.seen is not None}
    drawn = {tuple(record.classes) for record in records if record.classes}
    return RowSummary(
        name=row.name,
        stand_in=DATASETS[row.dataset].title if profile == tables.QUICK else "",
        borrowed=row.of is not None,
        classes=drawn.pop() if len(drawn) == 1 else (),
        seen=mean_of(seen[run] for run in sorted(seen)),
        paper_runs=row.paper_runs,
        cells={name: _cell(table, row, name, by_method[name], scores) for name in methods},
    )


def outdated(
    records: Collection[RunRecord], asked: Iterable[Experiment], *, profile: str = tables.PAPER
) -> set[Key]:
    """Return the keys of records of other draws or settings than tables ask for now."""
    known = sorted({record.method for record in records} & METHODS.keys())
    cells = tables.cells_of(asked, methods=known, profile=profile)
    today = {cell.key: cell.digest for cell in cells}
    return {
        record.key for record in records if today.get(record.key, record.digest) != record.digest
    }


def summarize(
    table: Experiment, records: Iterable[RunRecord], *, profile: str = tables.PAPER
) -> TableSummary:
    """Turn the records of a table into what is shown of it.

    Parameters
    ----------
    table : Experiment
        The specification.
    records : iterable of RunRecord
        Records, those of other tables and profiles included; they are passed over.
    profile : {"paper", "quick"}, default="paper"
        The settings.

    Returns
    -------
    summary : TableSummary
        For each row and method mean and variance over the runs, beside the paper's.
    """
    places = {}
    for row in table.rows:
        source, shown = tables.source_of(table, row, tables.LIBRARIES[profile])
        places[source.name, shown.name] = row
    records = [
        record
        for record in records
        if (record.experiment, record.row) in places and record.profile == profile
    ]
    # Of a row of another table the columns that this one has, be it by what somebody computed.
    columns = {record.method for record in records if record.experiment == table.name}
    mine = [
        record
        for record in records
        if (record.method in columns or record.method in table.methods)
        and record.method not in places[record.experiment, record.row].without
    ]
    methods = tuple(dict.fromkeys((*table.methods, *(record.method for record in mine))))
    older = outdated(mine, [table], profile=profile)
    by_row: dict[str, list[RunRecord]] = defaultdict(list)
    for record in mine:
        by_row[places[record.experiment, record.row].name].append(record)
    told = (", ".join(f"{name} {n}" for name, n in one.versions.items()) for one in mine)
    return TableSummary(
        name=table.name,
        title=table.title,
        note=table.note,
        methods=methods,
        rows=tuple(
            _row(table, row, methods, by_row[row.name], older, profile) for row in table.rows
        ),
        # Records that came through a CSV file know neither machine nor versions.
        machines=tuple(dict.fromkeys(record.machine for record in mine if record.machine)),
        versions=tuple(dict.fromkeys(filter(None, told))),
        spread=table.spread,
        older=len(older),
    )


def standings(summaries: Iterable[TableSummary], method: str = tables.OURS) -> list[Place]:
    """Compare one of our columns with all rivals in each row that has both.

    Parameters
    ----------
    summaries : iterable of TableSummary
        The tables. Rows that show those of another table are passed over.
    method : str, default="TuckerClustering"
        Which of our columns.

    Returns
    -------
    found : list of Place
        One for each row and metric.
    """
    cells = [
        row.cells[method]
        for summary in summaries
        for row in summary.rows
        if method in row.cells and not row.borrowed
    ]
    found = [cell.places[metric] for cell in cells for metric in METRICS if metric in cell.places]
    return [one for one in found if one.verdict != "alone"]


def share_of(found: Iterable[Place]) -> tuple[int, int]:
    """Count the rows in which a column of ours is behind nobody.

    Parameters
    ----------
    found : iterable of Place
        How it stands, row by row and measure by measure.

    Returns
    -------
    reached, rows : int
        The rows in which it is first or tied first in both measures, and all with a verdict.
    """
    by_row: dict[tuple[str, str], set[str]] = defaultdict(set)
    for one in found:
        by_row[one.table, one.row].add(one.verdict)
    decided = [said for said in by_row.values() if "behind" in said or "single run" not in said]
    return sum("behind" not in said for said in decided), len(decided)


def agreements(summary: TableSummary) -> list[tuple[RowSummary, CellSummary, str, float | None]]:
    """Compare our runs of the paper's own method with its numbers, where the data are the same.

    Parameters
    ----------
    summary : TableSummary
        A table.

    Returns
    -------
    found : list of (row, cell, metric, error)
        With the standard error of `cell.difference(metric)`; None where either is a single run.
    """
    own = [name for name in METHODS if tables.PAPERS_OWN in (name, METHODS[name].variant_of)]
    found = []
    for row in summary.rows:
        for cell in (row.cells[name] for name in own if name in row.cells):
            for metric in METRICS:
                if cell.difference(metric) is not None:
                    ours, paper = cell.variance(metric), cell.papers[metric].variance
                    error = None
                    if ours is not None and paper is not None:
                        error = (ours / cell.done + paper / row.paper_runs) ** 0.5
                    found.append((row, cell, metric, error))
    return found
