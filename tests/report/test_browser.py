"""The report as a person meets it: in a browser, on a phone, on paper."""

import csv
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


def point_at(page, index):
    mark = page.locator("#marks path").nth(index)
    mark.scroll_into_view_if_needed()
    box = mark.bounding_box()
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)


@pytest.mark.parametrize("width", WIDTHS)
def test_opens_quietly_and_fits_the_screen(open_page, report_path, width):
    page = open_page(width)
    page.wait_for_timeout(100)
    assert page.troubles == []
    outside = [url for url in page.requests if not url.startswith("data:")]
    assert outside == [report_path.as_uri()]
    assert page.evaluate("document.documentElement.scrollWidth") == WIDTHS[width][0]


def test_map_has_one_mark_per_sample(open_page, samples):
    page = open_page()
    assert page.locator("#marks path").count() == len(samples[0])
    assert page.locator("#sampled").count() == 0


def test_hovering_shows_the_sample_and_its_soft_labels(open_page, model, samples):
    page = open_page()
    assert page.locator("#detail").is_hidden()
    point_at(page, 123)
    page.locator("#detail").wait_for()
    name = page.locator("#who").text_content()
    index = int(re.fullmatch(r"digit-(\d+)\.png", name)[1])
    label = model.labels_[index]
    assert f"Cluster {label}, class" in page.locator("#what").text_content()
    soft = page.locator("#soft li").all_text_contents()
    share = model.predict_proba(samples[0][index : index + 1])[0, label]
    assert soft[0] == f"cluster {label}{100 * share:.0f} %"
    width = page.locator("#thumb").bounding_box()["width"]
    assert width == 208


def test_choosing_a_cluster_filters_the_map(open_page):
    page = open_page(reduced_motion="reduce")
    page.locator("label.chip", has=page.locator("#f2")).click()
    opacity = "node => Number(getComputedStyle(node).opacity)"
    shown = {k: page.locator(f"#marks g.k{k}").evaluate(opacity) for k in range(5)}
    assert shown[2] == 1
    assert max(value for k, value in shown.items() if k != 2) < 0.1
    point_at(page, 0)  # a mark of cluster 0, now faint, must not answer with itself
    if page.locator("#detail").is_visible():
        assert "Cluster 2" in page.locator("#what").text_content()


def test_card_shows_its_cluster_on_the_map(open_page):
    page = open_page()
    page.get_by_role("button", name="Show cluster 3 on the map").click()
    assert page.locator("#f3").is_checked()
    assert page.evaluate("document.getElementById('map').getBoundingClientRect().top") < 900


def test_keyboard_walks_over_the_map(open_page):
    page = open_page()
    page.locator("#f1").focus()
    page.keyboard.press("Space")
    assert page.locator("#f1").is_checked()
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.id") == "field"
    seen = set()
    for key in ("ArrowRight", "ArrowRight", "ArrowDown", "ArrowLeft", "ArrowUp"):
        page.keyboard.press(key)
        seen.add(page.locator("#who").text_content())
        assert "Cluster 1" in page.locator("#what").text_content()
    assert len(seen) > 1
    page.keyboard.press("Enter")
    assert page.locator("#v-name").text_content() == page.locator("#who").text_content()
    page.keyboard.press("Escape")
    assert page.locator("#viewer").is_hidden()
    assert page.evaluate("document.activeElement.id") == "field"
    page.keyboard.press("Space")
    assert page.locator("#keep").get_attribute("aria-pressed") == "true"
    page.keyboard.press("Escape")
    assert page.locator("#all").is_checked()


def test_html_in_a_file_name_shows_as_text(open_page):
    page = open_page()
    page.locator("#search").fill("ALERT")
    assert page.locator(".tile .name").all_text_contents() == [HOSTILE]
    page.locator(".tile").click()
    assert page.locator("#v-name").text_content() == HOSTILE
    assert page.troubles == []
    assert page.locator("#v-name *, .tile .name *").count() == 0


def sureness(page):
    return [
        int(re.search(r"(\d+) %", text)[1])
        for text in page.locator(".tile .note").all_inner_texts()
    ]


