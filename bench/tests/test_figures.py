import builtins
from xml.etree import ElementTree

import numpy as np
import pytest

from tuckermix_bench.figures import (
    curve_points,
    draw_figure,
    figure_records,
    figure_svg,
    save_figure,
)
from tuckermix_bench.store import RunRecord
from tuckermix_bench.tables import EXPERIMENTS, FIGURES

pytest.importorskip("matplotlib")


def record(table, row, method, run=0, **extras):
    return RunRecord(
        "paper",
        table,
        row,
        method,
        run,
        digest="d",
        status="ok",
        classes=[2, 3, 7, 9],
        extras=extras,
    )


def course(level):
    return [{"iteration": n, "relative_error": level / (1 + 0.1 * n)} for n in range(5)]


PICTURES = np.random.default_rng(0).standard_normal((4, 6, 5)).tolist()

RECORDS = [
    record("table1", "HOSVD II", "PCA-Multinomial", history=course(0.4)),
    record("table1", "HOSVD I", "PCA-Multinomial", history=course(0.3)),
    record("table1", "HOSVD I", "PCA-Multinomial", run=1, history=course(0.9)),
    record("table3", "K=4", "PCA-Multinomial", components=PICTURES),
    record("table3", "K=4", "TuckerClustering", components=PICTURES * 2, centroids=PICTURES),
]

CURVE_RECORDS = [
    RunRecord(
        *("paper", "curves", row.name, method, run),
        digest="d",
        status="ok",
        ac=0.9 - 0.1 * run,
        cpu_seconds=1.0 + run,
    )
    for row in EXPERIMENTS["curves"].rows
    for method in ("TuckerClustering", "ours on pixels")
    for run in range(2)
]


def test_a_curve_has_the_means_and_errors_of_all_runs():
    points = curve_points(FIGURES["curves"], CURVE_RECORDS)
    assert len(points) == 2 * len(EXPERIMENTS["curves"].rows)
    assert [point.at for point in points if point.curve == "noise"][::2] == [0, 0.5, 1, 2, 4]
    for point in points:
        assert point.accuracy == pytest.approx(0.85)
        assert point.error == pytest.approx(0.05)
        assert (point.seconds, point.runs) == (1.5, 2)


def test_curves_have_accuracy_above_time():
    canvas = draw_figure(FIGURES["curves"], CURVE_RECORDS)
    assert len(canvas.axes) == 2 * 5
    top, bottom = canvas.axes[0], canvas.axes[5]
    assert list(top.lines[0].get_xdata()) == [0, 0.5, 1, 2, 4]
    assert bottom.lines[0].get_ydata() == pytest.approx([1.5] * 5)
    assert bottom.get_xlabel() == top.get_title(loc="left") == "noise"


def test_figure_3_has_a_panel_for_each_start_with_its_errors():
    canvas = draw_figure(FIGURES["figure3"], RECORDS)
    titles = [panel.get_title(loc="left") for panel in canvas.axes]
    assert [title.split(" (")[0] for title in titles] == ["HOSVD I", "HOSVD II"]
    line = canvas.axes[0].lines[-1]
    assert list(line.get_xdata()) == [0, 1, 2, 3, 4]
    assert line.get_ydata()[0] == 0.3


def test_runs_without_their_course_give_no_figure():
    assert draw_figure(FIGURES["figure3"], [record("table1", "HOSVD I", "PCA-Multinomial")]) is None


def test_a_start_far_off_is_named_not_drawn():
    far = [{"iteration": n, "relative_error": 0.5 if n == 0 else 0.14} for n in range(4)]
    records = [record("table1", "HOSVD II", "PCA-Multinomial", history=far)]
    panel = draw_figure(FIGURES["figure3"], records).axes[0]
    assert list(panel.lines[-1].get_xdata()) == [1, 2, 3]
    assert panel.get_legend().get_texts()[0].get_text() == "start: 0.500, off the scale"


def test_figure_4_shows_raw_and_positive_pictures_of_each_method():
    canvas = draw_figure(FIGURES["figure4"], RECORDS)
    images = [panel.images[0].get_array() for panel in canvas.axes if panel.images]
    # Two methods (components of one, cluster means of the other), raw and positive, four pictures.
    assert len(images) == 2 * 2 * 4
    assert np.array_equal(images[0], PICTURES[0])
    assert images[4].min() == 0.0
    assert np.array_equal(images[4], np.maximum(PICTURES[0], 0.0))


@pytest.mark.parametrize("name", list(FIGURES))
def test_without_records_there_is_no_figure(name):
    assert draw_figure(FIGURES[name], []) is None
    assert figure_records(FIGURES[name], RECORDS, profile="quick") == []


def test_records_without_pictures_give_no_figure():
    bare = [record("table3", "K=4", "PCA-Multinomial")]
    assert draw_figure(FIGURES["figure4"], bare) is None


@pytest.mark.parametrize("name", list(FIGURES))
def test_png_and_svg_are_written_and_repeat(tmp_path, name):
    canvas = draw_figure(FIGURES[name], [*RECORDS, *CURVE_RECORDS])
    png, svg = save_figure(canvas, tmp_path, name)
    assert png.read_bytes().startswith(b"\x89PNG")
    assert ElementTree.fromstring(svg.read_text()).tag.endswith("svg")
    assert figure_svg(draw_figure(FIGURES[name], [*RECORDS, *CURVE_RECORDS])) == svg.read_text()


def test_without_matplotlib_the_remedy_is_named(monkeypatch):
    real = builtins.__import__

    def refuse(name, *args, **kwargs):
        if name.startswith("matplotlib"):
            raise ImportError(name)
        return real(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", refuse)
    with pytest.raises(ImportError, match=r"needs matplotlib: install tuckermix\[plot\]"):
        draw_figure(FIGURES["figure3"], RECORDS)
