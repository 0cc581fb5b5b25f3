"""The report in a browser: its weight, when its first picture is there, and frames per second.

``python -m benchmarks.bench_report`` needs Playwright and a Chromium. It writes the report on 1,000
photographs of 640 x 480 with the noise of a camera, and those on 10,000 and 100,000 small samples,
opens them, scrolls the list of all samples and zooms the map. Frames per second depend on what else
the machine does; the processor time of the page for one frame hardly does.
"""

from __future__ import annotations

import argparse
import json
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
PHOTOGRAPHS, MANY, MOST = 1000, 10_000, 100_000

FIRST_PICTURE = """() => new Promise((done) => {
  const look = () => {
    const image = document.querySelector('#v-clusters img');
    if (image?.complete && image.getBoundingClientRect().height > 10) done(performance.now());
    else requestAnimationFrame(look);
  };
  look();
})"""

FRAMES = """(act) => new Promise((done) => {
  const moves = { scroll: () => scrollBy(0, 120),
    map: (step) => document.getElementById(step % 40 < 20 ? 'closer' : 'farther').click() };
  const start = performance.now();
  let count = 0;
  const next = () => {
    moves[act](count);
    count += 1;
    if (performance.now() - start < 4000) requestAnimationFrame(next);
    else done([count, performance.now() - start]);
  };
  requestAnimationFrame(next);
})"""
"""Move the page in each frame for four seconds; scrolling passes 7,200 pixels in a second."""


def page_of_photographs(path: Path, count: int) -> None:
    """Write photographs of objects, and the report on them."""
    rng = np.random.default_rng(0)
    small = make_objects(count // 10, size=32, random_state=0).X
    names = [f"IMG_{index:04}.jpg" for index in range(count)]
    for name, picture in zip(names, small, strict=True):
        whole = np.asarray(Image.fromarray(picture).resize(SIDES), dtype=float)
        noisy = np.clip(whole + 12 * rng.normal(size=whole.shape), 0, 255)
        Image.fromarray(noisy.astype(np.uint8)).save(path.parent / name)
    X = small.astype(np.float32)
    model = TuckerClustering(10, random_state=0).fit(X)
    write_report(path, model, X, names=names, folder=path.parent)


def page_of(path: Path, count: int) -> None:
    """Write the report on many small samples."""
    rng = np.random.default_rng(0)
    kinds = rng.normal(size=(20, 8, 8))
    X = kinds[np.arange(count) % 20] + 0.3 * rng.normal(size=(count, 8, 8))
    write_report(path, TuckerClustering(20, random_state=0).fit(X.astype(np.float32)), X)


def opened(browser: Any, path: Path) -> tuple[Any, float]:
    """Open a page; return it and the milliseconds until its first picture."""
    page = browser.new_page(viewport={"width": 1280, "height": 900})
    page.goto(path.as_uri(), wait_until="commit")
    return page, page.evaluate(FIRST_PICTURE)


def frames(page: Any, act: str) -> tuple[float, float]:
    """Move a page; return the frames per second and the milliseconds of processor time of one."""
    session = page.context.new_cdp_session(page)
    session.send("Performance.enable", {"timeDomain": "threadTicks"})

    def spent() -> float:
        metrics = session.send("Performance.getMetrics")["metrics"]
        return next(one["value"] for one in metrics if one["name"] == "TaskDuration")

    before = spent()
    count, passed = page.evaluate(FRAMES, act)
    return 1000 * count / passed, 1000 * (spent() - before) / count


def measured(browser: Any, path: Path) -> dict[str, float]:
    """Return the figures of one page."""
    page, first = opened(browser, path)
    row = {"megabytes": round(path.stat().st_size / 1e6, 1), "first picture, ms": round(first)}
    for view, act, name in (("all", "scroll", "list"), ("map", "map", "map")):
        page.locator(f".tab[data-view={view}]").click()
        page.wait_for_timeout(500)
        rate, cost = frames(page, act)
        row |= {f"{name}, frames/s": round(rate), f"{name}, ms per frame": round(cost, 1)}
    page.close()
    return row


def main() -> None:
    from playwright.sync_api import sync_playwright

    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--write", action="store_true", help="replace the published figures")
    parser.add_argument("--pages", type=Path, help="keep the pages there, or take them from there")
    options = parser.parse_args()
    target = Path(__file__).parent / ("results" if options.write else "_scratch")
    rows: dict[str, dict[str, float]] = {}
    with tempfile.TemporaryDirectory() as name, sync_playwright() as playwright:
        folder = options.pages or Path(name)
        folder.mkdir(exist_ok=True)
        found = shutil.which("chromium") or shutil.which("google-chrome")
        browser = playwright.chromium.launch(executable_path=found, args=FLAGS)
        for count, what, write in (
            (PHOTOGRAPHS, "photographs", page_of_photographs),
            (MANY, "samples", page_of),
            (MOST, "samples", page_of),
        ):
            path = folder / f"{count}.html"
            if not path.exists():
                write(path, count)
            rows[f"{count:,} {what}"] = measured(browser, path)
            print(rows, flush=True)
        browser.close()
    about, command = reporting.environment(), "python -m benchmarks.bench_report"
    titles = ["", *rows[f"{MANY:,} samples"]]
    lines = [f"| {' | '.join(titles)} |", "|" + "---|" * len(titles)]
    lines += [f"| {what} | {' | '.join(map(str, row.values()))} |" for what, row in rows.items()]
    target.mkdir(exist_ok=True)
    document = {"command": command, "environment": about, "rows": rows}
    (target / "report.json").write_text(json.dumps(document, indent=1) + "\n")
    heading = reporting.heading(command, "One run", about)
    (target / "report.md").write_text("\n".join([heading, "", *lines, ""]))
    print(f"Stored in {target}.")


if __name__ == "__main__":
    main()
