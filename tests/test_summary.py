"""What is said of a fit: figures against independent truths, words as people read them."""

import json

import numpy as np
import pytest

from tuckermix import (
    AutoClustering,
    MultiViewClustering,
    TuckerClustering,
    __version__,
    load,
    save,
    summary,
)
from tuckermix.datasets import make_tensor_clusters


@pytest.fixture(scope="module")
def data():
    return make_tensor_clusters(n_samples=60, n_clusters=3, shape=(6, 5), random_state=0)


@pytest.fixture(scope="module")
def model(data):
    return TuckerClustering(3, ranks=(2, 3), random_state=0).fit(data.X)


@pytest.fixture(scope="module")
def found(data, model):
    proba = model.predict_proba(data.X)
    return summary.summarize_fit(model, data.X, proba, truth=data.labels, seconds=1.23456789)


def test_figures_are_those_of_the_fit(data, model, found):
    assert (found.n_samples, found.sample_shape, found.dtype) == (60, [6, 5], "float64")
    assert (found.n_clusters, found.n_components) == (3, model.n_components_)
    assert found.cluster_sizes == [int((model.labels_ == k).sum()) for k in range(3)]
    assert found.ranks == [2, 3]
    assert found.cost == model.cost_
    assert found.mean_confidence == pytest.approx(model.predict_proba(data.X).max(axis=1).mean())
    assert found.converged is model.stop_reason_.converged
    assert found.seconds == 1.234568


def test_scores_are_there_only_beside_known_classes(data, model, found):
    from sklearn.metrics import normalized_mutual_info_score

    expected = normalized_mutual_info_score(data.labels, model.labels_, average_method="max")
    assert found.nmi == pytest.approx(expected)
    assert found.accuracy == 1.0  # planted clusters without noise
    bare = summary.summarize_fit(model, data.X, model.predict_proba(data.X))
    assert bare.accuracy is bare.nmi is bare.seconds is None


def test_a_summary_is_plain_json(found):
    assert json.loads(json.dumps(found.to_dict(), allow_nan=False)) == found.to_dict()


def test_an_unknown_gap_is_none(data, model):
    class Unsure:
        gap_ = float("nan")

        def __getattr__(self, name):
            return getattr(model, name)

    assert summary.summarize_fit(Unsure(), data.X, model.predict_proba(data.X)).gap is None


def test_settings_keep_their_types():
    model = TuckerClustering(
        np.int64(4), ranks=(2, np.int32(3)), tol=1e-3, random_state=np.random.RandomState(0)
    )
    values = summary.settings(model)
    assert values["n_clusters"] == 4
    assert type(values["n_clusters"]) is int
    assert values["ranks"] == [2, 3]
    assert values["tol"] == 1e-3
    assert values["n_components"] is None
    assert values["assign_labels"] == "graph"
    assert values["random_state"].startswith("RandomState")
    assert list(values) == sorted(values)


@pytest.mark.parametrize("seed", range(3))
def test_variance_explained_is_that_of_the_reconstruction(seed):
    X = np.random.default_rng(seed).random((40, 6, 5))
    model = TuckerClustering(3, ranks=(2, 2), random_state=0).fit(X)
    rebuilt = model.inverse_transform(model.memberships_)
    expected = 1 - ((X - rebuilt) ** 2).sum() / ((X - X.mean(axis=0)) ** 2).sum()
    np.testing.assert_allclose(summary.variance_explained(model, X), expected, rtol=1e-6)


def test_samples_without_variance_are_explained():
    class Perfect:
        cost_ = 0.0

    assert summary.variance_explained(Perfect(), np.ones((4, 2, 2))) == 1.0


def test_versions_and_machine_are_said():
    found = summary.versions()
    assert found["tuckermix"] == __version__
    assert found["numpy"] == np.__version__
    assert set(summary.versions(["numpy", "no-such-package"])) == {"python", "tuckermix", "numpy"}
    assert "cores" in summary.machine()


@pytest.mark.parametrize(
    ("seconds", "text"), [(0.0123, "12 ms"), (1.25, "1.2 s"), (119, "119.0 s"), (600, "10.0 min")]
)
def test_durations_read_well(seconds, text):
    assert summary.duration(seconds) == text


def test_names_must_be_as_many_as_samples():
    with pytest.raises(ValueError, match="names has 2 entries, but X has 3 samples"):
        summary.sample_names(["a", "b"], 3)


def test_names_are_made_where_none_are_given():
    assert summary.sample_names(None, 2) == ["sample 0", "sample 1"]


def test_names_that_are_no_text_are_shown_with_escapes_and_stay_different():
    names = [name.decode("utf-8", "surrogateescape") for name in (b"caf\xe9", b"caf\xe8")]
    assert summary.sample_names([*names, "\ud800"], 3) == ["caf\\udce9", "caf\\udce8", "\\ud800"]


def test_unknown_classes_are_left_out_of_scores():
    from tuckermix.summary import known, scores

    truth = np.array(["a", "", "b", "b", ""])
    labels = np.array([0, 1, 1, 1, 0])
    assert known(truth).tolist() == [True, False, True, True, False]
    assert known([1.0, np.nan]).tolist() == [True, False]
    assert known([1, 2]).all()
    assert scores(truth, labels) == {"ac": 1.0, "nmi": pytest.approx(1.0)}


def test_soft_labels_are_called_what_they_are():
    """Votes are no probabilities unless they were calibrated."""
    assert "votes" in summary.surety({"calibrate": False})[0]
    assert "not a probability" in summary.surety({})[1]
    name, meaning = summary.surety({"calibrate": True})
    assert "probability" in name
    assert "independent fit agrees" in meaning


def test_names_of_clusters_begin_empty_and_stay_with_a_stream(tmp_path):
    rng = np.random.default_rng(0)
    X = np.repeat(np.eye(6)[:3], 20, axis=0) + 0.05 * rng.standard_normal((60, 6))
    stream = TuckerClustering(3, random_state=0).partial_fit(X)
    for model in (
        TuckerClustering(3, random_state=0).fit(X),
        MultiViewClustering(n_clusters=3, random_state=0).fit(X),
        AutoClustering(3, random_state=0).fit(X),
        stream,
    ):
        assert model.cluster_names_ == {}
    stream.cluster_names_ = {0: "first"}
    assert stream.partial_fit(X).cluster_names_ == {0: "first"}
    save(stream, tmp_path / "model.tuckermix")
    assert load(tmp_path / "model.tuckermix").cluster_names_ == {0: "first"}
    assert stream.fit(X).cluster_names_ == {}
