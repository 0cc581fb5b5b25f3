"""The report in a browser: its weight, when its first picture is there, and frames per second.

``python -m benchmarks.bench_report`` needs Playwright and a Chromium. It writes the report on 1,000
photographs of 640 x 480 with the noise of a camera, and those on 10,000 and 100,000 small samples,
and opens them. Wall times of a browser depend on the machine and on what else it does.
"""

from __future__ import annotations

import argparse
import shutil
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from benchmarks import reporting
from tuckermix import TuckerClustering
from tuckermix.datasets import make_objects
from tuckermix.report import write_report

FLAGS = ["--no-sandbox", "--disable-gpu"]
SIDES = 640, 480
PHOTOGRAPHS = 1000

FIRST_PICTURE = """() => new Promise((done) => {
  const look = () => {
    const image = document.querySelector('#v-clusters img');
    if (image?.complete && image.getBoundingClientRect().height > 10) done(performance.now());
    else requestAnimationFrame(look);
  };
  look();
})"""

FRAMES = """(act) => new Promise((done) => {
  const moves = { scroll: (step) => scrollBy(0, step * 40),
    map: (step) => document.getElementById(step % 40 < 20 ? 'closer' : 'farther').click() };
  const start = performance.now();
  let count = 0;
  const next = () => {
    moves[act](count);
    count += 1;
    const passed = performance.now() - start;
    if (passed < 3000) requestAnimationFrame(next); else done(1000 * count / passed);
  };
  requestAnimationFrame(next);
})"""


def photographs(folder: Path) -> tuple[np.ndarray, list[str]]:
    """Write photographs of objects, and return small ones and their names."""
    rng = np.random.default_rng(0)
    small = make_objects(PHOTOGRAPHS // 10, size=32, random_state=0).X
    names = [f"IMG_{index:04}.jpg" for index in range(PHOTOGRAPHS)]
    for name, picture in zip(names, small, strict=True):
        whole = np.asarray(Image.fromarray(picture).resize(SIDES), dtype=float)
        noisy = np.clip(whole + 12 * rng.normal(size=whole.shape), 0, 255)
        Image.fromarray(noisy.astype(np.uint8)).save(folder / name)
    return small.astype(np.float32), names


def page_of(folder: Path, n_samples: int) -> Path:
    """Write the report on many small samples."""
    rng = np.random.default_rng(0)
    kinds = rng.normal(size=(20, 8, 8))
    X = kinds[np.arange(n_samples) % 20] + 0.3 * rng.normal(size=(n_samples, 8, 8))
    path = folder / f"{n_samples}.html"
    write_report(path, TuckerClustering(20, random_state=0).fit(X.astype(np.float32)), X)
    return path


def opened(browser: Any, path: Path) -> tuple[Any, float]:
    """Open a page; return it and the milliseconds until its first picture."""
    page = browser.new_page(viewport={"width": 1280, "height": 900})
    page.goto(path.as_uri(), wait_until="commit")
    return page, page.evaluate(FIRST_PICTURE)


def main() -> None:
    from playwright.sync_api import sync_playwright

    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--write", action="store_true", help="replace the published figures")
    options = parser.parse_args()
    here = Path(__file__).parent
    rows = []
    with tempfile.TemporaryDirectory() as name, sync_playwright() as playwright:
        folder = Path(name)
        X, names = photographs(folder)
        path = folder / "photographs.html"
        model = TuckerClustering(10, random_state=0).fit(X)
        write_report(path, model, X, names=names, folder=folder)
        found = shutil.which("chromium") or shutil.which("google-chrome")
        browser = playwright.chromium.launch(executable_path=found, args=FLAGS)
        for page_path in (path, page_of(folder, 10_000), page_of(folder, 100_000)):
            page, first = opened(browser, page_path)
            page.locator(".tab[data-view=all]").click()
            scrolled = page.evaluate(FRAMES, "scroll")
            page.locator(".tab[data-view=map]").click()
            moved = page.evaluate(FRAMES, "map")
            row = {
                "page": page_path.stem,
                "megabytes": round(page_path.stat().st_size / 1e6, 2),
                "first picture (ms)": round(first),
                "list, frames/s": round(scrolled),
                "map, frames/s": round(moved),
            }
            print(row, flush=True)
            rows.append(row)
            page.close()
        browser.close()
    target = here / ("results" if options.write else "_scratch")
    reporting.store(rows, target, "report", "python -m benchmarks.bench_report", "Wall times")
    print(f"Stored in {target}.")


if __name__ == "__main__":
    main()
