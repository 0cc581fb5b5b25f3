"""The report as a person meets it: in a browser, on a phone, on paper."""

import base64
import csv
import io
import json
import re
from itertools import pairwise
from pathlib import Path
from urllib.parse import unquote, urlsplit

import numpy as np
import pytest

from tuckermix._files import from_csv_cell

pytestmark = pytest.mark.browser
HOSTILE = "<script>alert(1)</script><b>x</b> & \"q\" 'a' .png"
FORMULA = '=HYPERLINK("x"),1.png'
WIDTHS = {"phone": (390, 844), "desktop": (1280, 900)}


@pytest.fixture
def open_page(browser, report_path):
    """Return a function that opens the report and gathers what must not happen."""
    contexts = []

    def open_it(width="desktop", path=report_path, **options):
        size = WIDTHS[width]
        context = browser.new_context(viewport={"width": size[0], "height": size[1]}, **options)
        contexts.append(context)
        page = context.new_page()
        page.troubles = []
        page.on("console", lambda message: page.troubles.append(message.text))
        page.on("pageerror", lambda error: page.troubles.append(str(error)))
        page.on("dialog", lambda dialog: page.troubles.append(dialog.message) or dialog.dismiss())
        page.requests = []
        page.on("request", lambda request: page.requests.append(request.url))
        page.goto(path.as_uri())
        return page

    yield open_it
    for context in contexts:
        context.close()


def wait_until(page, holds):
    """Wait for something to become true; the policy of the page lets no test wait within it."""
    for _ in range(200):
        if holds():
            return
        page.wait_for_timeout(50)
    raise AssertionError("ten seconds have passed")


def shown(page, view):
    page.locator(f".tab[data-view={view}]").click()


def cluster(page, number):
    return page.locator(f".cluster[data-number='{number}']")


def sizes(page):
    return {
        int(row.get_attribute("data-number")): int(row.locator(".about b").text_content())
        for row in page.locator(".cluster").all()
    }


def edits(page):
    with page.expect_download() as event:
        page.locator("#save").click()
    return json.loads(Path(event.value.path()).read_text(encoding="utf-8"))


def places_of(page, number):
    """Return all samples of a cluster, by opening its row."""
    row = cluster(page, number)
    if row.locator("button.all", has_text="All").count():
        row.locator("button.all", has_text="All").click()
    while row.locator("button.all", has_text="More").is_visible():
        row.locator("button.all", has_text="More").click()
    return [int(node.get_attribute("data-place")) for node in row.locator(".tile").all()]


@pytest.mark.parametrize("width", WIDTHS)
def test_opens_quietly_and_fits_the_screen(open_page, report_path, snapshots_path, width):
    for path in (report_path, snapshots_path):
        page = open_page(width, path)
        for view in ("map", "all", "tray", "clusters"):
            shown(page, view)
            page.wait_for_timeout(50)
            assert page.evaluate("document.documentElement.scrollWidth") == WIDTHS[width][0]
        assert page.troubles == []
        outside = [url for url in page.requests if not url.startswith("data:")]
        assert outside == [path.as_uri()]


def test_pictures_come_first_and_in_their_own_proportions(open_page, snapshots_path, photos):
    from PIL import Image

    page = open_page(path=snapshots_path)
    first = page.locator(".tile img").first
    box = first.bounding_box()
    assert box["y"] < 300
    assert box["height"] > 120
    names = sorted(photos.iterdir())
    for node in page.locator(".cluster .tile").all():
        with Image.open(names[int(node.get_attribute("data-place"))]) as image:
            wide, high = image.size
        box = node.locator("img").bounding_box()
        assert box["width"] / box["height"] == pytest.approx(wide / high, rel=0.03)
    natural = first.evaluate("image => image.decode().then(() => image.naturalHeight)")
    assert natural >= 150  # sharp, where the samples that were clustered have 24 pixels
    tops = (
        page.locator(".cluster")
        .first.locator(".tile")
        .evaluate_all("tiles => tiles.map((tile) => [tile.offsetTop, tile.offsetHeight])")
    )
    heights = {}
    for top, height in tops:
        heights.setdefault(top, set()).add(height)
    assert all(max(row) - min(row) <= 1 for row in heights.values())


def test_the_first_picture_is_there_before_the_script(open_page, snapshots_path):
    page = open_page(path=snapshots_path, java_script_enabled=False)
    assert page.locator("article").count() == 3
    assert page.locator("article img").first.bounding_box()["y"] < 300
    assert page.locator("text=Scripts are off").is_visible()
    text = snapshots_path.read_text()
    assert text.index("<img") < 45_000 + text.index("</style>")  # nothing large comes before it


def test_the_page_of_a_thousand_photographs_is_small(snapshots_path):
    from tuckermix.report._images import PageSettings

    use = PageSettings.current()
    rest = len(re.sub(r"data:image[^\"]*", "", snapshots_path.read_text()))
    for_names = 1000 * 150
    assert use.picture_bytes + 4 / 3 * use.sheet_bytes + rest + for_names < 6_000_000


