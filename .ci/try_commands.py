"""Run the commands of README and documentation that change an environment or take hours.

Run as ``python .ci/try_commands.py`` in the environment of the tests. `tests/test_pages.py` runs
what a test may: Python blocks and `tuckermix`. What is left is run here: `pip install` in an
environment of its own, `make` with small counts, and the scripts that sentences name, as far as
their options, since most of them need datasets and hours. A command that nobody says how to run is
an error, so that a new one cannot be forgotten.
"""

from __future__ import annotations

import os
import runpy
import shlex
import subprocess
import sys
import tempfile
import time
import venv
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import redirect_stderr, redirect_stdout
from io import StringIO
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "tests"), str(ROOT)]

import test_pages  # noqa: E402

STAGES = ("test", "lint", "versions", "docs", "dist", "commands", "test-rest")
"""Targets that `.ci/run` runs as they are."""

SMALL = {
    "demo": (),
    "fuzz": ("COUNT=40",),
}
"""Other targets, with what makes them short."""

IN_PART = {
    "bench": ("-m", "benchmarks", "--quick", "--only", "kmeans"),
    "stress": ("-m", "stress.fits", "--count", "2"),
    "test-all": ("-m", "pytest", "-q", "tests/test_words.py"),
}
"""Targets that would install more than the tests need, or whose other parts are tests of their own:
make says what they would run, and a part of it is run."""

WITHOUT_OPTIONS = ("docs/make_images.py", "examples/")
"""Scripts that take none: the examples are run by the tests, and the first draws what the
documentation shows, which is looked at before it is committed."""

PLACES = {"S": "1", "N": "1", "J": "1"}
"""What stands for letters that a reader is to replace."""


def run(words: list[str], **more: str) -> None:
    """Run one command in the root of the repository; end with what it said if it fails."""
    start = time.perf_counter()
    done = subprocess.run(
        words, cwd=ROOT, env={**os.environ, **more}, text=True, capture_output=True
    )
    if done.returncode:
        sys.exit(f"{shlex.join(words)} failed:\n{done.stdout[-4000:]}{done.stderr[-4000:]}")
    print(f"  {shlex.join(words)}: {time.perf_counter() - start:.1f} s", flush=True)


def shown() -> list[tuple[dict[str, str], list[str]]]:
    """Return the commands of all blocks but those of `tuckermix`: their variables, their words."""
    found = []
    for page in test_pages.WITH_BLOCKS:
        for block in test_pages.blocks(ROOT / page):
            if block.language in ("console", "sh"):
                found += [words for words in test_pages.commands(block) if words not in found]
    commands = []
    for words in found:
        given = {}
        while "=" in words[0]:
            name, _, value = words[0].partition("=")
            given[name], words = value, words[1:]
        if Path(words[0]).name not in ("tuckermix", "export"):
            commands.append((given, words))
    return commands


def named(program: str) -> list[list[str]]:
    """Return the commands of a program that stand in sentences."""
    texts = [(ROOT / page).read_text(encoding="utf-8") for page in test_pages.pages()]
    found = {match for text in texts for match in test_pages.INLINE.findall(text)}
    return [shlex.split(text) for text in sorted(found) if text.startswith(f"{program} ")]


def run_make(target: str) -> None:
    """Run a target with small counts, or see that `.ci/run` runs it whole."""
    here = f"VENV={Path(sys.executable).parent.parent}"
    if target in STAGES:
        script = (ROOT / ".ci" / "run").read_text(encoding="utf-8")
        if f"\nmake {target}\n" not in script:
            sys.exit(f".ci/run does not run make {target}")
    elif target in IN_PART:
        run(["make", "-n", here, target])
        run([sys.executable, *IN_PART[target]])
    elif target in SMALL:
        run(["make", here, target, *SMALL[target]], OMP_NUM_THREADS="1")
    else:
        sys.exit(f"make {target}: say in {__file__} how to run it in short")


def borrowed(place: str) -> str:
    """Make an environment that sees the packages of this one, and return its Python.

    What the extras ask for is found there; only tuckermix itself is installed anew.
    """
    venv.create(place, with_pip=True)
    python = Path(place, "Scripts" if os.name == "nt" else "bin", "python")
    ask = "import sysconfig; print(sysconfig.get_path('purelib'))"
    packages = subprocess.check_output([python, "-c", ask], text=True).strip()
    ours = [path for path in sys.path if Path(path).name in ("site-packages", "dist-packages")]
    Path(packages, "borrowed.pth").write_text("\n".join(ours) + "\n")
    return str(python)


def run_installs(commands: list[list[str]]) -> None:
    """Run `pip install` as it is written, in an environment of its own."""
    with tempfile.TemporaryDirectory() as place:
        python = borrowed(place)
        for words in commands:
            run([python, "-m", *words, "-qq", "--disable-pip-version-check"])


def start_scripts(commands: list[list[str]]) -> None:
    """See that scripts load and know the options that they are shown with, in one process."""
    for words in commands:
        rest = [PLACES.get(word, word) for word in words[1:]]
        if rest[0] == "-c" or rest[0].startswith(WITHOUT_OPTIONS):
            continue
        if rest[0] == "-m":
            start: Callable[..., object] = runpy.run_module
            rest = rest[1:]
        else:
            start = runpy.run_path
        said = StringIO()
        sys.argv = [*rest, "--help"]
        try:
            with redirect_stdout(said), redirect_stderr(said):
                start(rest[0], run_name="__main__")
        except SystemExit as end:
            if not end.code:
                continue
        sys.exit(f"{shlex.join(words)} --help failed:\n{said.getvalue()[-2000:]}")
    print(f"  {len(commands)} scripts load and know their options", flush=True)


def main() -> None:
    """Run everything: `make` first, which may install, then `pip` beside the rest."""
    commands = shown()
    targets = {target for _, words in commands if words[0] == "make" for target in words[1:]}
    targets |= {target for words in named("make") for target in words[1:]}
    for target in sorted(targets):
        run_make(target)
    installs, others = [], []
    for given, words in commands:
        if words[0] == "pip" and "--target" not in words:
            installs.append(words)
        elif words[0] in ("pip", "python"):
            others.append((given, words))
        elif words[0] != "make" and words != ["bash", ".ci/run"]:  # which runs this
            sys.exit(f"{shlex.join(words)}: say in {__file__} how to run it")
    with ThreadPoolExecutor(1) as pool:
        beside = pool.submit(run_installs, installs)
        for given, words in others:
            start = ["-m", *words] if words[0] == "pip" else words[1:]
            run([sys.executable, *start], **given)
        beside.result()
    start_scripts(named("python"))


if __name__ == "__main__":
    main()
