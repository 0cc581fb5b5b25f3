"""Real runs of ``tuckermix cluster`` and ``predict`` on every kind of input."""

import contextlib
import csv
import json
import os
import resource
import shutil
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

from tuckermix.metrics import clustering_accuracy

FILES = {"labels.csv", "model.tuckermix", "report.html", "summary.json"}


def read_labels(path):
    with open(path, newline="") as stream:
        return list(csv.DictReader(stream))


def check_results(out, planted, n_samples=60):
    """Check the four files against each other and against the planted classes."""
    assert {path.name for path in out.iterdir()} == FILES
    rows = read_labels(out / "labels.csv")
    assert len(rows) == n_samples
    labels = np.array([int(row["label"]) for row in rows])
    proba = np.array([[float(row[f"p{k}"]) for k in range(3)] for row in rows])
    np.testing.assert_allclose(proba.sum(axis=1), 1, atol=1e-4)
    np.testing.assert_array_equal(proba.argmax(axis=1), labels)
    np.testing.assert_allclose([float(row["confidence"]) for row in rows], proba.max(axis=1))
    assert clustering_accuracy(planted[1], labels) == 1
    summary = json.loads((out / "summary.json").read_text())
    assert summary["n_samples"] == n_samples
    assert summary["cluster_sizes"] == np.bincount(labels, minlength=3).tolist()
    page = (out / "report.html").read_text()
    assert page.count("<article") == 3
    return rows


def make_mat(path, X, y):
    from scipy.io import savemat

    savemat(path, {"images": np.moveaxis(X, 0, -1), "classes": y})


def make_h5(path, X, y):
    h5py = pytest.importorskip("h5py")
    with h5py.File(path, "w") as file:
        file["images"], file["classes"] = X, y


def make_zarr(path, X, y):
    zarr = pytest.importorskip("zarr")
    group = zarr.open_group(path, mode="w")
    group["images"], group["classes"] = X, np.asarray(y)


def make_npz(path, X, y):
    np.savez(path, images=X, classes=y)


@pytest.mark.parametrize(
    ("name", "make"),
    [("a.npz", make_npz), ("a.mat", make_mat), ("a.h5", make_h5), ("a.zarr", make_zarr)],
)
def test_containers(run, planted, tmp_path, name, make):
    source, out = tmp_path / name, tmp_path / "out"
    make(source, *planted)
    code, _, _ = run("cluster", source, "-k", 3, "-o", out, "--key", "images", "--truth", "classes")
    assert code == 0
    rows = check_results(out, planted)
    assert [row["index"] for row in rows] == [str(index) for index in range(60)]
    assert json.loads((out / "summary.json").read_text())["accuracy"] == 1
    code, again, _ = run("predict", out / "model.tuckermix", source, "--key", "images")
    assert code == 0
    assert again == (out / "labels.csv").read_text()


def test_folder_of_images(run, planted, folder, tmp_path):
    out = tmp_path / "out"
    code, stdout, stderr = run("cluster", folder, "-k", 3, "-o", out)
    assert code == 0
    assert "samples" in stdout
    assert str(out) in stdout
    assert "Reading" in stderr
    rows = check_results(out, planted)
    assert [row["name"] for row in rows] == [f"{index:03d}.png" for index in range(60)]
    code, _, _ = run("predict", out / "model.tuckermix", folder, "-o", tmp_path / "again.csv", "-q")
    assert code == 0
    assert (tmp_path / "again.csv").read_bytes() == (out / "labels.csv").read_bytes()