def test_the_slider_regroups_at_once(open_page, model):
    page = open_page()
    assert sizes(page) == dict(enumerate(np.bincount(model.labels_)))
    page.locator("#slider").focus()
    for count in (6, 7, 8):
        page.keyboard.press("ArrowRight")
        assert sizes(page) == dict(enumerate(np.bincount(model.labels_at(count))))
        assert f"in {count} clusters" in page.locator("#lead").text_content()
        assert page.locator("#count-k").text_content() == str(count)
    assert set(places_of(page, 3)) == set(np.flatnonzero(model.labels_at(8) == 3))
    page.locator("#fewer").click()
    assert len(sizes(page)) == 7
    page.locator("#chosen").click()
    assert sizes(page) == dict(enumerate(np.bincount(model.labels_)))
    assert page.locator("#chosen").is_hidden()
    assert page.troubles == []


def test_clusters_are_named_and_names_follow_them(open_page):
    page = open_page()
    entry = cluster(page, 2).locator(".title")
    entry.fill("<b>Two</b>")
    entry.press("Enter")
    assert cluster(page, 2).locator(".title").input_value() == "<b>Two</b>"
    assert edits(page)["names"] == {"2": "<b>Two</b>"}
    before = set(places_of(page, 2))
    page.locator("#finer").click()
    same = [row for row in page.locator(".cluster").all() if row.locator(".title").input_value()]
    if same:  # the level divides another cluster: this one keeps its name, whatever its number
        number = int(same[0].get_attribute("data-number"))
        assert set(places_of(page, number)) == before
    page.locator("#chosen").click()
    page.reload()
    assert cluster(page, 2).locator(".title").input_value() == "<b>Two</b>"
    assert page.troubles == []


def test_clusters_are_merged_and_split(open_page, model):
    page = open_page()
    old = np.bincount(model.labels_)
    cluster(page, 1).get_by_role("button", name="Merge Cluster 1 with another").click()
    page.locator("#m-list button", has_text="Cluster 3").click()
    assert sizes(page) == {0: old[0], 1: old[1] + old[3], 2: old[2], 4: old[4]}
    cluster(page, 0).get_by_role("button", name="Split Cluster 0 in two").click()
    found = sizes(page)
    assert found[0] + found[5] == old[0]
    finer = next(
        labels
        for labels in map(model.labels_at, range(6, 20))
        if len(np.unique(labels[model.labels_ == 0])) == 2
    )
    expected = np.bincount(finer[model.labels_ == 0])
    assert sorted([found[0], found[5]]) == sorted(expected[expected > 0])
    told = edits(page)
    assert (told["format"], told["n_clusters"]) == (1, 5)
    assert (told["merge"], told["split"]) == ([[1, 3]], [0])
    cluster(page, 1).get_by_role("button", name="Split Cluster 1 in two").click()
    assert len(sizes(page)) == 6  # what was merged is divided where the tree divides it
    for _ in range(3):
        page.locator("#undo").click()
    assert sizes(page) == dict(enumerate(old))
    assert page.locator("#undo").is_disabled()
    assert page.troubles == []


def test_pictures_are_moved_by_dragging(open_page):
    page = open_page()
    old = sizes(page)
    tile = cluster(page, 0).locator(".tile").nth(2)
    place = int(tile.get_attribute("data-place"))
    tile.scroll_into_view_if_needed()
    tile.drag_to(cluster(page, 1).locator(".about"))
    new = sizes(page)
    assert (new[0], new[1]) == (old[0] - 1, old[1] + 1)
    assert place in places_of(page, 1)
    assert edits(page)["move"] == {f"digit-{place}.png": 1}
    # A selection is dragged as a whole, and what is wrong is dragged onto the tray.
    for index in (0, 3):
        cluster(page, 2).locator(".tile").nth(index).locator(".tick").click()
    page.evaluate("scrollTo(0, 0)")
    cluster(page, 2).locator(".tile").nth(3).scroll_into_view_if_needed()
    cluster(page, 2).locator(".tile").nth(3).drag_to(page.locator(".tab[data-view=tray]"))
    assert sizes(page)[2] == old[2] - 2
    assert page.locator("#trayed").text_content() == "2"
    assert len(edits(page)["exclude"]) == 2
    shown(page, "tray")
    assert page.locator("#t-out .tile").count() == 2
    assert page.troubles == []