def test_members_are_listed_sorted_and_found_by_name(open_page, model, samples):
    page = open_page()
    page.get_by_role("button", name="List all samples of cluster 2").click()
    members = set(np.flatnonzero(model.labels_ == 2))
    assert page.locator("#count").text_content() == f"{len(members)} of 400 samples"
    special = {HOSTILE: 17, FORMULA: 23}
    names = page.locator(".tile .name").all_text_contents()
    found = {special[name] if name in special else int(name[6:-4]) for name in names}
    assert found == members
    assert sureness(page) == sorted(sureness(page), reverse=True)
    page.locator("#order").select_option("doubt")
    assert sureness(page) == sorted(sureness(page))
    share = model.predict_proba(samples[0])[:, 2][sorted(members)].min()
    assert sureness(page)[0] == round(100 * share)
    page.locator("#order").select_option("name")
    page.locator("#which").select_option("")
    page.locator("#search").fill("digit-12")
    names = page.locator(".tile .name").all_text_contents()
    assert names == [f"digit-{index}.png" for index in (12, *range(120, 130))]
    page.locator("#search").fill("no such name")
    assert page.locator(".tile").count() == 0
    assert page.locator("#save").is_disabled()
    assert page.troubles == []


def download(page):
    with page.expect_download() as event:
        page.locator("#save").click()
    text = Path(event.value.path()).read_text(encoding="utf-8")
    head, *rows = csv.reader(text.splitlines())
    return head, rows


def test_the_selection_is_a_csv_of_names_without_formulas(open_page, model):
    page = open_page()
    page.locator("#search").fill("hyperlink")
    page.locator(".tile .tick").click()
    page.locator("#search").fill("alert")
    page.locator(".tile .tick").click()
    page.locator("#search").fill("digit-3")
    page.locator("#order").select_option("name")
    page.locator(".tile").first.focus()
    page.keyboard.press("Space")
    page.keyboard.press("ArrowRight")
    page.keyboard.press("Space")
    assert page.locator("#count").text_content().endswith("4 selected")
    head, rows = download(page)
    assert head == ["name", "label", "class"]
    names = {from_csv_cell(name): int(label) for name, label, _ in rows}
    wanted = {HOSTILE: 17, FORMULA: 23, "digit-3.png": 3, "digit-30.png": 30}
    assert names == {name: model.labels_[index] for name, index in wanted.items()}
    assert not any(name.startswith("=") for name, _, _ in rows)
    page.locator("#none").click()
    page.locator("#search").fill("digit-39")
    assert sorted(name for name, _, _ in download(page)[1]) == sorted(
        f"digit-{index}.png" for index in (39, *range(390, 400))
    )
    assert page.troubles == []


def test_a_click_shows_the_picture_in_full_and_leads_to_its_file(open_page, photos_path):
    page = open_page(path=photos_path)
    first = page.locator("ul.members button").first
    first.click()
    name = first.locator(".name").text_content()
    assert page.locator("#v-name").text_content() == name
    size = "image => image.decode().then(() => [image.naturalWidth, image.naturalHeight])"
    assert page.locator("#v-picture img").evaluate(size) == [60, 60]
    assert page.locator("#v-picture img").bounding_box()["width"] >= 240
    assert page.locator("#v-size").text_content() == "60 × 60 pixels"
    link = page.locator("#v-file").evaluate("link => link.href")
    assert Path(unquote(urlsplit(link).path)) == photos_path.parents[1] / "files" / name
    seen = [name]
    for _ in range(5):
        page.keyboard.press("ArrowRight")
        seen.append(page.locator("#v-name").text_content())
    assert seen == page.locator("ul.members").first.locator(".name").all_text_contents()
    assert page.locator("#v-after").is_disabled()
    page.locator("#v-keep").click()
    page.locator("#v-close").click()
    assert page.locator("#viewer").is_hidden()
    assert [row[0] for row in download(page)[1]] == [seen[-1]]
    assert page.troubles == []


def test_what_was_not_read_is_told(open_page, photos_path):
    page = open_page(path=photos_path)
    assert page.locator(".skipped").is_visible()
    assert "1 file was not read" in page.locator(".skipped summary").text_content()
    cells = page.locator(".skipped td").all_text_contents()
    assert cells == ["broken <b>.png", "It ends in the middle of its data"]


