import base64
import io
import os

import numpy as np
import pytest

from tuckermix.clustering import TuckerClustering
from tuckermix.report import _listing
from tuckermix.report._content import Subject
from tuckermix.summary import sample_names

Image = pytest.importorskip("PIL.Image")


@pytest.fixture(scope="module")
def photos():
    """Return samples of 40 x 40 in three kinds, and what a report is about."""
    rng = np.random.default_rng(0)
    kinds = rng.random((3, 40, 40))
    X = kinds[np.arange(60) % 3] + 0.05 * rng.random((60, 40, 40))
    model = TuckerClustering(3, random_state=0).fit(X)
    names = sample_names(None, 60)
    return Subject(model, X, model.labels_, model.predict_proba(X), names)


@pytest.mark.parametrize("seed", range(3))
def test_listing_has_every_sample_once_cluster_by_cluster(seed):
    labels = np.random.default_rng(seed).integers(0, 7, size=500)
    chosen = _listing.listing(labels)
    assert sorted(chosen.samples) == list(range(500))
    assert (np.diff(labels[chosen.samples]) >= 0).all()
    np.testing.assert_array_equal(chosen.marks, np.arange(500))
    assert chosen.places(chosen.samples[[3, 77]]) == [3, 77]


def test_long_lists_are_thinned_and_keep_what_they_must(monkeypatch):
    monkeypatch.setattr(_listing, "MAX_LISTED", 100)
    monkeypatch.setattr(_listing, "MAX_MARKS", 20)
    labels = np.arange(1000) % 4
    always = [1, 2, 501]
    chosen = _listing.listing(labels, always)
    assert set(always) <= set(chosen.samples)
    assert 100 <= len(chosen.samples) <= 103
    assert len(chosen.marks) == 20
    assert (np.diff(chosen.marks) > 0).all()


def test_data_tell_each_sample_apart(photos):
    chosen = _listing.listing(photos.labels)
    data = _listing.listing_data(photos, chosen, named=False)
    labels = np.repeat(*data["runs"])
    np.testing.assert_array_equal(labels, photos.labels[data["ids"]])
    assert data["names"] is data["truth"] is data["marks"] is data["base"] is None
    sure = photos.proba[data["ids"], labels]
    np.testing.assert_allclose(np.array(data["sure"]) / 1000, sure, atol=5.1e-4)


def test_data_hold_classes_once(photos):
    about = Subject(
        *(photos.model, photos.X, photos.labels, photos.proba, photos.names),
        truth=np.array(["cat", "dog"])[np.arange(60) % 2],
    )
    chosen = _listing.listing(photos.labels)
    data = _listing.listing_data(about, chosen, named=True, base="x/", missing=[5])
    assert data["classes"] == ["cat", "dog"]
    assert data["truth"] == (chosen.samples % 2).tolist()
    assert data["names"] == [f"sample {index}" for index in chosen.samples]
    assert [chosen.samples[place] for place in data["unlinked"]] == [5]


def test_data_know_outliers(photos):
    outliers = np.zeros(60, dtype=bool)
    outliers[[4, 40]] = True
    about = Subject(
        *(photos.model, photos.X, photos.labels, photos.proba, photos.names), outliers=outliers
    )
    chosen = _listing.listing(photos.labels)
    places = _listing.listing_data(about, chosen, named=False)["outliers"]
    assert sorted(chosen.samples[places]) == [4, 40]


def test_links_lead_from_the_page_to_the_files(tmp_path):
    pictures, page = tmp_path / "my pictures", tmp_path / "results" / "one"
    (pictures / "a").mkdir(parents=True)
    page.mkdir(parents=True)
    for name in ("a/1.png", "2 #.png"):
        (pictures / name).write_bytes(b"")
    names = ["a/1.png", "gone.png", "2 #.png", "x\0y", "\udce9.png"]
    base, missing = _listing.linked(names, pictures, page)
    assert base == "../../my%20pictures/"
    assert missing == [1, 3, 4]
    assert os.path.samefile(page / base.replace("%20", " ") / names[0], pictures / names[0])
    assert _listing.linked(names, pictures, None)[0] == pictures.resolve().as_uri() + "/"
    assert _listing.linked(["gone.png"], pictures, page) == (None, [])
    assert _listing.linked(None, pictures, page) == (None, [])
    assert _listing.linked(names, None, page) == (None, [])


def decoded(address):
    content = base64.b64decode(address.split(",")[1])
    return np.asarray(Image.open(io.BytesIO(content)).convert("L")) / 255


def test_pictures_in_full_are_the_samples(photos):
    chosen = _listing.listing(photos.labels)
    full = _listing.full_pictures(photos, chosen, [7])
    assert sorted(full) == list(range(60))
    X = photos.X
    for place in (0, 31, 59):
        sample = X[chosen.samples[place]]
        back = decoded(full[place])
        assert back.shape == (40, 40)
        assert np.corrcoef(back.ravel(), sample.ravel())[0, 1] > 0.99


def test_pictures_in_full_keep_to_their_budget_and_begin_with_the_first(photos):
    chosen = _listing.listing(photos.labels)
    first = [44, 3]
    full = _listing.full_pictures(photos, chosen, first, budget=20_000)
    assert sum(map(len, full.values())) <= 20_000
    assert 2 < len(full) < 60
    assert set(chosen.places(first)) <= set(full)
    assert _listing.full_pictures(photos, chosen, first, budget=10) == {}


def test_what_the_sheet_holds_pixel_by_pixel_is_not_stored_again(photos):
    small = photos.X[:, :28, :28]
    model = TuckerClustering(3, random_state=0).fit(small)
    about = Subject(model, small, model.labels_, model.predict_proba(small), photos.names)
    assert _listing.full_pictures(about, _listing.listing(model.labels_), [1]) == {}


def test_samples_on_disk_are_read_for_the_cards_only(photos):
    da = pytest.importorskip("dask.array")
    X = da.from_array(photos.X, chunks=(20, 40, 40))
    about = Subject(photos.model, X, photos.labels, photos.proba, photos.names)
    chosen = _listing.listing(photos.labels)
    assert sorted(_listing.full_pictures(about, chosen, [9, 4])) == sorted(chosen.places([9, 4]))
