"""What the page knows of the samples."""

import base64
from dataclasses import replace

import numpy as np
import pytest

from tuckermix import AutoClustering, MultiViewClustering, TuckerClustering
from tuckermix.baselines import PCAB
from tuckermix.plots.fitted import placed
from tuckermix.report import render_report
from tuckermix.report._images import PageSettings
from tuckermix.report._samples import Subject, content, near_duplicates, positions
from tuckermix.summary import sample_names


def subject(samples, model, **more):
    X, y = samples
    names = sample_names(None, len(X))
    at = placed(model, X)
    return Subject(model, X, model.labels_, at.proba, names, at.places, y, unlike=at.unlike, **more)


@pytest.fixture(scope="module")
def shown(samples, model):
    return content(subject(samples, model))


def test_every_level_is_that_of_the_model(shown, model):
    data = shown["data"]
    leaf = np.array(data["leaf"])
    assert data["chosen"] == 5
    assert len(data["levels"]) >= 30
    for count, table in data["levels"].items():
        labels = np.array(table)[leaf]
        assert len(np.unique(labels)) == count
        np.testing.assert_array_equal(labels, model.labels_at(count))


def test_the_first_pictures_are_the_clearest_of_each_cluster(shown, model, samples):
    sure = model.predict_proba(samples[0]).max(axis=1)
    assert [group["cluster"] for group in shown["first"]] == list(range(5))
    for group in shown["first"]:
        clear = [one["place"] for one in group["pictures"] if not one["doubtful"]]
        assert len(clear) == 14
        assert set(model.labels_[clear]) == {group["cluster"]}
        others = np.setdiff1d(np.flatnonzero(model.labels_ == group["cluster"]), clear)
        assert sure[clear].min() >= sure[others].max() - 1e-3
        for one in group["pictures"]:
            assert one["doubtful"] == (sure[one["place"]] < 0.6) or not one["doubtful"]


def test_near_in_the_page_is_near_in_the_model(shown, model, samples):
    data = shown["data"]
    Z = placed(model, samples[0]).places
    few = np.frombuffer(base64.b64decode(data["near"]), np.uint8).reshape(len(Z), -1).astype(float)
    hits = []
    for place in range(0, 400, 10):
        true = np.argsort(np.linalg.norm(Z - Z[place], axis=1))[1:6]
        found = np.argsort(np.linalg.norm(few - few[place], axis=1))[1:16]
        hits.append(len(np.intersect1d(true, found)) / 5)
    assert np.mean(hits) > 0.7


def test_copies_are_found(samples, model):
    X = samples[0].copy()
    X[300], X[310], X[20] = X[7], X[7], X[5]
    groups = near_duplicates(placed(model, X).places)
    assert [5, 20] in groups
    assert any({7, 300, 310} <= set(group) for group in groups)
    assert len(groups) < 12
    assert near_duplicates(np.zeros((1, 3))) == []


def test_unusual_samples_are_in_the_tray(samples):
    X = samples[0].copy()
    X[[3, 200]] = np.random.default_rng(0).uniform(0, 16, (2, 8, 8))
    model = TuckerClustering(5, random_state=0).fit(X)
    data = content(subject((X, samples[1]), model))["data"]
    assert {3, 200} <= set(data["strange"][:6])


def test_outliers_are_told(samples):
    model = TuckerClustering(5, outliers="label", random_state=0).fit(samples[0])
    found = model.labels_ < 0
    proba = model.predict_proba(samples[0])
    about = replace(subject(samples, model), labels=proba.argmax(axis=1), outliers=found)
    data = content(about)["data"]
    assert data["out"] == np.flatnonzero(found).tolist()
    labels = np.array(data["levels"][5])[data["leaf"]]
    np.testing.assert_array_equal(labels, proba.argmax(axis=1))


def test_models_without_a_tree_have_one_level(samples):
    X, _ = samples
    model = PCAB(5, random_state=0).fit(X)
    names, Z = sample_names(None, len(X)), X.reshape(len(X), -1)
    about = Subject(model, X, model.labels_, np.eye(5)[model.labels_], names, Z)
    data = content(about)["data"]
    assert list(data["levels"]) == [5]
    assert data["leaf"] == model.labels_.tolist()


def test_new_samples_have_leaves_of_their_cluster(samples, model):
    X = samples[0][:150] + np.random.default_rng(0).normal(0, 0.5, (150, 8, 8))
    labels, proba, names = model.predict(X), model.predict_proba(X), sample_names(None, 150)
    data = content(Subject(model, X, labels, proba, names, placed(model, X).places))["data"]
    np.testing.assert_array_equal(np.array(data["levels"][5])[data["leaf"]], labels)


def test_more_samples_than_are_listed(samples, model):
    with PageSettings(listed=100, placed=50).use():
        data = content(subject(samples, model))["data"]
    assert len(data["samples"]) == len(data["leaf"]) == len(data["sure"]) == 100
    assert len(data["marks"]) == 50
    assert data["total"] == 400
    np.testing.assert_array_equal(
        np.array(data["levels"][5])[data["leaf"]], model.labels_[data["samples"]]
    )


def test_the_map_keeps_neighbours_together(samples, model):
    Z = placed(model, samples[0]).places
    with PageSettings(placed=200).use():  # the others are placed beside their neighbours
        at = positions(Z, model.labels_).astype(float)
    near = [np.argsort(np.linalg.norm(at - at[place], axis=1))[1:6] for place in range(400)]
    same = model.labels_[np.array(near)] == model.labels_[:, None]
    assert same.mean() > 0.9


@pytest.mark.parametrize("kind", [AutoClustering, MultiViewClustering])
def test_all_estimators_have_a_page(samples, kind):
    model = kind(n_clusters=4, random_state=0).fit(samples[0][:120])
    page = render_report(model, samples[0][:120])
    assert page.count("<article") == 4


def test_films_keep_to_their_share_of_the_page():
    rng = np.random.default_rng(0)
    kinds = 255 * rng.random((3, 12, 40, 40))
    X = kinds[np.arange(60) % 3] + 20 * rng.normal(size=(60, 12, 40, 40))
    model = TuckerClustering(3, random_state=0).fit(X)
    for kind in ("video", "volume"):
        with PageSettings(picture_bytes=900_000).use():
            shown = content(subject((X, None), model, kind=kind))
        weight = sum(map(len, shown["films"].values()))
        assert 200_000 < weight <= 450_000
        assert shown["data"]["frames"] == 12
        # The first of every cluster plays, before the second of any.
        firsts = {group["pictures"][0]["place"] for group in shown["first"]}
        assert firsts <= set(shown["films"])
        held = sum(len(one["address"]) for group in shown["first"] for one in group["pictures"])
        assert weight + held + sum(map(len, shown["pictures"].values())) < 990_000


def test_only_photographs_are_left_for_the_server(photos):
    files = sorted(photos.iterdir())[:24]
    X = np.random.default_rng(0).random((24, 6, 8, 8))
    model = TuckerClustering(2, random_state=0).fit(X)
    stills = TuckerClustering(2, random_state=0).fit(X[:, 0])
    with PageSettings(picture_bytes=5000).use():
        assert content(subject((X, None), model, kind="video"), files)["left"] == 0
        assert content(subject((X[:, 0], None), stills), files)["left"] > 0
        assert content(subject((X[:, 0], None), stills))["left"] == 0
