import json
import os
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from tuckermix.cli import _unfinished
from tuckermix.cli._console import Console
from tuckermix.cli._unfinished import Unfinished, key_of
from tuckermix.datasets import Dataset, make_tensor_clusters, read
from tuckermix.selection import Selection, Trial


@pytest.fixture
def always(monkeypatch):
    """Keep all work, however little time it took."""
    monkeypatch.setattr(_unfinished, "WORTH", 0.0)
    monkeypatch.setattr(_unfinished, "RATE", np.inf)


@pytest.fixture
def photos(tmp_path):
    Image = pytest.importorskip("PIL.Image")
    X = make_tensor_clusters(30, (16, 16), 3, random_state=0).X
    levels = np.rint(255 * (X - X.min()) / np.ptp(X)).astype(np.uint8)
    folder = tmp_path / "photos"
    folder.mkdir()
    for index, picture in enumerate(levels):
        Image.fromarray(picture).save(folder / f"{index:02d}.png")
    return folder


def begin(results, key="k" * 16):
    unfinished = Unfinished(results, Console(quiet=True))
    unfinished.under(lambda: key)
    return unfinished


# ---- what the key depends on ------------------------------------------------------------------


def test_the_key_is_that_of_values_options_and_nothing_else(rng):
    X = rng.random((20, 3, 4))
    key = key_of(Dataset(X), "a", seed=0)
    assert key == key_of(Dataset(X.copy(), names=["x"] * 20), "b", seed=0)
    assert key != key_of(Dataset(X), "a", seed=1)
    assert key != key_of(Dataset(X.reshape(20, 4, 3)), "a", seed=0)
    assert key != key_of(Dataset(X.astype(np.float32)), "a", seed=0)
    X[19, 2, 3] += 1e-9
    assert key != key_of(Dataset(X), "a", seed=0)


