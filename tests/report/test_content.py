from dataclasses import replace

import numpy as np

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

    summary = summarize_fit(model, samples[0], model.predict_proba(samples[0]))
    rows = {name: note for name, _, note in _content.facts(summary)}
    assert rows["Samples"] == "each of shape 8 × 8"
    several = replace(summary, ranks=None, variance_explained=None, gap=None, n_iter=None)
    fewer = {name for name, *_ in _content.facts(several)}
    assert rows.keys() - fewer == {"Ranks", "Variance explained", "Optimality gap", "Iterations"}


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