@pytest.mark.slow
def test_folder_of_videos(run, tmp_path, page_value):
    av = pytest.importorskip("av")
    source, out = tmp_path / "clips", tmp_path / "out"
    source.mkdir()
    rng = np.random.default_rng(0)
    for index in range(18):
        kind = index % 3
        with av.open(str(source / f"{index:02d}.avi"), "w") as container:
            stream = container.add_stream("mpeg4", rate=10)
            stream.width = stream.height = 32
            stream.pix_fmt = "yuv420p"
            for step in range(6):
                frame = rng.integers(0, 30, (32, 32, 3), dtype=np.uint8)
                if kind == 0:  # a bar that falls
                    frame[4 * step : 4 * step + 8] = 220
                elif kind == 1:  # a bar that stands
                    frame[:, 12:20] = 220
                else:  # light that comes and goes
                    frame[:] += np.uint8(180 * (step % 2))
                for packet in stream.encode(av.VideoFrame.from_ndarray(frame, format="rgb24")):
                    container.mux(packet)
            for packet in stream.encode():
                container.mux(packet)
    words = ("-k", 3, "-o", out, "--grey", "--n-neighbors", 5)
    code, _, err = run("cluster", source, *words)
    assert code == 0, err
    check_results(out, (None, np.arange(18) % 3), 18)
    films = page_value(out, "films")
    assert set(films) == {str(place) for place in range(18)}  # all can be played
    assert page_value(out, "data")["frames"] == 6
    code, again, _ = run("predict", out / "model.tuckermix", source, "--grey")
    assert again == (out / "labels.csv").read_text()


@pytest.mark.slow
def test_dataset_by_name(run, tmp_path, summary):
    out = tmp_path / "out"
    code, _, _ = run("cluster", "digits", "-k", 10, "-o", out, "--truth", "labels")
    assert code == 0
    assert summary(out)["accuracy"] > 0.8


def test_json_and_quiet(run, archive, tmp_path, summary):
    out = tmp_path / "out"
    code, stdout, stderr = run("cluster", archive, "-k", 3, "-o", out, "--json", "--quiet")
    assert code == 0
    assert stderr == ""
    assert json.loads(stdout) == summary(out)


def test_options_reach_the_estimator(run, archive, tmp_path, summary):
    out = tmp_path / "out"
    model = ("--ranks", "4x3", "--n-components", 5, "--init", "random")
    labels = ("--assign-labels", "subspace", "--n-init", 3, "--n-neighbors", 9)
    words = (*model, *labels, "--seed", 7, "--max-iter", 50, "--tol", "1e-5")
    assert run("cluster", archive, "-k", 3, "-o", out, *words)[0] == 0
    values = summary(out)
    assert values["ranks"] == [4, 3]
    assert values["n_components"] == 5
    for name, value in [("init", "random"), ("random_state", 7), ("assign_labels", "subspace")]:
        assert values["settings"][name] == value


def test_results_are_the_same_at_every_run(run, archive, tmp_path):
    for name in ("a", "b"):
        assert run("cluster", archive, "-k", 3, "-o", tmp_path / name)[0] == 0
    first, second = ((tmp_path / name / "labels.csv").read_bytes() for name in ("a", "b"))
    assert first == second


