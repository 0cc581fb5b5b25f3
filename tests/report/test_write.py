import base64
import hashlib
import html
import io
import re
import sys

import numpy as np
import pytest
from PIL import Image

from tuckermix.clustering import TuckerClustering
from tuckermix.plots.style import COLOURS
from tuckermix.report import render_report, write_report
from tuckermix.report._write import style

pytest.importorskip("jinja2")
pytest.importorskip("PIL")


def test_page_names_no_other_host(report_path):
    text = report_path.read_text()
    assert not re.search(r"https?:|(?:src|href)=[\"']?//|@import", text)


def test_user_strings_are_escaped(report_path):
    text = report_path.read_text()
    assert "<script>alert" not in text
    assert "<i>three" not in text
    assert "<title>Digits &lt;em&gt;</title>" in text


def test_overview_tells_what_was_done(report_path):
    text = report_path.read_text()
    for word in ("ariance explained", "ptimality gap", "NMI", "accuracy", "1.2 s", "5 clusters"):
        assert word in text


def test_small_data_need_no_more_than_they_have():
    X = np.random.default_rng(0).random((3, 4, 5))
    model = TuckerClustering(2, random_state=0).fit(X)
    text = render_report(model, X)
    assert text.count("<article") == 2
    assert "accuracy" not in text


@pytest.mark.parametrize(
    ("shape", "size"),
    [
        ((9,), (192, 96)),
        ((6, 7), (7, 6)),
        ((6, 7, 3), (7, 6)),
        ((5, 6, 7), (23, 6)),
        ((4, 8, 8, 3), (26, 17)),
    ],
)
def test_samples_of_any_shape_have_pictures(shape, size):
    rng = np.random.default_rng(1)
    X = np.repeat(rng.random((2, *shape)), 12, axis=0) + 0.05 * rng.random((24, *shape))
    model = TuckerClustering(2, random_state=0).fit(X)
    found = re.findall(
        r'<img data-place="\d+" src="data:image/[a-z]+;base64,([^"]*)"', render_report(model, X)
    )
    assert len(found) == 24
    for content in found:
        with Image.open(io.BytesIO(base64.b64decode(content))) as image:
            assert image.size == size


def test_existing_file_survives_a_failed_report(tmp_path, samples, model):
    path = tmp_path / "report.html"
    path.write_text("old")
    with pytest.raises(ValueError, match="truth has shape"):
        write_report(path, model, samples[0], truth=[1, 2])
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("package", ["jinja2", "PIL"])
def test_missing_packages_are_named(samples, model, monkeypatch, package):
    monkeypatch.setitem(sys.modules, package, None)
    name = {"PIL": "pillow"}.get(package, package)
    with pytest.raises(ImportError, match=rf"The report needs {name}: install tuckermix\[report\]"):
        render_report(model, samples[0])


def test_the_policy_allows_this_style_and_this_script_only(report_path):
    text = report_path.read_text()
    policy = html.unescape(re.search(r'Content-Security-Policy" content="([^"]*)"', text)[1])
    rules = dict(rule.split(" ", 1) for rule in policy.split("; "))
    assert rules["default-src"] == rules["base-uri"] == rules["form-action"] == "'none'"
    assert rules["img-src"] == "data:"
    for tag in ("style", "script"):
        (content,) = re.findall(rf"<{tag}>(.*?)</{tag}>", text, re.DOTALL)
        digest = base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()
        assert rules[f"{tag}-src"] == f"'sha256-{digest}'"
    assert not re.search(r"<[^>]+\s(?:style|on[a-z]+)=", text)  # a policy without exceptions
    assert text.index("Content-Security-Policy") < text.index("<title>")


def test_clusters_have_the_colours_of_the_displays():
    found = dict(re.findall(r"--(c\d): (#\w+);", style().partition("@media")[0]))
    assert found == {f"c{place}": colour for place, colour in enumerate(COLOURS)}


def test_classes_that_are_no_text_stay_apart():
    X = np.random.default_rng(0).random((9, 4, 5))
    model = TuckerClustering(3, random_state=0).fit(X)
    classes = [name.decode("utf-8", "surrogateescape") for name in (b"\xe9", b"\xe8", b"plain")]
    text = render_report(model, X, truth=np.array(classes)[np.arange(9) % 3])
    text.encode()
    heads = re.findall(r'<th scope="row">([^<]*)</th><td data-share', text)
    assert sorted(heads) == ["\\udce8", "\\udce9", "plain"]
