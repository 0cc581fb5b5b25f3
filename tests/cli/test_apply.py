"""Corrections become results, and later pictures are added to them."""

import json
import os
import shutil

import numpy as np
import pytest

import tuckermix
from tuckermix.datasets import read
from tuckermix.summary import innermost


def test_names_are_kept_everywhere(run, table, clustered, folder, write_edits, tmp_path):
    out = tmp_path / "named"
    names = {"0": "cats", "1": "<b>dogs</b>", "2": "=1+1"}
    code, _, err = run("apply", clustered, write_edits(names=names), "-o", out)
    assert code == 0, err
    before, after = table(clustered), table(out)
    assert {name: row["label"] for name, row in before.items()} == {
        name: row["label"] for name, row in after.items()
    }
    assert {row["label"]: row["name"] for row in after.values()} == {
        "0": "cats", "1": "<b>dogs</b>", "2": "'=1+1",
    }  # fmt: skip
    model = tuckermix.load(out / "model.tuckermix")
    assert model.cluster_names_ == {0: "cats", 1: "<b>dogs</b>", 2: "=1+1"}
    assert json.loads((out / "summary.json").read_text())["cluster_names"] == names
    page = (out / "report.html").read_text()
    assert "<b>dogs" not in page
    assert "&lt;b&gt;dogs" in page
    code, said, _ = run("predict", out, folder, "--json", "-q")
    assert {one["name"] for one in json.loads(said)["samples"]} == set(names.values())
    code, said, _ = run("predict", out, folder, "-q")
    assert said.splitlines()[0] == "file,label,name,confidence,p0,p1,p2"
    assert "cats" not in (clustered / "labels.csv").read_text()


def test_known_classes_are_kept(run, clustered, folder, planted, write_edits, tmp_path):
    """Corrected labels are compared with the classes too; later samples have none."""
    from PIL import Image

    classes, result, new = tmp_path / "y.csv", tmp_path / "result", tmp_path / "new"
    rows = [f"{name},k{one}" for name, one in zip(read(folder).names, planted[1], strict=True)]
    classes.write_text("\n".join(["name,label", *rows]))
    words = ("-k", 3, "--features", "pixels", "--truth", classes, "-q", "-o", result)
    assert run("cluster", folder, *words)[0] == 0
    before = json.loads((result / "summary.json").read_text())
    assert before["truth"] == [f"k{one}" for one in planted[1]]
    assert run("apply", result, write_edits(merge=[[0, 1]]), "-o", new)[0] == 0
    after = json.loads((new / "summary.json").read_text())
    assert after["truth"] == before["truth"]
    assert after["accuracy"] < before["accuracy"]
    assert "k2" in (new / "report.html").read_text()
    (tmp_path / "later").mkdir()
    Image.fromarray(planted[0][8]).save(tmp_path / "later" / "x.png")
    code, _, err = run("update", new, tmp_path / "later")
    assert code == 0, err
    latest = json.loads((new / "summary.json").read_text())
    assert latest["truth"] == [*before["truth"], ""]
    assert (latest["n_samples"], latest["n_known"]) == (61, 60)


def test_clusters_are_merged_split_and_kept_by_the_model(
    run, table, clustered, folder, write_edits, tmp_path
):
    out, data = tmp_path / "out", read(folder)
    edits = write_edits(split=[0], merge=[[1, 2]], names={"0": "a", "1": "b", "3": "c"})
    assert run("apply", clustered, edits, "-o", out)[0] == 0
    before = tuckermix.load(clustered / "model.tuckermix")
    after = tuckermix.load(out / "model.tuckermix")
    assert after.n_clusters_ == 3
    np.testing.assert_array_equal(after.labels_, [int(row["label"]) for row in table(out).values()])
    np.testing.assert_array_equal(after.labels_ == 1, np.isin(before.labels_, (1, 2)))
    assert set(after.labels_[before.labels_ == 0]) == {0, 2}
    assert after.cluster_names_ == {0: "a", 1: "b", 2: "c"}
    X = data.X.astype(float)
    assert np.mean(after.predict(X) == after.labels_) > 0.95
    np.testing.assert_array_equal(after.predict_proba(X).argmax(axis=1), after.predict(X))
    assert after.centroids_.shape[0] == 3
    # The tree goes through the new labels, so that they can be corrected again.
    np.testing.assert_array_equal(after.labels_at(3), after.labels_)
    assert run("apply", out, write_edits(merge=[[0, 2]]), "-o", tmp_path / "again")[0] == 0
    again = table(tmp_path / "again")
    assert {row["name"] for row in again.values()} == {"b", ""}  # a merged cluster is another one


