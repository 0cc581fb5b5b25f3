"""Draw the pictures of the documentation: ``python docs/make_images.py``.

They come from scikit-learn's digits and from synthetic data only. ``python docs/make_images.py
report`` draws those of the report only, which need Playwright and a Chromium.
"""

import runpy
import shutil
import sys
import tempfile
from pathlib import Path

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
import numpy as np
from PIL import Image
from sklearn.pipeline import make_pipeline

from tuckermix import AutoClustering, TuckerClustering
from tuckermix.datasets import load, make_objects
from tuckermix.features import Scattering
from tuckermix.features._wavelets import morlet
from tuckermix.plots import (
    AbundanceDisplay,
    CentroidDisplay,
    ComponentDisplay,
    ConfusionDisplay,
    ConvergenceDisplay,
    EnergyDisplay,
    MapDisplay,
    MemberDisplay,
    MembershipDisplay,
    SelectionDisplay,
    TreeDisplay,
)
from tuckermix.report import write_report

HERE = Path(__file__).parent / "_static"
DOTS_PER_INCH = 110
COLOURS = 256
SCREENS = {"report": (1280, 860, "light"), "report-phone": (390, 844, "dark")}
CHROMIUM = ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-sync"]


def shrink(path):
    """Store a picture with few colours: drawings need no more, and a repository keeps them all."""
    with Image.open(path) as image:
        small = image.convert("RGB").quantize(COLOURS, dither=Image.Dither.NONE)
    small.save(path, optimize=True)


def keep(display, name):
    """Write the figure of a display."""
    path = HERE / f"{name}.png"
    display.figure_.savefig(path, dpi=DOTS_PER_INCH)
    shrink(path)


def moving_blobs(n_samples=90, n_frames=12, side=16):
    """Make videos of a blob that goes right, goes down, or stays and pulses."""
    rng = np.random.default_rng(0)
    y, x = np.mgrid[:side, :side]
    videos = []
    for index in range(n_samples):
        kind, size = index % 3, rng.uniform(2, 3)
        for frame in range(n_frames):
            way = 3 + 10 * frame / (n_frames - 1)
            centre = [(8, way), (way, 8), (8, 8)][kind]
            light = 1 if kind < 2 else 0.55 + 0.45 * np.sin(frame)
            blob = light * np.exp(-((y - centre[0]) ** 2 + (x - centre[1]) ** 2) / size**2)
            videos.append(blob + 0.05 * rng.normal(size=(side, side)))
    return np.reshape(videos, (n_samples, n_frames, side, side))


def draw_wavelets(n_angles=8, n_scales=3, side=48):
    """Draw the real parts of the wavelets of the scattering transform, by scale and angle."""
    figure, axes = plt.subplots(n_scales, n_angles, figsize=(n_angles, n_scales + 0.3))
    for j in range(n_scales):
        for angle in range(n_angles):
            wavelet = np.fft.fftshift(np.fft.ifft2(morlet((side, side), j, angle, n_angles)).real)
            limit = np.abs(wavelet).max()
            axes[j, angle].imshow(wavelet, cmap="RdBu", vmin=-limit, vmax=limit)
            axes[j, angle].set(xticks=[], yticks=[])
        axes[j, 0].set_ylabel(f"scale {j}")
    figure.tight_layout()
    figure.savefig(HERE / "wavelets.png", dpi=DOTS_PER_INCH)
    shrink(HERE / "wavelets.png")


def boxes(n_samples=90, side=18):
    """Make volumes that hold a ball, a rod or a plate."""
    rng = np.random.default_rng(0)
    z, y, x = np.mgrid[:side, :side, :side] - (side - 1) / 2
    volumes = []
    for index in range(n_samples):
        radius = rng.uniform(4, 5)
        ball = np.hypot(np.hypot(x, y), z) < radius
        rod = np.hypot(x, y) < radius / 1.6
        plate = np.abs(z) < radius / 2
        volumes.append((ball, rod, plate)[index % 3] + 0.05 * rng.normal(size=ball.shape))
    return np.stack(volumes)


