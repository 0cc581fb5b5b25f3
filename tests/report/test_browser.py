"""The report as a person meets it: in a browser, on a phone, on paper."""

import re

import pytest

pytestmark = pytest.mark.browser
HOSTILE = "<script>alert(1)</script><b>x</b> & \"q\" 'a' .png"
WIDTHS = {"phone": (390, 844), "desktop": (1280, 900)}


@pytest.fixture
def open_page(browser, report_path):
    """Return a function that opens the report and gathers what must not happen."""
    contexts = []

    def open_it(width="desktop", **options):
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
        page.goto(report_path.as_uri())
        return page

    yield open_it
    for context in contexts:
        context.close()


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
    assert width == 128


def test_choosing_a_cluster_filters_the_map(open_page):
    page = open_page()
    page.locator("label.chip", has=page.locator("#f2")).click()
    page.wait_for_timeout(250)
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
    page.keyboard.press("Escape")
    assert page.locator("#all").is_checked()


def test_html_in_a_file_name_shows_as_text(open_page):
    page = open_page()
    place = page.evaluate(
        "JSON.parse(document.getElementById('data').textContent)"
        ".names.findIndex((name) => name.includes('alert'))"
    )
    # Put the mark where no other is, so that the pointer finds this one and no neighbour.
    page.evaluate(
        "place => document.querySelectorAll('#marks path')[place]"
        ".setAttribute('d', 'M990 650h1v1z')",
        place,
    )
    page.add_script_tag(content=page.locator("script:not([type])").text_content())
    point_at(page, place)
    assert page.locator("#who").text_content() == HOSTILE
    assert page.troubles == []
    assert page.locator("#who b, #who script").count() == 0


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
    page.wait_for_timeout(100)
    assert page.evaluate("window.broken") is None
    assert page.locator("h1").is_visible()
    assert len([text for text in page.troubles if "Content Security Policy" in text]) == 3


def test_prints(open_page):
    page = open_page()
    content = page.pdf()
    assert content.startswith(b"%PDF")
    page.emulate_media(media="print")
    assert page.locator(".filter").is_hidden()
    assert page.locator("#canvas").is_visible()


def test_readable_without_scripts(open_page, samples):
    page = open_page(java_script_enabled=False)
    assert page.locator("text=Scripts are off").is_visible()
    assert page.locator("#canvas").is_visible()
    assert page.locator("article").count() == 5
    page.locator("label.chip", has=page.locator("#f2")).click()
    assert page.locator("#f2").is_checked()


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", WIDTHS)
def test_passes_the_accessibility_check(open_page, width, scheme):
    axe = pytest.importorskip("axe_playwright_python.sync_playwright", reason="no axe")
    page = open_page(width, color_scheme=scheme, reduced_motion="reduce")
    point_at(page, 40)
    results = axe.Axe().run(page)
    assert results.violations_count == 0, results.generate_report()
