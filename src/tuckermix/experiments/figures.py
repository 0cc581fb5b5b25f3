"""The paper's Figures 3 and 4 and the curves, drawn from stored records."""

from __future__ import annotations

import io
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from tuckermix._files import atomic_paths
from tuckermix._records import Record
from tuckermix.experiments.store import OK, RunRecord
from tuckermix.experiments.tables import LIBRARIES, PAPER, Experiment, Figure

__all__ = ["Point", "curve_points", "draw_figure", "figure_records", "figure_svg", "save_figure"]

PNG_DPI = 150
PANEL_WIDTH, PANEL_HEIGHT = 6.4, 3.0
OFF_SCALE = 1.5
"""A start whose error exceeds all others by this factor is not drawn."""
CURVE_WIDTH = 3.2
CURVE_STYLES: tuple[dict[str, Any], ...] = (
    {"color": "#1b4f8a", "marker": "o", "markersize": 4},
    {"color": "#b3471d", "marker": "s", "markersize": 4, "linestyle": "--"},
)
"""The tensor in full lines, flattened samples in broken ones."""
TILE = 1.3
"""Inches of a centroid's picture."""


def figure_records(
    figure: Figure, records: Iterable[RunRecord], *, profile: str = PAPER
) -> list[RunRecord]:
    """Return the records that a figure shows, in its own order, as far as they are computed."""
    found = {
        (record.row, record.method): record
        for record in records
        if record.profile == profile
        and record.experiment == figure.experiment
        and record.run == 0
        and record.status == OK
    }
    keys = [(row, method) for row in figure.rows for method in figure.methods]
    return [found[key] for key in keys if key in found]


@dataclass(frozen=True)
class Point(Record):
    """A point of a curve.

    Attributes
    ----------
    curve : str
        What changes along it.
    at : float
        Where the point lies.
    method : str
        The column.
    runs : int
        The runs behind the means.
    accuracy, seconds : float
        Mean accuracy, and mean processor time of a fit.
    error : float
        The standard error of the accuracy; 0 for a single run.
    """

    curve: str
    at: float
    method: str
    runs: int
    accuracy: float
    error: float
    seconds: float


def curve_points(
    figure: Figure, table: Experiment, records: Iterable[RunRecord], *, profile: str = PAPER
) -> list[Point]:
    """Return the points of all curves of a table, in its own order, as far as they are computed.

    Parameters
    ----------
    figure : Figure
        Which columns are drawn.
    table : Experiment
        The table whose rows lie on curves.
    records : iterable of RunRecord
        The records.
    profile : {"paper", "quick"}, default="paper"
        The settings.

    Returns
    -------
    points : list of Point
        One for each row and method with records.
    """
    found: dict[tuple[str, str], list[RunRecord]] = {}
    for record in records:
        mine = record.profile == profile and record.experiment == table.name
        if mine and record.status == OK:
            found.setdefault((record.row, record.method), []).append(record)
    points = []
    for row in table.rows:
        for method in figure.methods:
            here = found.get((row.name, method), [])
            if row.on is None or not here:
                continue
            scores = np.asarray([record.ac or 0.0 for record in here])
            error = scores.std(ddof=1) / len(here) ** 0.5 if len(here) > 1 else 0.0
            seconds = np.mean([record.cpu_seconds or 0.0 for record in here])
            numbers = (float(scores.mean()), float(error), float(seconds))
            points.append(Point(row.on[0], row.on[1], method, len(here), *numbers))
    return points


def _curves(canvas: Any, points: list[Point]) -> None:
    """Draw accuracy above time, one column a curve, one line a method."""
    names = list(dict.fromkeys(point.curve for point in points))
    methods = list(dict.fromkeys(point.method for point in points))
    panels = canvas.subplots(2, len(names), squeeze=False)
    for column, name in enumerate(names):
        top, bottom = panels[0][column], panels[1][column]
        for method, style in zip(methods, CURVE_STYLES, strict=False):
            line = [point for point in points if (point.curve, point.method) == (name, method)]
            places = [point.at for point in line]
            heights = [point.accuracy for point in line]
            spans = [2.0 * point.error for point in line]
            top.errorbar(places, heights, yerr=spans, label=method, capsize=2, **style)
            bottom.plot(places, [point.seconds for point in line], **style)
        top.set_title(name, loc="left", fontsize=10)
        top.set_ylim(0.0, 1.05)
        bottom.set_yscale("log")
        bottom.set_xlabel(name)
        ticks = sorted({point.at for point in points if point.curve == name})
        for panel in (top, bottom):
            panel.set_xticks(ticks)
            panel.grid(alpha=0.3)
    panels[0][0].set_ylabel("accuracy ± 2 standard errors")
    panels[1][0].set_ylabel("seconds a fit")
    panels[0][0].legend(frameon=False, fontsize=8, loc="lower left")