def test_pictures_are_moved_and_marked_by_keyboard(open_page):
    page = open_page()
    old = sizes(page)
    cluster(page, 3).locator(".tile").first.focus()
    page.keyboard.press("ArrowRight")
    place = page.evaluate("Number(document.activeElement.dataset.place)")
    page.keyboard.press("m")
    assert page.locator("#m-title").text_content() == "Move 1 picture to"
    page.locator("#m-list button", has_text="Cluster 4").focus()
    page.keyboard.press("Enter")
    assert sizes(page)[4] == old[4] + 1
    cluster(page, 3).locator(".tile").first.focus()
    wrong = page.evaluate("Number(document.activeElement.dataset.place)")
    page.keyboard.press("x")
    assert sizes(page)[3] == old[3] - 2
    told = edits(page)
    assert told["move"] == {f"digit-{place}.png": 4}
    assert told["exclude"] == [f"digit-{wrong}.png"]
    page.keyboard.press("Control+z")
    page.keyboard.press("Control+z")
    assert sizes(page) == old
    assert page.troubles == []


def test_edits_survive_a_reload_and_stay_with_their_page(open_page, snapshots_path):
    page = open_page()
    page.locator("#finer").click()
    cluster(page, 1).locator(".title").fill("one")
    cluster(page, 1).locator(".title").press("Enter")
    cluster(page, 0).get_by_role("button", name="Split").click()
    cluster(page, 2).locator(".tile").first.focus()
    page.keyboard.press("x")
    before, found = edits(page), sizes(page)
    page.reload()
    assert edits(page) == before
    assert sizes(page) == found
    page.goto(snapshots_path.as_uri())
    assert page.locator("#save").is_disabled()
    assert page.troubles == []


def test_html_in_a_file_name_shows_as_text(open_page):
    page = open_page()
    shown(page, "all")
    page.locator("#search").fill("ALERT")
    assert page.locator("#list .caption").all_text_contents() == [HOSTILE]
    page.locator("#list .tile").click()
    assert page.locator("#v-name").text_content() == HOSTILE
    page.keyboard.press("Escape")
    page.keyboard.press("x")
    assert HOSTILE in edits(page)["exclude"]
    assert page.troubles == []
    assert page.locator("#v-name *, .caption *").count() == 0


def sureness(page):
    notes = page.locator("#list .note").all_text_contents()
    return [int(re.search(r"(\d+) %", text)[1]) for text in notes]


def test_all_are_listed_sorted_and_found_by_name(open_page, model, samples):
    page = open_page()
    shown(page, "all")
    page.locator("#which").select_option(index=3)
    number = 2
    members = set(np.flatnonzero(model.labels_ == number))
    found = {int(node.get_attribute("data-place")) for node in page.locator("#list .tile").all()}
    assert found == members
    assert page.locator("#count").text_content() == f"{len(members)} of 400 pictures"
    assert sureness(page) == sorted(sureness(page), reverse=True)
    page.locator("#order").select_option("doubt")
    assert sureness(page) == sorted(sureness(page))
    page.locator("#order").select_option("name")
    page.locator("#which").select_option("")
    page.locator("#search").fill("digit-12")
    names = page.locator("#list .caption").all_text_contents()
    assert names == [f"digit-{index}.png" for index in (12, *range(120, 130))]
    page.locator("#search").fill("no such name")
    assert page.locator("#list .tile").count() == 0
    assert page.troubles == []


def test_similar_pictures_are_found(open_page, model, samples):
    from tuckermix.plots.fitted import placed

    page = open_page()
    shown(page, "all")
    page.locator("#search").fill("digit-123.")
    page.locator("#list .tile").focus()
    page.keyboard.press("f")
    assert "digit-123.png" in page.locator("#like").text_content()
    found = [int(node.get_attribute("data-place")) for node in page.locator("#list .tile").all()]
    assert found[0] == 123
    Z = placed(model, samples[0]).places
    away = np.linalg.norm(Z - Z[123], axis=1)
    assert set(np.argsort(away)[1:4]) <= set(found[:16])
    assert np.corrcoef(np.arange(100), away[found[:100]])[0, 1] > 0.6
    page.locator("#unlike").click()
    assert page.locator("#likeness").is_hidden()
    page.locator("#list .tile").first.click()
    assert page.locator("#v-near button").count() == 8
    name = page.locator("#v-near button").first.get_attribute("aria-label")
    page.locator("#v-near button").first.click()
    assert page.locator("#v-name").text_content() == name
    assert page.troubles == []


def test_copies_and_strangers_are_in_the_tray(open_page, tmp_path, samples):
    from tuckermix.clustering import TuckerClustering
    from tuckermix.report import write_report

    X = samples[0].copy()
    X[300], X[310] = X[7], X[5]
    X[20] = np.random.default_rng(0).uniform(0, 16, (8, 8))
    write_report(tmp_path / "report.html", TuckerClustering(5, random_state=0).fit(X), X)
    page = open_page(path=tmp_path / "report.html")
    shown(page, "tray")
    groups = [
        sorted(int(node.get_attribute("data-place")) for node in group.locator(".tile").all())
        for group in page.locator("#t-twins .twins").all()
    ]
    assert [7, 300] in groups
    assert [5, 310] in groups
    strange = [
        int(node.get_attribute("data-place")) for node in page.locator("#t-strange .tile").all()
    ]
    assert 20 in strange[:3]
    assert page.locator("#n-out").text_content() == "none"