def test_pictures_are_large_enough_to_judge(open_page, photos_path):
    for width, least in (("desktop", 80), ("phone", 90)):
        page = open_page(width, path=photos_path)
        box = page.locator("ul.members img").first.bounding_box()
        assert min(box["width"], box["height"]) >= least
        box = page.locator(".tile .sprite").first.bounding_box()
        assert min(box["width"], box["height"]) >= 90
        assert (
            page.evaluate("JSON.parse(document.getElementById('data').textContent).sheet[0]") == 60
        )


def next_frame(page):
    page.evaluate("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")


def view_box(page):
    next_frame(page)
    return page.locator("#canvas").evaluate(
        "node => ['x', 'y', 'width', 'height'].map((key) => node.viewBox.baseVal[key])"
    )


def test_the_map_zooms_by_wheel_button_and_key(open_page):
    page = open_page()
    whole = view_box(page)
    turn = {"deltaY": -100, "bubbles": True, "cancelable": True}
    page.locator("#canvas").dispatch_event("wheel", turn)
    assert view_box(page) == whole  # the wheel moves the page until the map has the focus
    page.locator("#field").focus()
    page.locator("#canvas").scroll_into_view_if_needed()
    box = page.locator("#canvas").bounding_box()
    page.mouse.move(box["x"] + 0.75 * box["width"], box["y"] + 0.25 * box["height"])
    page.mouse.wheel(0, -100)
    wait_until(page, lambda: view_box(page)[2] < 800)
    x, y, width, height = view_box(page)
    assert width < 0.8 * whole[2]
    np.testing.assert_allclose(height / width, whole[3] / whole[2])
    # What lies under the pointer stays there.
    np.testing.assert_allclose([x + 0.75 * width, y + 0.25 * height], [750, 165], atol=2)
    page.locator("#closer").click()
    assert view_box(page)[2] < width
    page.locator("#whole").click()
    assert view_box(page) == whole
    page.locator("#field").focus()
    page.keyboard.press("+")
    near = view_box(page)
    page.keyboard.press("+")
    assert view_box(page)[2] < near[2] < whole[2]
    page.keyboard.press("-")
    np.testing.assert_allclose(view_box(page)[2], near[2])
    box = page.locator("#canvas").bounding_box()
    page.mouse.move(box["x"] + 0.75 * box["width"], box["y"] + 0.25 * box["height"])
    page.mouse.down()
    page.mouse.move(box["x"] + 0.5 * box["width"], box["y"] + 0.25 * box["height"], steps=3)
    page.mouse.up()
    assert view_box(page)[0] > near[0]  # dragged to the left: what lies on the right comes in
    assert page.locator("#viewer").is_hidden()
    page.locator("#field").focus()
    page.keyboard.press("0")
    assert view_box(page) == whole
    assert page.troubles == []


def test_close_by_marks_become_pictures_and_can_be_selected(open_page, model):
    page = open_page()
    page.locator("#field").focus()
    page.keyboard.press("ArrowRight")
    for _ in range(5):
        page.keyboard.press("+")
    next_frame(page)
    n = page.locator("#pictures span").count()
    assert 1 <= n <= 80
    x, y, width, height = view_box(page)
    places = page.locator("#marks path").evaluate_all(
        "marks => marks.map((mark) => mark.getAttribute('d').match(/-?[0-9]+/g).map(Number))"
    )
    inside = [x <= a <= x + width and y <= b <= y + height for a, b, *_ in places]
    assert sum(inside) == n
    page.locator("#inview").click()
    assert page.locator("#count").text_content().endswith(f"{n} selected")
    _, rows = download(page)
    order = np.argsort(model.labels_, kind="stable")
    assert [int(label) for _, label, _ in rows] == model.labels_[order][inside].tolist()


