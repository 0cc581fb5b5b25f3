"""Displays made of pictures."""

import sys

import numpy as np
import pytest
from sklearn.base import BaseEstimator

from tuckermix import TuckerClustering
from tuckermix.datasets import make_tensor_clusters
from tuckermix.plots import (
    AbundanceDisplay,
    CentroidDisplay,
    ComponentDisplay,
    MemberDisplay,
    TreeDisplay,
)
from tuckermix.plots.fitted import confidence_of, typical_members
from tuckermix.plots.tiles import mode_profiles


def test_shows_every_centroid_with_its_size(model):
    display = CentroidDisplay.from_estimator(model)
    texts = [text.get_text() for text in display.ax_.texts]
    sizes = np.bincount(model.labels_)
    assert texts == [f"{k} (n={sizes[k]})" for k in range(3)]
    assert "mean of each cluster" in display.ax_.get_title()
    assert display.figure_ is display.ax_.figure
    assert display.animation_ is None


def test_draws_on_the_axes_it_is_given(model):
    import matplotlib.pyplot as plt

    _, ax = plt.subplots()
    before = plt.get_fignums()
    assert CentroidDisplay.from_estimator(model, ax=ax).ax_ is ax
    assert plt.get_fignums() == before


@pytest.mark.parametrize(
    ("shape", "columns"), [((20,), 1), ((6, 7), 1), ((6, 7, 3), 1), ((6, 7, 8), 3)]
)
def test_any_sample_shape_is_drawn(shape, columns):
    centroids = np.random.default_rng(0).random((4, *shape))
    display = CentroidDisplay(centroids).plot()
    assert display.image_.get_array().ndim in (2, 3)
    assert len(display.ax_.texts) == 4
    assert ("slices" in display.ax_.get_title()) == (columns == 3)


def test_animation_goes_through_all_frames():
    centroids = np.random.default_rng(0).random((3, 7, 6, 5))
    display = CentroidDisplay(centroids, kind="video").plot(animate=True)
    frames = list(display.animation_.new_frame_seq())
    assert len(frames) == 7
    display.animation_._func(0)
    first = np.array(display.image_.get_array())
    display.animation_._func(6)
    assert not np.array_equal(first, display.image_.get_array())
    display.animation_._draw_was_started = True  # it is meant to be thrown away


def test_animation_needs_videos(model):
    with pytest.raises(ValueError, match="animate=True needs videos, but the centroids are shown"):
        CentroidDisplay.from_estimator(model, animate=True)


def test_estimator_without_centroids_is_refused():
    from sklearn.cluster import KMeans

    fitted = KMeans(2, n_init=1, random_state=0).fit(np.eye(4))
    with pytest.raises(TypeError, match=r"needs an estimator with centroids_, which KMeans"):
        CentroidDisplay.from_estimator(fitted)