def test_outliers_are_listed_and_leave_with_their_cluster(open_page, tmp_path):
    from tuckermix.clustering import TuckerClustering
    from tuckermix.report import write_report

    rng = np.random.default_rng(0)
    X = rng.normal(size=(3, 6, 6))[np.arange(90) % 3] + 0.1 * rng.normal(size=(90, 6, 6))
    X[[5, 50]] = 6 * rng.normal(size=(2, 6, 6))
    model = TuckerClustering(3, outliers="label", random_state=0).fit(X)
    write_report(tmp_path / "report.html", model, X)
    page = open_page(path=tmp_path / "report.html")
    shown(page, "all")
    page.locator("#which").select_option("outliers")
    names = page.locator("#list .caption").all_text_contents()
    found = sorted(f"sample {index}" for index in np.flatnonzero(model.labels_ == -1))
    assert sorted(names) == found
    assert all("outlier" in note for note in page.locator("#list .note").all_text_contents())


def test_the_selection_is_a_csv_of_names_without_formulas(open_page, model):
    page = open_page()
    shown(page, "all")
    for part in ("hyperlink", "alert"):
        page.locator("#search").fill(part)
        page.locator("#list .tile .tick").click()
    page.locator("#search").fill("digit-3")
    page.locator("#order").select_option("name")
    page.locator("#list .tile").first.focus()
    page.keyboard.press("Space")
    page.keyboard.press("ArrowRight")
    page.keyboard.press("Space")
    assert page.locator("#picked").text_content() == "4 selected"
    with page.expect_download() as event:
        page.locator("#b-csv").click()
    head, *rows = csv.reader(Path(event.value.path()).read_text(encoding="utf-8").splitlines())
    assert head == ["name", "label", "cluster", "class"]
    names = {from_csv_cell(row[0]): int(row[1]) for row in rows}
    wanted = {HOSTILE: 17, FORMULA: 23, "digit-3.png": 3, "digit-30.png": 30}
    assert names == {name: model.labels_[index] for name, index in wanted.items()}
    assert not any(row[0].startswith("=") for row in rows)
    with page.expect_download() as event:
        page.locator("#b-json").click()
    found = json.loads(Path(event.value.path()).read_text(encoding="utf-8"))
    assert {one["name"]: one["label"] for one in found} == names
    page.locator("#b-none").click()
    assert page.locator("#basket").is_hidden()
    assert page.troubles == []


def test_a_range_is_selected_with_shift(open_page):
    page = open_page()
    tiles = cluster(page, 0).locator(".tile")
    tiles.nth(1).locator(".tick").click()
    tiles.nth(4).locator(".tick").click(modifiers=["Shift"])
    assert page.locator("#picked").text_content() == "4 selected"
    page.keyboard.press("Escape")
    assert page.locator("#basket").is_hidden()


def test_a_click_shows_the_picture_large_and_leads_to_its_file(open_page, photos_path):
    page = open_page(path=photos_path)
    first = page.locator(".tile").first
    first.click()
    name = first.get_attribute("title")
    assert page.locator("#v-name").text_content() == name
    image = page.locator("#v-picture img")
    assert image.evaluate(SIZE) == [60, 60]
    assert image.bounding_box()["width"] >= 240
    link = page.locator("#v-file").evaluate("link => link.href")
    assert Path(unquote(urlsplit(link).path)) == photos_path.parents[1] / "files" / name
    seen = [name]
    for _ in range(5):
        page.keyboard.press("ArrowRight")
        seen.append(page.locator("#v-name").text_content())
    titles = [
        tile.get_attribute("title")
        for tile in page.locator(".cluster").first.locator(".tile").all()
    ]
    assert seen == titles[:6]
    page.keyboard.press("x")
    assert page.locator("#v-out").text_content() == "Take back"
    page.locator("#v-close").click()
    assert edits(page)["exclude"] == [seen[-1]]
    assert page.troubles == []


def test_what_was_not_read_is_told(open_page, photos_path):
    page = open_page(path=photos_path)
    page.locator(".skipped summary").click()
    assert "1 file was not read" in page.locator(".skipped summary").text_content()
    cells = page.locator(".skipped td").all_text_contents()
    assert cells == ["broken <b>.png", "It ends in the middle of its data"]


def zoomed(page):
    return float(page.locator("#field").get_attribute("data-zoom"))


