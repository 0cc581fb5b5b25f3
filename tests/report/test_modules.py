"""The modules of the page's script, each by what its functions return."""

import base64
import io
import json
import re
from itertools import pairwise

import numpy as np
import pytest
from PIL import Image
from tests.cases import each

from tuckermix._files import csv_text
from tuckermix.report._write import SCRIPTS, TEMPLATES

pytestmark = pytest.mark.browser
FREE = re.compile(r'<meta http-equiv="Content-Security-Policy"[^>]*>|<script>.*?</script>', re.S)


@pytest.fixture
def module(browser):
    """Return a function that runs the script up to a module, and then an expression.

    The page of a report holds the nodes that the modules look for; `data` changes what they read.
    """
    pages = []

    def run(path, name, expression, given=None, **data):
        if not pages:
            pages.append(browser.new_page(viewport={"width": 1000, "height": 800}))
        (page,) = pages
        page.goto("about:blank")
        page.set_content(FREE.sub("", path.read_text()))
        names = SCRIPTS.split()
        parts = [(TEMPLATES / f"{one}.js").read_text() for one in names[: names.index(name) + 1]]
        page.evaluate(
            """(more) => {
              const node = document.getElementById("data");
              node.textContent = JSON.stringify({ ...JSON.parse(node.textContent), ...more });
            }""",
            data,
        )
        code = "\n".join(parts)
        return page.evaluate(
            f'async (given) => {{ "use strict"; {code}\n {{ {expression} }} }}', given
        )

    yield run
    for page in pages:
        page.close()


def data_of(path):
    text = re.search(r'id="data">(.*?)</script>', path.read_text(), re.S)[1]
    return json.loads(text)


def test_base_measures_likeness(module, report_path):
    near = data_of(report_path)["near"]
    points = np.frombuffer(base64.b64decode(near), np.uint8).reshape(400, -1).astype(float)
    asked = [3, 50, 51]
    found = module(report_path, "base", "return Array.from(distances(middle(given)));", asked)
    expected = ((points - points[asked].mean(axis=0)) ** 2).sum(axis=1)
    np.testing.assert_allclose(found, expected, rtol=1e-12)
    order = module(report_path, "base", "return similar(given, 20);", asked)
    others = np.setdiff1d(np.argsort(expected, kind="stable"), asked, assume_unique=True)
    np.testing.assert_array_equal(expected[order], expected[others[:20]])


def test_base_links_files_by_safe_addresses(module, report_path):
    names = [f"{index}.png" for index in range(400)]
    names[1] = "a b/50% #1?.png"
    text = "return [file(1), file(2), file(3), words(1, 'cat'), words(1200, 'cat'), percent(996)];"
    found = module(report_path, "base", text, names=names, base="../in/", unlinked=[2])
    assert found[:3] == ["../in/a%20b/50%25%20%231%3F.png", None, "../in/3.png"]
    assert found[3:] == ["1 cat", "1,200 cats", "100 %"]


def divided(model, labels, cluster):
    """Return the members of a cluster that the tree takes away first."""
    inside = labels == cluster
    for count in range(2, 40):
        below = model.labels_at(count)
        if len(np.unique(below[inside])) > 1:
            return inside & (below != below[inside].min())
    raise AssertionError("the tree ends above")


STATE = """
  restore();
  for (const [act, ...numbers] of given) {
    const [first, second] = numbers.map((number) => groups.find((one) => one.number === number));
    if (act === "split") split(first);
    if (act === "merge") merge(first, second);
    if (act === "level") setLevel(numbers[0]);
    if (act === "undo") undo();
  }
  return [every.map((place) => groupOf[place].number), edits()];
"""


@each(
    "acts",
    [
        [["split", 2]],
        [["merge", 1, 3]],
        [["split", 0], ["split", 1], ["merge", 5, 2]],
        [["merge", 0, 4], ["split", 0], ["split", 3]],
        [["level", 8], ["merge", 6, 7], ["split", 2], ["undo"], ["split", 1]],
    ],
)
def test_state_numbers_clusters_as_its_edits_say(module, report_path, model, acts):
    labels, told = module(report_path, "state", STATE, acts)
    expected = model.labels_at(told["n_clusters"]).copy()
    for cluster in told["split"]:
        expected[divided(model, expected, cluster)] = expected.max() + 1
    for together in told["merge"]:
        expected[np.isin(expected, together)] = min(together)
    np.testing.assert_array_equal(labels, expected)


def test_state_undoes_everything(module, report_path, model):
    acts = [["split", 0], ["merge", 1, 2], ["split", 3], *[["undo"]] * 4]
    labels, told = module(report_path, "state", STATE, acts)
    np.testing.assert_array_equal(labels, model.labels_)
    assert (told["split"], told["merge"], told["move"], told["exclude"]) == ([], [], {}, [])


def test_picture_cuts_thumbnails_out_of_the_sheet(module, snapshots_path):
    data = data_of(snapshots_path)
    wide, high, columns, _ = data["sheet"]
    whole = re.search(r'id="sheet">"data:[^,]*,([^"]*)"', snapshots_path.read_text())[1]
    sheet = np.asarray(Image.open(io.BytesIO(base64.b64decode(whole))).convert("RGB")).astype(int)
    cut = "await sheet.decode(); return [thumb(7), ratio(7), ratio(8)];"
    address, *ratios = module(snapshots_path, "picture", cut)
    found = Image.open(io.BytesIO(base64.b64decode(address.partition(",")[2]))).convert("RGB")
    width, height = data["sizes"][7]
    top, left = 7 // columns * high, 7 % columns * wide
    assert found.size == (width, height)
    part = sheet[top : top + height, left : left + width]
    assert np.abs(np.asarray(found).astype(int) - part).max() <= 2
    assert ratios == [data["ratios"][7] / 100, data["ratios"][8] / 100]


