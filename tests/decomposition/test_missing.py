"""Gaps: filled as well as the model allows, judged by hidden entries, the same for new samples."""

from dataclasses import replace

import numpy as np
import pytest
from sklearn.metrics import adjusted_rand_score
from tests.cases import each

from tuckermix import TuckerClustering, load, save
from tuckermix._array_api import to_numpy
from tuckermix.datasets import make_tensor_clusters
from tuckermix.decomposition import decompose
from tuckermix.decomposition.missing import Filling, fill_gaps, filling_of, impute, split_gaps


def low_rank(seed, n_samples=200, shape=(10, 9), n_directions=4, noise=0.01):
    """Return samples of a Tucker subspace with a mean far from zero, and a little noise."""
    rng = np.random.default_rng(seed)
    factors = [np.linalg.qr(rng.standard_normal((size, 4)))[0] for size in shape]
    directions = rng.standard_normal((n_directions, 4, 4))
    small = np.tensordot(rng.standard_normal((n_samples, n_directions)), directions, 1)
    X = np.einsum("mab,ia,jb->mij", small + 3.0, *factors)
    return X + noise * rng.standard_normal(X.shape)


def gaps_of(kind, X, seed):
    rng = np.random.default_rng(seed + 100)
    observed = np.ones(X.shape, dtype=bool)
    if kind == "entries":
        observed = rng.random(X.shape) < 0.7
    elif kind == "half":
        observed = rng.random(X.shape) < 0.5
    elif kind == "rows":
        for sample, first in enumerate(rng.integers(0, X.shape[1] - 2, size=len(X))):
            observed[sample, first : first + 3] = False
    else:  # one pixel is missing everywhere, and half the samples miss another
        observed[:, 3, 3] = False
        observed[: len(X) // 2, 5, 5] = False
    return observed


def means_of(X, observed):
    counts = np.maximum(observed.sum(axis=0), 1)
    return np.where(observed, X, 0).sum(axis=0) / counts


@pytest.mark.parametrize("kind", ["entries", "half", "rows"])
def test_gaps_are_filled_nearly_to_the_noise(kind, seed):
    X = low_rank(seed)
    observed = gaps_of(kind, X, seed)
    filled, report, _ = impute(
        np.where(observed, X, 1e3), observed, 5, (4, 4), np.random.default_rng(seed)
    )
    np.testing.assert_array_equal(filled[observed], X[observed])
    error = np.sqrt(np.mean((filled - X)[~observed] ** 2))
    means = np.sqrt(np.mean((means_of(X, observed) - X)[~observed] ** 2))
    assert error < 0.1 * means
    # Samples with hidden entries have larger gaps than the others: their error is an upper bound.
    assert 0.8 * error < report.held_out_error < 0.2 * means
    assert report.held_out_error_of_means == pytest.approx(means, rel=0.2)
    assert report.n_missing == np.sum(~observed)
    assert report.n_hidden > 0


def test_a_pixel_that_nobody_has_is_filled_with_something_finite(seed):
    X = low_rank(seed)
    observed = gaps_of("pixels", X, seed)
    filled, report, _ = impute(X.copy(), observed, 5, (4, 4), np.random.default_rng(seed))
    assert np.all(np.isfinite(filled))
    half = slice(0, len(X) // 2)
    assert np.sqrt(np.mean((filled - X)[half, 5, 5] ** 2)) < 0.1 * np.std(X[:, 5, 5])
    assert report.n_missing == len(X) + len(X) // 2


def test_more_components_than_the_data_bear_do_no_harm(seed):
    X = low_rank(seed, n_samples=60, noise=0.2)
    observed = gaps_of("rows", X, seed)
    errors = []
    for n_components in (5, 40):
        filled, _, _ = impute(
            X.copy(), observed, n_components, (10, 9), np.random.default_rng(seed)
        )
        errors.append(np.sqrt(np.mean((filled - X)[~observed] ** 2)))
    assert errors[1] < 1.5 * errors[0]


@pytest.mark.parametrize("unit", [1e-30, 1e30])
def test_the_unit_of_the_samples_does_not_matter(unit):
    X = low_rank(0)
    observed = gaps_of("entries", X, 0)
    expected, _, _ = impute(X.copy(), observed, 5, (4, 4), np.random.default_rng(0))
    found, _, _ = impute(X * unit, observed, 5, (4, 4), np.random.default_rng(0))
    np.testing.assert_allclose(found / unit, expected, rtol=1e-5, atol=1e-5)


def moved(filling, xp):
    """Return what fills gaps in another array library."""
    fields = filling.to_dict()
    share = fields.pop("own_share")
    return Filling(
        **{name: xp.asarray(to_numpy(each)) for name, each in fields.items()}, own_share=share
    )


def least_squares(x, seen, filling):
    """Solve for the offsets of one sample with a dense system."""
    D, mean = filling.directions, filling.mean
    A, b = D[seen], (x - mean)[seen]
    return np.linalg.solve(A.T @ A + np.diag(filling.ridge), A.T @ b)


def test_new_samples_are_filled_by_regularised_least_squares(xp, seed):
    X = low_rank(seed)
    fit = decompose(X, 5, 4, random_state=0)
    filling = filling_of(fit)
    np.testing.assert_allclose(filling.directions.T @ filling.directions, np.eye(4), atol=1e-10)
    observed = gaps_of("half", X, seed)[:20]
    filled = fill_gaps(xp.asarray(X[:20]), xp.asarray(observed), moved(filling, xp))
    for x, seen, found in zip(X[:20], observed, to_numpy(filled), strict=True):
        x, seen, found = x.ravel(), seen.ravel(), found.ravel()
        rebuilt = filling.mean + filling.directions @ least_squares(x, seen, filling)
        np.testing.assert_allclose(found[~seen], rebuilt[~seen], atol=1e-6)
        np.testing.assert_array_equal(found[seen], x[seen])


def clouds(seed, n_samples=300, noise=0.3):
    """Return samples in tight groups, of which a block of rows says little alone."""
    rng = np.random.default_rng(seed)
    centres = rng.standard_normal((30, 12, 8))
    X = centres[rng.integers(30, size=n_samples)]
    return X + noise * rng.standard_normal(X.shape)


@pytest.fixture
def blocks_missing(seed):
    X = clouds(seed)
    observed = np.ones(X.shape, dtype=bool)
    for sample, first in enumerate(np.random.default_rng(seed).integers(0, 9, size=len(X))):
        observed[sample, first : first + 4] = False
    return X, observed


def test_neighbours_help_where_blocks_are_missing(blocks_missing, seed):
    X, observed = blocks_missing
    filled, report, filling = impute(X.copy(), observed, 10, (12, 8), np.random.default_rng(seed))
    assert report.own_share == filling.own_share < 1.0
    alone = fill_gaps(X.copy(), observed, replace(filling, own_share=1.0))
    error, without = (np.sqrt(np.mean((each - X)[~observed] ** 2)) for each in (filled, alone))
    assert error < 0.97 * without
    assert report.held_out_error < report.held_out_error_of_means


def test_new_samples_take_the_mean_of_their_neighbours(blocks_missing, seed, xp):
    X, observed = blocks_missing
    _, _, filling = impute(X.copy(), observed, 10, (12, 8), np.random.default_rng(seed))
    new, seen = clouds(seed, 310)[-10:], observed[:10]
    filled = fill_gaps(xp.asarray(new), xp.asarray(seen), moved(filling, xp))

    def unit(rows):
        rows = rows * filling.weights
        return rows / np.linalg.norm(rows, axis=-1, keepdims=True)

    for x, known, found in zip(new, seen, to_numpy(filled), strict=True):
        x, known, found = x.ravel(), known.ravel(), found.ravel()
        own = least_squares(x, known, filling)
        likeness = unit(filling.references) @ unit(own)
        near = np.argsort(-likeness)[:6]
        mean = likeness[near] @ filling.references[near] / likeness[near].sum()
        offsets = filling.own_share * own + (1 - filling.own_share) * mean
        rebuilt = filling.mean + filling.directions @ offsets
        np.testing.assert_allclose(found[~known], rebuilt[~known], atol=1e-5)


def test_many_samples_look_among_some_of_them(seed):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((20, 6, 4))[rng.integers(20, size=4500)]
    X = X + 0.1 * rng.standard_normal(X.shape)
    observed = np.ones(X.shape, dtype=bool)
    for sample, first in enumerate(rng.integers(0, 5, size=len(X))):
        observed[sample, first : first + 2] = False
    filled, report, filling = impute(X.copy(), observed, 6, (6, 4), np.random.default_rng(seed))
    assert report.own_share < 1.0
    assert filling.references.shape == (4096, report.n_directions)
    again = fill_gaps(X[:50].copy(), observed[:50], filling)
    error, means = (
        np.sqrt(np.mean((each - X[:50])[~observed[:50]] ** 2)) for each in (again, 0 * X[:50])
    )
    assert error < 0.9 * means
    assert np.all(np.isfinite(filled))


@each(
    "change, message",
    [
        ({"mean": np.zeros(3)}, "mean has shape"),
        ({"ridge": np.zeros((2, 2))}, "ridge has shape"),
        ({"directions": np.float64(1.0)}, "directions is "),
        ({"references": np.zeros((5, 9))}, "references has shape"),
        ({"own_share": 1.5}, "own_share is 1.5"),
        ({"own_share": "all"}, "own_share is 'all'"),
    ],
)
def test_made_up_parts_are_refused(change, message):
    parts = {
        "mean": np.zeros(6),
        "directions": np.zeros((6, 2)),
        "ridge": np.ones(2),
        "weights": np.ones(2),
        "references": np.zeros((5, 2)),
        "own_share": 0.5,
    }
    Filling(**parts).check(6)
    with pytest.raises(ValueError, match=message):
        Filling(**{**parts, **change}).check(6)


def test_a_model_with_something_else_to_fill_gaps_is_refused(tmp_path, with_gaps):
    data, observed = with_gaps
    model = TuckerClustering(4, missing="impute", random_state=0)
    model.fit(np.where(observed, data.X, np.nan))
    model._filling_ = np.zeros(3)
    save(model, tmp_path / "model")
    with pytest.raises(ValueError, match="its filling of gaps is no Filling"):
        load(tmp_path / "model")


@pytest.fixture
def with_gaps(seed):
    data = make_tensor_clusters(n_samples=160, shape=(8, 7), n_clusters=4, random_state=seed)
    observed = np.random.default_rng(seed).random(data.X.shape) < 0.7
    return data, observed


def test_the_estimator_takes_nan_and_masks(with_gaps, seed):
    data, observed = with_gaps
    X = np.where(observed, data.X, np.nan)
    model = TuckerClustering(4, missing="impute", random_state=seed).fit(X)
    assert adjusted_rand_score(data.labels, model.labels_) > 0.9
    np.testing.assert_array_equal(model.predict(X), model.labels_)
    np.testing.assert_allclose(model.transform(X), model.memberships_, atol=1e-8)
    np.testing.assert_array_equal(np.argmax(model.predict_proba(X), axis=1), model.labels_)
    filled = model.fill_missing(X)
    np.testing.assert_array_equal(filled[observed], data.X[observed])
    rebuilt = model.inverse_transform(model.memberships_)
    assert model.cost_ == pytest.approx(0.5 * np.sum((filled - rebuilt) ** 2), rel=1e-6)
    assert model.imputation_.held_out_error < model.imputation_.held_out_error_of_means
    masked = np.ma.MaskedArray(np.where(observed, data.X, 7.0), mask=~observed)
    again = TuckerClustering(4, missing="impute", random_state=seed).fit(masked)
    np.testing.assert_array_equal(again.labels_, model.labels_)
    np.testing.assert_array_equal(again.predict(masked), model.labels_)


def test_without_gaps_the_option_changes_nothing(with_gaps):
    data, _ = with_gaps
    plain = TuckerClustering(4, random_state=0).fit(data.X)
    ready = TuckerClustering(4, missing="impute", random_state=0).fit(data.X)
    np.testing.assert_array_equal(ready.labels_, plain.labels_)
    assert ready.cost_ == plain.cost_
    assert not hasattr(ready, "imputation_")
    holes = np.random.default_rng(1).random(data.X.shape) < 0.3
    again = ready.predict(np.where(holes, np.nan, data.X))
    assert adjusted_rand_score(again, ready.labels_) > 0.9


def test_a_second_fit_forgets_the_gaps_of_the_first(with_gaps):
    data, observed = with_gaps
    model = TuckerClustering(4, missing="impute", random_state=0)
    model.fit(np.where(observed, data.X, np.nan))
    model.set_params(missing=None).fit(data.X)
    assert not hasattr(model, "imputation_")
    with pytest.raises(ValueError, match="contains NaN"):
        model.predict(np.where(observed, data.X, np.nan))


def test_saved_models_fill_gaps_too(with_gaps, tmp_path):
    data, observed = with_gaps
    X = np.where(observed, data.X, np.nan)
    model = TuckerClustering(4, missing="impute", random_state=0).fit(X)
    save(model, tmp_path / "model")
    again = load(tmp_path / "model")
    np.testing.assert_array_equal(again.predict(X), model.labels_)
    assert again.imputation_.held_out_error == model.imputation_.held_out_error


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_other_libraries_agree_with_numpy(xp, dtype, with_gaps):
    data, observed = with_gaps
    X = np.where(observed, data.X, np.nan)
    expected = TuckerClustering(4, missing="impute", random_state=0).fit(X)
    given = xp.asarray(X, dtype=getattr(xp, dtype))
    found = TuckerClustering(4, missing="impute", random_state=0).fit(given)
    assert adjusted_rand_score(to_numpy(found.labels_), expected.labels_) > 0.95
    tolerance = 1e-6 if dtype == "float64" else 1e-2
    np.testing.assert_allclose(
        to_numpy(found.fill_missing(given)), expected.fill_missing(X), atol=tolerance
    )


def test_dask_arrays_are_refused_in_a_fit():
    da = pytest.importorskip("dask.array")
    model = TuckerClustering(4, missing="impute")
    with pytest.raises(TypeError, match="needs the samples in memory to learn"):
        model.fit(da.ones((20, 4, 4), chunks=5))


def test_a_fitted_model_fills_dask_arrays(with_gaps, seed):
    da = pytest.importorskip("dask.array")
    data, observed = with_gaps
    X = np.where(observed, data.X, np.nan)
    model = TuckerClustering(4, missing="impute", random_state=seed).fit(X)
    lazy = da.from_array(X, chunks=(30, 5, 7))
    np.testing.assert_allclose(model.fill_missing(lazy).compute(), model.fill_missing(X), atol=1e-8)
    np.testing.assert_array_equal(model.predict(lazy).compute(), model.labels_)
    np.testing.assert_allclose(
        model.predict_proba(lazy).compute(), model.predict_proba(X), atol=1e-8
    )


def test_samples_without_any_entry_are_refused(with_gaps):
    X = with_gaps[0].X.copy()
    X[7] = np.nan
    with pytest.raises(ValueError, match="Sample 7 has no observed entry"):
        split_gaps(X, "TuckerClustering")


def test_lists_integers_and_whole_samples_pass_through():
    X, observed = split_gaps([[1.0, 2.0], [3.0, np.nan]], "TuckerClustering")
    np.testing.assert_array_equal(X, [[1.0, 2.0], [3.0, 0.0]])
    np.testing.assert_array_equal(observed, [[True, True], [True, False]])
    assert split_gaps(np.ones((2, 3)), "TuckerClustering")[1] is None
    whole = np.ma.MaskedArray(np.arange(6).reshape(2, 3), mask=np.eye(2, 3))
    np.testing.assert_array_equal(
        split_gaps(whole, "TuckerClustering")[1], ~np.eye(2, 3, dtype=bool)
    )


@pytest.mark.filterwarnings("ignore:Only .* of n_clusters", "ignore:The cost of numbers")
def test_gaps_of_constant_samples_get_the_constant():
    # Rounding alone is left of these samples: it makes no directions, and no warnings.
    for value in (0.1, -7.7, -1e200, 1e30):
        X = np.full((12, 16, 16), value)
        X[::3, 2, 2] = np.nan
        model = TuckerClustering(3, missing="impute", random_state=0).fit(X)
        np.testing.assert_allclose(model.fill_missing(X), value)