def test_folder_is_named_after_the_input(run, archive, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert run("cluster", archive, "-k", 3)[0] == 0
    assert (tmp_path / "planted.npz-clusters" / "report.html").is_file()


def test_inputs_that_differ_behind_a_point_get_folders_of_their_own(run, planted, tmp_path):
    names = ("drug_0.1uM.npy", "drug_0.5uM.npy")
    for name in names:
        np.save(tmp_path / name, planted[0])
    with contextlib.chdir(tmp_path):
        for name in names:
            assert run("cluster", name, "-k", 3)[0] == 0
    assert all((tmp_path / f"{name}-clusters" / "labels.csv").is_file() for name in names)


@pytest.mark.parametrize("source", [".", "../photos"])
def test_a_folder_gives_its_name_however_it_is_called(run, folder, monkeypatch, source):
    monkeypatch.chdir(folder)
    try:
        assert run("cluster", source, "-k", 3)[0] == 0
        assert not (folder / "photos-clusters").exists()  # it holds pictures, and would be read
        page = (folder.parent / "photos-clusters" / "report.html").read_text()
        assert "Clusters in photos" in page
    finally:
        shutil.rmtree(folder.parent / "photos-clusters", ignore_errors=True)


def test_results_are_not_replaced_unless_told_to(run, fails, archive, tmp_path, summary):
    out = tmp_path / "out"
    assert run("cluster", archive, "-k", 3, "-o", out)[0] == 0
    before = {path.name: path.read_bytes() for path in out.iterdir()}
    err = fails("cluster", archive, "-k", 2, "-o", out, "-q")
    assert "holds results already" in err
    assert "add --force" in err
    assert {path.name: path.read_bytes() for path in out.iterdir()} == before
    assert run("cluster", archive, "-k", 2, "-o", out, "--force")[0] == 0
    assert summary(out)["n_clusters"] == 2


def test_it_ends_with_what_to_open(run, archive, tmp_path):
    _, _, err = run("cluster", archive, "-k", 3, "-o", tmp_path / "out")
    assert err.splitlines()[-1] == f"Open {tmp_path / 'out' / 'report.html'} in a browser."


def test_not_converged_has_its_own_exit_code(run, archive, tmp_path, summary):
    out = tmp_path / "out"
    words = ("--max-iter", 1, "--tol", 0, "--init", "random", "--n-init", 1)
    code, _, err = run("cluster", archive, "-k", 3, "-o", out, *words)
    assert code == 3
    assert "warning:" in err
    assert not summary(out)["converged"]
    assert {path.name for path in out.iterdir()} == FILES


def test_input_and_output_mistakes_get_one_line(fails, archive, tmp_path):
    assert "does not exist" in fails("cluster", tmp_path / "no.npz", "-q")
    assert "no such file, folder or dataset" in fails("cluster", "nothing", "-q")
    (tmp_path / "empty").mkdir()
    assert "holds no images or videos" in fails("cluster", tmp_path / "empty", "-q")
    (tmp_path / "taken").write_text("x")
    assert "it is a file" in fails("cluster", archive, "-o", tmp_path / "taken", "-q")
    assert "n_samples=60" in fails("cluster", archive, "-k", 61, "-o", tmp_path / "out", "-q")
    assert "--solver must be one of" in fails("cluster", archive, "--solver", "magic", "-q")
    assert "--ranks must be" in fails("cluster", archive, "--ranks", "big", "-q")
    assert not (tmp_path / "out").exists()  # a folder that stayed empty is taken away


def test_unknown_model_gets_one_line(fails, archive, tmp_path):
    assert "no.tuckermix" in fails("predict", tmp_path / "no.tuckermix", archive, "-q")
    (tmp_path / "bad.tuckermix").write_bytes(b"not a model")
    assert "bad.tuckermix" in fails("predict", tmp_path / "bad.tuckermix", archive, "-q")


def test_new_data_of_another_shape_get_one_line(run, fails, archive, tmp_path):
    out = tmp_path / "out"
    run("cluster", archive, "-k", 3, "-o", out)
    np.save(tmp_path / "other.npy", np.zeros((4, 5, 6)))
    err = fails("predict", out / "model.tuckermix", tmp_path / "other.npy", "-q")
    assert "X has per-sample shape (5, 6)" in err


@pytest.mark.skipif(not hasattr(resource, "RLIMIT_FSIZE"), reason="no limit on file sizes here")
def test_full_disk_gets_one_line_and_leaves_nothing(shell, archive, tmp_path):
    out = tmp_path / "out"
    # The child limits itself: a function between fork and exec disturbs libraries with threads.
    code = (
        "import resource, sys; resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, 20_000));"
        "from tuckermix.cli import main; sys.exit(main())"
    )
    words = ("cluster", archive, "-k", 3, "-o", out, "-q")
    done = shell(*words, start=("-c", code))
    assert done.returncode == 1
    assert done.stderr.startswith("tuckermix: Cannot write")
    assert done.stderr.count("\n") == 1
    left = {path.name for path in out.iterdir()} if out.exists() else set()
    assert left <= FILES  # whole files only: no temporary ones
    assert "report.html" not in left


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="names of files are bytes on Linux")
def test_class_folders_and_files_of_any_name(shell, planted, tmp_path):
    Image = pytest.importorskip("PIL.Image")
    source, out = tmp_path / "photos", tmp_path / "out"
    kinds = [b"caf\xe9", b"=1+1", b"plain"]
    for index, (picture, kind) in enumerate(zip(*planted, strict=True)):
        place = os.fsencode(source) + b"/" + kinds[kind]
        os.makedirs(place, exist_ok=True)
        Image.fromarray(picture).save(os.fsdecode(place + b"/=\xff%03d.png" % index))
    done = shell(
        *("cluster", source, "-k", 3, "-o", out, "--truth", "labels"),
        env={"PYTHONIOENCODING": "ascii"},
    )
    assert done.returncode == 0, done.stderr
    rows = check_results(out, (None, np.sort(planted[1])))
    assert all(row["name"].startswith(("caf\\udce9/=", "'=1+1/=", "plain/=")) for row in rows)
    assert "caf\\udce9" in (out / "report.html").read_text()
    words = ("cluster", source, "-k", 3, "-o", tmp_path / "again", "-q")
    done = shell(*words, "--truth", f"{out / 'labels.csv'}:label")
    assert done.returncode == 0, done.stderr
    assert json.loads((tmp_path / "again" / "summary.json").read_text())["accuracy"] == 1


