"""The paper's Figures 3 and 4, and the curves, from stored records."""

from __future__ import annotations

import io
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from statistics import fmean
from types import SimpleNamespace
from typing import Any

import numpy as np

from tuckermix._files import atomic_paths
from tuckermix_bench.store import RunRecord
from tuckermix_bench.summaries import mean_of, scores_of, standard_error
from tuckermix_bench.tables import LIBRARIES, PAPER, Figure


@dataclass(frozen=True)
class FigureSettings:
    """Sizes in inches, and what a figure leaves out."""

    panel: tuple[float, float] = (6.4, 3.0)
    curve_width: float = 3.2
    tile: float = 1.3
    dots_per_inch: int = 150
    off_scale: float = 1.5
    """A start whose error exceeds all others by this factor is not drawn: it would flatten them."""


SETTINGS = FigureSettings()
BLUE, RED = "#1b4f8a", "#b3471d"
CURVE_STYLES: tuple[dict[str, Any], ...] = (
    {"color": BLUE, "marker": "o", "markersize": 4},
    {"color": RED, "marker": "s", "markersize": 4, "linestyle": "--"},
)
"""The tensor in full lines, flattened samples in broken ones."""


def figure_records(
    figure: Figure, records: Iterable[RunRecord], *, profile: str = PAPER
) -> list[RunRecord]:
    """Return the records that a figure shows, in its own order, as far as they are computed."""
    found = {record.key: record for record in records if record.status == "ok"}
    places = product(figure.rows, figure.methods)
    keys = [(profile, figure.experiment, row, method, 0) for row, method in places]
    return [found[key] for key in keys if key in found]


def curve_points(
    figure: Figure, records: Iterable[RunRecord], *, profile: str = PAPER
) -> list[SimpleNamespace]:
    """Return the points of all curves of a table, in its own order, as far as they are computed.

    A point knows its `curve`, which is what changes along it, where it lies `at`, its `method`,
    the number of `runs`, the mean `accuracy` over them, its standard `error` (0 for a single run),
    and the mean of `seconds` of processor time.
    """
    records, points = list(records), []
    for row in LIBRARIES[profile][figure.experiment].rows:
        for method in figure.methods:
            key = (profile, figure.experiment, row.name, method)
            mine = [one for one in records if one.key[:4] == key and one.status == "ok"]
            scores = list(scores_of(mine, "AC").values())
            if row.on is not None and scores:
                point = SimpleNamespace(method=method, runs=len(scores), accuracy=fmean(scores))
                point.curve, point.at = row.on
                point.error = standard_error(scores) or 0.0
                point.seconds = mean_of(one.cpu_seconds for one in mine) or 0.0
                points.append(point)
    return points


def _curves(canvas: Any, points: list[SimpleNamespace]) -> None:
    """Draw accuracy above time, one column per curve, one line per method."""
    names = list(dict.fromkeys(point.curve for point in points))
    methods = list(dict.fromkeys(point.method for point in points))
    panels = canvas.subplots(2, len(names), squeeze=False)
    for (top, bottom), name in zip(panels.T, names, strict=True):
        for method, style in zip(methods, CURVE_STYLES, strict=False):
            line = [point for point in points if (point.curve, point.method) == (name, method)]
            places = [point.at for point in line]
            spans = [2.0 * point.error for point in line]
            heights = [point.accuracy for point in line]
            top.errorbar(places, heights, yerr=spans, label=method, capsize=2, **style)
            bottom.plot(places, [point.seconds for point in line], **style)
        top.set_title(name, loc="left", fontsize=10)
        top.set_ylim(0.0, 1.05)
        bottom.set_yscale("log")
        bottom.set_xlabel(name)
        for panel in (top, bottom):
            panel.set_xticks(sorted({point.at for point in points if point.curve == name}))
            panel.grid(alpha=0.3)
    panels[0][0].set_ylabel("accuracy ± 2 standard errors")
    panels[1][0].set_ylabel("seconds per fit")
    panels[0][0].legend(frameon=False, fontsize=8, loc="lower left")


