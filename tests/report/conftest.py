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
FORMULA = '=HYPERLINK("x"),1.png'


@pytest.fixture(scope="session")
def samples():
    X, y = load_digits(return_X_y=True)
    keep = y < 5
    return X[keep].reshape(-1, 8, 8)[:400], y[keep][:400]


@pytest.fixture(scope="session")
def model(samples):
    return TuckerClustering(5, random_state=0).fit(samples[0])


@pytest.fixture(scope="session")
def photos(tmp_path_factory):
    """Make a folder of 60 generated photographs of three kinds, with a place in their EXIF data."""
    from PIL import Image

    rng = np.random.default_rng(0)
    root = tmp_path_factory.mktemp("snapshots")
    for index in range(60):
        photograph(rng, index % 3).save(root / f"IMG_{index:03}.jpg", exif=where_it_was(Image))
    return root


def photograph(rng, kind, side=240):
    """Draw a sunset, mountains or a meadow, upright or wide."""
    from PIL import Image

    width, height = [(side * 4 // 3, side), (side, side * 4 // 3)][rng.integers(2)]
    y, x = np.mgrid[:height, :width] / height
    top, bottom = [((58, 46, 110), (255, 158, 70)), ((84, 140, 205), (230, 236, 244)),
                   ((120, 184, 240), (200, 230, 250))][kind]  # fmt: skip
    image = np.array(top) + (np.array(bottom) - np.array(top)) * y[..., None]
    if kind == 0:
        image[np.hypot(x - rng.uniform(0.3, 0.8), y - rng.uniform(0.3, 0.5)) < 0.09] = 250, 236, 190
        image[y > 0.6] = 70, 50, 90
    else:
        waves = 0.1 * np.sin(x * rng.uniform(5, 9) + rng.uniform(0, 7)) * (kind == 1)
        image[y > 0.55 + waves] = [(0, 0, 0), (70, 84, 96), (84, 140, 60)][kind]
    image = image * rng.uniform(0.9, 1.05) + rng.normal(0, 3, (height, width, 1))
    return Image.fromarray(np.clip(image, 0, 255).astype(np.uint8))


def where_it_was(Image):
    exif = Image.Exif()
    exif[0x010E] = "SECRET PLACE"
    exif.get_ifd(0x8825)[1] = "N"
    return exif


@pytest.fixture(scope="session")
def snapshots_path(photos, tmp_path_factory):
    """Write a report on these photographs, from their files."""
    from tuckermix.datasets import read
    from tuckermix.report import write_report

    data = read(photos, size=24)
    model = TuckerClustering(3, random_state=0).fit(data.X.astype(float))
    path = tmp_path_factory.mktemp("page") / "report.html"
    write_report(path, model, data.X.astype(float), names=data.names, folder=photos)
    return path


@pytest.fixture(scope="session")
def report_path(samples, model, tmp_path_factory):
    from tuckermix.report import write_report

    X, y = samples
    names = [f"digit-{index}.png" for index in range(len(X))]
    names[17], names[23] = HOSTILE, FORMULA
    path = tmp_path_factory.mktemp("report") / "report.html"
    words = np.array(["zero", "one", "two", "<i>three</i>", "four"])[y]
    write_report(
        path, model, X, truth=words, names=names, title="Digits <em>", source="a <u>", seconds=1.25
    )
    return path


@pytest.fixture(scope="session")
def photos_path(tmp_path_factory):
    """Write a report on colour pictures of 60 x 60 beside the folder of their files."""
    from PIL import Image

    from tuckermix.report import write_report

    rng = np.random.default_rng(0)
    y, x = np.mgrid[:60, :60] / 60
    waves = np.stack([np.sin(9 * x), np.sin(9 * y), np.sin(9 * (x + y))])
    colours = np.array([[1.0, 0.6, 0.2], [0.2, 0.6, 1.0], [0.4, 1.0, 0.4]])
    kinds = 128 + 100 * waves[..., None] * colours[:, None, None]
    X = np.clip(kinds[np.arange(24) % 3] + 12 * rng.normal(size=(24, 60, 60, 3)), 0, 255)
    X = X.astype(np.uint8)
    root = tmp_path_factory.mktemp("photos")
    names = [f"trip {index // 12}/photo #{index}.png" for index in range(24)]
    for name, pixels in zip(names, X, strict=True):
        (root / "files" / name).parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(pixels).save(root / "files" / name)
    model = TuckerClustering(3, random_state=0).fit(X.astype(float))
    skipped = [("broken <b>.png", "it ends in the middle of its data")]
    path = root / "result" / "report.html"
    path.parent.mkdir()
    write_report(path, model, X.astype(float), names=names, folder=root / "files", skipped=skipped)
    return path


def moving(n=18):
    """Make videos of 9 frames of 20 x 24: a spot that goes right, or down, or that grows."""
    rng = np.random.default_rng(1)
    y, x = np.mgrid[:20, :24]
    X = []
    for index in range(n):
        shift = rng.normal(size=2)
        frames = []
        for t in range(9):
            right, down, size = [(2 * t, 0, 3), (0, 2 * t, 3), (8, 8, 1 + t / 2)][index % 3]
            away = (x - 4 - right - shift[0]) ** 2 + (y - 2 - down - shift[1]) ** 2
            frames.append(200 * np.exp(-away / (2 * size**2)))
        X.append(frames)
    return np.array(X) + rng.normal(size=(n, 9, 20, 24))


def write_moving(folder, X, kind, title):
    """Write a report on samples of three modes and return its path."""
    from tuckermix.report import write_report

    model = TuckerClustering(3, random_state=0).fit(X)
    write_report(folder / "report.html", model, X, kind=kind, title=title)
    return folder / "report.html"


@pytest.fixture(scope="session")
def videos_path(tmp_path_factory):
    return write_moving(tmp_path_factory.mktemp("videos"), moving(), "video", "Videos")


@pytest.fixture(scope="session")
def volumes_path(tmp_path_factory):
    X = moving()[:, :, :12, :12]
    return write_moving(tmp_path_factory.mktemp("volumes"), X, "volume", "Volumes")


@pytest.fixture(scope="session")
def spectra():
    """Make 60 spectra of 120 bands with two peaks, at places that tell three kinds apart."""
    rng, band, kinds = np.random.default_rng(0), np.arange(120.0), np.arange(60) % 3
    peaks = [(30, 70), (45, 70), (45, 95)]
    X = [sum(np.exp(-(((band - at) / 4) ** 2)) for at in peaks[kind]) for kind in kinds]
    return np.array(X) + 0.02 * rng.normal(size=(60, 120))


@pytest.fixture(scope="session")
def spectra_path(spectra, tmp_path_factory):
    from tuckermix.report import write_report

    path = tmp_path_factory.mktemp("spectra") / "report.html"
    write_report(path, TuckerClustering(3, random_state=0).fit(spectra), spectra, title="Spectra")
    return path


@pytest.fixture(scope="session")
def table_path(tmp_path_factory):
    """Write a report on a table of 90 rows of 7 columns, each row with a name."""
    from tuckermix.report import write_report

    rng = np.random.default_rng(1)
    X = rng.normal(size=(3, 7))[np.arange(90) % 3] + 0.1 * rng.normal(size=(90, 7))
    path = tmp_path_factory.mktemp("table") / "report.html"
    model = TuckerClustering(3, random_state=0).fit(X)
    names = [f"row {index}" for index in range(90)]
    write_report(path, model, X, names=names, title="A table")
    return path


@pytest.fixture(scope="session")
def many_path(tmp_path_factory):
    """Write a report on 10,000 samples in 60 clusters, of which 300 have pictures."""
    from tuckermix.report import write_report
    from tuckermix.report._images import PageSettings

    rng = np.random.default_rng(0)
    kinds = rng.normal(size=(60, 4, 4))
    X = kinds[np.arange(10_000) % 60] + 0.05 * rng.normal(size=(10_000, 4, 4))
    model = TuckerClustering(60, assign_labels="subspace", n_init=1, random_state=0).fit(X)
    path = tmp_path_factory.mktemp("many") / "report.html"
    with PageSettings(placed=300).use():
        write_report(path, model, X, truth=np.arange(10_000) % 10)
    return path


@pytest.fixture(scope="session")
def lone_path(tmp_path_factory):
    """Write a report on six samples, each a cluster of its own."""
    from tuckermix.report import write_report

    X = 10 * np.random.default_rng(2).normal(size=(6, 5, 5))
    model = TuckerClustering(6, assign_labels="subspace", random_state=0).fit(X)
    assert sorted(model.labels_) == list(range(6))
    path = tmp_path_factory.mktemp("lone") / "report.html"
    write_report(path, model, X)
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
