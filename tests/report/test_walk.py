"""The way of a person through 300 pictures: cluster, correct, apply, predict, export."""

import csv
import io
import json
import threading
from pathlib import Path

import numpy as np
import pytest

from tuckermix.datasets import make_objects

pytestmark = [pytest.mark.browser, pytest.mark.slow]
NEW = 20


@pytest.fixture(scope="module")
def pictures(tmp_path_factory):
    """Render 300 pictures and 20 later ones of the same objects into two folders."""
    from PIL import Image

    root, data = tmp_path_factory.mktemp("walk"), make_objects(32, size=64, random_state=0)
    for index, picture in enumerate(data.X):
        folder = root / ("photos" if index < len(data.X) - NEW else "later")
        folder.mkdir(exist_ok=True)
        Image.fromarray(picture).save(folder / f"IMG_{index:04}.jpg", quality=92)
    return root


@pytest.fixture(scope="module")
def walked(pictures, browser, tmp_path_factory):
    """Cluster the pictures without a number, and correct what comes out in the page."""
    from tuckermix.cli import main

    result = tmp_path_factory.mktemp("results") / "result"
    words = ("cluster", pictures / "photos", "--features", "auto", "-o", result, "-q")
    assert main([str(word) for word in words]) == 0
    context = browser.new_context(viewport={"width": 1280, "height": 900})
    page = context.new_page()
    troubles = []
    page.on("console", lambda message: troubles.append(message.text))
    page.on("pageerror", lambda error: troubles.append(str(error)))
    page.goto((result / "report.html").as_uri())
    before = page.locator(".cluster").count()
    page.locator("#finer").click()
    page.locator("#finer").click()
    assert page.locator(".cluster").count() == before + 2
    page.locator(".cluster").nth(1).get_by_role("button", name="Merge").click()
    page.locator("#m-list button").first.click()
    assert page.locator(".cluster").count() == before + 1
    for number in range(before + 1):
        entry = page.locator(".cluster").nth(number).locator("input.title")
        entry.fill(f"album {number}")
        entry.press("Enter")
    wrong = page.locator(".cluster").first.locator(".tile").last
    page.wrong = wrong.get_attribute("title")
    wrong.focus()
    page.keyboard.press("x")
    page.reload()
    assert page.locator("#trayed").text_content() == "1"  # a reload keeps all of it
    seen = {}
    for row in page.locator(".cluster").all():
        name = row.locator("input.title").input_value()
        seen[name] = int(row.locator(".about b").text_content())
    with page.expect_download() as event:
        page.locator("#save").click()
    edits = result.parent / "edits.json"
    event.value.save_as(edits)
    yield result, edits, seen, page.wrong
    assert troubles == []
    context.close()


@pytest.fixture(scope="module")
def applied(walked):
    from tuckermix.cli import main

    result, edits, _, _ = walked
    assert main(["apply", str(result), str(edits), "-q"]) == 0
    return result.with_name("result-edited")


def rows(text):
    return list(csv.DictReader(io.StringIO(text)))


def test_the_edits_are_one_small_file(walked):
    _, path, seen, wrong = walked
    edits = json.loads(path.read_text())
    assert edits["format"] == 1
    assert set(edits["names"].values()) == set(seen)
    assert edits["exclude"] == [wrong]
    assert len(edits["merge"]) == 1
    assert path.stat().st_size < 2000


def test_apply_gives_what_the_page_showed(walked, applied):
    _, _, seen, wrong = walked
    table = rows((applied / "labels.csv").read_text())
    names, counts = np.unique([row["name"] for row in table if row["name"]], return_counts=True)
    assert dict(zip(names.tolist(), counts.tolist(), strict=True)) == seen
    assert [row["file"] for row in table if row["label"] == "-1"] == [wrong]


def test_predict_gives_the_names(walked, applied, pictures, capfd):
    from tuckermix.cli import main

    assert main(["predict", str(applied), str(pictures / "later"), "-q"]) == 0
    table = rows(capfd.readouterr().out)
    assert len(table) == NEW
    assert {row["name"] for row in table} <= set(walked[2])


def test_export_makes_the_folders(walked, applied, pictures, tmp_path):
    from tuckermix.cli import main

    assert main(["export", str(applied), str(tmp_path / "albums"), "-q"]) == 0
    folders = {
        path.name: len(list(path.iterdir()))
        for path in (tmp_path / "albums").iterdir()
        if path.is_dir()
    }
    assert folders == {**walked[2], "set aside": 1}


def test_the_new_page_shows_names_and_keeps_what_was_set_aside(walked, applied, browser):
    page = browser.new_page()
    page.goto((applied / "report.html").as_uri())
    titles = {entry.input_value() for entry in page.locator("input.title").all()}
    assert titles == set(walked[2])
    assert page.locator("#trayed").text_content() == "1"
    assert page.locator("#save").is_disabled()  # nothing is changed yet
    page.close()


def test_pictures_are_served_from_their_files(walked, browser):
    """The server of `tuckermix open` sends pictures from their files, sharp."""
    from tuckermix.cli import _earlier
    from tuckermix.cli.open import ReportServer
    from tuckermix.report import files_below

    result = walked[0]
    text = (result / "report.html").read_text()
    earlier = _earlier.read_results(result)
    with ReportServer(text, files_below(earlier.roots, earlier.names)) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            look_at(browser, server.address)
        finally:
            server.shutdown()
            thread.join()


def look_at(browser, address):
    page = browser.new_page()
    troubles = []
    page.on("console", lambda message: troubles.append(message.text))
    page.goto(address)
    page.locator(".tile").first.click()
    image = page.locator("#v-picture img")
    assert image.get_attribute("src").startswith("p/")
    assert image.evaluate("image => image.decode().then(() => image.naturalWidth)") == 64
    assert troubles == []
    page.close()


def test_a_thousand_photographs_weigh_6_mb_and_show_at_once(browser, tmp_path):
    """The weight of the page, and whether its first picture waits for the script."""
    from PIL import Image

    from tuckermix.clustering import TuckerClustering
    from tuckermix.report import write_report

    rng, folder = np.random.default_rng(0), tmp_path / "photos"
    folder.mkdir()
    small = make_objects(100, size=32, random_state=0)
    names = [f"IMG_{index:04}.jpg" for index in range(1000)]
    for name, picture in zip(names, small.X, strict=True):
        whole = Image.fromarray(picture).resize((640, 480))
        noisy = np.asarray(whole) + rng.normal(size=(480, 640, 3)) * 12  # as from a camera
        Image.fromarray(np.clip(noisy, 0, 255).astype(np.uint8)).save(folder / name)
    X = small.X.astype(np.float32)
    model = TuckerClustering(10, random_state=0).fit(X)
    write_report(tmp_path / "report.html", model, X, names=names, folder=folder)
    assert (tmp_path / "report.html").stat().st_size <= 6_000_000
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto((tmp_path / "report.html").as_uri(), wait_until="commit")
    page.locator("#v-clusters img").first.wait_for(state="visible")
    context.close()
    assert Path(folder / names[0]).is_file()
