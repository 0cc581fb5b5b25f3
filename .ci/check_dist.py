"""Build both wheels and the sdist, install the wheels into a clean environment, and use them there.

Run as ``python .ci/check_dist.py FOLDER``; the files stay in the folder. The wheel of tuckermix is
built from the sdist, as whoever packages it does, so that what is missing in the one is missing in
the other. The wheel of tuckermix-bench is built from the checkout.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tarfile
import tempfile
import venv
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent

BESIDE = ("README.md", "LICENSE", "CHANGELOG.md", "CITATION.cff", "constraints.txt", "Makefile")
"""Files of the sdist that a reader of it looks for."""

RECORDS = "tuckermix_bench/records.csv"
"""The published records, which the wheel of tuckermix-bench takes from the documentation."""

EXTRAS = "cli,report"
"""What the trial needs; the readers of `io` are tried by the tests."""

LEAST_ACCURACY = 0.9
"""On the digits the default reaches 0.95."""


METHOD = "import numpy as np\n\ndef f(X, n_clusters):\n    return np.arange(len(X)) % n_clusters\n"


def _call(*words: str | Path, cwd: Path) -> subprocess.CompletedProcess[str]:
    """Run a command without the paths of this environment."""
    environment = {key: text for key, text in os.environ.items() if key != "PYTHONPATH"}
    return subprocess.run(
        list(map(str, words)), capture_output=True, text=True, cwd=cwd, env=environment
    )


def refused(*words: str | Path, cwd: Path) -> str:
    """Run a command that must fail, and return what it says."""
    done = _call(*words, cwd=cwd)
    return done.stderr if done.returncode else ""


def run(*words: str | Path, cwd: Path = ROOT) -> str:
    """Run a command and return what it prints."""
    done = _call(*words, cwd=cwd)
    if done.returncode:
        sys.exit(f"{' '.join(map(str, words))} failed:\n{done.stdout}{done.stderr}")
    return done.stdout


def main(folder: Path) -> None:
    """Build, compare, install, use."""
    folder = folder.resolve()
    for old in (*folder.glob("tuckermix*.tar.gz"), *folder.glob("tuckermix*.whl")):
        old.unlink()
    run(sys.executable, "-m", "hatchling", "build", "-t", "sdist", "-d", folder)
    (sdist,) = folder.glob("tuckermix-*.tar.gz")
    with tempfile.TemporaryDirectory() as place:
        with tarfile.open(sdist) as archive:
            archive.extractall(place, filter="data")
        (source,) = Path(place).iterdir()
        run(sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", folder, cwd=source)
        absent = [name for name in BESIDE if not (source / name).is_file()]
        if absent:
            sys.exit(f"The sdist lacks {', '.join(absent)}.")
    (wheel,) = folder.glob("tuckermix-*.whl")
    run(sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", folder, cwd=ROOT / "bench")
    (bench,) = folder.glob("tuckermix_bench-*.whl")
    for package, built in (("src/tuckermix", wheel), ("bench/src/tuckermix_bench", bench)):
        with zipfile.ZipFile(built) as archive:
            packed = set(archive.namelist())
        tracked = run("git", "ls-files", package).split()
        prefix = package.removesuffix(Path(package).name)
        missing = sorted({name.removeprefix(prefix) for name in tracked} - packed)
        if missing:
            sys.exit(f"{built.name} lacks {', '.join(missing)}.")
        if (built is bench) != (RECORDS in packed):
            sys.exit(f"{RECORDS} must be in {bench.name}, and nowhere else.")
    with tempfile.TemporaryDirectory() as place:
        venv.create(Path(place, "env"), with_pip=True)
        here = Path(place, "env", "Scripts" if os.name == "nt" else "bin")
        options = ["-qq", "--disable-pip-version-check", "--constraint", ROOT / "constraints.txt"]
        wanted = f"tuckermix[{EXTRAS}] @ {wheel.as_uri()}"
        run(here / "python", "-m", "pip", "install", *options, wanted, cwd=Path(place))
        command = here / "tuckermix"
        run(command, "demo", "--help", cwd=Path(place))
        words = ("cluster", "digits", "-k", "10", "--truth", "labels", "--json", "--quiet")
        values = json.loads(run(command, *words, cwd=Path(place)))
        again = ("predict", "digits-clusters/model.tuckermix", "digits", "--quiet")
        labels = run(command, *again, cwd=Path(place))
        if labels != Path(place, "digits-clusters", "labels.csv").read_text(encoding="utf-8"):
            sys.exit("predict does not repeat the labels of the fit.")
        told = refused(command, "reproduce", "table5", cwd=Path(place))
        if "pip install tuckermix-bench" not in told:
            sys.exit(f"tuckermix reproduce does not say what to install: {told}")
        wanted = f"tuckermix-bench @ {bench.as_uri()}"
        run(here / "python", "-m", "pip", "install", *options, wanted, cwd=Path(place))
        words = ("table5", "--quick", "--methods", "k-means", "--jobs", "1", "--db", "r.jsonl")
        if "k-means" not in run(command, "reproduce", *words, cwd=Path(place)):
            sys.exit("tuckermix reproduce prints no table.")
        words = ("--rows", "digits", "--runs", "1", "--jobs", "0", "--json", "--quiet")
        (Path(place) / "mine.py").write_text(METHOD, encoding="utf-8")
        found = json.loads(run(command, "bench", "--method", "mine:f", *words, cwd=Path(place)))
        if not all(one["columns"] > 10 for one in found["places"]):
            sys.exit("tuckermix bench does not compare with the published columns.")
    if not values["accuracy"] > LEAST_ACCURACY:
        sys.exit(f"The digits are clustered with an accuracy of {values['accuracy']:.3f} only.")
    names = f"{sdist.name}, {wheel.name} and {bench.name}"
    print(f"{names} are whole; accuracy on the digits {values['accuracy']:.3f}")


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "dist"))
