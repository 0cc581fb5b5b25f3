"""Tables as a pure function of stored records.

All methods of a row see the same draws, so columns are compared draw by draw: the mean of the
paired differences, and its standard error. A method is *first* in a row if it is more than two
standard errors ahead of every rival, and *tied first* if nobody is so far ahead of it.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from statistics import fmean, variance
from typing import Any

from tuckermix._records import Record
from tuckermix_bench.draws import DATASETS
from tuckermix_bench.methods import METHODS
from tuckermix_bench.store import FAILED, OK, TIMEOUT, Key, RunRecord
from tuckermix_bench.tables import (
    LIBRARIES,
    OURS,
    PAPER,
    PAPERS_OWN,
    QUICK,
    Experiment,
    PaperScore,
    Row,
    cells_of,
    paper_score,
    source_of,
)

__all__ = [
    "Agreement",
    "CellSummary",
    "Difference",
    "MetricSummary",
    "RowSummary",
    "Share",
    "Standing",
    "TableSummary",
    "agreements",
    "judged",
    "leads_of",
    "mean_of",
    "our_columns",
    "outdated",
    "paired_difference",
    "scores_of",
    "share_of",
    "standings",
    "summarize",
]

METRICS = ("AC", "NMI")
"""The paper's measures, by which columns are compared."""
SHOWN = (*METRICS, "ARI")
"""What is shown: the adjusted Rand index as well, which records from before it lack."""
STANDARD_ERRORS = 2.0
"""Two means agree if they differ by at most so many standard errors of their difference."""
ROUNDING = 1e-12
"""Scores that differ by less are equal: they are quotients of small integers and logarithms."""

VERDICTS = FIRST, TIED, BEHIND, SINGLE = "first", "tied first", "behind", "single run"
"""How a method stands in a row. A single run has no standard error and decides nothing."""


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


def paired_difference(ours: dict[int, float], theirs: dict[int, float]) -> Difference | None:
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
    error = (variance(found) / len(found)) ** 0.5 if len(found) > 1 else None
    return Difference(fmean(found), error, len(found))


def judged(leads: Mapping[str, Difference]) -> dict[str, Any]:
    """Say how a column stands, given its lead over each rival.

    Parameters
    ----------
    leads : mapping of str to Difference
        The column minus each rival, by the rival's name.

    Returns
    -------
    judged : dict
        ``rival``, the one that it leads least, or that leads it most, and ``lead`` over that one;
        ``verdict``, "first" if it is more than two standard errors ahead of every rival, "behind"
        if one of them is so far ahead of it, "tied first" otherwise, where a single run decides
        nothing; ``winners`` and ``ties``, the rivals that are so far ahead, and those that the
        draws cannot tell from it.
    """
    rival = min(leads, key=lambda name: leads[name].mean, default="")
    verdict = FIRST if all(lead.ahead for lead in leads.values()) else TIED
    if any(lead.error is None and not lead.tied for lead in leads.values()):
        verdict = SINGLE
    if any(lead.behind for lead in leads.values()):
        verdict = BEHIND
    return {
        "rival": rival,
        "lead": leads.get(rival),
        "verdict": verdict,
        "winners": tuple(name for name, lead in leads.items() if lead.behind),
        "ties": tuple(name for name, lead in leads.items() if lead.tied),
    }


def leads_of(
    scores: dict[int, float], rivals: dict[str, dict[int, float]]
) -> dict[str, Difference]:
    """Compare a column with others draw by draw; those without common draws are left out."""
    found = {name: paired_difference(scores, theirs) for name, theirs in rivals.items()}
    return {name: lead for name, lead in found.items() if lead is not None}


def _marks(scores: dict[str, dict[int, float]]) -> dict[str, str]:
    """Say of each column whether it is first, tied first, or neither.

    Our own columns are no rivals of each other: several of them can be first.
    """
    marks = dict.fromkeys(scores, "")
    columns = [name for name in scores if scores[name] and name not in _variants()]
    if len(columns) < 2:
        return marks
    undecided, beaten, mine = False, set(), set(our_columns())
    for name in columns:
        rivals = {o: scores[o] for o in columns if o != name and not {o, name} <= mine}
        leads = leads_of(scores[name], rivals)
        if rivals and len(leads) == len(rivals) and all(lead.ahead for lead in leads.values()):
            marks[name] = FIRST
        if any(lead.behind for lead in leads.values()):
            beaten.add(name)
        undecided |= any(lead.error is None and not lead.tied for lead in leads.values())
    if FIRST not in marks.values() and not undecided:
        marks |= dict.fromkeys([name for name in columns if name not in beaten], TIED)
    return marks


