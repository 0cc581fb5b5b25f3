"""Kill -9 at random moments: ``python -m stress.kills --count 100``.

`count` runs of ``tuckermix reproduce`` and as many of ``tuckermix cluster`` are killed. A killed
``reproduce`` has lost no record that was there before and holds only whole ones, the next run goes
on, and what comes out in the end is what an undisturbed run gives. A killed ``cluster`` leaves the
four results of an earlier run, or the four new ones: no half of a file, no mixture; the next run
continues what the killed one kept, gives the labels of an undisturbed run, and leaves nothing
hidden.

Most runs are forks of this process, which has everything imported, so that the blow falls on the
work; one in ten is a process of its own with workers.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from stress import share_out
from stress.interrupts import DONE, RESULTS, Assault, Broken, _digests, check_store, demand
from tuckermix.cli import main as command_line
from tuckermix_bench.store import RunRecord, read_store

OWN_PROCESS = 10
"""One run in so many is the real command, not a fork."""

START_SECONDS = 4.0
"""How long a process of its own may take to load what it needs; some die in that time."""

RUNS = 60
WORDS = ("reproduce", "table3", "--quick", "--methods", "k-means", "--runs", str(RUNS))


def killed(work: Any, seconds: float) -> bool:
    """Run `work` in a fork and kill it after some time; return whether it was still running."""
    pid = os.fork()
    if pid == 0:
        with contextlib.suppress(BaseException):
            work()
        os._exit(0)
    time.sleep(seconds)
    os.kill(pid, signal.SIGKILL)  # a process that has ended stays until it is waited for
    return os.WIFSIGNALED(os.waitpid(pid, 0)[1])


def killed_command(words: tuple[str, ...], seconds: float) -> bool:
    """Start the command and kill it after some time; its workers must notice by themselves."""
    process = subprocess.Popen(
        [sys.executable, "-m", "tuckermix", *words],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    time.sleep(seconds)
    process.kill()
    return process.wait() == -signal.SIGKILL


class Kills:
    """The two commands under fire."""

    def __init__(self, folder: Path, commands: Sequence[str]) -> None:
        self.folder = folder
        self.assault = Assault(folder, ("cluster", *commands))
        self.db = folder / "killed.jsonl"
        self.seen: dict[Any, Any] = {}
        self.seconds = self.assault.seconds["cluster"]
        # Keep everything, so that there is something to continue from.
        os.environ["TUCKERMIX_KEEP_SECONDS"] = "0"
        os.environ["XDG_STATE_HOME"] = str(folder / "state")
        self.photos, self.resumed = _photos(folder / "photos"), 0
        undisturbed = self.assault.fresh("undisturbed") / "out"
        for _ in range(2):  # the first time imports and warms up
            start = time.perf_counter()
            demand(self.cluster(undisturbed)[0] == DONE, "an undisturbed run fails")
        self.cluster_seconds = time.perf_counter() - start
        self.labels = (undisturbed / "labels.csv").read_bytes()

    def words(self, out: Path) -> tuple[str, ...]:
        return ("cluster", str(self.photos), "-k", "4", "-o", str(out), "--force")

    def cluster(self, out: Path) -> tuple[int, str]:
        """Run the command in this process; return its exit code and what it said."""
        said = io.StringIO()
        with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(said):
            return command_line(self.words(out)), said.getvalue()

    def reproduce(self, db: Path, jobs: int = 0) -> int:
        return self.assault.command(*WORDS, "--jobs", str(jobs), "--db", str(db))

    def kill_reproduce(self, seed: int) -> bool:
        rng = np.random.default_rng(seed)
        if seed % OWN_PROCESS == 0:
            words = (*WORDS, "--jobs", "2", "--db", str(self.db))
            cut = killed_command(words, rng.uniform(0, START_SECONDS))
        else:
            cut = killed(lambda: self.reproduce(self.db), rng.uniform(0, self.seconds))
        found = self.records()
        demand(self.seen.items() <= found.items(), "records are lost or changed")
        self.seen = found
        return cut

    def records(self) -> dict[Any, Any]:
        if not self.db.exists():
            return {}
        check_store(self.db)
        return {record.key: repr(record) for record in read_store(self.db)}

    def finish_reproduce(self) -> None:
        """Let the killed run end, and compare it with an undisturbed one."""
        other = self.folder / "undisturbed.jsonl"
        for db in (self.db, other):
            demand(self.reproduce(db) == DONE, "the next run does not go on")
        demand(self.seen.items() <= self.records().items(), "records are lost or changed")
        same = list(map(_outcome, read_store(self.db))) == list(map(_outcome, read_store(other)))
        demand(same, "the records are not those of an undisturbed run")

    def kill_cluster(self, seed: int) -> bool:
        rng = np.random.default_rng(seed)
        place = self.assault.fresh("killed")
        out = place / "out"
        if seed % 2:
            shutil.copytree(self.assault.old_results, out)
        before = _digests(place)
        seconds = rng.uniform(0, 1.1 * self.cluster_seconds)
        if seed % OWN_PROCESS == 0:
            cut = killed_command(self.words(out), rng.uniform(0, START_SECONDS))
        else:
            cut = killed(lambda: self.cluster(out), seconds)
        after = {
            name: digest
            for name, digest in _digests(place).items()
            if not any(part.startswith(".") for part in Path(name).parts)
        }
        changed = {name for name in after if after[name] != before.get(name)}
        demand(len(changed) in (0, len(RESULTS)), f"results of two runs: {sorted(changed)}")
        demand(set(before) <= set(after), "earlier results are gone")
        code, said = self.cluster(out)
        demand(code == DONE, "the next run fails")
        self.resumed += "Continuing an earlier run" in said
        labels = (out / "labels.csv").read_bytes()
        demand(labels == self.labels, "the labels are not those of an undisturbed run")
        left = [str(path) for path in place.rglob(".*")]
        demand(not left, f"files are left over: {left}")
        return cut


def _photos(folder: Path) -> Path:
    """Make a folder of small pictures of four kinds."""
    from PIL import Image

    folder.mkdir()
    rng = np.random.default_rng(0)
    kinds = rng.integers(0, 200, (4, 16, 16))
    for index in range(60):
        picture = kinds[index % 4] + rng.integers(0, 50, (16, 16))
        Image.fromarray(picture.astype(np.uint8)).save(folder / f"{index:02d}.png")
    return folder


def _outcome(record: RunRecord) -> tuple[Any, ...]:
    """Return what of a record does not depend on the machine's load."""
    return (*record.key, record.digest, record.status, record.ac, record.nmi, record.classes)


