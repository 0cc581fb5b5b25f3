"""A fitted model, its report, and a browser to open it in."""

import os
import shutil

import numpy as np
import pytest
from sklearn.datasets import load_digits

from tuckermix.clustering import TuckerClustering

BROWSERS = ("chromium", "chromium-browser", "google-chrome", "chrome")
ARGUMENTS = [
    "--no-sandbox",  # tests may run as root, in a container
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
HOSTILE = "<script>alert(1)</script><b>x</b> & \"q\" 'a' .png"


@pytest.fixture(scope="session")
def samples():
    X, y = load_digits(return_X_y=True)
    keep = y < 5
    return X[keep].reshape(-1, 8, 8)[:400], y[keep][:400]


@pytest.fixture(scope="session")
def model(samples):
    return TuckerClustering(5, random_state=0).fit(samples[0])


@pytest.fixture(scope="session")
def report_path(samples, model, tmp_path_factory):
    from tuckermix.report import write_report

    X, y = samples
    names = [f"digit-{index}.png" for index in range(len(X))]
    names[17] = HOSTILE
    path = tmp_path_factory.mktemp("report") / "report.html"
    words = np.array(["zero", "one", "two", "<i>three</i>", "four"])[y]
    write_report(
        path, model, X, truth=words, names=names, title="Digits <em>", source="a <u>", seconds=1.25
    )
    return path


@pytest.fixture(scope="session")
def browser():
    sync_api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    given = os.environ.get("CHROMIUM")
    found = given or next(filter(None, map(shutil.which, BROWSERS)), None)
    if found is None:
        pytest.skip(f"no browser found: install one of {', '.join(BROWSERS)}, or set CHROMIUM")
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=found, args=ARGUMENTS)
        yield browser
        browser.close()