def test_missing_matplotlib_is_named(model, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    with pytest.raises(ImportError, match=r"CentroidDisplay needs matplotlib: install tuckermix"):
        CentroidDisplay.from_estimator(model)


def test_typical_members_are_the_surest_and_doubtful_ones_the_least_sure(seed):
    rng = np.random.default_rng(seed)
    labels, confidence, distances = rng.integers(0, 3, size=60), rng.random(60), rng.random(60)
    typical, doubtful = typical_members(labels, confidence, distances, 3, 4)
    for k in range(3):
        inside = confidence[labels == k]
        np.testing.assert_array_equal(confidence[typical[k]], np.sort(inside)[::-1][:4])
        np.testing.assert_array_equal(confidence[doubtful[k]], np.sort(inside)[:4])
        assert (labels[typical[k]] == k).all()


def test_among_equals_the_distance_decides(seed):
    rng = np.random.default_rng(seed)
    labels, distances = rng.integers(0, 3, size=60), rng.random(60)
    typical, doubtful = typical_members(labels, np.ones(60), distances, 3, 4)
    for k in range(3):
        inside = distances[labels == k]
        np.testing.assert_array_equal(distances[typical[k]], np.sort(inside)[:4])
        np.testing.assert_array_equal(distances[doubtful[k]], np.sort(inside)[::-1][:4])


def test_small_clusters_show_no_sample_twice():
    labels, sure = np.array([0, 0, 0, 1]), np.ones(4)
    typical, doubtful = typical_members(labels, sure, np.arange(4.0), 2, 2)
    assert [len(part) for part in typical] == [2, 1]
    assert [len(part) for part in doubtful] == [1, 0]
    assert not set(typical[0]) & set(doubtful[0])


def test_confidence_is_the_soft_label_of_the_own_cluster(digits, model):
    X, _ = digits
    proba = model.predict_proba(X)
    labels = model.labels_.copy()
    np.testing.assert_array_equal(confidence_of(model, X, labels), proba.max(axis=1))
    labels[:5] = -1  # outliers
    np.testing.assert_array_equal(confidence_of(model, X, labels), proba.max(axis=1))
    labels[5:] = (labels[5:] + 1) % 3
    expected = proba[np.arange(5, len(X)), labels[5:]]
    np.testing.assert_array_equal(confidence_of(model, X, labels)[5:], expected)


def test_display_and_report_mean_the_same_members():
    """One definition: what a display calls typical, the report calls typical."""
    pytest.importorskip("jinja2")
    from tuckermix import TuckerClustering
    from tuckermix.datasets import make_tensor_clusters
    from tuckermix.plots.fitted import placed
    from tuckermix.report._samples import Subject, content

    X = make_tensor_clusters(90, (7, 6), 3, noise=4.0, random_state=0).X
    model = TuckerClustering(3, random_state=0).fit(X)
    display = MemberDisplay.from_estimator(model, X, n_members=14)
    at = placed(model, X)
    proba = at.proba
    subject = Subject(model, X, model.labels_, proba, list(map(str, range(90))), at.places)

    def sureness(samples):  # which of equal ones come first is each page's own matter
        places = [np.flatnonzero((one == X).all(axis=(1, 2)))[0] for one in samples]
        return [round(1000 * proba[place].max()) for place in places]

    shown = content(subject)["first"]
    assert sorted(one["cluster"] for one in shown) == [0, 1, 2]
    assert any(member["doubtful"] for one in shown for member in one["pictures"])
    for one in shown:
        for doubtful, members in ((False, display.typical), (True, display.doubtful)):
            places = [x["place"] for x in one["pictures"] if x["doubtful"] == doubtful]
            expected = sureness(members[one["cluster"]])
            assert sureness(X[places]) == expected[: len(places)]


def test_draws_a_row_for_each_cluster(digits, model):
    X, _ = digits
    display = MemberDisplay.from_estimator(model, X, n_members=4)
    texts = [text.get_text() for text in display.ax_.texts]
    assert texts == ["0", "1", "2", "centroid", "most typical first", "most doubtful first"]
    assert [len(part) for part in display.typical] == [4, 4, 4]


def test_works_with_very_small_clusters(make_model):
    X = np.random.default_rng(0).random((3, 5, 6))
    display = MemberDisplay.from_estimator(make_model(X), X)
    assert "most doubtful first" not in [text.get_text() for text in display.ax_.texts]


def test_an_estimator_without_soft_labels_goes_by_distance(digits, model):
    X, _ = digits

    class Plain(BaseEstimator):
        def fit(self, X):
            self.centroids_, self.labels_ = model.centroids_, model.labels_
            return self

    distances = np.linalg.norm((X - model.centroids_[model.labels_]).reshape(len(X), -1), axis=1)
    display = MemberDisplay.from_estimator(Plain().fit(X), X, n_members=2)
    for k in range(3):
        members = np.flatnonzero(model.labels_ == k)
        order = members[np.argsort(distances[members])]
        np.testing.assert_array_equal(display.typical[k], X[order[:2]])


def test_number_of_members_is_checked(digits, model):
    with pytest.raises(ValueError, match="'n_members' parameter of MemberDisplay must be"):
        MemberDisplay.from_estimator(model, digits[0], n_members=0)


def test_profiles_say_where_and_when():
    videos = np.zeros((2, 6, 5, 4))
    videos[0, 3] = 1.0  # the first flashes in frame 3
    videos[1, :, 2] = 1.0  # the second has a bright row
    frames, rows, columns = mode_profiles(videos, np.zeros((6, 5, 4)))
    assert np.argmax(frames[0]) == 3
    np.testing.assert_allclose(frames[1], frames[1, 0])
    assert np.argmax(rows[1]) == 2
    np.testing.assert_allclose(columns, columns[:, :1] * np.ones(4))
    np.testing.assert_allclose(frames[0, 3], 1.0)


@pytest.mark.parametrize(
    ("shape", "kind", "names"),
    [
        ((8, 7), "auto", ["row", "column"]),
        ((5, 6, 7), "auto", ["depth", "row", "column"]),
        ((5, 6, 7), "video", ["frame", "row", "column"]),
        ((9,), "auto", ["position"]),
    ],
)
def test_each_mode_has_a_profile(shape, kind, names):
    X = make_tensor_clusters(n_samples=60, shape=shape, n_clusters=3, random_state=0).X
    model = TuckerClustering(3, memberships="archetypes", random_state=0).fit(X)
    display = ComponentDisplay.from_estimator(model, kind=kind)
    assert [axes.get_xlabel() for axes in display.profile_axes_] == names
    for axes, size in zip(display.profile_axes_, shape, strict=True):
        assert len(axes.lines) == model.n_components_
        assert len(axes.lines[0].get_xdata()) == size
    assert display.figure_ is display.ax_.figure


def test_axes_of_ones_own_get_the_pictures_only():
    import matplotlib.pyplot as plt

    _, ax = plt.subplots()
    display = ComponentDisplay(np.eye(8).reshape(1, 8, 8), weights=[1.0]).plot(ax)
    assert display.ax_ is ax
    assert display.profile_axes_ == []
    assert [text.get_text() for text in ax.texts] == ["0 (100 %)"]


def test_maps_show_the_weights_in_their_places():
    weights = np.random.default_rng(0).dirichlet(np.ones(2), size=12)
    display = AbundanceDisplay(weights, (3, 4), names=["soil", "water"]).plot()
    sheet = np.asarray(display.image_.get_array())
    np.testing.assert_allclose(sheet[1:4, :4], 1 - weights[:, 0].reshape(3, 4))
    assert [text.get_text() for text in display.ax_.texts] == ["soil", "water"]


def test_many_maps_fill_several_rows():
    weights = np.full((9, 6), 1 / 6)
    display = AbundanceDisplay(weights, (3, 3)).plot()
    assert np.asarray(display.image_.get_array()).shape[0] > 2 * 3
    assert len(display.ax_.texts) == 6


def test_a_fitted_scene_is_shown():
    scene = np.random.default_rng(1).random((5, 6, 8))
    model = TuckerClustering(2, n_components=3, memberships="archetypes", random_state=0)
    model.fit(scene.reshape(30, 8))
    display = AbundanceDisplay.from_estimator(model, (5, 6))
    assert display.figure_ is display.ax_.figure


def test_the_shape_must_have_as_many_pixels_as_there_are_weights():
    with pytest.raises(ValueError, match="needs one row of memberships for each pixel"):
        AbundanceDisplay(np.ones((10, 1)), (3, 4)).plot()


@pytest.fixture(scope="module")
def nested():
    data = make_tensor_clusters(90, (6, 5), n_clusters=3, random_state=0)
    return TuckerClustering(3, random_state=0).fit(data.X), data.X


def test_tree_has_a_picture_for_each_leaf_and_ends_where_it_is_told(nested):
    model, X = nested
    display = TreeDisplay.from_estimator(model, X)
    assert len(display.lines_) == 5
    assert sorted(display.order_) == list(range(6))
    assert len(display.picture_axes_) == 6
    finer = TreeDisplay.from_estimator(model, X, n_clusters=10)
    assert len(finer.picture_axes_) == 10
    below = model.labels_at(10)
    drawn = [finer.picture_axes_[finer.order_.index(label)] for label in range(10)]
    shown = np.stack([axes.images[0].get_array() for axes in drawn])
    means = np.stack([X[below == label].mean(axis=0) for label in range(10)])
    correlation = np.corrcoef(shown.ravel(), means.ravel())[0, 1]
    assert correlation > 0.99


def test_tree_without_samples_ends_at_the_fitted_level(nested):
    model, _ = nested
    display = TreeDisplay.from_estimator(model)
    assert len(display.lines_) == 2
    assert len(display.picture_axes_) == 3
    assert TreeDisplay.from_estimator(model, n_clusters=1).lines_ == []
    with pytest.raises(ValueError, match="number of leaves"):
        TreeDisplay.from_estimator(model, n_clusters=91)
