"""Folders of pictures that one can give away."""

import base64
import csv
import io
import json
import re
import shutil

import numpy as np
import pytest

from tuckermix.cli.export import safe_name


@pytest.fixture
def named(clustered, table, tmp_path):
    """Results whose clusters have names that no folder can have, with a picture set aside."""
    path = shutil.copytree(clustered, tmp_path / "named")
    summary = json.loads((path / "summary.json").read_text())
    summary["cluster_names"] = {"0": "Cats / dogs: 2", "1": "..", "2": "con"}
    (path / "summary.json").write_text(json.dumps(summary))
    label, text = table(path)["000.png"]["label"], (path / "labels.csv").read_text()
    (path / "labels.csv").write_text(text.replace(f"000.png,{label}", "000.png,-1"))
    return path


def test_each_cluster_becomes_a_folder(run, table, named, folder, tmp_path):
    out = tmp_path / "albums"
    code, _, err = run("export", named, out)
    assert code == 0, err
    folders = {path.name: sorted(file.name for file in path.iterdir())
               for path in out.iterdir() if path.is_dir()}  # fmt: skip
    assert set(folders) == {"Cats dogs 2", "cluster 1", "con_", "set aside"}
    assert folders["set aside"] == ["000.png"]
    assert sum(map(len, folders.values())) == 60
    for file in (out / "con_").iterdir():
        assert file.is_symlink()
        assert file.resolve() == (folder / file.name).resolve()
        assert table(named)[file.name]["label"] == "2"
    rows = list(csv.DictReader((out / "labels.csv").read_text().splitlines()))
    assert rows == [
        {key: str(value) for key, value in row.items()}
        for row in json.loads((out / "labels.json").read_text())
    ]
    assert all(
        (out / row["file"]).read_bytes() == (folder / row["source"]).read_bytes() for row in rows
    )


def test_copies_are_files_of_their_own(run, named, folder, tmp_path):
    assert run("export", named, tmp_path / "out", "--copy")[0] == 0
    copies = list((tmp_path / "out" / "con_").iterdir())
    assert copies
    assert not any(copy.is_symlink() for copy in copies)
    assert all(copy.read_bytes() == (folder / copy.name).read_bytes() for copy in copies)


def on_sheet(out):
    """Return the sizes of the pictures on the contact sheet, by name."""
    from PIL import Image

    text = (out / "contact-sheet.html").read_text()
    figures = re.findall(r"<figure>(.*?)<figcaption>(.*?)</figcaption></figure>", text)
    found = {}
    for picture, name in figures:
        content = re.search(r"base64,([^\"]+)", picture)
        with Image.open(io.BytesIO(base64.b64decode(content[1]))) as image:
            assert np.ptp(np.asarray(image)) > 50
            found[name] = image.size
    return found


def test_the_contact_sheet_shows_photographs(run, named, folder, tmp_path):
    assert run("export", named, tmp_path / "out")[0] == 0
    assert on_sheet(tmp_path / "out") == {path.name: (10, 12) for path in folder.iterdir()}


def moving(index):
    """Draw a spot that goes right, or down: eight frames of 16 x 20, or as many slices."""
    y, x = np.mgrid[:16, :20]
    places = [(8, 2 + 2 * t) if index % 2 else (2 + 1.5 * t, 10) for t in range(8)]
    spots = [np.exp(-((y - a) ** 2 + (x - b) ** 2) / 9) for a, b in places]
    return (40 + index % 3 + 200 * np.array(spots)).astype(np.uint8)


def write_video(path, video):
    av = pytest.importorskip("av", reason="av is not installed")
    with av.open(str(path), "w") as container:
        stream = container.add_stream("ffv1", rate=5)
        stream.height, stream.width, stream.pix_fmt = *video.shape[1:], "gray"
        for frame in video:
            container.mux(stream.encode(av.VideoFrame.from_ndarray(frame, format="gray")))
        container.mux(stream.encode())


