from dataclasses import replace

import numpy as np
from tests.cases import each

from tuckermix.report import _content


def test_snippet_repeats_the_fit(samples, model):
    scope = {"X": samples[0]}
    exec(_content.snippet(model), scope)
    np.testing.assert_array_equal(scope["labels"], model.labels_)


def test_confusion_of_many_classes_is_a_list():
    y = np.arange(120) % 60
    labels = y.copy()
    labels[60:65] = 59  # a second home for five classes
    long = _content.confusion(y, labels)["long"]
    assert [(name, total) for name, total, _ in long] == [(str(k), 2) for k in range(60)]
    for k, (_, _, clusters) in enumerate(long):
        assert sum(count for _, count, _ in clusters) == 2
        assert [cluster for cluster, _, matched in clusters if matched] == [k]
        assert {cluster for cluster, _, _ in clusters} == ({k, 59} if k < 5 else {k})
    assert _content.confusion(None, y) is None


def test_confusion_of_one_class_in_many_clusters_counts_each_sample():
    y, labels = np.zeros(300, dtype=int), np.arange(300) % 50
    ((_, total, clusters),) = _content.confusion(y, labels)["long"]
    assert total == 300
    assert [count for _, count, _ in clusters] == [6] * 4


def test_figures_that_are_not_known_are_left_out(samples, model):
    from tuckermix.summary import summarize_fit

    summary = summarize_fit(model, samples[0], model.predict_proba(samples[0]), seconds=1.0)
    rows = {name: (value, note) for name, value, note in _content.facts(summary)}
    assert rows["samples"] == ("400 of shape 8 × 8", "")
    assert "components, core" in rows["clusters"][1]
    assert "iterations, stopped by" in rows["clusters"][1]
    assert rows["variance explained"][0].endswith("%")
    several = replace(summary, ranks=None, variance_explained=None, gap=None, n_iter=None)
    fewer = {name: note for name, _, note in _content.facts(several)}
    assert rows.keys() - fewer.keys() == {"variance explained", "optimality gap"}
    assert fewer["clusters"] == ""


def test_a_chart_falls_with_its_numbers():
    drawn = _content.chart("Cost", [0, 1, 2], [1.1335e8, 1.1315e8, 1.1312e8])
    heights = [y for _, y in drawn["points"]]
    assert heights[0] == 1
    assert heights[-1] == 0
    assert heights == sorted(heights, reverse=True)
    assert drawn["table"][0] == ("0", "1.1335e+08")
    assert drawn["x_ticks"] == [(0.0, "0"), (0.5, "1"), (1.0, "2")]
    assert [text for _, text in drawn["y_ticks"]][::4] == ["1.1312e+08", "1.1335e+08"]
    drawn = _content.chart("Gap", [0, 1], [1e-3, 1e-12], log=True)
    assert {"1e-12", "1e-3"} <= {text for _, text in drawn["y_ticks"]}


@each("values", [[5.0], [5.0, 5.0], [0.0, 0.0], [1e-16, 0.0], [1e200, 1.0]])
@each("log", [False, True])
def test_a_chart_of_anything_stays_inside(values, log):
    drawn = _content.chart("Gap", range(len(values)), values, log=log)
    places = [place for key in ("x_ticks", "y_ticks") for place, _ in drawn[key]]
    places = np.concatenate([places, *drawn["points"]])
    assert ((places >= 0) & (places <= 1)).all()


def test_a_chart_leaves_out_what_is_unknown():
    assert _content.chart("Gap", [0, 1], [np.nan, np.nan]) is None
    assert len(_content.chart("Gap", [0, 1, 2], [np.nan, 1.0, 2.0])["points"]) == 2


def test_the_snippet_of_a_pipeline(model):
    from tuckermix.features import Scale, Scattering

    text = _content.snippet(model, (Scale(), Scattering(J=2)))
    assert "from tuckermix.features import Scale, Scattering" in text
    assert "model = make_pipeline(Scale(), Scattering(J=2), TuckerClustering(" in text
    compile(text, "snippet", "exec")


def test_the_snippet_reads_what_was_read(tmp_path, monkeypatch, samples):
    from tuckermix.clustering import TuckerClustering
    from tuckermix.features import Scale

    monkeypatch.chdir(tmp_path)
    X = samples[0][:60].transpose(1, 2, 0)
    np.savez("scans.npz", scans=X, other=np.zeros((2, 2)))
    found = TuckerClustering(3, random_state=0)
    labels = found.fit_predict(samples[0][:60])
    reading = {"suffix": ".npz", "key": "scans", "sample_axis": 2}
    lines = _content.reading_lines("scans.npz", reading)
    scope = {}
    exec(_content.snippet(found, (), lines), scope)
    np.testing.assert_array_equal(scope["labels"], labels)
    text = _content.snippet(found, (Scale(),), _content.reading_lines("scans.npz", reading, True))
    assert "on_error='skip'" in text
    exec(text, scope)
    assert len(scope["labels"]) == 60
    text = _content.snippet(found, (), _content.reading_lines("digits", {"suffix": ""}))
    exec(text, scope)
    assert len(scope["labels"]) == 1797
    _, read = _content.reading_lines("scans.npz", {"suffix": ".npz"}, scene=(8, 8))
    assert read.endswith("X = X.reshape(-1, X.shape[-1])  # a pixel is a sample\n")
    assert _content.reading_lines(None, reading) == _content.reading_lines("x", None) == ("", "")
