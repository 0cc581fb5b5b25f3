"""All of MNIST: the report stays small and says what it leaves out."""

import os
from pathlib import Path

import pytest

REPORT_BYTES = 8_000_000
HOME = os.environ.get("TUCKERMIX_DATA")


@pytest.mark.slow
@pytest.mark.data
@pytest.mark.skipif(
    HOME is None or not (Path(HOME) / "mnist.npz").is_file(), reason="TUCKERMIX_DATA has no MNIST"
)
def test_seventy_thousand_images(run, tmp_path, summary):
    out = tmp_path / "out"
    source = Path(HOME) / "mnist.npz"
    code, _, err = run(
        "cluster", source, "-k", 10, "--ranks", "14x14", "--truth", "labels", "-o", out
    )
    assert code == 0, err
    page = (out / "report.html").read_text()
    assert len(page.encode()) < REPORT_BYTES
    assert "70,000 pictures in 10 clusters" in page
    assert len((out / "labels.csv").read_text().splitlines()) == 70_001
    values = summary(out)
    assert values["accuracy"] >= 0.68
    assert values["nmi"] >= 0.69