@pytest.mark.skipif(os.name != "posix", reason="signals differ")
def test_interrupting_leaves_no_half_written_file(tmp_path):
    source = tmp_path / "large.npy"
    np.save(source, np.random.default_rng(0).random((4000, 24, 24)))
    out = tmp_path / "out"
    words = ["cluster", str(source), "-k", "30", "-o", str(out), "--assign-labels", "memberships"]
    process = subprocess.Popen(
        [sys.executable, "-m", "tuckermix", *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    for line in process.stderr:
        if "samples of shape" in line:  # it has read the data and starts to fit
            break
    time.sleep(0.1)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert err.splitlines()[-1].startswith("tuckermix: Interrupted")
    assert not out.exists()


def test_no_colour_and_no_bars_off_a_terminal(shell, archive, tmp_path):
    done = shell("cluster", archive, "-k", 3, "-o", tmp_path / "out", env={"FORCE_COLOR": ""})
    assert done.returncode == 0
    assert "\x1b" not in done.stdout + done.stderr
    assert "\r" not in done.stdout + done.stderr


@pytest.mark.torch
def test_torch_gives_the_same_labels(run, archive, planted, tmp_path):
    pytest.importorskip("torch")
    out = tmp_path / "out"
    code, _, err = run("cluster", archive, "-k", 3, "-o", out, "--device", "cpu:0")
    assert code == 0, err
    check_results(out, planted)


def test_device_without_torch_is_named(fails, archive, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)
    words = ("cluster", archive, "-k", 3, "-o", tmp_path / "out", "--device", "cuda", "-q")
    assert "--device cuda needs PyTorch: install tuckermix[torch]." in fails(*words, code=1)


@pytest.mark.torch
def test_unknown_device_gets_one_line(fails, archive, tmp_path):
    pytest.importorskip("torch")
    words = ("cluster", archive, "-k", 3, "-o", tmp_path / "out", "--device", "toaster", "-q")
    assert "--device toaster cannot be used" in fails(*words)


def test_pixels_of_a_scene_are_samples_and_the_report_shows_maps(run, tmp_path):
    rng = np.random.default_rng(0)
    truth = np.repeat([0, 1, 2], 40).reshape(10, 12)
    scene = rng.random((3, 8))[truth] + 0.01 * rng.standard_normal((10, 12, 8))
    np.savez(tmp_path / "scene.npz", cube=scene, classes=truth)
    out = tmp_path / "out"
    options = ["--key", "cube", "--pixels", "--memberships", "archetypes", "-k", "3", "-o", out]
    assert run("cluster", tmp_path / "scene.npz", *options)[0] == 0
    rows = read_labels(out / "labels.csv")
    assert clustering_accuracy(truth.reshape(-1), [int(row["label"]) for row in rows]) == 1
    page = (out / "report.html").read_text()
    assert page.count('class="scene"') > 3
    assert "as a map of the scene" in page


def test_pixels_need_a_scene(run, tmp_path):
    np.save(tmp_path / "flat.npy", np.ones((20, 5)))
    code, _, err = run("cluster", tmp_path / "flat.npy", "--pixels", "-k", "2")
    assert code == 2
    assert "--pixels needs a scene" in err


def test_soft_labels_are_called_votes_unless_calibrated(run, archive, tmp_path):
    for words, called in (
        ((), "agreement of votes"),
        (("--calibrate",), "probability of the label"),
    ):
        out = tmp_path / called.replace(" ", "-")
        code, shown, _ = run("cluster", archive, "-k", 3, "-o", out, *words)
        assert code == 0
        page = (out / "report.html").read_text(encoding="utf-8")
        for text in (shown.lower(), page.lower()):
            assert called in text
            assert "confidence" not in text
