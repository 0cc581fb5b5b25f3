"""The page on plots shows every display."""

import re
from pathlib import Path

DOCS = Path(__file__).resolve().parents[2] / "docs"
IMAGE_BYTES = 150_000


def test_every_display_has_an_image():
    from tuckermix import plots

    text = (DOCS / "plots.rst").read_text()
    for name in plots.__all__:
        assert f"{name}.from_estimator" in text
    images = re.findall(r"image:: (\S+)", text + (DOCS / "report.rst").read_text())
    assert len(images) >= len(plots.__all__)
    for image in images:
        assert 0 < (DOCS / image).stat().st_size < IMAGE_BYTES
