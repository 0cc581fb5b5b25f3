"""The bare command on eight folders such as people have, and what the pages show of them."""

import base64
import io
import json
import re
import subprocess
import sys

import numpy as np
import pytest

pytest.importorskip("typer")
pytest.importorskip("av", reason="av is not installed")
Image = pytest.importorskip("PIL.Image", reason="pillow is not installed")

from tests.report.folders import FOLDERS  # noqa: E402

pytestmark = [pytest.mark.browser, pytest.mark.slow]


@pytest.mark.parametrize("make", FOLDERS, ids=lambda make: make.__name__)
def test_the_bare_command_on_a_folder(make, tmp_path, browser):
    folder = tmp_path / make.__name__
    folder.mkdir()
    n_samples = make(folder, np.random.default_rng(0))
    # --features keeps the test from comparing what a network sees, where one is installed.
    words = [sys.executable, "-m", "tuckermix", "cluster", folder.name, "--features", "auto"]
    done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr
    results = tmp_path / f"{folder.name}-clusters"
    summary = json.loads((results / "summary.json").read_text())
    assert summary["n_samples"] == n_samples
    assert len((results / "labels.csv").read_text().splitlines()) == n_samples + 1
    for note in summary["notes"]:  # a person who reads the terminal knows what was assumed
        assert note in done.stderr
        assert "--" in note or "are white" in note  # and how to change it

    page = browser.new_page(viewport={"width": 1200, "height": 900})
    errors = []
    page.on("pageerror", lambda error: errors.append(str(error)))
    page.goto((results / "report.html").as_uri())
    page.wait_for_selector("img")
    page.wait_for_timeout(500)
    shown = page.locator("img:visible")
    assert shown.count() >= 3
    for index in range(min(12, shown.count())):
        picture = shown.nth(index)
        picture.scroll_into_view_if_needed()
        seen = Image.open(io.BytesIO(picture.screenshot())).convert("L")
        low, high = np.percentile(np.asarray(seen), [2, 98])
        assert high - low > 50, f"picture {index} is one surface: from {low} to {high}"
    assert errors == []
    page.close()


def test_pictures_of_a_page_keep_their_proportions(tmp_path, browser):
    """Samples are squares of one size; what the page shows is the photographs themselves."""
    from tests.report.folders import as_bytes, scene

    rng = np.random.default_rng(0)
    folder = tmp_path / "mixed"
    folder.mkdir()
    for index in range(16):
        size = (150, 300) if index % 2 else (300, 150)
        grey = scene(rng, index // 2 % 2, *size)[..., 0]
        if index < 8:
            Image.fromarray((500 + 900 * grey).astype(np.uint16)).save(folder / f"{index}.tif")
        else:
            as_bytes(grey).save(folder / f"{index}.png")
    words = [
        sys.executable,
        "-m",
        "tuckermix",
        "cluster",
        "mixed",
        "-k",
        "2",
        "--features",
        "pixels",
    ]
    subprocess.run(words, cwd=tmp_path, check=True, capture_output=True, timeout=600)
    text = (tmp_path / "mixed-clusters" / "report.html").read_text()
    found = [
        Image.open(io.BytesIO(base64.b64decode(one)))
        for one in re.findall(r'<img[^>]*src="data:image/\w+;base64,([^"]+)"', text)
    ]
    ratios = {round(image.width / image.height, 1) for image in found}
    assert {0.5, 2.0} <= ratios
