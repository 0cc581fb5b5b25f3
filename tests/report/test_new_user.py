"""A new user's way, as the tutorial tells it: one command, one page, out with a list of names."""

import csv
import json
import runpy
import tempfile
from pathlib import Path
from urllib.parse import unquote, urlsplit

import numpy as np
import pytest

from tuckermix.metrics import clustering_accuracy

TUTORIAL = Path(__file__).resolve().parents[2] / "examples" / "tutorials" / "one_command.py"

pytestmark = [pytest.mark.browser, pytest.mark.slow]


@pytest.fixture(scope="module")
def told(tmp_path_factory):
    """Run the tutorial: a folder of 300 images, one of them broken, and the command."""
    pytest.importorskip("typer")
    pyplot = pytest.importorskip("matplotlib.pyplot")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tempfile, "tempdir", str(tmp_path_factory.mktemp("user")))
        patch.setattr(pyplot, "show", lambda: pyplot.close("all"))
        return runpy.run_path(str(TUTORIAL))


@pytest.fixture(scope="module")
def page(browser, told):
    context = browser.new_context(viewport={"width": 1280, "height": 900})
    page = context.new_page()
    page.troubles = []
    page.on("console", lambda message: page.troubles.append(message.text))
    page.on("pageerror", lambda error: page.troubles.append(str(error)))
    page.goto((told["place"] / "kinds" / "report.html").as_uri())
    yield page
    context.close()


@pytest.fixture(scope="module")
def rows(told):
    with open(told["place"] / "kinds" / "labels.csv", newline="") as file:
        return {row["name"]: int(row["label"]) for row in csv.DictReader(file)}


def test_clusters_are_by_content(told, rows):
    assert len(list(told["folder"].iterdir())) == 300
    assert len(rows) == 299
    names = sorted(rows)  # the number of a file tells its kind
    labels = np.array([rows[name] for name in names])
    assert clustering_accuracy(told["kinds"], labels) > 0.8
    sizes = []
    for name in names:
        with told["Image"].open(told["folder"] / name) as image:
            sizes.append(image.size[0])
    assert clustering_accuracy(sizes > np.median(sizes), labels > 1) < 0.7  # and not by size


def test_what_was_skipped_is_told_by_the_command_and_on_the_page(told, page):
    assert "1 file was skipped" in told["done"].stdout
    assert "scan-299.png" in told["done"].stdout
    page.locator(".skipped summary").click()
    assert page.locator(".skipped td").first.text_content() == "scan-299.png"
    assert "damaged" in page.locator(".skipped td").nth(1).text_content()


def test_the_page_says_why_that_number_of_clusters(told, page):
    summary = json.loads((told["place"] / "kinds" / "summary.json").read_text())
    n_clusters = summary["n_clusters"]
    assert page.locator("article").count() == n_clusters
    page.locator("#made > summary").click()
    choice = page.locator("section", has=page.locator("#h-choice"))
    assert choice.locator("li").first.text_content().startswith(f"{n_clusters} clusters")
    assert "Next number of clusters" in choice.text_content()
    heights = choice.locator("svg circle").evaluate_all(
        "dots => dots.map((d) => +d.getAttribute('cy'))"
    )
    choice.locator("summary").click()
    numbers = choice.locator("tbody tr td:first-child").all_text_contents()
    assert int(numbers[int(np.argmin(heights))]) == n_clusters  # the highest point of the curve


@pytest.mark.parametrize("index", [0, 123, 298])
def test_any_image_opens_in_full_and_leads_to_its_file(told, page, rows, index):
    name = sorted(rows)[index]
    page.locator(".tab[data-view=all]").click()
    page.locator("#which").select_option("")
    page.locator("#search").fill(name.partition(".")[0])
    page.locator("#list .tile").click()
    assert page.locator("#v-name").text_content() == name
    link = page.locator("#v-file").evaluate("link => link.href")
    assert Path(unquote(urlsplit(link).path)).samefile(told["folder"] / name)
    page.locator("#v-close").click()


def test_a_cluster_leaves_as_a_csv_of_names(page, rows):
    page.locator(".tab[data-view=clusters]").click()
    page.get_by_role("button", name="Select all of Cluster 1").click()
    with page.expect_download() as event:
        page.locator("#b-csv").click()
    with open(event.value.path(), newline="") as file:
        head, *found = csv.reader(file)
    assert head == ["name", "label", "cluster"]
    assert {name: int(label) for name, label, _ in found} == {
        name: label for name, label in rows.items() if label == 1
    }
    assert page.troubles == []