def scene(height=40, width=60, n_bands=30):
    """Make a scene of three materials that pass into each other, with a spectrum each."""
    rng = np.random.default_rng(0)
    y, x = np.mgrid[:height, :width]
    places = np.array([(10, 12), (28, 30), (12, 50)])
    near = np.stack([np.exp(-np.hypot(y - a, x - b) / 6) for a, b in places], axis=-1)
    abundances = near / near.sum(axis=-1, keepdims=True)
    spectra = np.cumsum(rng.normal(size=(3, n_bands)), axis=1)
    return abundances @ spectra + 0.01 * rng.normal(size=(height, width, n_bands))


def first_visit(browser):
    """Photograph what the tutorial with one command ends in."""
    script = HERE.parents[1] / "examples" / "tutorials" / "one_command.py"
    place = runpy.run_path(str(script))["place"]
    tab = browser.new_page(viewport={"width": 1280, "height": 760})
    tab.goto((place / "kinds" / "report.html").as_uri())
    photograph(tab, "one-command")


def photograph(tab, name):
    """Photograph what a page shows."""
    tab.wait_for_timeout(500)
    tab.screenshot(path=HERE / f"{name}.png")
    shrink(HERE / f"{name}.png")


def screenshots():
    """Photograph the report on a desktop, and on a phone in the dark."""
    from playwright.sync_api import sync_playwright

    data = make_objects(n_per_class=14, size=128, random_state=0)
    looks = make_pipeline(Scattering(J=3), TuckerClustering(10, random_state=0))
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        page = Path(folder) / "report.html"
        write_report(page, looks.fit(data.X), data.X, title="Ten objects")
        found = shutil.which("chromium") or shutil.which("google-chrome")
        browser = playwright.chromium.launch(executable_path=found, args=CHROMIUM)
        for name, (width, height, scheme) in SCREENS.items():
            size = {"width": width, "height": height}
            tab = browser.new_page(viewport=size, color_scheme=scheme)
            tab.goto(page.as_uri())
            photograph(tab, name)
        first_visit(browser)
        browser.close()


def main():
    """Draw everything."""
    HERE.mkdir(exist_ok=True)
    digits = load("digits")
    X, y = digits.X.astype(float), digits.labels
    model = TuckerClustering(10, random_state=0).fit(X)
    keep(CentroidDisplay.from_estimator(model), "centroids")
    keep(MemberDisplay.from_estimator(model, X), "members")
    keep(MembershipDisplay.from_estimator(model, X), "soft-labels")
    keep(MapDisplay.from_estimator(model, X), "map")
    keep(TreeDisplay.from_estimator(model, X), "tree")
    keep(EnergyDisplay.from_estimator(model, X), "energy")
    keep(ConfusionDisplay.from_estimator(model, X, y), "confusion")
    few = X[np.isin(y, [1, 7, 8])]
    three = TuckerClustering(3, random_state=0).fit(few)
    keep(MembershipDisplay.from_estimator(three, few), "ternary")
    paper = TuckerClustering(
        10, n_components=10, solver="trust-region", init="random", n_init=1, random_state=0
    )
    keep(ConvergenceDisplay.from_estimator(paper.fit(X)), "convergence")
    videos = TuckerClustering(3, random_state=0).fit(moving_blobs())
    keep(CentroidDisplay.from_estimator(videos, kind="video"), "centroids-video")
    parts = TuckerClustering(3, n_components=3, memberships="archetypes", random_state=0)
    keep(ComponentDisplay.from_estimator(parts.fit(moving_blobs()), kind="video"), "components")
    for kind in ("anchored", "min-volume", "archetypes"):
        parts = TuckerClustering(3, n_components=5, memberships=kind, random_state=0).fit(few)
        keep(ComponentDisplay.from_estimator(parts), f"components-{kind}")
    pixels = TuckerClustering(
        3, n_components=3, memberships="min-volume", assign_labels="subspace", random_state=0
    ).fit(scene().reshape(-1, 30))
    keep(AbundanceDisplay.from_estimator(pixels, (40, 60)), "abundances")
    chosen = AutoClustering(features="pixels", random_state=0).fit(X[:600])
    keep(SelectionDisplay.from_estimator(chosen), "selection")
    volumes = TuckerClustering(3, assign_labels="subspace", random_state=0).fit(boxes())
    keep(CentroidDisplay.from_estimator(volumes), "centroids-volume")
    draw_wavelets()
    screenshots()


if __name__ == "__main__":
    screenshots() if sys.argv[1:] == ["report"] else main()
