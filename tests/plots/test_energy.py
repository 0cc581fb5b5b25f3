import numpy as np
import pytest
from tuckermix.plots.energy import mode_spectra

from tuckermix.plots import EnergyDisplay


@pytest.mark.parametrize("shape", [(50, 6), (30, 5, 7), (20, 3, 4, 5)])
def test_spectra_are_those_of_the_centred_unfoldings(shape):
    X = np.random.default_rng(0).normal(size=shape) + 5
    centred = X - X.mean(axis=0)
    for mode, spectrum in enumerate(mode_spectra(X)):
        unfolded = np.moveaxis(centred, mode + 1, 0).reshape(shape[mode + 1], -1)
        np.testing.assert_allclose(spectrum, np.linalg.svd(unfolded, compute_uv=False), rtol=1e-9)


def test_shares_grow_to_one(digits, model):
    display = EnergyDisplay.from_estimator(model, digits[0])
    assert len(display.lines_) == 2
    for line in display.lines_:
        shares = line.get_ydata()
        assert (np.diff(shares) >= -1e-12).all()
        np.testing.assert_allclose(shares[-1], 1)
    assert "rings mark the ranks" in display.ax_.get_title()


def test_singular_values_on_a_log_scale(digits):
    display = EnergyDisplay.from_array(digits[0][:, 1:7, 1:7], values="singular values")
    assert display.ax_.get_yscale() == "log"
    assert "rings" not in display.ax_.get_title()


def test_constant_data_have_no_energy_to_lose():
    display = EnergyDisplay.from_array(np.ones((5, 3, 4)))
    assert (display.lines_[0].get_ydata() == 1).all()


def test_option_is_checked(digits):
    with pytest.raises(ValueError, match="'values' parameter of EnergyDisplay must be one of"):
        EnergyDisplay.from_array(digits[0], values="power")
