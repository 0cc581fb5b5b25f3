from dataclasses import replace

import numpy as np

from tuckermix.report import _content
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


def test_map_has_a_mark_for_each_sample_in_the_order_of_its_data(samples, model):
    drawn = _content.sample_map(subject(samples, model))
    marks = [cluster for cluster, paths in drawn.groups for _ in paths]
    assert marks == drawn.data["labels"]
    assert len(marks) == len(samples[0])
    index = [int(name.split()[1]) for name in drawn.data["names"]]
    assert sorted(index) == list(range(len(samples[0])))
    np.testing.assert_array_equal(model.labels_[index], marks)
    for soft, label in zip(drawn.data["soft"], marks, strict=True):
        assert soft[0] == label
        assert soft[1::2] == sorted(soft[1::2], reverse=True)


def test_large_maps_are_thinned(samples, model, monkeypatch):
    monkeypatch.setattr(_content, "MAX_MARKS", 50)
    assert _content.sample_map(subject(samples, model)).n_marks == 50


def test_snippet_repeats_the_fit(samples, model):
    scope = {"X": samples[0]}
    exec(_content.snippet(model), scope)
    np.testing.assert_array_equal(scope["labels"], model.labels_)


def test_confusion_of_many_classes_is_left_out():
    y = np.arange(100)
    assert _content.confusion(y, y) is None
    assert _content.confusion(None, y) is None


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
    same, other = (_content.sample_map(replace(features, images=one)) for one in (X, inverted))
    assert same.groups == other.groups
    assert same.sheet != other.sheet


def test_the_snippet_of_a_pipeline(model):
    from tuckermix.features import Scale, Scattering

    text = _content.snippet(model, (Scale(), Scattering(J=2)))
    assert "from tuckermix.features import Scale, Scattering" in text
    assert "model = make_pipeline(Scale(), Scattering(J=2), TuckerClustering(" in text
    compile(text, "snippet", "exec")
