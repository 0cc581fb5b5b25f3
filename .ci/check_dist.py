"""Build wheel and sdist, install the wheel into a clean environment, and use it there.

Run as ``python .ci/check_dist.py FOLDER``; both files stay in the folder. The wheel is built from
the sdist, as whoever packages it does, so that what is missing in the one is missing in the other.
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

RECORDS = "tuckermix/experiments/records.csv"
"""The published records, which the wheel takes from the documentation."""

EXTRAS = "cli,report"
"""What the trial needs; the readers of `io` are tried by the tests."""

LEAST_ACCURACY = 0.9
"""On the digits the default reaches 0.95."""


def run(*words: str | Path, cwd: Path = ROOT) -> str:
    """Run a command without the paths of this environment, and return what it prints."""
    environment = {key: text for key, text in os.environ.items() if key != "PYTHONPATH"}
    done = subprocess.run(
        list(map(str, words)), capture_output=True, text=True, cwd=cwd, env=environment
    )
    if done.returncode:
        sys.exit(f"{' '.join(map(str, words))} failed:\n{done.stdout}{done.stderr}")
    return done.stdout


def main(folder: Path) -> None:
    """Build, compare, install, use."""
    folder = folder.resolve()
    for old in (*folder.glob("tuckermix-*.tar.gz"), *folder.glob("tuckermix-*.whl")):
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
    with zipfile.ZipFile(wheel) as archive:
        packed = set(archive.namelist())
    if RECORDS not in packed:
        sys.exit(f"The wheel lacks {RECORDS}.")
    tracked = run("git", "ls-files", "src/tuckermix").split()
    missing = sorted({name.removeprefix("src/") for name in tracked} - packed)
    if missing:
        sys.exit(f"The wheel lacks {', '.join(missing)}.")
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
    if not values["accuracy"] > LEAST_ACCURACY:
        sys.exit(f"The digits are clustered with an accuracy of {values['accuracy']:.3f} only.")
    print(
        f"{sdist.name} and {wheel.name} are whole; accuracy on the digits {values['accuracy']:.3f}"
    )


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "dist"))