Counts = tuple[Counter[str], Counter[str]]


def strike(commands: Sequence[str], first: int, count: int, step: int = 1) -> Counts:
    """Kill until `count` runs of each command were cut short, or as many failed.

    Parameters
    ----------
    commands : sequence of str
        Which ones.
    first : int
        The first seed.
    count : int
        How many kills of each.
    step : int, default=1
        The distance of two seeds, so that several processes share them out.

    Returns
    -------
    cut, runs : Counter
        By command, how many runs were cut short, and how many there were; among the runs are also
        those that were "resumed", and the "failures".
    """
    cut, runs = Counter[str](), Counter[str]()
    with tempfile.TemporaryDirectory() as folder:
        kills = Kills(Path(folder), commands)
        for kind in commands:
            seed = first
            while cut[kind] < count and runs["failures"] < count:
                try:
                    cut[kind] += getattr(kills, f"kill_{kind}")(seed)
                except (Broken, OSError) as error:
                    runs["failures"] += 1
                    print(f"{kind}, seed {seed}: {error!r}", flush=True)
                runs[kind] += 1
                seed += step
            if kind == "reproduce":
                print(f"{len(kills.seen)} records survived the kills of reproduce", flush=True)
                kills.finish_reproduce()
        runs["resumed"] = kills.resumed
    return cut, runs


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--count", type=int, default=100)
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--jobs", type=int, default=1, help="processes")
    parser.add_argument("--commands", nargs="+", default=("reproduce", "cluster"))
    options = parser.parse_args()
    jobs = min(options.jobs, options.count)
    counts = share_out(partial(strike, options.commands), options.first, options.count, jobs)
    cut = sum((one[0] for one in counts), Counter[str]())
    runs = sum((one[1] for one in counts), Counter[str]())
    print(f"{runs['resumed']} runs of cluster continued what a killed one had kept")
    for kind in options.commands:
        print(f"{kind}: {cut[kind]} of {runs[kind]} runs were killed before they ended")
    print(f"{runs['failures']} failures")
    return int(bool(runs["failures"]))


if __name__ == "__main__":
    sys.exit(main())
