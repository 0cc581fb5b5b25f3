import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from tuckermix.cli import main
from tuckermix.cli._console import Console
from tuckermix.cli._journal import Journal
from tuckermix.cli._unfinished import Unfinished, key_of
from tuckermix.datasets import Dataset, make_tensor_clusters, read
from tuckermix.selection import AutoClustering, Selection, Trial
from tuckermix.selection.resampling import Resampler

posix = pytest.mark.skipif(
    os.name != "posix", reason="links, owners and kill -9 as on POSIX systems"
)


@pytest.fixture(autouse=True)
def always(monkeypatch, tmp_path):
    """Keep all work, however little time it took, signed with a key of this test."""
    monkeypatch.setenv("TUCKERMIX_KEEP_SECONDS", "0")
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))


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


def begin(results, key="k" * 16, quiet=True):
    unfinished = Unfinished(results, Console(quiet))
    unfinished.key = lambda: key
    return unfinished


def dropped(unfinished):
    """Leave a journal as a killed process does: closed, and where it is."""
    if unfinished._journal is not None:
        unfinished._journal.close()


def cluster(photos, out, *words):
    return main(["cluster", str(photos), "-k", "3", "-q", "-o", str(out), *words])


# ---- nothing is believed, changed or deleted that this user's runs have not written -------------


@posix
@pytest.mark.parametrize(
    "made", ["link", "dangling", "folder", "inside", "hard", "pipe", "text", "empty"]
)
def test_what_lies_in_the_place_of_the_journal_is_ignored_and_left_alone(
    photos, tmp_path, capsys, made
):
    documents = tmp_path / "documents"
    documents.mkdir()
    for name in ("samples", "choice-1.json", "letter.txt"):
        (documents / name).write_text(f"my {name}")
    place = tmp_path / ".out.unfinished"
    match made:
        case "link":
            place.symlink_to(documents)
        case "dangling":
            place.symlink_to(tmp_path / "nowhere")
        case "folder":
            shutil.copytree(documents, place)
        case "inside":
            place.mkdir()
            (place / "samples").symlink_to(documents / "letter.txt")
        case "hard":
            os.link(documents / "letter.txt", place)
        case "pipe":
            os.mkfifo(place)
        case "text":
            place.write_text("my own notes")
        case "empty":  # nothing is lost in it
            place.touch()
    assert cluster(photos, tmp_path / "out", "--features", "pixels") == 0
    assert sorted(path.name for path in documents.iterdir()) == [
        *("choice-1.json", "letter.txt", "samples"),
    ]
    for path in documents.iterdir():
        assert path.read_text() == f"my {path.name}"
    assert not (tmp_path / "nowhere").exists()
    assert os.path.lexists(place) == (made != "empty")
    if made == "text":
        assert place.read_text() == "my own notes"
    if made in ("folder", "text", "empty"):
        assert cluster(photos, tmp_path / "out", "--features", "pixels", "--force") == 0
    Unfinished(tmp_path / "out", Console())
    said = capsys.readouterr().err
    assert ("Ignoring" in said) == (made != "empty")


@posix
def test_a_journal_signed_by_somebody_else_is_ignored(photos, tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "stranger"))
    stranger = Unfinished(tmp_path / "out", Console(True))
    forged = read(photos, remember=stranger.remember)
    dropped(stranger)
    content = stranger.path.read_bytes()
    assert len(content) > forged.X.nbytes
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    mine = Unfinished(tmp_path / "out", Console())
    assert "it was not written by you on this machine" in capsys.readouterr().err
    assert read(photos, remember=mine.remember).X.shape == forged.X.shape
    assert mine.path.read_bytes() == content


@posix
def test_a_home_that_cannot_be_written_to_stops_nothing(tmp_path, monkeypatch, capsys):
    (tmp_path / "file").touch()
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "file"))
    assert begin(tmp_path / "out", quiet=False).choice(lambda _: CHOSEN) == CHOSEN
    assert "its key cannot be kept" in capsys.readouterr().err


@posix
@pytest.mark.parametrize("name", ["labels.csv", "model.tuckermix", "report.html", "summary.json"])
def test_no_result_is_written_through_a_link(photos, tmp_path, capsys, name):
    out = tmp_path / "out"
    out.mkdir()
    (out / name).symlink_to(tmp_path / "elsewhere")
    assert cluster(photos, out, "--force") == 2
    assert "it is a link to" in capsys.readouterr().err
    assert not (tmp_path / "elsewhere").exists()
    assert [path.name for path in out.iterdir()] == [name]


@posix
def test_a_folder_of_results_that_is_a_link_is_refused(photos, tmp_path, capsys):
    (tmp_path / "real").mkdir()
    for target in ("real", "nowhere"):
        (tmp_path / "out").unlink(missing_ok=True)
        (tmp_path / "out").symlink_to(tmp_path / target)
        assert cluster(photos, tmp_path / "out", "--force") == 2
        assert "it is a link to" in capsys.readouterr().err
    assert not list((tmp_path / "real").iterdir())
    assert not (tmp_path / "nowhere").exists()


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