def test_samples_on_disk_count_by_their_files(tmp_path, rng):
    da = pytest.importorskip("dask.array")
    X = da.from_array(rng.random((6, 3)), chunks=2)
    for name in ("store/a", "store/b/c"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("1")
    key = key_of(Dataset(X), str(tmp_path / "store"))
    assert key == key_of(Dataset(X), str(tmp_path / "store"))
    assert key != key_of(Dataset(X), "no such path")
    (tmp_path / "store/b/c").write_text("22")
    assert key != key_of(Dataset(X), str(tmp_path / "store"))


# ---- files that were read ---------------------------------------------------------------------


def test_files_that_were_read_are_not_read_again(photos, tmp_path, always):
    first = read(photos, remember=Unfinished(tmp_path / "out", Console(True)).remember)
    journal = tmp_path / ".out.unfinished" / "samples"
    assert journal.stat().st_size > first.X.nbytes
    (photos / "07.png").write_bytes((photos / "08.png").read_bytes())  # changed since
    touched = []

    def remember(read_one):
        def noted(path, options):
            touched.append(path.name)
            return read_one(path, options)

        return Unfinished(tmp_path / "out", Console(True)).remember(noted)

    again = read(photos, remember=remember)
    assert touched == ["07.png"]
    assert again.extra == first.extra
    same = np.arange(30) != 7
    np.testing.assert_array_equal(again.X[same], first.X[same])
    np.testing.assert_array_equal(again.X[7], first.X[8])


def test_other_options_read_anew(photos, tmp_path, always):
    remember = Unfinished(tmp_path / "out", Console(True)).remember
    read(photos, remember=remember)
    assert read(photos, size=8, remember=remember).sample_shape == (8, 8)


@pytest.mark.parametrize("cut", [1, 300, 1000])
def test_a_journal_that_ends_in_the_middle_is_good_up_to_there(photos, tmp_path, always, cut):
    whole = read(photos, remember=Unfinished(tmp_path / "out", Console(True)).remember)
    journal = tmp_path / ".out.unfinished" / "samples"
    size = journal.stat().st_size
    os.truncate(journal, size - cut)
    again = read(photos, remember=Unfinished(tmp_path / "out", Console(True)).remember)
    np.testing.assert_array_equal(again.X, whole.X)
    assert journal.stat().st_size == size  # what was lost is there again


def test_damaged_records_are_read_anew(photos, tmp_path, always):
    whole = read(photos, remember=Unfinished(tmp_path / "out", Console(True)).remember)
    journal = tmp_path / ".out.unfinished" / "samples"
    content = bytearray(journal.read_bytes())
    for place in np.random.default_rng(0).integers(0, len(content), 40):
        content[place] ^= 0xFF
    journal.write_bytes(content)
    again = read(photos, remember=Unfinished(tmp_path / "out", Console(True)).remember)
    np.testing.assert_array_equal(again.X, whole.X)


def test_a_journal_of_endless_brackets_is_cut_off(photos, tmp_path, always):
    whole = read(photos, remember=Unfinished(tmp_path / "out", Console(True)).remember)
    journal = tmp_path / ".out.unfinished" / "samples"
    size = journal.stat().st_size
    journal.write_bytes(journal.read_bytes() + b"[" * 60_000 + b"\n")
    again = read(photos, remember=Unfinished(tmp_path / "out", Console(True)).remember)
    np.testing.assert_array_equal(again.X, whole.X)
    assert journal.stat().st_size == size


def test_quick_work_leaves_nothing_and_asks_for_no_key(photos, tmp_path):
    unfinished = Unfinished(tmp_path / "out", Console(True))
    data = read(photos, remember=unfinished.remember)
    unfinished.under(lambda: pytest.fail("all samples were read for a key"))
    with unfinished.guarding():
        assert unfinished.choice(lambda: CHOSEN) == CHOSEN
        assert unfinished.fitted() is None
        np.testing.assert_array_equal(unfinished.rows(lambda part: part, data.X), data.X)
        unfinished.keep_fitted(None, 0.1)
    assert not unfinished.path.exists()


# ---- the choice, the features, the fit --------------------------------------------------------

CHOSEN = Selection(
    [Trial(3, "pixels", 0.9, 0.5, 10, 0.1), Trial(4, "pixels", 1 / 3, 0.5, 2)],
    *(3, "pixels", 4, 0.25, [{"n_clusters": 4, "share": 1.0, "nested": np.bool_(True)}], 30),
)


def test_a_choice_is_made_once(tmp_path, always):
    assert begin(tmp_path / "out").choice(lambda: CHOSEN) == CHOSEN
    again = begin(tmp_path / "out").choice(lambda: pytest.fail("chosen twice"))
    assert again == CHOSEN
    other = begin(tmp_path / "out", "o" * 16)
    assert other.choice(lambda: Selection([], 2, "x")).n_clusters == 2
    assert begin(tmp_path / "out").choice(lambda: Selection([], 5, "x")).n_clusters == 5


def test_a_damaged_choice_is_made_anew(tmp_path, always):
    unfinished = begin(tmp_path / "out")
    unfinished.choice(lambda: CHOSEN)
    (path,) = unfinished.path.iterdir()
    nested = "[" * 100_000
    for content in ("", "{", "[]", '{"trials": [{}]}', '{"trials": [], "more": 1}', nested):
        path.write_text(content)
        assert begin(tmp_path / "out").choice(lambda: CHOSEN) == CHOSEN


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("n_clusters", "3"),
        ("n_clusters", 9),
        ("view", "edges"),
        ("behind", "much"),
        ("nested", [{}]),
        ("nested", 1),
        ("trials", {"stability": "large"}),
        ("trials", {"weight": None}),
        ("trials", {"n_clusters": 1.5}),
        ("trials", {"view": ["pixels"]}),
    ],
)
def test_a_choice_of_other_kinds_is_made_anew(tmp_path, always, name, value):
    unfinished = begin(tmp_path / "out")
    unfinished.choice(lambda: CHOSEN)
    (path,) = unfinished.path.iterdir()
    values = json.loads(path.read_text())
    if name == "trials":
        values["trials"][0] |= value
    else:
        values[name] = value
    path.write_text(json.dumps(values))
    assert begin(tmp_path / "out").choice(lambda: CHOSEN) == CHOSEN