def test_the_map_shows_pictures_and_zooms(open_page, snapshots_path):
    page = open_page(path=snapshots_path)
    shown(page, "map")
    page.wait_for_timeout(300)
    colours = "document.getElementById('canvas').toDataURL().length"
    with_pictures = page.evaluate(colours)
    page.locator("#pictured").uncheck()
    page.wait_for_timeout(300)
    assert with_pictures > 2 * page.evaluate(colours)
    box = page.locator("#canvas").bounding_box()
    page.locator("#field").focus()
    page.mouse.move(box["x"] + 0.75 * box["width"], box["y"] + 0.25 * box["height"])
    page.mouse.wheel(0, -100)
    wait_until(page, lambda: zoomed(page) > 1.2)
    page.locator("#closer").click()
    near = zoomed(page)
    assert near > 1.9
    page.locator("#whole").click()
    assert page.locator("#whole").is_disabled()
    page.locator("#field").focus()
    page.keyboard.press("+")
    page.keyboard.press("+")
    page.keyboard.press("-")
    assert zoomed(page) == pytest.approx(1.6, rel=0.01)
    page.keyboard.press("0")
    assert zoomed(page) == 1
    assert page.troubles == []


def test_the_lasso_selects_what_it_surrounds(open_page):
    page = open_page()
    shown(page, "map")
    page.locator("#lasso").click()
    box = page.locator("#canvas").bounding_box()
    corners = [(0.01, 0.01), (0.99, 0.01), (0.99, 0.99), (0.01, 0.99), (0.01, 0.02)]
    points = [(box["x"] + x * box["width"], box["y"] + y * box["height"]) for x, y in corners]
    page.mouse.move(*points[0])
    page.mouse.down()
    for point in points[1:]:
        page.mouse.move(*point, steps=4)
    page.mouse.up()
    assert page.locator("#picked").text_content() == "400 selected"
    page.locator("#b-none").click()
    page.locator("#lasso").click()
    left = [(0.02, 0.02), (0.5, 0.02), (0.5, 0.98), (0.02, 0.98)]
    points = [(box["x"] + x * box["width"], box["y"] + y * box["height"]) for x, y in left]
    page.keyboard.down("Shift")
    page.mouse.move(*points[0])
    page.mouse.down()
    for point in points[1:]:
        page.mouse.move(*point, steps=4)
    page.mouse.up()
    page.keyboard.up("Shift")
    count = int(page.locator("#picked").text_content().split()[0])
    assert 20 < count < 380
    assert page.troubles == []


def test_the_map_is_coloured_by_cluster_agreement_and_class(open_page):
    page = open_page()
    shown(page, "map")
    picture = "document.getElementById('canvas').toDataURL()"
    page.locator("#pictured").uncheck()
    seen = set()
    for by in ("cluster", "sure", "truth"):
        page.locator("#paint").select_option(by)
        page.wait_for_timeout(300)
        seen.add(page.evaluate(picture))
    assert len(seen) == 3
    assert "<i>three</i>" in page.locator("#legend").inner_text()
    assert page.troubles == []


def test_pointing_at_the_map_tells_name_and_cluster(open_page):
    page = open_page()
    shown(page, "map")
    page.locator("#field").focus()
    seen = set()
    for key in ("ArrowRight", "ArrowRight", "ArrowDown", "ArrowLeft", "ArrowUp"):
        page.keyboard.press(key)
        seen.add(page.locator("#hovered").text_content())
    assert len(seen) > 2
    assert all("Cluster" in text for text in seen)
    told = page.locator("#hovered").text_content().split(" · ")[0]
    page.keyboard.press("Enter")
    assert page.locator("#v-name").text_content() == told
    page.keyboard.press("Escape")
    page.locator("#field").focus()
    page.keyboard.press("Space")
    assert page.locator("#picked").text_content() == "1 selected"
    assert page.troubles == []


def test_a_cluster_is_shown_alone_on_the_map(open_page):
    page = open_page()
    page.get_by_role("button", name="Show Cluster 3 on the map").click()
    assert page.locator("#field").is_visible()
    page.locator("#field").focus()
    for key in ("ArrowRight", "ArrowDown", "ArrowLeft"):
        page.keyboard.press(key)
        assert "Cluster 3" in page.locator("#hovered").text_content()
    chip = page.locator("#legend button", has_text="Cluster 3")
    assert chip.get_attribute("aria-pressed") == "true"
    chip.click()
    assert chip.get_attribute("aria-pressed") == "false"


def test_touch_moves_and_opens(open_page):
    page = open_page("phone", has_touch=True)
    tile = page.locator(".tile").first
    tile.tap()
    assert page.locator("#v-name").text_content() == tile.get_attribute("title")
    page.locator("#v-close").tap()
    tile.locator(".tick").tap()
    assert page.locator("#picked").text_content() == "1 selected"
    page.locator("#b-move").tap()
    page.locator("#m-list button").first.tap()
    assert len(edits(page)["move"]) == 1