@dataclass(frozen=True)
class MetricSummary(Record):
    """One metric of one cell.

    Attributes
    ----------
    mean : float
        The mean over the runs.
    variance : float or None
        The sample variance over the runs; None for a single one.
    worst, best : float
        The worst and the best run.
    standing : {"first", "tied first", ""}
        Whether the method is more than two standard errors ahead of every rival of its row, or is
        so far behind none of them where nobody is.
    leads : dict of str to Difference
        Each of our columns minus this one, draw by draw, by their names; empty for our own.
    difference : float or None
        `mean` minus the paper's, where the data are the paper's.
    """

    mean: float
    variance: float | None
    worst: float
    best: float
    standing: str
    leads: dict[str, Difference]
    difference: float | None

    @property
    def lead(self) -> Difference | None:
        """TuckerClustering minus this column; None for our own columns."""
        return self.leads.get(OURS)


@dataclass(frozen=True)
class CellSummary(Record):
    """What one method reached in one row.

    Attributes
    ----------
    method : str
        Its column.
    done, expected : int
        Runs with scores, and runs that the specification asks for.
    metrics : dict of str to MetricSummary
        By "AC", "NMI" and, where it was stored, "ARI"; empty where there is no score.
    papers : dict of str to PaperScore
        What the paper prints, also where there is no score here.
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
    metrics: dict[str, MetricSummary]
    papers: dict[str, PaperScore]
    seconds: float | None
    memory: float | None
    found: tuple[tuple[int, int], ...]
    stops: dict[str, int]
    explanation: str


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

    def leads(self, ours: str, metric: str) -> dict[str, Difference]:
        """Return the lead of one of our columns over each rival, variants of a column aside."""
        return {
            name: cell.metrics[metric].leads[ours]
            for name, cell in self.cells.items()
            if metric in cell.metrics
            and ours in cell.metrics[metric].leads
            and name not in _variants()
        }


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
    for status, words in (
        (FAILED, "failed"),
        (TIMEOUT, "stopped at the time limit"),
    ):
        found = [record for record in records if record.status == status]
        if found:
            errors = "; ".join(dict.fromkeys(record.error or "" for record in found))
            parts.append(f"{len(found)} of {expected} {words}: {errors}")
    absent = expected - len(records)
    if absent > 0:
        parts.append(f"{absent} of {expected} not computed yet.")
    return " ".join(parts)


OTHER_DRAWS = 1_000_000
"""Added to the numbers of runs with other draws than the specification asks for now: such runs are
compared with each other and with no run of the present draws."""


def scores_of(
    records: Iterable[RunRecord], metric: str, older: Collection[Key] = ()
) -> dict[int, float]:
    """Return the scores by the number of the run."""
    return {
        record.run + OTHER_DRAWS * (record.key in older): score
        for record in sorted(records, key=lambda record: record.run)
        if record.status == OK and (score := getattr(record, metric.lower())) is not None
    }


def mean_of(values: Iterable[float | None]) -> float | None:
    """Return the mean of the values that are known; None where there are none."""
    known = [value for value in values if value is not None]
    return fmean(known) if known else None


def _cell(
    table: Experiment,
    row: Row,
    method: str,
    records: list[RunRecord],
    scored: dict[str, dict[str, dict[int, float]]],
    marks: dict[str, dict[str, str]],
) -> CellSummary:
    good = [record for record in records if record.status == OK]
    # More runs than the specification asks for are welcome; fewer are explained. A column that the
    # table does not ask for has what somebody computed.
    asked = table.runs_of(row, method) if method in table.methods else 0
    expected = max(asked, len(records))
    metrics, papers = {}, {}
    for metric in SHOWN:
        paper = paper_score(
            table.name, row.name if row.paper_row is None else row.paper_row, method, metric
        )
        if paper is not None:
            papers[metric] = paper
        by_run = scored[metric].get(method, {})
        if by_run:
            scores = list(by_run.values())
            mean, mine = fmean(scores), our_columns()
            leads = {
                name: lead
                for name in ([] if method in mine else mine)
                if (lead := paired_difference(scored[metric].get(name, {}), by_run)) is not None
            }
            metrics[metric] = MetricSummary(
                mean=mean,
                variance=variance(scores) if len(scores) > 1 else None,
                worst=min(scores),
                best=max(scores),
                standing=marks[metric].get(method, ""),
                leads=leads,
                difference=mean - paper.mean if paper and row.comparable else None,
            )
    stops = Counter(record.stop_reason for record in good if record.stop_reason)
    return CellSummary(
        method=method,
        done=len(good),
        expected=expected,
        metrics=metrics,
        papers=papers,
        seconds=mean_of(record.cpu_seconds for record in good),
        memory=mean_of(record.peak_memory for record in good),
        found=tuple((len(one.classes), int(one.found)) for one in good if one.found is not None),
        stops={reason: stops[reason] for reason in sorted(stops)},
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
    for record in records:
        by_method[record.method].append(record)
    scored = {
        metric: {method: scores_of(by_method[method], metric, older) for method in methods}
        for metric in SHOWN
    }
    marks = {metric: _marks(scored[metric]) for metric in SHOWN}
    # One draw a run, whatever the number of methods that saw it.
    seen = {record.run: record.seen for record in records if record.seen is not None}
    drawn = {tuple(record.classes) for record in records if record.classes}
    return RowSummary(
        name=row.name,
        stand_in=DATASETS[row.dataset].title if profile == QUICK else "",
        borrowed=row.of is not None,
        classes=drawn.pop() if len(drawn) == 1 else (),
        seen=mean_of(seen[run] for run in sorted(seen)),
        paper_runs=row.paper_runs,
        cells={
            method: _cell(table, row, method, by_method[method], scored, marks)
            for method in methods
        },
    )


def outdated(
    records: Collection[RunRecord], tables: Iterable[Experiment], *, profile: str = PAPER
) -> set[Key]:
    """Return the keys of records of other draws or settings than the tables ask for now."""
    known = sorted({record.method for record in records} & METHODS.keys())
    cells = cells_of(tables, methods=known, profile=profile)
    today = {cell.key: cell.digest for cell in cells}
    return {
        record.key for record in records if today.get(record.key, record.digest) != record.digest
    }


def summarize(
    table: Experiment, records: Iterable[RunRecord], *, profile: str = PAPER
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
        source, place = source_of(table, row, LIBRARIES[profile])
        places[source.name, place.name] = row
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
    extra = dict.fromkeys(record.method for record in mine)
    methods = tuple(dict.fromkeys((*table.methods, *extra)))
    older = outdated(mine, [table], profile=profile)
    return TableSummary(
        name=table.name,
        title=table.title,
        note=table.note,
        methods=methods,
        rows=tuple(
            _row(
                table,
                row,
                methods,
                [record for record in mine if places[record.experiment, record.row] is row],
                older,
                profile,
            )
            for row in table.rows
        ),
        # Records that came through a CSV file know neither machine nor versions.
        machines=tuple(dict.fromkeys(record.machine for record in mine if record.machine)),
        versions=tuple(
            dict.fromkeys(
                ", ".join(f"{name} {number}" for name, number in record.versions.items())
                for record in mine
                if record.versions
            )
        ),
        spread=table.spread,
        older=len(older),
    )


@dataclass(frozen=True)
class Standing(Record):
    """How our method stands in a row, in one metric.

    Attributes
    ----------
    table, row, metric : str
        Where.
    method : str
        Which of our columns.
    ours : float
        Our mean.
    rival : str
        The one that we lead least, or that leads us most, draw by draw; variants aside.
    missing : int
        How many of its runs are not there yet.
    theirs : float
        Its mean.
    lead : Difference
        Ours minus its, over the draws that both have.
    verdict : {"first", "tied first", "behind", "single run"}
        "first" if we are more than two standard errors ahead of every rival, "behind" if one of
        them is so far ahead of us, "tied first" otherwise; a single run decides nothing.
    winners, ties : tuple of str
        The rivals that are more than two standard errors ahead of us, and those that the draws
        cannot tell from us.
    speedup : float or None
        Processor time of the paper's own method over ours.
    """

    table: str
    row: str
    metric: str
    method: str
    ours: float
    rival: str
    missing: int
    theirs: float
    lead: Difference
    verdict: str
    winners: tuple[str, ...]
    ties: tuple[str, ...]
    speedup: float | None


@dataclass(frozen=True)
class Agreement(Record):
    """Our run of the paper's own method beside the paper's number.

    Attributes
    ----------
    table, row, method, metric : str
        Where.
    here, printed : float
        Our mean and the paper's.
    error : float or None
        The standard error of their difference; None where either is a single run.
    agrees : bool or None
        Whether they differ by at most two standard errors; None without a standard error.
    """

    table: str
    row: str
    method: str
    metric: str
    here: float
    printed: float
    error: float | None
    agrees: bool | None


def our_columns() -> list[str]:
    """Return the columns of this package, which are compared with all rivals."""
    return [name for name, method in METHODS.items() if method.role == "ours"]


def _variants(of: str = "") -> list[str]:
    """Return the columns that repeat another one, or the one named, with another choice."""
    return [
        name
        for name, method in METHODS.items()
        if method.variant_of and of in ("", method.variant_of)
    ]


def standings(summaries: Iterable[TableSummary], method: str = OURS) -> list[Standing]:
    """Compare one of our columns with all rivals in each row that has both.

    Parameters
    ----------
    summaries : iterable of TableSummary
        The tables. Rows that show those of another table are passed over.
    method : str, default="TuckerClustering"
        Which of our columns.

    Returns
    -------
    found : list of Standing
        One for each row and metric.
    """
    found = []
    for summary in summaries:
        for row in summary.rows:
            if row.borrowed or method not in row.cells:
                continue
            taken, paper = row.cells[method].seconds, row.cells.get(PAPERS_OWN)
            slower = None if paper is None else paper.seconds
            for metric in METRICS:
                ours, leads = row.cells[method].metrics.get(metric), row.leads(method, metric)
                if ours is None or not leads:
                    continue
                stands = judged(leads)
                rival = row.cells[stands["rival"]]
                found.append(
                    Standing(
                        table=summary.name,
                        row=row.name,
                        metric=metric,
                        method=method,
                        ours=ours.mean,
                        missing=rival.expected - rival.done,
                        theirs=rival.metrics[metric].mean,
                        speedup=slower / taken if taken and slower is not None else None,
                        **stands,
                    )
                )
    return found


@dataclass(frozen=True)
class Share(Record):
    """In how many rows one of our columns is first or tied first in both measures.

    Attributes
    ----------
    method : str
        Our column.
    rows : int
        The rows with a verdict in AC and NMI, single runs have none, or behind in either.
    reached : int
        Those in which it is first or tied first in both.
    others : tuple of (str, str, tuple of str)
        Table and row of the rest, with the rivals that are ahead in either.
    """

    method: str
    rows: int
    reached: int
    others: tuple[tuple[str, str, tuple[str, ...]], ...]


def share_of(found: Iterable[Standing], method: str) -> Share:
    """Count the rows in which our column is behind nobody.

    Parameters
    ----------
    found : iterable of Standing
        How it stands, row by row.
    method : str
        Our column.

    Returns
    -------
    share : Share
        The count, and every other row with its winners.
    """
    by_row: dict[tuple[str, str], list[Standing]] = defaultdict(list)
    for standing in found:
        by_row[standing.table, standing.row].append(standing)
    decided = {
        place: here
        for place, here in by_row.items()
        if any(standing.verdict == BEHIND for standing in here)
        or all(standing.verdict != SINGLE for standing in here)
    }
    others = [
        (*place, tuple(dict.fromkeys(name for standing in here for name in standing.winners)))
        for place, here in decided.items()
        if any(standing.verdict == BEHIND for standing in here)
    ]
    return Share(method, len(decided), len(decided) - len(others), tuple(others))


def agreements(summaries: Iterable[TableSummary]) -> list[Agreement]:
    """Compare our runs of the paper's own method with its numbers, where the data are the same."""
    own = (PAPERS_OWN, *_variants(PAPERS_OWN))
    agreed = []
    for table, row, cell, metric in (
        (summary.name, row, row.cells[method], metric)
        for summary in summaries
        for row in summary.rows
        for method in own
        for metric in METRICS
        if method in row.cells
    ):
        found, paper = cell.metrics.get(metric), cell.papers.get(metric)
        if found is None or paper is None or found.difference is None:
            continue
        error = agrees = None
        if found.variance is not None and paper.variance is not None:
            error = (found.variance / cell.done + paper.variance / row.paper_runs) ** 0.5
            agrees = abs(found.difference) <= STANDARD_ERRORS * error
        numbers = (found.mean, paper.mean, error, agrees)
        agreed.append(Agreement(table, row.name, cell.method, metric, *numbers))
    return agreed