@pytest.mark.slow
def test_a_finer_level_is_that_of_the_page(run, clustered, write_edits, tmp_path):
    out = tmp_path / "out"
    assert run("apply", clustered, write_edits(n_clusters=5), "-o", out)[0] == 0
    before = tuckermix.load(clustered / "model.tuckermix")
    after = tuckermix.load(out / "model.tuckermix")
    np.testing.assert_array_equal(after.labels_, before.labels_at(5))


@pytest.mark.slow
def test_moved_pictures_change_the_vote_of_their_copies(
    run, table, clustered, folder, write_edits, tmp_path
):
    out, before = tmp_path / "out", table(clustered)
    own = before["000.png"]["label"]
    other = next(label for label in "012" if label != own)
    edits = write_edits(move={"000.png": int(other)}, names={other: "moved to"})
    assert run("apply", clustered, edits, "-o", out)[0] == 0
    after = table(out)
    changed = [name for name in before if before[name]["label"] != after[name]["label"]]
    assert changed == ["000.png"]
    assert after["000.png"]["name"] == "moved to"
    new = read(folder).X[:1].astype(float)
    new += np.random.default_rng(0).normal(size=new.shape)
    for path, label in ((clustered, own), (out, other)):
        assert tuckermix.load(path / "model.tuckermix").predict(new).tolist() == [int(label)]


@pytest.mark.slow
def test_what_is_set_aside_has_no_label_and_no_vote(run, table, clustered, write_edits, tmp_path):
    out, names = tmp_path / "out", list(table(clustered))
    assert run("apply", clustered, write_edits(exclude=names[:2]), "-o", out)[0] == 0
    after = table(out)
    assert [row["label"] for row in after.values()][:2] == ["-1", "-1"]
    assert sum(row["label"] == "-1" for row in after.values()) == 2
    voters = [
        len(innermost(tuckermix.load(path / "model.tuckermix"))._model_.labeller.landmarks)
        for path in (clustered, out)
    ]
    assert voters[0] - voters[1] == 2
    # Later edits that do not speak of it leave it there, and those that know of it take it back.
    kept, back = tmp_path / "kept", tmp_path / "back"
    assert run("apply", out, write_edits(names={"0": "x"}), "-o", kept)[0] == 0
    assert table(kept)[names[0]]["label"] == "-1"
    assert run("apply", out, write_edits(exclude=names[:1]), "-o", back)[0] == 0
    assert [table(back)[name]["label"] for name in names[:2]] == [
        "-1", table(clustered)[names[1]]["label"],
    ]  # fmt: skip


@pytest.mark.slow
def test_a_cluster_that_loses_all_its_pictures_is_gone(
    run, table, clustered, write_edits, tmp_path
):
    out, before = tmp_path / "out", table(clustered)
    move = {name: 0 for name, row in before.items() if row["label"] == "1"}
    edits = write_edits(move=move, names={"0": "a", "1": "b", "2": "c"})
    assert run("apply", clustered, edits, "-o", out)[0] == 0
    assert {(row["label"], row["name"]) for row in table(out).values()} == {("0", "a"), ("1", "c")}
    everything = write_edits(exclude=list(before))
    assert (
        "no sample in any cluster" in run("apply", clustered, everything, "-o", out, "--force")[2]
    )


@pytest.mark.parametrize(
    ("parts", "message"),
    [
        ({"n_clusters": 500}, "levels from 2 to"),
        ({"names": {"7": "x"}}, "name the cluster 7, and the last is 2"),
        ({"merge": [[0, 9]]}, "name the cluster 9"),
        ({"split": [3]}, "name the cluster 3"),
        ({"move": {"nobody.png": 0}}, "the sample 'nobody.png', which is not in the result"),
        ({"exclude": ["../../etc/passwd"]}, "which is not in the result"),
    ],
)
def test_edits_of_something_else_are_told(run, clustered, write_edits, tmp_path, parts, message):
    code, _, err = run("apply", clustered, write_edits(**parts), "-o", tmp_path / "out")
    assert code == 2
    assert message in err
    assert not (tmp_path / "out").exists()