def test_ten_thousand_are_made_as_they_come_into_sight(open_page, many_path):
    page = open_page(path=many_path)
    assert "10,000 pictures in 60 clusters" in page.locator("#lead").text_content()
    shown(page, "all")
    assert page.locator("#count").text_content() == "10,000 of 10,000 pictures"
    assert 120 <= page.locator("#list .tile").count() <= 600
    for _ in range(8):
        page.evaluate("scrollTo(0, document.documentElement.scrollHeight)")
        page.wait_for_timeout(60)
    wait_until(page, lambda: page.locator("#list .tile").count() > 700)
    page.locator("#search").fill("sample 9999")
    assert page.locator("#list .caption").all_text_contents() == ["sample 9999"]
    shown(page, "map")
    assert page.evaluate("document.getElementById('canvas').width") > 500
    page.locator("#closer").click()
    assert page.troubles == []


def test_classes_are_compared_with_any_number_of_clusters(open_page, many_path):
    page = open_page(path=many_path)
    page.locator("#made > summary").click()
    rows = page.locator(".largest tbody tr")
    assert rows.count() == 10
    assert rows.locator("td:nth-of-type(1)").all_text_contents() == ["1,000"] * 10


def test_one_sample_a_cluster(open_page, lone_path):
    page = open_page(path=lone_path)
    assert sizes(page) == dict.fromkeys(range(6), 1)
    for view in ("map", "all", "tray"):
        shown(page, view)
    assert page.troubles == []


def test_how_it_was_made_is_folded_away(open_page):
    page = open_page()
    assert page.locator("dl.facts").is_hidden()
    page.locator("#made > summary").click()
    assert page.locator("dl.facts").is_visible()
    for chart in page.locator("svg.chart").all():
        frame = chart.bounding_box()
        texts = chart.locator("text.y").all()
        boxes = [text.bounding_box() for text in texts]
        assert len({text.text_content() for text in texts}) == len(texts) >= 2
        assert min(box["x"] for box in boxes) >= frame["x"]
        ends = sorted((box["y"], box["y"] + box["height"]) for box in boxes)
        assert all(a[1] <= b[0] + 1 for a, b in pairwise(ends))
        assert chart.locator("text.x").last.text_content() == "iteration"


def test_the_policy_blocks_what_is_not_ours(open_page):
    page = open_page()
    page.locator("#made > summary").click()
    shades = page.locator(".confusion td").evaluate_all(
        "cells => cells.map((cell) => getComputedStyle(cell).getPropertyValue('--share'))"
    )
    assert max(map(float, shades)) > 0.5
    page.evaluate(
        """() => {
          const script = document.createElement('script');
          script.textContent = 'window.broken = true';
          document.body.append(script);
          const picture = document.createElement('img');
          picture.src = 'https://example.invalid/x.png';
          document.body.append(picture);
          document.body.setAttribute('style', 'display: none');
        }"""
    )

    def refusals():
        return len([text for text in page.troubles if "Content Security Policy" in text])

    wait_until(page, lambda: refusals() >= 3)
    page.wait_for_timeout(100)  # there are no more
    assert page.evaluate("window.broken") is None
    assert page.locator("h1").is_visible()
    assert refusals() == 3


PAPER = 688, 1016
"""A4 within margins of 14 mm, in pixels."""


def test_the_page_and_a_contact_sheet_are_printed(open_page):
    page = open_page()
    page.emulate_media(media="print")
    page.set_viewport_size({"width": PAPER[0], "height": PAPER[1]})
    assert page.locator("#bar").is_hidden()
    assert page.locator(".tile").first.is_visible()
    assert page.evaluate("document.documentElement.scrollWidth") <= PAPER[0]
    page.emulate_media(media="screen")
    page.evaluate("window.print = () => { window.printed = true; }")
    for index in range(3):
        cluster(page, 1).locator(".tile").nth(index).locator(".tick").click(force=True)
    page.locator("#b-print").click()
    assert page.evaluate("window.printed")
    page.emulate_media(media="print")
    figures = page.locator("#sheetpage figure")
    assert figures.count() == 3
    assert figures.first.is_visible()
    assert page.locator("main").is_hidden()
    assert page.pdf().startswith(b"%PDF")
    page.evaluate("dispatchEvent(new Event('afterprint'))")
    assert page.locator("main").is_visible()


SIZE = "image => image.decode().then(() => [image.naturalWidth, image.naturalHeight])"


def test_videos_are_frames_in_rows(open_page, videos_path):
    page = open_page(path=videos_path)
    tiles = page.locator(".tile img")
    # Six frames of 24 x 20 in two rows of three, a pixel between them.
    assert tiles.first.evaluate(SIZE) == [3 * 24 + 2, 2 * 20 + 1]
    assert "18 videos in 3 clusters" in page.locator("#lead").text_content()


FRAME_SHOWN = """() => {
  const image = document.querySelector('#v-picture .film img');
  const frame = image.parentElement.getBoundingClientRect(), row = image.getBoundingClientRect();
  const step = (row.width + 2 * row.width / image.naturalWidth) / 9;
  return 1 + Math.round((frame.left - row.left) / step);
}"""