def test_a_choice_that_is_of_no_use_is_made_anew(tmp_path, always):
    begin(tmp_path / "out").choice(lambda: CHOSEN)
    other = replace(CHOSEN, next_n_clusters=7)
    assert begin(tmp_path / "out").choice(lambda: other, {}.__getitem__) == other


@pytest.mark.parametrize("fail_at", [0, 1, 4, 9])
def test_features_go_on_where_they_ended(tmp_path, always, monkeypatch, rng, fail_at):
    monkeypatch.setattr(_unfinished, "PIECE_BYTES", 10 * 5 * 8)
    X = rng.random((97, 5))
    calls = []

    def transform(part):
        calls.append(len(part))
        if len(calls) - 2 == fail_at:  # the first call asks for the shape
            raise KeyboardInterrupt
        return 2 * part

    with pytest.raises(KeyboardInterrupt):
        begin(tmp_path / "out").rows(transform, X)
    fail_at, calls[:] = -2, []
    np.testing.assert_array_equal(begin(tmp_path / "out").rows(transform, X), 2 * X)
    calls[:] = []
    np.testing.assert_array_equal(begin(tmp_path / "out").rows(transform, X), 2 * X)
    assert calls == [1]


def test_pieces_before_the_time_is_up_are_kept_with_the_next(tmp_path, monkeypatch, rng):
    monkeypatch.setattr(_unfinished, "PIECE_BYTES", 10 * 5 * 8)
    clock = iter(np.arange(100.0))  # a second for each look at it
    monkeypatch.setattr(_unfinished.time, "monotonic", lambda: next(clock))
    monkeypatch.setattr(_unfinished, "WORTH", 3.5)
    X = rng.random((50, 5))
    unfinished = begin(tmp_path / "out")
    unfinished.rows(lambda part: part + 1, X)
    names = sorted(path.name for path in unfinished.path.iterdir())
    assert [name.rsplit("-", 1)[0] for name in names] == ["features-0-40", "features-40-50"]


def test_features_of_another_shape_are_not_taken(tmp_path, always, rng):
    X = rng.random((12, 5))
    begin(tmp_path / "out").rows(lambda part: part, X)
    found = begin(tmp_path / "out").rows(lambda part: part[:, :3], X)
    np.testing.assert_array_equal(found, X[:, :3])


def test_a_fitted_model_is_found_again(tmp_path, always):
    from tuckermix import TuckerClustering

    X = make_tensor_clusters(40, (5, 4), 3, random_state=0).X
    model = TuckerClustering(3, random_state=0).fit(X)
    assert begin(tmp_path / "out").fitted() is None
    begin(tmp_path / "out").keep_fitted(model, 12.5)
    found, seconds = begin(tmp_path / "out").fitted()
    assert seconds == 12.5
    np.testing.assert_array_equal(found.predict_proba(X), model.predict_proba(X))


# ---- what becomes of the folder ---------------------------------------------------------------


def test_success_takes_everything_away(tmp_path, always):
    unfinished = begin(tmp_path / "out")
    with unfinished.guarding():
        unfinished.choice(lambda: CHOSEN)
        assert unfinished.path.is_dir()
    assert not unfinished.path.exists()


def test_failure_says_where_it_is(tmp_path, always, capsys):
    unfinished = Unfinished(tmp_path / "out", Console())
    unfinished.under(lambda: "k")

    def interrupt():
        with unfinished.guarding():
            unfinished.choice(lambda: CHOSEN)
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupt()
    assert f"What was done is kept in {unfinished.path} (0.0 MB)" in capsys.readouterr().err
    again = Unfinished(tmp_path / "out", Console())
    again.under(lambda: "k")
    again.choice(lambda: CHOSEN)
    assert "Going on after what an earlier run left in" in capsys.readouterr().err


