import numpy as np
import pytest
from tests.cases import each

from tuckermix.datasets import make_dynamic_textures


@pytest.mark.parametrize("seed", range(3))
def test_shape_range_balance_and_repetition(seed):
    settings = {"n_samples": 14, "n_classes": 3, "shape": (9, 7), "n_frames": 5}
    data = make_dynamic_textures(**settings, random_state=seed)
    assert data.X.shape == (14, 5, 9, 7)
    assert data.X.dtype == np.float32
    assert 0 <= data.X.min() < 0.4
    assert 0.6 < data.X.max() <= 1
    assert sorted(np.bincount(data.labels)) == [4, 5, 5]
    assert np.array_equal(data.X, make_dynamic_textures(**settings, random_state=seed).X)
    X, labels = make_dynamic_textures(**settings, random_state=seed, return_X_y=True)
    assert np.array_equal(X, data.X)
    assert np.array_equal(labels, data.labels)


def test_the_name_says_that_it_is_a_stand_in():
    data = make_dynamic_textures(random_state=0)
    assert data.name.startswith("dynamic-texture stand-in")
    assert "not DynTex++" in data.description


@pytest.mark.parametrize("seed", range(5))
def test_a_class_moves_in_a_space_of_its_states(seed):
    data = make_dynamic_textures(30, 2, 12, 10, n_states=4, noise=0, shift=0, random_state=seed)
    for k in range(2):
        frames = data.X[data.labels == k].reshape(-1, 144).astype(float)
        inside = np.all((frames > 0) & (frames < 1), axis=1)  # where nothing was clipped
        values = np.linalg.svd(frames[inside] - frames[inside].mean(axis=0), compute_uv=False)
        assert values[3] > 1e-2 * values[0]
        assert values[4] < 1e-5 * values[0]


@pytest.mark.parametrize("seed", range(5))
def test_motion_is_stationary_and_continuous(seed):
    X = make_dynamic_textures(200, 1, 8, 40, noise=0, shift=0, random_state=seed).X.astype(float)
    spread = X.std(axis=0).mean(axis=(1, 2))
    assert spread.max() < 1.3 * spread.min()  # neither dying out nor growing
    centred = X - X.mean(axis=(0, 1))
    next_frame = np.mean(centred[:, 1:] * centred[:, :-1]) / np.mean(centred**2)
    assert 0.2 < next_frame < 1


@pytest.mark.parametrize("seed", range(3))
def test_classes_can_be_told_apart_by_their_frames(seed):
    """Videos of one class share a subspace; those of another leave most of it."""
    data = make_dynamic_textures(40, 2, 16, 16, shift=0, random_state=seed)
    halves = [data.X[data.labels == k].reshape(20, 16, 256).astype(float) for k in range(2)]
    for k in range(2):
        frames = halves[k][:10].reshape(-1, 256)
        mean = frames.mean(axis=0)
        basis = np.linalg.svd(frames - mean, full_matrices=False)[2][:8]
        errors = [
            np.mean((half[10:] - mean - (half[10:] - mean) @ basis.T @ basis) ** 2)
            for half in halves
        ]
        assert errors[k] < 0.5 * errors[1 - k]


@each(
    "parameters, message",
    [
        ({"n_samples": 3}, "n_samples=3 must be >= n_classes=4."),
        ({"n_classes": 0}, "'n_classes' parameter of make_dynamic_textures must be an integer"),
        (
            {"shape": (1, 2, 3)},
            "'shape' parameter of make_dynamic_textures must be an integer or a",
        ),
        ({"shape": 0}, "'shape' parameter of make_dynamic_textures must be an integer >= 1"),
        ({"n_frames": 0}, "'n_frames' parameter of make_dynamic_textures"),
        ({"n_states": 3}, "'n_states' parameter of make_dynamic_textures must be even. Got 3"),
        ({"shift": -1}, "'shift' parameter of make_dynamic_textures must be an integer >= 0"),
        ({"noise": -0.1}, "'noise' parameter of make_dynamic_textures must be a number >= 0"),
    ],
)
def test_refused(parameters, message):
    with pytest.raises(ValueError, match=message):
        make_dynamic_textures(**parameters)
