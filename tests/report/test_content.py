import numpy as np
import pytest

from tuckermix.report import _content


def parts(samples, model):
    X, y = samples
    return model, X, model.labels_, model.predict_proba(X), _content.sample_names(None, len(X)), y


def test_variance_explained_is_that_of_the_reconstruction(samples, model):
    X, _ = samples
    rebuilt = model.inverse_transform(model.memberships_)
    expected = 1 - ((X - rebuilt) ** 2).sum() / ((X - X.mean(axis=0)) ** 2).sum()
    np.testing.assert_allclose(_content.variance_explained(model, X), expected, rtol=1e-6)


def test_cards_count_every_sample_once(samples, model):
    cards = _content.cards(*parts(samples, model))
    assert sum(card.size for card in cards) == len(samples[0])
    assert np.isclose(sum(card.share for card in cards), 1)
    for card in cards:
        typical = {member.name for member in card.typical}
        assert len(typical) == 6
        assert not typical & {member.name for member in card.doubtful}


def test_typical_members_are_surer_than_doubtful_ones(samples, model):
    def sureness(member):
        return int(member.note.split("%")[0])

    for card in _content.cards(*parts(samples, model)):
        assert min(map(sureness, card.typical)) >= max(map(sureness, card.doubtful))


def test_map_has_a_mark_for_each_sample_in_the_order_of_its_data(samples, model):
    drawn = _content.sample_map(*parts(samples, model))
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
    assert _content.sample_map(*parts(samples, model)).n_marks == 50


def test_snippet_repeats_the_fit(samples, model):
    scope = {"X": samples[0]}
    code = _content.snippet(model).replace(
        "from tuckermix import", "from tuckermix.clustering import"
    )
    exec(code, scope)
    np.testing.assert_array_equal(scope["labels"], model.labels_)


def test_names_must_be_as_many_as_samples():
    with pytest.raises(ValueError, match="names has 2 entries, but X has 3 samples"):
        _content.sample_names(["a", "b"], 3)


def test_confusion_of_many_classes_is_left_out():
    y = np.arange(100)
    assert _content.confusion(y, y) is None
    assert _content.confusion(None, y) is None


@pytest.mark.parametrize(
    ("seconds", "text"), [(0.0123, "12 ms"), (1.25, "1.2 s"), (119, "119.0 s"), (600, "10.0 min")]
)
def test_durations_read_well(seconds, text):
    assert _content.duration(seconds) == text


def test_names_that_are_no_text_are_shown_with_a_sign():
    name = b"caf\xe9.png".decode("utf-8", "surrogateescape")
    assert _content.sample_names([name], 1) == ["caf\ufffd.png"]