@pytest.mark.parametrize(
    ("suffix", "write", "size"),
    [
        (".avi", write_video, (3 * 20 + 2, 2 * 16 + 1)),  # six frames in two rows
        (".npy", np.save, (3 * 20 + 2, 16)),  # the middle slice along each axis
    ],
)
def test_the_contact_sheet_shows_videos_and_volumes(run, tmp_path, suffix, write, size):
    (tmp_path / "in").mkdir()
    for index in range(8):
        write(tmp_path / "in" / f"{index}{suffix}", moving(index))
    words = ("-k", 2, "--features", "pixels", "-q", "-o", tmp_path / "result")
    assert run("cluster", tmp_path / "in", *words)[0] == 0
    (tmp_path / "in" / f"5{suffix}").unlink()  # the others have pictures all the same
    code, _, err = run("export", tmp_path / "result", tmp_path / "out")
    assert code == 0, err
    shown = on_sheet(tmp_path / "out")
    assert shown == {f"{index}{suffix}": size for index in (0, 1, 2, 3, 4, 6, 7)}


def test_without_pictures_the_contact_sheet_has_names(run, tmp_path):
    (tmp_path / "in").mkdir()
    for index in range(8):
        np.save(tmp_path / "in" / f"{index}.npy", moving(index))
    words = ("-k", 2, "--features", "pixels", "-q", "-o", tmp_path / "result")
    assert run("cluster", tmp_path / "in", *words)[0] == 0
    (tmp_path / "in" / "3.npy").write_bytes(b"no array any more")
    code, _, err = run("export", tmp_path / "result", tmp_path / "out")
    assert code == 0
    assert "names without pictures" in err
    assert (tmp_path / "out" / "contact-sheet.html").read_text().count("<figcaption>") == 8


@pytest.mark.slow
def test_pictures_of_one_name_stay_apart(run, planted, tmp_path):
    from PIL import Image

    for index, picture in enumerate(planted[0]):
        place = tmp_path / "in" / f"day {index % 3}"
        place.mkdir(parents=True, exist_ok=True)
        Image.fromarray(picture).save(place / f"{index // 3}.PNG")
    words = ("-k", 2, "--features", "pixels", "-q", "-o", tmp_path / "result")
    assert run("cluster", tmp_path / "in", *words)[0] == 0
    assert run("export", tmp_path / "result", tmp_path / "out")[0] == 0
    files = [
        file for place in (tmp_path / "out").iterdir() if place.is_dir() for file in place.iterdir()
    ]
    assert len(files) == 60
    assert len({file.resolve() for file in files}) == 60
    assert any(file.name.endswith(" (2).PNG") for file in files)


def test_nothing_that_is_there_is_touched(run, named, tmp_path):
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "mine").write_text("x")
    code, _, err = run("export", named, tmp_path / "full")
    assert code == 2
    assert "is there already" in err
    assert [path.name for path in (tmp_path / "full").iterdir()] == ["mine"]
    (tmp_path / "empty").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "empty")
    assert run("export", named, tmp_path / "link")[0] == 2
    assert not any((tmp_path / "empty").iterdir())


def test_files_beside_the_input_are_not_exported(run, named, tmp_path):
    """A table from a stranger may name any file; only those of the input are taken."""
    secret = tmp_path / "secret.png"
    secret.write_bytes(b"x")
    text = (named / "labels.csv").read_text()
    (named / "labels.csv").write_text(text.replace("001.png", str(secret)))
    assert run("export", named, tmp_path / "out")[0] == 0
    assert not any("secret" in path.name for path in (tmp_path / "out").rglob("*"))


@pytest.mark.slow
def test_samples_that_are_no_files_are_told(run, archive, clustered, tmp_path):
    assert run("cluster", archive, "--key", "images", "-k", 3, "-o", tmp_path / "a", "-q")[0] == 0
    assert "are no files" in run("export", tmp_path / "a", tmp_path / "out")[2]
    assert not (tmp_path / "out").exists()
    shutil.rmtree(tmp_path / "a")


@pytest.mark.parametrize(
    ("given", "safe"),
    [
        ("Cats", "Cats"), ("../../etc", "etc"), ("a/b\\c:d", "a b c d"), ("  .hidden. ", "hidden"),
        ("NUL.txt", "NUL.txt_"), ("\x00\n\x1b", ""), ("x" * 500, "x" * 80), ("Kälte", "Kälte"),
    ],
)  # fmt: skip
def test_names_are_safe_on_every_system(given, safe):
    assert safe_name(given) == safe