def read_with_a_journal(photos, tmp_path, **options):
    """Read as a run does that is killed afterwards; return the data, and the files it opened."""
    touched = []
    unfinished = Unfinished(tmp_path / "out", Console(True))

    def remember(read_one):
        def noted(path, given):
            touched.append(path.name)
            return read_one(path, given)

        return unfinished.remember(noted)

    data = read(photos, remember=remember, **options)
    dropped(unfinished)
    return data, touched, unfinished.path


def test_files_that_were_read_are_not_read_again(photos, tmp_path):
    first, touched, _ = read_with_a_journal(photos, tmp_path)
    assert len(touched) == 30
    (photos / "07.png").write_bytes((photos / "08.png").read_bytes())  # changed since
    again, touched, _ = read_with_a_journal(photos, tmp_path)
    assert touched == ["07.png"]
    assert again.extra == first.extra
    same = np.arange(30) != 7
    np.testing.assert_array_equal(again.X[same], first.X[same])
    np.testing.assert_array_equal(again.X[7], first.X[8])
    other, touched, _ = read_with_a_journal(photos, tmp_path, size=8)
    assert other.sample_shape == (8, 8)
    assert len(touched) == 30


@pytest.mark.parametrize("cut", [1, 300, 1000])
def test_a_journal_that_ends_in_the_middle_is_good_up_to_there(photos, tmp_path, cut):
    whole, _, journal = read_with_a_journal(photos, tmp_path)
    size = journal.stat().st_size
    os.truncate(journal, size - cut)
    again, touched, _ = read_with_a_journal(photos, tmp_path)
    assert 0 < len(touched) < 5
    np.testing.assert_array_equal(again.X, whole.X)
    assert journal.stat().st_size == size  # what was lost is there again


def test_damaged_records_are_read_again(photos, tmp_path):
    whole, _, journal = read_with_a_journal(photos, tmp_path)
    content = bytearray(journal.read_bytes())
    for place in np.random.default_rng(0).integers(68, len(content), 40):
        content[place] ^= 0xFF
    journal.write_bytes(content)
    again, _, _ = read_with_a_journal(photos, tmp_path)
    np.testing.assert_array_equal(again.X, whole.X)


def test_quick_work_leaves_nothing_and_asks_for_no_key(photos, tmp_path, monkeypatch):
    monkeypatch.delenv("TUCKERMIX_KEEP_SECONDS")
    unfinished = Unfinished(tmp_path / "out", Console(True))
    read(photos, remember=unfinished.remember)
    unfinished.key = lambda: pytest.fail("all samples were read for a key")
    with unfinished.guarding():
        assert unfinished.choice(lambda _: CHOSEN) == CHOSEN
        assert unfinished.fitted() is None
        unfinished.keep_fitted(None, 0.1)
    assert not unfinished.path.exists()


# ---- the choice and the fit -------------------------------------------------------------------

FOUND = Selection(
    [Trial(3, "pixels", 0.9, 0.5, 10, 0.1), Trial(4, "pixels", 1 / 3, 0.5, 2)],
    *(3, "pixels", 4, 0.25, [{"n_clusters": 4, "share": 1.0, "nested": np.bool_(True)}], 30),
)
CHOSEN = (FOUND, 17)


def test_a_choice_is_made_once(tmp_path):
    first = begin(tmp_path / "out")
    assert first.choice(lambda _: CHOSEN) == CHOSEN
    dropped(first)
    again = begin(tmp_path / "out")
    assert again.choice(lambda _: pytest.fail("chosen twice")) == CHOSEN
    dropped(again)
    other = begin(tmp_path / "out", "o" * 16)
    assert other.choice(lambda _: (Selection([], 2, "x"), 0))[0].n_clusters == 2


@pytest.mark.parametrize("text", ["", "{", "[]", '{"trials": [{}]}', "[" * 100_000])
def test_a_choice_of_another_version_is_made_again(tmp_path, text):
    journal = Journal(tmp_path / ".out.unfinished")
    journal.append(["choice", "k" * 16], text.encode())
    journal.close()
    assert begin(tmp_path / "out").choice(lambda _: CHOSEN) == CHOSEN


