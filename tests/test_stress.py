"""The short versions of the long assaults in `stress`, and their own mistakes."""

import os
import shutil
import subprocess
import sys
import time

import pytest

pytest.importorskip("typer")
pytest.importorskip("jinja2")
pytest.importorskip("PIL")
if os.name != "posix":
    pytest.skip("signals as on POSIX systems", allow_module_level=True)

from stress import fits, interrupts
from tests.cases import each
from threadpoolctl import threadpool_limits


def hold(first, count):
    """Check fits in a process of their own.

    Warnings are a process's: what other tests leave behind, in threads or in the buffers of BLAS,
    whose kernels also multiply what they do not use, would be taken for a warning of these fits.
    """
    command = [sys.executable, "-m", "stress.fits", "--count", str(count), "--first", str(first)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=240)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.startswith(f"{count} of {count} fits hold")


# 5186: samples that are as near to two centres.
@pytest.mark.parametrize(
    ("first", "count"),
    [(0, 5), *(pytest.param(n, 40, marks=pytest.mark.slow) for n in (10, 5180))],
)
def test_random_fits_hold_what_is_promised(first, count):
    hold(first, count)


@pytest.mark.slow
@each("seed", [1825, 3154, 3987, 4459, 4741, 9869, 105332])
def test_no_label_is_lost_to_rounding(seed):
    # Argmax: components raised by less than the rounding of float32, or that share a sample; graph:
    # landmarks that are much nearer to each other than to their mean; subspace: centres likewise.
    # 105332: one-hot rows with copies, all of them at the same distance from each other.
    hold(seed, 1)


@each("seed", [101890, 102716])
def test_the_joint_solver_takes_one_component_and_long_modes(seed):
    # One component has no spread to tell the scale by; a slope of rounding had a negative square.
    hold(seed, 1)


def test_random_fits_are_of_many_kinds():
    drawn = [fits.draw(seed) for seed in range(200)]
    assert {X.ndim for X, _ in drawn} == {2, 3, 4}
    assert {X.dtype.name for X, _ in drawn} == {"float32", "float64", "int64", "int8", "bool"}
    for name, count in (("solver", 3), ("init", 3), ("n_clusters", 8)):
        assert len({parameters[name] for _, parameters in drawn}) == count
    assert len({str(parameters["assign_labels"])[:5] for _, parameters in drawn}) == 4


@pytest.mark.parametrize("attribute", ["labels_", "cost_", "memberships_"])
def test_random_fits_notice_what_must_not_happen(monkeypatch, attribute):
    fit = fits.TuckerClustering.fit

    def spoilt(model, X):
        fit(model, X)
        value = getattr(model, attribute)
        wrong = 1 - value if attribute == "labels_" else value * float("nan")
        setattr(model, attribute, wrong)
        return model

    monkeypatch.setattr(fits.TuckerClustering, "fit", spoilt)
    with pytest.raises(fits.Broken):
        fits.check(1)


@pytest.fixture(scope="module")
def assault(tmp_path_factory):
    with threadpool_limits(2, user_api="blas"):
        yield interrupts.Assault(tmp_path_factory.mktemp("assault"))


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.skipif(
    "TUCKERMIX_STRESS" not in os.environ,
    reason="strikes at random moments, so that it need not fail twice: make stress runs it",
)
def test_interrupts_at_random_moments(assault):
    ended = [assault.run(seed) for seed in range(60)]
    assert {kind for kind, cut in ended if cut} == set(interrupts.KINDS)


@pytest.mark.slow
def test_kill_9_of_both_commands_at_random_moments():
    # In a process of its own: it forks, which libraries with threads that other tests load resent.
    command = [sys.executable, "-m", "stress.kills", "--count", "5", "--first", "1"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=240)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "0 failures" in done.stdout


def test_an_interrupt_is_raised_and_the_handlers_stay():
    assert interrupts.interrupted(lambda: time.sleep(60), 0.01)
    assert not interrupts.interrupted(lambda: None, 60)


@pytest.mark.slow
def test_the_assault_notices_what_must_not_happen(assault, monkeypatch):
    out = assault.fresh() / "made" / "out"

    def half(place, ranks="4x4"):
        shutil.copytree(assault.old_results, out, dirs_exist_ok=True)
        (out / "labels.csv").write_text("half")
        return interrupts.INTERRUPTED

    monkeypatch.setattr(assault, "cluster", half)
    with pytest.raises(interrupts.Broken, match="results of two runs"):
        assault.check_cluster(60, seed=1)
    monkeypatch.setattr(assault, "cluster", lambda place: (out / "x").touch() or 0)
    with pytest.raises(interrupts.Broken, match="stray or missing files"):
        assault.check_cluster(60, seed=1)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["fits", "interrupts", "kills"])
def test_the_commands_explain_themselves(name):
    command = [sys.executable, "-m", f"stress.{name}", "--help"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert "--count" in done.stdout