def frame_shown(page):
    """Return the number of the frame that the window shows, by where the row of them lies."""
    return page.evaluate(FRAME_SHOWN)


def wait_until_it_moves(page):
    first = page.locator("#v-frame").input_value()
    wait_until(page, lambda: page.locator("#v-frame").input_value() != first)


@pytest.mark.parametrize("width", WIDTHS)
def test_a_video_is_played_and_paused_by_keyboard(open_page, videos_path, width):
    page = open_page(width, videos_path, reduced_motion="no-preference")
    page.locator(".tile").first.focus()
    page.keyboard.press("Enter")
    play = page.locator("#v-play")
    play.wait_for()
    assert (play.text_content(), play.get_attribute("aria-pressed")) == ("Pause", "true")
    wait_until_it_moves(page)
    play.focus()
    page.keyboard.press("Space")
    assert (play.text_content(), play.get_attribute("aria-pressed")) == ("Play", "false")
    number = int(page.locator("#v-frame").input_value())
    assert frame_shown(page) == number
    assert page.locator("#v-number").text_content() == f"{number} of 9"
    name = page.locator("#v-name").text_content()
    page.locator("#v-frame").focus()
    page.keyboard.press("Home")
    assert frame_shown(page) == 1
    for _ in range(3):
        page.keyboard.press("ArrowRight")
    assert frame_shown(page) == 4
    assert page.locator("#v-name").text_content() == name  # the arrows were the slider's
    page.keyboard.press("End")
    assert frame_shown(page) == 9
    page.locator("#v-after").focus()
    page.keyboard.press("ArrowRight")
    assert page.locator("#v-name").text_content() != name
    play.wait_for()
    assert page.locator("#v-picture .film").bounding_box()["width"] <= WIDTHS[width][0]
    page.keyboard.press("Escape")
    # Nothing goes on behind a closed window.
    wait_until(page, lambda: play.text_content() == "Play")
    assert page.troubles == []


def test_nothing_moves_for_those_who_want_that(open_page, videos_path):
    page = open_page(path=videos_path, reduced_motion="reduce")
    page.locator(".tile").first.click()
    play = page.locator("#v-play")
    play.wait_for()
    assert play.text_content() == "Play"
    page.wait_for_timeout(600)
    assert page.locator("#v-frame").input_value() == "1"
    assert frame_shown(page) == 1
    play.click()  # unless they ask for it
    wait_until_it_moves(page)


@pytest.mark.parametrize("width", WIDTHS)
def test_volumes_are_shown_by_their_slices(open_page, volumes_path, width):
    page = open_page(width, volumes_path)
    first = page.locator(".tile img").first
    assert first.evaluate(SIZE) == [3 * 12 + 2, 12]  # three slices of 9 or 12 by 12, side by side
    beside = page.locator(".cluster").first.locator(".tile")
    tops = beside.evaluate_all("tiles => tiles.slice(0, 2).map((tile) => tile.offsetTop)")
    assert tops[0] == tops[1]  # a phone has room for two
    page.locator(".tile").first.click()
    assert page.locator("#v-picture > img").evaluate(SIZE) == [3 * 12 + 2, 12]
    assert "middle slices of 9 × 12 × 12 voxels" in page.locator("#v-size").text_content()
    # Below lie all slices along the first axis, of which the slider shows one.
    page.locator("#v-frame").wait_for()
    assert page.locator("#v-play").text_content() == "Play"
    assert page.locator(".player label").inner_text() == "Slice"
    for key, number in (("Home", 1), ("End", 9), ("ArrowLeft", 8)):
        page.locator("#v-frame").focus()
        page.keyboard.press(key)
        assert page.locator("#v-number").text_content() == f"{number} of 9"
        assert frame_shown(page) == number
    assert page.locator("#v-picture").bounding_box()["width"] <= WIDTHS[width][0]
    assert page.evaluate("document.documentElement.scrollWidth") == WIDTHS[width][0]
    assert page.troubles == []