@pytest.mark.parametrize("at", [1, 40])
def test_a_kill_while_choosing_loses_no_comparison(tmp_path, monkeypatch, at):
    X = make_tensor_clusters(80, (6, 5), 4, random_state=0).X
    compare, counts = Resampler._agreement, []

    def counted(resampler, item):
        if len(counts) == at:
            raise KeyboardInterrupt
        counts.append(item)
        return compare(resampler, item)

    def chosen(unfinished):
        model = AutoClustering(random_state=0)._fit(X, None, unfinished.choice)
        dropped(unfinished)
        return model.selection_.to_dict(), model.labels_.tolist()

    whole = chosen(begin(tmp_path / "undisturbed"))
    monkeypatch.setattr(Resampler, "_agreement", counted)
    with pytest.raises(KeyboardInterrupt):
        chosen(killed := begin(tmp_path / "out"))
    dropped(killed)
    done, at = len(counts), -1
    assert chosen(begin(tmp_path / "out")) == whole
    after, counts = len(counts) - done, []
    chosen(begin(tmp_path / "another"))
    assert done + after == len(counts)


def test_a_fitted_model_is_found_again(tmp_path):
    from tuckermix import TuckerClustering

    X = make_tensor_clusters(40, (5, 4), 3, random_state=0).X
    model = TuckerClustering(3, random_state=0).fit(X)
    unfinished = begin(tmp_path / "out")
    assert unfinished.fitted() is None
    unfinished.keep_fitted(model, 12.5)
    dropped(unfinished)
    found, seconds = begin(tmp_path / "out").fitted()
    assert seconds == 12.5
    np.testing.assert_array_equal(found.predict_proba(X), model.predict_proba(X))


# ---- what becomes of the journal ---------------------------------------------------------------


def test_success_takes_everything_away(tmp_path):
    unfinished = begin(tmp_path / "out")
    with unfinished.guarding():
        unfinished.choice(lambda _: CHOSEN)
        assert unfinished.path.is_file()
    assert not unfinished.path.exists()


def test_failure_says_where_it_is(tmp_path, capsys):
    unfinished = begin(tmp_path / "out", quiet=False)

    def interrupt():
        with unfinished.guarding():
            unfinished.choice(lambda _: CHOSEN)
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupt()
    assert f"The work so far is kept in {unfinished.path} (0.0 MB)" in capsys.readouterr().err
    dropped(unfinished)
    begin(tmp_path / "out", quiet=False).choice(lambda _: CHOSEN)
    assert "Continuing an earlier run, from" in capsys.readouterr().err


def test_a_full_disk_stops_nothing(tmp_path, monkeypatch):
    monkeypatch.setattr(shutil, "disk_usage", lambda path: type("Usage", (), {"free": 0}))
    assert begin(tmp_path / "full").choice(lambda _: CHOSEN) == CHOSEN
    assert not (tmp_path / ".full.unfinished").exists()


# ---- killed for real --------------------------------------------------------------------------

RUN = """
import os, signal, sys
import tuckermix.cli._results as results
from tuckermix import _files
from tuckermix.cli import main
from tuckermix.clustering import TuckerClustering
from tuckermix.datasets._pictures import Ahead
from tuckermix.selection import auto

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

watch(Ahead, "__call__", "read")
watch(auto, "choose", "choose")
watch(TuckerClustering, "fit", "fit")
watch(results, "write_results", "write")
watch(_files, "_flush", "flush")
code = main(words)
print(counts)
sys.exit(code)
"""


def start(stage, at, *words):
    command = [sys.executable, "-c", RUN, stage, str(at), *map(str, words)]
    done = subprocess.run(command, capture_output=True, text=True)
    last = done.stdout.splitlines()[-1] if done.stdout else "{}"
    return done.returncode, json.loads(last.replace("'", '"')), done.stderr


@posix
@pytest.mark.slow
def test_a_run_that_is_killed_again_and_again_ends_as_if_it_had_not_been(photos, tmp_path):
    """Kill -9 at each stage; each time the same command goes on, and nothing is done twice."""
    words = ("cluster", photos, "--features", "log-scattering", "-o")
    code, counts, _ = start("", 0, *words, tmp_path / "at-once")
    assert code == 0
    assert counts["read"] == 30
    words = (*words, tmp_path / "result")
    hidden = tmp_path / ".result.unfinished"

    code, counts, _ = start("read", 20, *words)
    assert code == -signal.SIGKILL
    code, counts, said = start("fit", 1, *words)
    assert code == -signal.SIGKILL
    assert counts["read"] == 30 - 19
    assert counts["choose"] == 1
    assert "Continuing an earlier run, from" in said
    code, counts, _ = start("write", 1, *words)
    assert code == -signal.SIGKILL
    assert "read" not in counts
    assert "choose" not in counts
    assert hidden.is_file()
    assert not (tmp_path / "result" / "labels.csv").exists()
    code, counts, _ = start("flush", 3, *words)
    assert code == -signal.SIGKILL
    assert "fit" not in counts
    assert len(list((tmp_path / "result").glob(".*"))) >= 4  # written, not yet renamed
    code, counts, _ = start("", 0, *words)
    assert code == 0
    assert "fit" not in counts
    assert not hidden.exists()
    assert len(list((tmp_path / "result").iterdir())) == 4

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