def _error_curves(canvas: Any, records: list[RunRecord]) -> None:
    """Draw the relative error against the iteration, one panel a start."""
    panels = canvas.subplots(len(records), 1, squeeze=False)[:, 0]
    for panel, record in zip(panels, records, strict=True):
        course = [entry for entry in record.extras.get("history", []) if "relative_error" in entry]
        errors = [entry["relative_error"] for entry in course]
        steps = [entry.get("iteration", index) for index, entry in enumerate(course)]
        if len(errors) > 1 and errors[0] > OFF_SCALE * max(errors[1:]):
            # A random start would flatten the rest of the curve; it is named in place of drawn.
            panel.plot([], [], " ", label=f"start: {errors[0]:.3f}, off the scale")
            steps, errors = steps[1:], errors[1:]
        elif errors:
            panel.plot(steps[:1], errors[:1], "o", color="#b3471d", label="start", zorder=3)
        panel.plot(steps, errors, color="#1b4f8a", linewidth=1.6)
        if errors:
            panel.legend(frameon=False)
        panel.set_title(f"{record.row} ({record.method})", loc="left", fontsize=10)
        panel.set_xlabel("iteration")
        panel.set_ylabel("relative error")
        panel.grid(alpha=0.3)


def _pictures_of(record: RunRecord) -> list[tuple[str, np.ndarray]]:
    """Return the lifted centres of a record with their captions, those of the paper first."""
    found = []
    components = record.extras.get("components")
    centroids = record.extras.get("centroids")
    if components is not None and len(components) == len(record.classes):
        found.append((f"{record.method}\ncomponents", np.asarray(components)))
    if centroids is not None:
        found.append((f"{record.method}\ncluster means", np.asarray(centroids)))
    return found


def _centroids(canvas: Any, records: list[RunRecord]) -> None:
    """Draw the centres as pictures: raw, on a scale symmetric about 0, and their positive part."""
    groups = [group for record in records for group in _pictures_of(record)]
    lines = [(name, pictures, clip) for name, pictures in groups for clip in (False, True)]
    if not lines:
        return
    panels = canvas.subplots(len(lines), max(len(p) for _, p, _ in lines), squeeze=False)
    for line, (name, pictures, clip) in zip(panels, lines, strict=True):
        for panel in line:
            panel.axis("off")
        limit = float(np.abs(pictures).max()) or 1.0
        for panel, picture in zip(line, pictures, strict=False):
            if clip:
                panel.imshow(np.maximum(picture, 0.0), cmap="gray", vmin=0.0, vmax=limit)
            else:
                panel.imshow(picture, cmap="RdBu_r", vmin=-limit, vmax=limit)
        line[0].text(
            -0.15,
            0.5,
            f"{name}\n{'positive part' if clip else 'raw'}",
            ha="right",
            va="center",
            fontsize=8,
            transform=line[0].transAxes,
        )


def draw_figure(
    figure: Figure, records: Iterable[RunRecord], *, profile: str = PAPER
) -> Any | None:
    """Draw a figure.

    Parameters
    ----------
    figure : Figure
        Which.
    records : iterable of RunRecord
        The records; the figure picks its own.
    profile : {"paper", "quick"}, default="paper"
        The settings.

    Returns
    -------
    canvas : matplotlib.figure.Figure or None
        None where none of its runs is stored.
    """
    if figure.kind == "curves":
        return _drawn_curves(figure, records, profile)
    shown = figure_records(figure, records, profile=profile)
    if not shown:
        return None
    from tuckermix.plots.style import require_matplotlib

    canvas_class = require_matplotlib("draw_figure").Figure
    if figure.kind == "errors":
        # Records that came through a CSV file have no course.
        shown = [record for record in shown if record.extras.get("history")]
        if not shown:
            return None
        canvas = canvas_class(
            figsize=(PANEL_WIDTH, PANEL_HEIGHT * len(shown)), layout="constrained"
        )
        _error_curves(canvas, shown)
        return canvas
    groups = [group for record in shown for group in _pictures_of(record)]
    if not groups:
        return None
    columns = max(len(pictures) for _, pictures in groups)
    size = ((columns + 1.5) * TILE, 2 * len(groups) * TILE)
    canvas = canvas_class(figsize=size, layout="constrained")
    _centroids(canvas, shown)
    return canvas


def _drawn_curves(figure: Figure, records: Iterable[RunRecord], profile: str) -> Any | None:
    table = LIBRARIES[profile][figure.experiment]
    points = curve_points(figure, table, records, profile=profile)
    if not points:
        return None
    from tuckermix.plots.style import require_matplotlib

    count = len({point.curve for point in points})
    canvas = require_matplotlib("draw_figure").Figure(
        figsize=(CURVE_WIDTH * count, 2 * PANEL_HEIGHT), layout="constrained"
    )
    _curves(canvas, points)
    return canvas


def figure_svg(canvas: Any) -> str:
    """Return a drawn figure as SVG text, the same bytes for the same records."""
    import matplotlib

    stream = io.StringIO()
    # Without a fixed salt and date, each rendering would differ in its identifiers.
    with matplotlib.rc_context({"svg.hashsalt": "tuckermix"}):
        canvas.savefig(stream, format="svg", metadata={"Date": None})
    # Trailing blanks are matplotlib's; files under version control have none.
    return "\n".join(line.rstrip() for line in stream.getvalue().splitlines()) + "\n"


def save_figure(canvas: Any, folder: Path, name: str) -> list[Path]:
    """Write a drawn figure as PNG and SVG, both or neither, and return the two paths."""
    png, svg = folder / f"{name}.png", folder / f"{name}.svg"
    # Saving moves the panels a little each time; the first rendering is the one that repeats.
    with atomic_paths(png, svg) as (new_png, new_svg):
        new_svg.write_text(figure_svg(canvas), encoding="utf-8")
        canvas.savefig(new_png, dpi=PNG_DPI, metadata={"Software": None})
    return [png, svg]
