"""Rules for parameters and data: what passes, what is refused, in which words."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
from sklearn.base import BaseEstimator
from sklearn.exceptions import NotFittedError
from tests.cases import each

from tuckermix import _validation as validation
from tuckermix._records import StopReason
from tuckermix._validation import EVERY_ESTIMATOR, EVERY_MODEL, check_fields, is_positive, tuple_of


class Model(BaseEstimator):
    """An estimator that does nothing but check its input."""

    def fit(self, X, positive=False):
        X = validation.check_tensor(self, X, reset=True, positive=positive)
        self.seen_ = X
        return self


@each("value", [0, -1, 2.0, "2", None, True, np.True_, np.nan])
def test_no_integer(value):
    with pytest.raises(ValueError, match=r"The 'size' parameter of Model must be an integer >= 1"):
        validation.check_integer(value, "size", "Model")


@pytest.mark.parametrize("value", [1, 7, np.int32(7), np.uint8(7)])
def test_integers(value):
    result = validation.check_integer(value, "size", "Model")
    assert type(result) is int
    assert result == value
    assert validation.check_integer(0, "size", "Model", minimum=0) == 0


@each("value", [-1, "1", None, True, np.nan, np.inf, 1j])
def test_no_number(value):
    with pytest.raises(ValueError, match=r"The 'tol' parameter of Model must be a number >= 0"):
        validation.check_real(value, "tol", "Model")


def test_numbers():
    assert validation.check_real(0, "tol", "Model") == 0.0
    assert validation.check_real(np.float32(0.5), "tol", "Model") == 0.5
    with pytest.raises(ValueError, match="must be a number > 0"):
        validation.check_real(0, "tol", "Model", strict=True)


@pytest.mark.parametrize("value", ["c", None, 1, ["a"]])
def test_no_option(value):
    with pytest.raises(ValueError, match=r"must be one of 'a', 'b'. Got .* instead"):
        validation.check_option(value, "kind", "Model", ["a", "b"])


def test_options():
    assert validation.check_option("b", "kind", "Model", ["a", "b"]) == "b"


def test_random_states_repeat(seed):
    def draw(state):
        return validation.check_random_state(state).integers(2**62, size=3)

    for make in (int, np.random.SeedSequence, np.random.RandomState, np.random.default_rng):
        np.testing.assert_array_equal(draw(make(seed)), draw(make(seed)))
    assert (draw(None) != draw(None)).any()
    generator = np.random.default_rng(seed)
    assert validation.check_random_state(generator) is generator


def test_random_state_does_not_touch_the_global_one():
    before = np.random.get_state()[1].copy()  # noqa: NPY002
    validation.check_random_state(None).normal(size=5)
    np.testing.assert_array_equal(before, np.random.get_state()[1])  # noqa: NPY002


def test_no_random_state():
    with pytest.raises(ValueError, match=r"random_state must be >= 0\. Got -1"):
        validation.check_random_state(-1)
    with pytest.raises(ValueError, match="random_state must be None, an int"):
        validation.check_random_state("zero")


def test_float_types_follow_x(xp):
    for dtype in (xp.float32, xp.float64):
        assert Model().fit(xp.ones((3, 2, 2), dtype=dtype)).seen_.dtype == dtype
    for dtype in (xp.int32, xp.uint8, xp.bool):
        model = Model().fit(xp.ones((3, 2, 2), dtype=dtype))
        assert model.seen_.dtype == xp.float64
        assert float(xp.sum(model.seen_)) == 12.0


def test_fit_records_the_shape_of_a_sample(xp):
    model = Model().fit(xp.ones((3, 4, 2)))
    assert model.sample_shape_ == (4, 2)
    assert model.n_features_in_ == 4


def test_lists_and_frames_are_taken():
    pandas = pytest.importorskip("pandas")
    assert Model().fit([[1, 2], [3, 4]]).sample_shape_ == (2,)
    frame = pandas.DataFrame({"a": [1.0, 2.0], "b": [3.0, 4.0]})
    assert list(Model().fit(frame).feature_names_in_) == ["a", "b"]


def test_names_of_features_do_not_survive_a_fit_on_an_array(xp):
    pandas = pytest.importorskip("pandas")
    model = Model().fit(pandas.DataFrame({"a": [1.0, 2.0]}))
    model.fit(xp.ones((3, 2)))
    assert not hasattr(model, "feature_names_in_")


@each("bad", [float("nan"), float("inf"), -float("inf")])
def test_values_that_are_no_numbers(xp, bad):
    X = np.ones((3, 2, 2))
    X[1, 1, 0] = bad
    with pytest.raises(ValueError, match=r"contains (NaN|infinity)"):
        Model().fit(xp.asarray(X))


def test_large_values_are_no_infinity(xp):
    X = xp.asarray(np.full((3, 2), 1e308))  # the sum overflows, the entries do not
    with np.errstate(over="ignore"):
        assert Model().fit(X).n_features_in_ == 2


@each(
    "shape, text",
    [((3,), "1D array|at least 2 axes"), ((3, 0), "0 feature"), ((3, 2, 0), "0 feature")],
)
def test_shapes_that_hold_no_samples(xp, shape, text):
    with pytest.raises(ValueError, match=text):
        Model().fit(xp.ones(shape))


def test_too_few_samples(xp):
    with pytest.raises(ValueError, match=r"0 sample.*minimum of 1 is required"):
        Model().fit(xp.ones((0, 2)))


def test_complex_data(xp):
    with pytest.raises(ValueError, match="Complex data not supported"):
        Model().fit(xp.ones((3, 2), dtype=xp.complex128))


@pytest.mark.torch
@pytest.mark.parametrize("name", ["float16", "bfloat16"])
def test_half_precision_of_other_libraries_becomes_single(name):
    torch = pytest.importorskip("torch")
    X = torch.tensor([[1.5, 2.0], [3.0, 4.0]], dtype=getattr(torch, name))
    for found in (validation.check_tensor(Model(), X, reset=True), validation.as_tensor(X, "f")):
        assert found.dtype == torch.float32
        assert found.tolist() == X.tolist()


@pytest.mark.parametrize(("dtype", "wide"), [("float16", "float32"), ("longdouble", "float64")])
def test_other_precisions_become_those_that_compute(dtype, wide):
    X = np.array([[1.5, 2.0], [3.0, 4.0]], dtype=dtype)
    for found in (validation.check_tensor(Model(), X, reset=True), validation.as_tensor(X, "f")):
        assert found.dtype == np.dtype(wide)
        np.testing.assert_array_equal(found, X)


def test_many_small_integers_take_half_the_memory():
    few, many = np.ones((2, 3), np.uint8), np.broadcast_to(np.uint8(1), (21_000, 1000))
    assert validation.as_floating(few).dtype == np.float64
    assert validation.as_floating(many).dtype == np.float32
    assert validation.as_floating(many.astype(np.int32)).dtype == np.float64


def test_lazy_arrays_are_not_loaded_by_surprise():
    da = pytest.importorskip("dask.array")
    with pytest.raises(TypeError, match=r"Model cannot take a Dask array here: call X.compute"):
        Model().fit(da.ones((3, 2)))


def test_negative_values(xp):
    X = xp.asarray([[1.0, -1e-300], [0.0, 1.0]], dtype=xp.float64)
    with pytest.raises(ValueError, match="Negative values in data passed to Model"):
        Model().fit(X, positive=True)
    assert Model().fit(abs(X), positive=True).n_features_in_ == 2


def test_the_whole_shape_of_a_sample_is_compared(xp):
    model = Model().fit(xp.ones((3, 4, 3)))
    assert validation.check_tensor(model, xp.ones((5, 4, 3)), reset=False).shape == (5, 4, 3)
    for shape in [(5, 4, 2), (5, 3, 4), (5, 4), (5, 4, 3, 1)]:
        message = r"X has per-sample shape \(.*\), but this Model was fitted on .* \(4, 3\)"
        with pytest.raises(ValueError, match=message):
            validation.check_tensor(model, xp.ones(shape), reset=False)


def test_nothing_without_a_fit(xp):
    with pytest.raises(NotFittedError):
        validation.check_tensor(Model(), xp.ones((3, 2)), reset=False)


def test_libraries_are_not_mixed_between_fit_and_predict():
    strict = pytest.importorskip("array_api_strict")
    fitted, came = np.ones(2), strict.ones(2)
    validation.check_same_library(fitted, np.zeros(3), "Model")
    with pytest.raises(
        ValueError, match=r"to Model must use the same namespace and device.*but X is a"
    ):
        validation.check_same_library(came, fitted, "Model")
    da = pytest.importorskip("dask.array")
    validation.check_same_library(da.ones(3), fitted, "Model")
    with pytest.raises(ValueError, match=r"but X is a Dask array. Pass X chunk by chunk"):
        validation.check_same_library(da.ones(3), came, "Model")


def test_functions_take_tensors_and_lists(xp):
    assert validation.as_tensor([[1, 2]], "decompose").dtype == np.float64
    assert validation.as_tensor(xp.ones((2, 2), dtype=xp.float32), "f").dtype == xp.float32
    assert validation.as_tensor(xp.ones((2, 2), dtype=xp.int64), "f").dtype == xp.float64


def test_functions_refuse_what_is_no_tensor():
    with pytest.raises(ValueError, match="decompose takes real numbers, but X has dtype"):
        validation.as_tensor(np.array([["a", "b"]]), "decompose")
    with pytest.raises(ValueError, match=r"an array of shape .* at least 2 axes"):
        validation.as_tensor([1.0, 2.0], "decompose")
    with pytest.raises(ValueError, match="decompose needs at least one sample and feature"):
        validation.as_tensor(np.ones((2, 0)), "decompose")


@each(
    "given, expected",
    [
        (None, None),
        (3, (3, 3)),
        (100, (6, 5)),
        (0.8, 0.8),
        ((2, 5), (2, 5)),
        ([2, 5], (2, 5)),
        (np.array([2, 5]), (2, 5)),
        (np.int64(3), (3, 3)),
    ],
)
def test_every_form_of_ranks_is_understood(given, expected):
    assert validation.check_ranks(given, (6, 5), "Model") == expected


@each("bad", [0, -1, 1.0, 1.5, 0.0, True, "all", (2,), (2, 2, 2), (2, 0), (2, 2.5), {2: 3}])
def test_what_is_no_rank_is_refused_with_the_rule(bad):
    with pytest.raises(ValueError, match=r"The 'ranks' parameter of Model must be .* Got"):
        validation.check_ranks(bad, (6, 5), "Model")


def test_ranks_beyond_a_mode_name_the_mode():
    with pytest.raises(ValueError, match="rank 7 of feature mode 1 is larger than 5"):
        validation.check_ranks((6, 7), (6, 5), "Model")


def test_a_trailing_mode_of_size_one_needs_no_rank():
    assert validation.check_ranks((4,), (6, 1), "Model") == (4, 1)


def test_named_estimators_come_as_a_list_of_pairs():
    assert validation.check_pairs((("a", 1), ["b", 2]), "views", "Us") == [("a", 1), ("b", 2)]
    for wrong in ([], 3, [("a",)], [(1, 2)], ["ab"]):
        with pytest.raises(ValueError, match=r"'views' parameter of Us must be .* at least one"):
            validation.check_pairs(wrong, "views", "Us")
    with pytest.raises(ValueError, match=r"views, not numbers of clusters. Got \[2, 30\] instead"):
        validation.check_pairs([2, 30], "candidates", "AutoClustering")


FITTED = {
    "sample_shape_": (3, 2),
    "n_features_in_": 3,
    "n_clusters": 2,
    "labels_": np.array([0, 1, 1]),
    "memberships_": np.ones((3, 2)),
    "n_iter_": 0,
    "stop_reason_": StopReason.STALLED,
    "history_": [],
    "cost_": 1.5,
}


def test_what_fit_sets_passes_and_anything_else_does_not():
    check_fields(SimpleNamespace(**FITTED), EVERY_MODEL)
    for name, wrong in (
        ("sample_shape_", (3, True)),
        ("sample_shape_", ()),
        ("n_features_in_", 2),
        ("labels_", np.array([0, 2, 1])),
        ("labels_", np.array([0, -2, 1])),  # -1 is left out
        ("labels_", np.array([0.0, 1.0, 1.0])),
        ("labels_", np.array([1])),
        ("memberships_", None),
        ("n_iter_", -1),
        ("stop_reason_", "stalled"),
        ("history_", ()),
        ("cost_", "x"),
    ):
        with pytest.raises(ValueError, match=name):
            check_fields(SimpleNamespace(**{**FITTED, name: wrong}), EVERY_MODEL)
    outliers = {**FITTED, "outliers": "label", "labels_": np.array([0, -1, 1])}
    check_fields(SimpleNamespace(**outliers), EVERY_MODEL)


def test_nothing_may_be_missing():
    for name in EVERY_ESTIMATOR:
        left = {key: value for key, value in FITTED.items() if key != name}
        with pytest.raises(ValueError, match=f"it has no {name}"):
            check_fields(SimpleNamespace(**left), EVERY_ESTIMATOR)


def test_rules():
    assert is_positive(0.5)
    assert not any(map(is_positive, (0.0, -1.0, 1, float("inf"), float("nan"), "1")))
    rule = tuple_of(float)
    assert rule((0.0, 1.0))
    assert not any(map(rule, ([0.0, 1.0], (0, 1), (0.0,), (0.0, float("nan")), None)))