def test_names_can_be_read_by_touch(open_page):
    page = open_page("phone", has_touch=True)
    mark = page.locator("#marks path").nth(60)
    mark.scroll_into_view_if_needed()
    box = mark.bounding_box()
    page.touchscreen.tap(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    assert page.locator("#who").is_visible()
    assert re.search(r"\.png$", page.locator("#who").text_content())
    page.locator("#enlarge").tap()
    assert page.locator("#v-name").text_content() == page.locator("#who").text_content()
    page.locator("#v-close").tap()
    card = page.locator("ul.members button").first
    card.tap()
    assert page.locator("#v-name").text_content() == card.locator(".name").text_content()
    page.locator("#v-close").tap()
    assert page.locator("ul.members .name").first.is_visible()


def test_ten_thousand_members_are_made_as_they_come_into_sight(open_page, many_path):
    page = open_page(path=many_path)
    assert page.locator("#count").text_content() == "10,000 of 10,000 samples"
    assert page.locator(".tile").count() == 120
    assert page.locator("#marks path").count() == 300
    page.locator("#scroller").evaluate("node => { node.scrollTop = node.scrollHeight; }")
    wait_until(page, lambda: page.locator(".tile").count() > 120)
    assert page.locator(".tile").count() <= 480
    page.locator("#search").fill("sample 9999")
    assert page.locator(".tile .name").all_text_contents() == ["sample 9999"]
    page.locator("#search").fill("sample 77")
    pictured = page.locator(".tile .sprite").count()
    assert pictured < page.locator(".tile").count() == 111  # 77, 770…779, 7700…7799
    page.locator(".tile", has=page.locator(".frame:empty")).first.click()
    assert "does not hold the picture" in page.locator("#v-size").text_content()
    assert page.troubles == []


def test_outliers_are_listed_and_leave_with_their_label(open_page, tmp_path):
    from tuckermix.clustering import TuckerClustering
    from tuckermix.report import write_report

    rng = np.random.default_rng(0)
    X = rng.normal(size=(3, 6, 6))[np.arange(90) % 3] + 0.1 * rng.normal(size=(90, 6, 6))
    X[[5, 50]] = 6 * rng.normal(size=(2, 6, 6))
    model = TuckerClustering(3, outliers="label", random_state=0).fit(X)
    outliers = np.flatnonzero(model.labels_ == -1)
    assert {5, 50} <= set(outliers)
    write_report(tmp_path / "report.html", model, X)
    page = open_page(path=tmp_path / "report.html")
    page.locator("#which").select_option("outliers")
    names = page.locator(".tile .name").all_text_contents()
    assert sorted(names) == sorted(f"sample {index}" for index in outliers)
    assert all("outlier" in note for note in page.locator(".tile .note").all_text_contents())
    assert {label for _, label in download(page)[1]} == {"-1"}
    assert page.troubles == []


def test_classes_are_compared_with_any_number_of_clusters(open_page, many_path):
    page = open_page(path=many_path)
    rows = page.locator(".largest tbody tr")
    assert rows.count() == 10
    assert rows.locator("td:nth-of-type(1)").all_text_contents() == ["1,000"] * 10
    assert rows.locator("b").count() >= 9  # each class has a cluster of its own


def test_one_sample_a_cluster_is_not_hidden_by_its_number(open_page, lone_path):
    page = open_page(path=lone_path)
    assert page.locator("#marks path").count() == 6
    for k in range(6):
        mark = page.locator(f"#marks .k{k} path").bounding_box()
        number = page.locator(f"#numbers .n{k}").bounding_box()
        middle = mark["y"] + mark["height"] / 2
        assert number["y"] + 0.8 * number["height"] < middle  # below the digits there is room
    assert page.get_by_role("button", name="List the sample of cluster 0").is_visible()
    assert page.troubles == []


def test_axes_can_be_read(open_page):
    page = open_page()
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
    assert page.troubles == []  # nothing that the page needs is blocked
    shades = page.locator(".confusion td").evaluate_all(
        "cells => cells.map((cell) => getComputedStyle(cell).getPropertyValue('--share'))"
    )
    counts = [int(text or 0) for text in page.locator(".confusion td").all_text_contents()]
    assert max(map(float, shades)) > 0.5
    assert all(
        (float(shade) == 0) == (count == 0) for shade, count in zip(shades, counts, strict=True)
    )
    assert "url(" in page.locator("#thumb").evaluate(
        "node => getComputedStyle(node).backgroundImage"
    )
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


def test_prints_without_stranded_headings(open_page):
    page = open_page()
    assert page.pdf().startswith(b"%PDF")
    page.emulate_media(media="print")
    page.set_viewport_size({"width": PAPER[0], "height": PAPER[1]})
    assert page.locator(".filter").is_hidden()
    assert page.locator("#members").is_hidden()
    assert page.locator("#canvas").is_visible()
    whole = "node => [getComputedStyle(node).breakInside, node.getBoundingClientRect().height]"
    for selector in ("#map", ".card", "figure", ".facts"):
        for node in page.locator(selector).all():
            inside, height = node.evaluate(whole)
            assert inside == "avoid"
            assert height < PAPER[1], selector
    after = "nodes => nodes.map((node) => getComputedStyle(node).breakAfter)"
    assert set(page.locator("h2:visible, h3:visible, h4:visible").evaluate_all(after)) == {"avoid"}
    assert page.evaluate("document.documentElement.scrollWidth") <= PAPER[0]


def test_readable_without_scripts(open_page, samples):
    page = open_page(java_script_enabled=False)
    assert page.locator("text=Scripts are off").is_visible()
    assert page.locator("#canvas").is_visible()
    assert page.locator("article").count() == 5
    page.locator("label.chip", has=page.locator("#f2")).click()
    assert page.locator("#f2").is_checked()


SIZE = "image => image.decode().then(() => [image.naturalWidth, image.naturalHeight])"


def test_videos_on_cards_are_frames_in_rows(open_page, videos_path):
    page = open_page(path=videos_path)
    members = page.locator("ul.members img")
    assert members.count() == 18
    # Six frames of 24 x 20 in two rows of three, a pixel between them.
    assert members.first.evaluate(SIZE) == [3 * 24 + 2, 2 * 20 + 1]
    assert page.locator(".centroid").first.locator("img").count() == 6
    box = members.first.bounding_box()
    assert box["width"] > 140  # each frame is large enough to judge
    assert box["width"] / box["height"] == pytest.approx(74 / 41, rel=0.05)


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
    page.locator("ul.members button").first.focus()
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
    page.locator("ul.members button").first.click()
    play = page.locator("#v-play")
    play.wait_for()
    assert play.text_content() == "Play"
    page.wait_for_timeout(600)
    assert page.locator("#v-frame").input_value() == "1"
    assert frame_shown(page) == 1
    play.click()  # unless they ask for it
    wait_until_it_moves(page)


def test_volumes_are_shown_by_their_slices(open_page, volumes_path):
    page = open_page(path=volumes_path)
    first = page.locator("ul.members img").first
    assert first.evaluate(SIZE) == [3 * 12 + 2, 12]  # three slices of 9 or 12 by 12, side by side
    page.locator("ul.members button").first.click()
    picture = page.locator("#v-picture img")
    picture.wait_for()
    assert picture.evaluate(SIZE) == [3 * 12 + 2 * 2, 12]
    assert page.locator("#v-player").is_hidden()
    caption = page.locator("#v-size")
    wait_until(page, lambda: "middle slices of 9 × 12 × 12 voxels" in caption.text_content())


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", WIDTHS)
def test_passes_the_accessibility_check(open_page, photos_path, videos_path, width, scheme):
    axe = pytest.importorskip("axe_playwright_python.sync_playwright", reason="no axe")
    page = open_page(width, color_scheme=scheme, reduced_motion="reduce")
    point_at(page, 40)
    page.locator(".tile .tick").first.click()
    page.locator("#field").focus()
    for _ in range(4):
        page.keyboard.press("+")
    results = axe.Axe().run(page)
    assert results.violations_count == 0, results.generate_report()
    page = open_page(width, photos_path, color_scheme=scheme, reduced_motion="reduce")
    page.locator(".tile").first.click()
    assert page.locator("#v-picture img").is_visible()
    results = axe.Axe().run(page, context="#viewer")
    assert results.violations_count == 0, results.generate_report()
    page = open_page(width, videos_path, color_scheme=scheme, reduced_motion="reduce")
    page.locator("ul.members button").first.click()
    page.locator("#v-play").wait_for()
    results = axe.Axe().run(page, context="#viewer")
    assert results.violations_count == 0, results.generate_report()


def test_everything_is_reached_by_keyboard(open_page, photos_path):
    page = open_page(path=photos_path)
    reached = []
    for _ in range(80):
        page.keyboard.press("Tab")
        reached.append(
            page.evaluate("document.activeElement.id || document.activeElement.className")
        )
        if reached[-1] == "tile k0":
            break
    for wanted in (
        "field",
        "closer",
        "inview",
        "open",
        "which",
        "search",
        "order",
        "save",
    ):
        assert wanted in reached
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    assert page.locator("#viewer").is_visible()
    page.keyboard.press("Escape")
    assert page.evaluate("document.activeElement.className").startswith("tile")