def test_nothing_is_replaced_and_no_link_followed(run, clustered, write_edits, tmp_path):
    shutil.copytree(clustered, tmp_path / "mine")
    before = (tmp_path / "mine" / "labels.csv").read_bytes()
    edits = write_edits(names={"0": "x"})
    code, _, err = run("apply", clustered, edits, "-o", tmp_path / "mine")
    assert code == 2
    assert "add --force" in err
    assert (tmp_path / "mine" / "labels.csv").read_bytes() == before
    os.symlink(tmp_path / "mine", tmp_path / "link")
    assert run("apply", clustered, edits, "-o", tmp_path / "link", "--force")[0] == 2
    assert (tmp_path / "mine" / "labels.csv").read_bytes() == before


@pytest.mark.slow
def test_models_of_several_views_and_with_scales_take_edits(
    run, table, folder, write_edits, tmp_path
):
    for words in (("--features", "auto"), ("--scale", "unit", "--outliers", "label")):
        first, out = tmp_path / words[1], tmp_path / f"{words[1]}-out"
        assert run("cluster", folder, "-k", 3, *words, "-o", first, "-q")[0] == 0
        before = table(first)
        name = next(name for name, row in before.items() if row["label"] == "0")
        edits = write_edits(move={name: 1}, merge=[[0, 2]], names={"0": "a", "1": "b"})
        code, _, err = run("apply", first, edits, "-o", out)
        assert code == 0, err
        after = table(out)
        assert after[name]["name"] == "b"
        merged = {after[n]["name"] for n, row in before.items() if row["label"] in "02"} - {"b"}
        assert merged == {"a"}
        predicted = run("predict", out, folder, "-q")[1]
        assert predicted.count(",a,") + predicted.count(",b,") >= 55


def copied(clustered, folder, tmp_path):
    """Copy results and pictures to places of their own, still beside each other."""
    shutil.copytree(folder, tmp_path / "home" / "photos")
    words = ("-k", 3, "--features", "pixels", "-q", "-o", tmp_path / "home" / "result")
    return tmp_path / "home" / "photos", tmp_path / "home" / "result", words


@pytest.mark.slow
def test_update_labels_what_is_new_and_keeps_the_rest(
    run, table, clustered, folder, planted, write_edits, tmp_path
):
    from PIL import Image

    photos, result, words = copied(clustered, folder, tmp_path)
    assert run("cluster", photos, *words)[0] == 0
    edits = write_edits(names={"0": "a", "1": "b", "2": "c"}, exclude=["003.png"])
    assert run("apply", result, edits, "-o", result, "--force")[0] == 0
    before = table(result)
    Image.fromarray(planted[0][5]).save(photos / "new.png")
    (tmp_path / "later").mkdir()
    Image.fromarray(planted[0][8]).save(tmp_path / "later" / "000.png")
    assert run("update", result, photos)[0] == 0
    code, _, err = run("update", result, tmp_path / "later")
    assert code == 0, err
    after = table(result)
    assert [name for name in after if name not in before] == ["new.png", "../../later/000.png"]
    assert {name: after[name]["name"] for name in before} == {
        name: row["name"] for name, row in before.items()
    }
    assert after["new.png"]["name"] == before["005.png"]["name"]
    assert after["../../later/000.png"]["name"] == before["008.png"]["name"]
    page = (result / "report.html").read_text()
    assert "62 pictures" in page
    assert "later/000.png" in page
    assert len(tuckermix.load(result / "model.tuckermix").labels_) == 62
    assert run("update", result, tmp_path / "later")[0] == 0  # nothing is new now
    assert table(result) == after


@pytest.mark.slow
def test_update_takes_folders_of_results_of_files(run, clustered, archive, folder, tmp_path):
    assert "is no folder" in run("update", clustered, folder / "000.png")[2]
    assert run("cluster", archive, "--key", "images", "-k", 3, "-o", tmp_path / "a", "-q")[0] == 0
    assert "are no files of a folder" in run("update", tmp_path / "a", folder)[2]
