from dataclasses import replace

import numpy as np

from tuckermix import TuckerClustering
from tuckermix.plots.pictures import views
from tuckermix.report import _content
from tuckermix.report._images import contact_sheet
from tuckermix.report._listing import listing
from tuckermix.summary import sample_names


def subject(samples, model):
    X, y = samples
    names = sample_names(None, len(X))
    return _content.Subject(model, X, model.labels_, model.predict_proba(X), names, y)


def test_cards_count_every_sample_once(samples, model):
    cards = _content.cards(subject(samples, model))
    assert sum(card.size for card in cards) == len(samples[0])
    assert np.isclose(sum(card.share for card in cards), 1)
    for card in cards:
        typical = {member.name for member in card.typical}
        assert len(typical) == 6
        assert not typical & {member.name for member in card.doubtful}


def test_typical_members_are_surer_than_doubtful_ones(samples, model):
    def sureness(member):
        return int(member.note.split("%")[0])

    for card in _content.cards(subject(samples, model)):
        assert min(map(sureness, card.typical)) >= max(map(sureness, card.doubtful))


def test_map_has_a_mark_for_each_sample_in_the_order_given(samples, model):
    about = subject(samples, model)
    chosen = listing(model.labels_).samples
    drawn = _content.sample_map(about, chosen)
    marks = [cluster for cluster, paths in drawn.groups for _ in paths]
    np.testing.assert_array_equal(model.labels_[chosen], marks)
    assert sorted(chosen) == list(range(len(samples[0])))
    for soft, label in zip(drawn.data["soft"], marks, strict=True):
        assert soft[0] == label
        assert soft[1::2] == sorted(soft[1::2], reverse=True)
    # Where a mark is does not depend on the order in which marks are asked for.
    again = _content.sample_map(about, chosen[np.argsort(model.labels_[chosen], kind="stable")])
    assert again.groups == drawn.groups


def test_the_number_of_a_lone_mark_stands_beside_it(samples, model):
    about = subject(samples, model)
    alone = np.array([np.flatnonzero(model.labels_ == k)[0] for k in range(5)])
    drawn = _content.sample_map(about, alone)
    for (_, paths), (_, x, y, aside) in zip(drawn.groups, drawn.numbers, strict=True):
        assert paths[0].startswith(f"M{x} {y}")
        assert aside > drawn.data["size"] + 11  # half the height of a number
    crowded = _content.sample_map(about, listing(model.labels_).samples)
    assert {aside for *_, aside in crowded.numbers} == {0}


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


def test_images_are_shown_in_place_of_features(samples, model):
    X, _ = samples
    features = subject(samples, model)
    inverted = X.max() - X
    plain = _content.cards(features)
    shown = _content.cards(replace(features, images=inverted))
    for before, after in zip(plain, shown, strict=True):
        assert [one.name for one in before.typical] == [one.name for one in after.typical]
        assert before.typical[0].address != after.typical[0].address
        assert before.centroid != after.centroid
    means = _content.mean_images(X, model.labels_, len(plain))
    for cluster, mean in enumerate(means):
        np.testing.assert_allclose(mean, X[model.labels_ == cluster].mean(axis=0))
    assert np.array_equal(_content.mean_images(X[:3], np.array([0, 0, 2]), 4)[[1, 3]], 0 * X[:2])
    chosen = listing(model.labels_).samples
    same, other = (
        _content.sample_map(replace(features, images=one), chosen) for one in (X, inverted)
    )
    assert same.groups == other.groups
    assert same.sheet != other.sheet


def test_figures_that_are_not_known_are_left_out(samples, model):
    from tuckermix.summary import summarize_fit

    summary = summarize_fit(model, samples[0], model.predict_proba(samples[0]))
    rows = {name: note for name, _, note in _content.facts(summary)}
    assert rows["Samples"] == "each of shape 8 × 8"
    several = replace(summary, ranks=None, variance_explained=None, gap=None, n_iter=None)
    fewer = {name for name, *_ in _content.facts(several)}
    assert rows.keys() - fewer == {"Ranks", "Variance explained", "Optimality gap", "Iterations"}


def test_members_show_all_views_of_a_sample():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(2, 7, 6, 5))[np.arange(12) % 2] + 0.1 * rng.normal(size=(12, 7, 6, 5))
    model = TuckerClustering(2, assign_labels="subspace", random_state=0).fit(X)
    proba, names = model.predict_proba(X), list(map(str, range(12)))
    for kind, n_views in (("video", 6), ("volume", 3), ("channels", 5)):
        subject = _content.Subject(model, X, model.labels_, proba, names, kind=kind)
        assert subject.shown_kind == kind
        _, limits = _content.shown_samples(subject)
        for card in _content.cards(subject):
            assert len(card.centroid) == n_views
            expected = views(X[[member.sample for member in card.typical]], kind, limits=limits)
            for member, several in zip(card.typical, expected, strict=True):
                assert member.address == contact_sheet(several)


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