def test_a_disk_that_refuses_stops_nothing(tmp_path, always, monkeypatch):
    (tmp_path / ".out.unfinished").write_text("a file in its place")
    assert begin(tmp_path / "out").choice(lambda: CHOSEN) == CHOSEN
    usage = type("Usage", (), {"free": 0})
    monkeypatch.setattr(_unfinished.shutil, "disk_usage", lambda path: usage)
    assert begin(tmp_path / "full").choice(lambda: CHOSEN) == CHOSEN
    assert list((tmp_path / ".full.unfinished").iterdir()) == []


# ---- killed for real --------------------------------------------------------------------------

RUN = """
import os, signal, sys
import tuckermix.cli._results as results
from tuckermix.cli import _unfinished, main
from tuckermix.clustering import TuckerClustering
from tuckermix.datasets import _images
from tuckermix.features import Scattering
from tuckermix.selection import AutoClustering

_unfinished.WORTH, _unfinished.RATE, _unfinished.PIECE_BYTES = 0.0, float("inf"), 2**14
stage, at, *words = sys.argv[1:]
counts = {}

def watch(owner, name, what):
    whole = getattr(owner, name)
    def watched(*args, **options):
        counts[what] = counts.get(what, 0) + 1
        if what == stage and counts[what] == int(at):
            print(counts, flush=True)
            os.kill(os.getpid(), signal.SIGKILL)
        return whole(*args, **options)
    setattr(owner, name, watched)

watch(_images, "_pillow", "read")
watch(AutoClustering, "select", "choose")
watch(Scattering, "transform", "features")
watch(TuckerClustering, "fit", "fit")
watch(results, "write_results", "write")
code = main(words)
print(counts)
sys.exit(code)
"""


def start(stage, at, *words):
    command = [sys.executable, "-c", RUN, stage, str(at), *map(str, words)]
    done = subprocess.run(command, capture_output=True, text=True)
    last = done.stdout.splitlines()[-1] if done.stdout else "{}"
    return done.returncode, json.loads(last.replace("'", '"')), done.stderr


@pytest.mark.slow
@pytest.mark.skipif(os.name != "posix", reason="kill -9 is that of POSIX")
def test_a_run_that_is_killed_again_and_again_ends_as_if_it_had_not_been(photos, tmp_path):
    """Kill -9 at each stage; each time the same command goes on, and nothing is done twice."""
    words = ("cluster", photos, "--features", "log-scattering", "-o")
    code, counts, _ = start("", 0, *words, tmp_path / "at-once")
    assert code == 0
    assert counts["read"] == 30
    pieces = counts["features"]
    assert pieces > 6
    words = (*words, tmp_path / "result")
    hidden = tmp_path / ".result.unfinished"

    code, counts, _ = start("read", 20, *words)
    assert code == -signal.SIGKILL
    code, counts, said = start("features", 5, *words)
    assert code == -signal.SIGKILL
    assert counts["read"] == 30 - 19
    assert counts["choose"] == 1
    assert "Going on after what an earlier run left in" in said
    code, counts, _ = start("fit", 1, *words)
    assert code == -signal.SIGKILL
    assert "read" not in counts
    assert "choose" not in counts
    assert counts["features"] < pieces
    code, counts, _ = start("write", 1, *words)
    assert code == -signal.SIGKILL
    assert counts["features"] == 1  # which asks for the shape
    assert hidden.is_dir()
    assert not (tmp_path / "result" / "labels.csv").exists()
    code, counts, _ = start("", 0, *words)
    assert code == 0
    assert "fit" not in counts
    assert not hidden.exists()

    def made(name, file):
        return (tmp_path / name / file).read_bytes()

    assert made("result", "labels.csv") == made("at-once", "labels.csv")
    first, second = (json.loads(made(name, "summary.json")) for name in ("at-once", "result"))
    for values in (first, second):
        for key in ("seconds", "folder", "command"):
            del values[key]
    assert first == second


def test_the_hidden_folder_is_beside_the_results_whatever_their_name(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ("out", "out/", "./out", tmp_path / "out"):
        assert Unfinished(Path(name), Console(True)).path == tmp_path / ".out.unfinished"
