"""Results are found and read again, wherever they and their pictures went together."""

import json
import shutil

import pytest

from tuckermix.cli._console import UsageError
from tuckermix.cli._earlier import read_results


@pytest.mark.slow
def test_results_are_read_from_elsewhere(run, folder, write_edits, tmp_path, monkeypatch):
    (tmp_path / "home").mkdir()
    shutil.copytree(folder, tmp_path / "home" / "photos")
    monkeypatch.chdir(tmp_path / "home")
    assert run("cluster", "photos", "-k", 3, "--features", "pixels", "-o", "out", "-q")[0] == 0
    monkeypatch.chdir(tmp_path)
    (tmp_path / "home").rename(tmp_path / "away")
    earlier = read_results(tmp_path / "away" / "out")
    assert [path.resolve() for path in earlier.inputs] == [tmp_path / "away" / "photos"]
    assert earlier.names[:2] == ["000.png", "001.png"]
    code, _, err = run("apply", "away/out", write_edits(names={"0": "x"}), "-o", "new")
    assert code == 0, err


@pytest.mark.slow
def test_pictures_that_are_gone_are_told(run, folder, clustered, write_edits, tmp_path):
    shutil.copytree(folder, tmp_path / "photos")
    words = ("-k", 3, "--features", "pixels", "-o", tmp_path / "out", "-q")
    assert run("cluster", tmp_path / "photos", *words)[0] == 0
    (tmp_path / "photos" / "007.png").unlink()
    code, _, err = run("apply", tmp_path / "out", write_edits(names={"0": "x"}))
    assert code == 2
    assert "1 samples of the results are not in" in err
    assert "'007.png'" in err


def test_what_is_no_result_is_told(clustered, tmp_path):
    with pytest.raises(UsageError, match=r"has no labels\.csv: name a folder that"):
        read_results(tmp_path)
    for name, content in (
        ("labels.csv", "name,label\na,x\n"),
        ("labels.csv", ""),
        ("summary.json", "[]"),
        ("summary.json", "{" * 10_000),
    ):
        shutil.rmtree(tmp_path / "copy", ignore_errors=True)
        shutil.copytree(clustered, tmp_path / "copy")
        (tmp_path / "copy" / name).write_text(content)
        with pytest.raises(UsageError, match="Cannot read the results"):
            read_results(tmp_path / "copy")


@pytest.mark.slow
def test_samples_of_an_archive_are_read_again(run, archive, write_edits, tmp_path):
    words = ("--key", "images", "-k", 3, "--features", "pixels", "-q")
    assert run("cluster", archive, *words, "-o", tmp_path / "out")[0] == 0
    edits = write_edits(names={"0": "x"}, exclude=["4"], move={"7": 1})
    code, _, err = run("apply", tmp_path / "out", edits, "-o", tmp_path / "new", "--json")
    assert code == 0, err
    lines = (tmp_path / "new" / "labels.csv").read_text().splitlines()
    assert lines[0].startswith("index,label,name,confidence")
    assert lines[5].startswith("4,-1,")
    assert lines[8].startswith("7,1,")
    summary = json.loads((tmp_path / "new" / "summary.json").read_text())
    assert summary["n_outliers"] == 1
    assert summary["input"] == str(archive)