def _error_curves(canvas: Any, records: list[RunRecord]) -> None:
    """Draw the relative error against the iteration, one panel per start."""
    panels = canvas.subplots(len(records), 1, squeeze=False)[:, 0]
    for panel, record in zip(panels, records, strict=True):
        course = [entry for entry in record.extras["history"] if "relative_error" in entry]
        errors = [entry["relative_error"] for entry in course]
        steps = [entry.get("iteration", index) for index, entry in enumerate(course)]
        if len(errors) > 1 and errors[0] > SETTINGS.off_scale * max(errors[1:]):
            panel.plot([], [], " ", label=f"start: {errors[0]:.3f}, off the scale")
            steps, errors = steps[1:], errors[1:]
        else:
            panel.plot(steps[:1], errors[:1], "o", color=RED, label="start", zorder=3)
        panel.plot(steps, errors, color=BLUE, linewidth=1.6)
        panel.legend(frameon=False)
        panel.set_title(f"{record.row} ({record.method})", loc="left", fontsize=10)
        panel.set_xlabel("iteration")
        panel.set_ylabel("relative error")
        panel.grid(alpha=0.3)


def _pictures_of(record: RunRecord) -> list[tuple[str, np.ndarray]]:
    """Return the lifted centres of a record with their captions, those of the paper first."""
    kept = {name: record.extras.get(name) for name in ("components", "centroids")}
    if kept["components"] is not None and len(kept["components"]) != len(record.classes):
        kept["components"] = None
    words = {"components": "components", "centroids": "cluster means"}
    return [
        (f"{record.method}\n{words[name]}", np.asarray(pictures))
        for name, pictures in kept.items()
        if pictures is not None
    ]


def _centroids(canvas: Any, groups: list[tuple[str, np.ndarray]]) -> None:
    """Draw the centres as pictures: raw, on a scale symmetric about 0, and their positive part."""
    lines = [(name, pictures, clip) for name, pictures in groups for clip in (False, True)]
    panels = canvas.subplots(len(lines), max(len(p) for _, p, _ in lines), squeeze=False)
    for line, (name, pictures, clip) in zip(panels, lines, strict=True):
        limit = float(np.abs(pictures).max()) or 1.0
        for panel in line:
            panel.axis("off")
        for panel, picture in zip(line, pictures, strict=False):
            if clip:
                panel.imshow(np.maximum(picture, 0.0), cmap="gray", vmin=0.0, vmax=limit)
            else:
                panel.imshow(picture, cmap="RdBu_r", vmin=-limit, vmax=limit)
        text, where = f"{name}\n{'positive part' if clip else 'raw'}", line[0].transAxes
        line[0].text(-0.15, 0.5, text, ha="right", va="center", fontsize=8, transform=where)


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
    shown: Any
    draw: Any
    wide, high = SETTINGS.panel
    if figure.kind == "curves":
        shown = curve_points(figure, records, profile=profile)
        draw = _curves
        size = (SETTINGS.curve_width * len({one.curve for one in shown}), 2 * high)
    else:
        found = figure_records(figure, records, profile=profile)
        # Records that came through a CSV file have no course and no pictures.
        shown = [record for record in found if record.extras.get("history")]
        draw, size = _error_curves, (wide, high * len(shown))
        if figure.kind == "centroids":
            shown = [group for record in found for group in _pictures_of(record)]
            columns = max((len(pictures) for _, pictures in shown), default=0)
            draw, tile = _centroids, SETTINGS.tile
            size = ((columns + 1.5) * tile, 2 * len(shown) * tile)
    if not shown:
        return None
    from tuckermix.plots.style import require_matplotlib

    canvas = require_matplotlib("draw_figure").Figure(figsize=size, layout="constrained")
    draw(canvas, shown)
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
        canvas.savefig(new_png, dpi=SETTINGS.dots_per_inch, metadata={"Software": None})
    return [png, svg]