def levels_drawn(image):
    """Return how high the line of a curve is in each column, from its dark pixels."""
    from PIL import Image

    content = base64.b64decode(image.get_attribute("src").partition(",")[2])
    with Image.open(io.BytesIO(content)) as drawn:
        dark = 255.0 - np.asarray(drawn.convert("L"))
    dark[dark < 100] = 0
    rows = np.arange(len(dark))[:, None]
    return -(rows * dark).sum(axis=0) / dark.sum(axis=0)


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", WIDTHS)
def test_spectra_are_curves(open_page, spectra_path, spectra, width, scheme):
    page = open_page(width, spectra_path, color_scheme=scheme)
    assert "60 samples in 3 clusters" in page.locator("#lead").text_content()
    for tile in page.locator(".cluster .tile").all()[:6]:
        drawn, place = levels_drawn(tile.locator("img")), int(tile.get_attribute("data-place"))
        at = np.linspace(0, 119, len(drawn))
        expected = np.interp(at, np.arange(120), spectra[place])
        assert np.corrcoef(drawn, expected)[0, 1] > 0.99
    shown_as = "image => getComputedStyle(image).filter"
    inverted = page.locator(".tile img").first.evaluate(shown_as) != "none"
    assert inverted == (scheme == "dark")  # bright on dark at night
    page.locator(".tile").first.click()
    image = page.locator("#v-picture img")
    assert image.evaluate(SIZE) == [192, 96]
    assert 0.7 * WIDTHS[width][0] <= image.bounding_box()["width"] + 600 * (width == "desktop")
    assert image.bounding_box()["width"] <= WIDTHS[width][0]
    assert page.locator("#v-player").is_hidden()
    page.keyboard.press("f")
    near = [int(node.get_attribute("data-place")) for node in page.locator("#list .tile").all()]
    assert len({place % 3 for place in near[:20]}) == 1  # of one kind
    assert page.evaluate("document.documentElement.scrollWidth") == WIDTHS[width][0]
    assert page.troubles == []


@pytest.mark.parametrize("width", WIDTHS)
def test_rows_of_a_table_are_curves_with_names(open_page, table_path, width):
    page = open_page(width, table_path)
    assert "90 samples in 3 clusters" in page.locator("#lead").text_content()
    shown(page, "all")
    page.locator("#order").select_option("name")
    names = page.locator("#list .caption").all_text_contents()
    assert names == [f"row {index}" for index in range(90)]
    assert page.locator("#list .tile img").first.evaluate(SIZE) == [192, 96]
    shown(page, "map")
    page.locator("#field").focus()
    page.keyboard.press("ArrowRight")
    assert page.locator("#hovered").text_content().startswith("row ")
    assert page.evaluate("document.documentElement.scrollWidth") == WIDTHS[width][0]
    assert page.troubles == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", WIDTHS)
def test_passes_the_accessibility_check(
    open_page, snapshots_path, videos_path, volumes_path, spectra_path, width, scheme
):
    axe = pytest.importorskip("axe_playwright_python.sync_playwright", reason="no axe")

    def check(page, **options):
        results = axe.Axe().run(page, **options)
        assert results.violations_count == 0, results.generate_report()

    page = open_page(width, color_scheme=scheme, reduced_motion="reduce")
    page.locator("#made > summary").click()
    check(page)
    page.locator(".tile .tick").first.click(force=True)
    for view in ("map", "all", "tray"):
        shown(page, view)
        check(page)
    page = open_page(width, snapshots_path, color_scheme=scheme, reduced_motion="reduce")
    check(page)
    page.locator(".tile").first.click()
    check(page, context="#viewer")
    page.keyboard.press("m")
    check(page, context="#mover")
    for path in (videos_path, volumes_path):
        page = open_page(width, path, color_scheme=scheme, reduced_motion="reduce")
        page.locator(".tile").first.click()
        page.locator("#v-play").wait_for()
        check(page, context="#viewer")
    check(open_page(width, spectra_path, color_scheme=scheme, reduced_motion="reduce"))


def test_everything_is_reached_by_keyboard(open_page, photos_path):
    page = open_page(path=photos_path)
    reached = []
    for _ in range(60):
        page.keyboard.press("Tab")
        reached.append(
            page.evaluate("document.activeElement.id || document.activeElement.className")
        )
    for wanted in ("slider", "title", "tile", "finer"):
        assert wanted in reached
    assert sum(one == "tile" for one in reached) <= 6  # one stop for each list, in two rounds
    page.locator(".tile").first.focus()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    assert page.locator("#viewer").is_visible()
    page.keyboard.press("Escape")
    assert page.evaluate("document.activeElement.className").startswith("tile")


def test_a_notebook_shows_the_page_and_keeps_its_style(browser, model, samples, tmp_path):
    red, colour = "rgb(255, 0, 0)", "node => getComputedStyle(node).color"
    cell = model.report(samples[0], height=600)._repr_html_()
    style = f"<style>h1, button, .tile {{ color: {red} !important }}</style>"
    (tmp_path / "cell.html").write_text(f"<!DOCTYPE html>{style}<h1>Notebook</h1>{cell}")
    page = browser.new_page()
    troubles = []
    page.on("console", lambda message: troubles.append(message.text))
    page.goto((tmp_path / "cell.html").as_uri())
    frame = page.frame_locator("iframe")
    frame.locator(".tile").first.click()
    assert frame.locator("#viewer").is_visible()
    assert page.locator("h1").evaluate(colour) == red
    assert frame.locator("h1").evaluate(colour) != red
    frame.locator("#v-close").click()
    frame.locator("input.title").first.fill("Zeros")  # without storage edits last with the page
    frame.locator("input.title").first.press("Enter")
    assert frame.locator("#save").is_enabled()
    assert troubles == []
    page.close()