def test_tiles_come_in_parts_and_arrows_follow_their_rows(module, report_path):
    text = """
      restore();
      get("bar").hidden = false;
      get("v-all").hidden = false;
      document.documentElement.classList.add("live");
      fill(get("list"), every, { count: 50, caption: true });
      const list = get("list"), count = () => list.childElementCount;
      const seen = [count(), more(list, 1000), count()];
      const columns = getComputedStyle(list).gridTemplateColumns.split(" ").length;
      const to = (from, key) => Number(beside(list.children[from], key)?.dataset.place ?? -1);
      const keys = ["ArrowRight", "ArrowLeft", "ArrowDown", "ArrowUp", "Home", "End"];
      const moves = [...keys.map((key) => to(30, key)), to(0, "ArrowUp"), to(0, "ArrowLeft")];
      const stops = list.querySelectorAll('[tabindex="0"]').length;
      return [seen, columns, moves, stops, list.children[9].getAttribute("aria-posinset")];
    """
    seen, columns, moves, stops, place = module(report_path, "tiles", text)
    assert seen == [50, False, 400]
    assert 4 <= columns <= 8
    assert moves == [31, 29, 30 + columns, 30 - columns, 0, 399, -1, -1]
    assert (stops, place) == (1, "10")


def test_clusters_begin_with_what_the_page_shows_without_a_script(module, snapshots_path):
    text = "restore(); return groups.map((group) => [group.number, firstOf(group)]);"
    found = dict(map(tuple, module(snapshots_path, "clusters", text)))
    page = snapshots_path.read_text()
    for number, part in re.findall(r'data-cluster="(\d+)">(.*?)</article>', page, re.S):
        places = [int(place) for place in re.findall(r'<img data-place="(\d+)"', part)]
        assert found[int(number)] == places


def test_all_sorts_names_as_people_count(module, report_path):
    names = [f"IMG {index}.jpg" for index in range(400)]
    text = """
      restore();
      get("order").value = "name";
      get("search").value = given;
      drawAll();
      return Array.from(get("list").children, (node) => node.title);
    """
    found = module(report_path, "all", text, "img 3", names=names)
    numbers = [3, *range(30, 40), *range(300, 400)]
    assert found == [f"IMG {index}.jpg" for index in numbers]


def test_tray_lists_what_is_set_aside_unusual_or_twice(module, report_path):
    text = """
      restore();
      drawTray();
      const places = (group) => Array.from(group.children, (node) => Number(node.dataset.place));
      const texts = ["n-out", "n-strange", "n-twins"].map((id) => get(id).textContent);
      return [...texts, Array.from(get("t-twins").children, places)];
    """
    given = {"aside": [4, 9], "strange": [], "twins": [[1, 2], [5, 6, 7]]}
    found = module(report_path, "tray", text, **given)
    assert found == ["2", "none", "2", [[1, 2], [5, 6, 7]]]


def test_map_knows_what_a_lasso_surrounds(module, report_path):
    from matplotlib.path import Path

    rng = np.random.default_rng(0)
    corners, points = rng.random((9, 2)), rng.random((500, 2))
    text = "return given[1].map((point) => within(point, given[0]));"
    found = module(report_path, "map", text, [corners.tolist(), points.tolist()])
    # A star that crosses itself: what lies within by the rule of even and odd crossings.
    closed = np.concatenate([corners, corners[:1]])
    expected = np.zeros(500, dtype=bool)
    for start, end in pairwise(closed):
        triangle = Path(np.stack([corners[0], start, end, corners[0]]))
        expected ^= triangle.contains_points(points)
    np.testing.assert_array_equal(found, expected)
    assert 50 < sum(found) < 450


def test_map_zooms_around_a_point(module, report_path):
    text = """
      restore();
      get("v-map").hidden = false;
      paint();
      const place = given, before = onScreen(place);
      zoomAt(...before, 3);
      return [before, onScreen(place), zoom];
    """
    before, after, zoom = module(report_path, "map", text, 17)
    assert zoom == 3
    np.testing.assert_allclose(before, after, atol=1e-6)


def test_viewer_goes_through_a_list_and_ends(module, report_path):
    text = """
      restore();
      const seen = [];
      open(3, [8, 3, 5]);
      for (const by of [0, 1, 1, -1, -1, -1]) { step(by); seen.push(viewed); }
      const ends = [get("v-before").disabled, get("v-after").disabled];
      return [seen, ...ends, get("v-near").childElementCount];
    """
    assert module(report_path, "choose", text) == [[3, 5, 5, 3, 8, 8], True, False, 8]


CELLS = [
    "plain",
    '=HYPERLINK("x")',
    "-5",
    "+1",
    "@a",
    "'=1",
    "a,b",
    'say "x"',
    "two\nlines",
    "＝1",
    "\tx",
]


def test_choose_writes_csv_as_the_library_does(module, report_path):
    found = module(report_path, "choose", "return given.map(cell);", CELLS)
    assert "\n".join(found) + "\n" == csv_text([[cell] for cell in CELLS])


def test_main_draws_a_view_when_it_is_looked_at(module, report_path):
    text = """
      const count = () => get("list").childElementCount;
      const seen = [stale.has("all"), count()];
      show("all");
      const first = get("list").firstChild;
      show("clusters");
      show("all");
      seen.push(count() > 0, first === get("list").firstChild);
      rename(groups[0], "Zeros");
      return [...seen, first === get("list").firstChild, view_];
    """
    assert module(report_path, "main", text) == [True, 0, True, True, False, "all"]


def test_every_module_has_a_test():
    for name in SCRIPTS.split():
        assert any(test.startswith(f"test_{name}_") for test in globals()), name
