"""Ctrl-C at random moments: ``python -m stress.interrupts --count 1000``.

Each seed starts a fit, work that threads share, a saving, ``tuckermix cluster`` or ``tuckermix
reproduce`` in this process and raises SIGINT after a random part of the time that it takes.
Afterwards the estimator is the one before or a whole new one, no thread works on, no file is
half-written, none is left over, the results of two runs are not mixed, the store holds whole
records and the next run goes on, and the BLAS libraries have as many threads as before.
``OMP_NUM_THREADS=1`` makes it several times faster: scikit-learn's k-means, which `reproduce` runs
here, keeps its threads spinning.
"""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import io
import logging
import shutil
import signal
import sys
import tempfile
import time
import warnings
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from threadpoolctl import threadpool_info, threadpool_limits

import tuckermix
from stress import share_out
from tuckermix import TuckerClustering
from tuckermix._threads import in_threads, one_blas_thread
from tuckermix.cli import main as command_line
from tuckermix_bench.store import read_store

KINDS = ("fit", "threads", "save", "cluster", "reproduce")
RESULTS = ("labels.csv", "model.tuckermix", "report.html", "summary.json")
LATER = 1.2
"""Some interrupts come after the work is done, lest its last steps be spared."""

TELL = 25
"""Interrupts after which a process says how far it is: a long count may be ended early."""

DONE, NOT_CONVERGED, INTERRUPTED = 0, 3, 130


N_ITEMS, N_THREADS = 60, 4
"""Blocks that threads share, and how many threads."""

SETTLED = 1e-3
"""Seconds in which a thread that should rest would be seen to work."""


def shared_out(work: Callable[[int], Any], found: list[Any]) -> None:
    """Let several threads work on blocks."""
    one_blas_thread(in_threads, n_jobs=N_THREADS)(work, range(N_ITEMS), np.empty(0), found.append)


class Broken(AssertionError):
    """Something that must hold does not."""


def demand(holds: Any, text: str) -> None:
    if not holds:
        raise Broken(text)


def interrupted(work: Callable[[], Any], seconds: float) -> bool:
    """Run `work` and raise SIGINT after some time; return whether that ended it."""
    before = signal.signal(signal.SIGALRM, lambda *_: signal.raise_signal(signal.SIGINT))
    try:
        try:
            signal.setitimer(signal.ITIMER_REAL, max(seconds, 1e-6))
            work()
            return False
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
    except KeyboardInterrupt:
        return True
    finally:
        signal.signal(signal.SIGALRM, before)


def blas_threads() -> list[int]:
    return [entry["num_threads"] for entry in threadpool_info() if entry["user_api"] == "blas"]


class Assault:
    """The cases, with the time that each takes undisturbed."""

    def __init__(self, folder: Path, kinds: Sequence[str] = KINDS) -> None:
        self.folder = folder
        rng = np.random.default_rng(0)
        centers = 3 * rng.standard_normal((4, 12, 10))
        self.X = centers[np.arange(200) % 4] + rng.standard_normal((200, 12, 10))
        self.old = TuckerClustering(3, random_state=0).fit(self.X[:100])
        self.data = folder / "data.npz"
        np.savez(self.data, X=self.X)
        self.seconds: dict[str, float] = {}
        for kind in dict.fromkeys(kinds):
            for _ in range(2):  # the first time imports and warms up
                place = self.fresh()
                start = time.perf_counter()
                getattr(self, f"start_{kind}")(place, 0)
                self.seconds[kind] = time.perf_counter() - start
        self.old_results = self.fresh("old")
        self.cluster(self.old_results, ranks="2x2")

    def fresh(self, name: str = "place") -> Path:
        place = self.folder / name
        shutil.rmtree(place, ignore_errors=True)
        place.mkdir()
        return place

    def cluster(self, place: Path, ranks: str = "4x4") -> int:
        words = ("cluster", str(self.data), "-k", "4", "-o", str(place), "--quiet", "--force")
        return self.command(*words, "--ranks", ranks)

    def reproduce(self, place: Path) -> int:
        words = ("reproduce", "table3", "--quick", "--jobs", "0", "--methods", "k-means")
        return self.command(*words, "--runs", "3", "--db", str(place / "r.jsonl"))

    @staticmethod
    def command(*words: str) -> int:
        with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
            return command_line(words)

    # One method starts the work undisturbed, one runs it with an interrupt and checks.

    def start_fit(self, place: Path, seed: int) -> None:
        TuckerClustering(4, random_state=seed).fit(self.X)

    def check_fit(self, seconds: float, seed: int) -> bool:
        model = TuckerClustering(4, random_state=seed)
        if seed % 2:
            model.fit(self.X[:60])
        before = dict(vars(model))
        ended = interrupted(lambda: model.fit(self.X), seconds)
        after = vars(model)
        if ended and len(after.get("labels_", ())) != len(self.X):
            demand(list(after) == list(before), "attributes came or went")
            demand(all(after[key] is before[key] for key in before), "attributes have changed")
        else:
            demand(np.array_equal(model.predict(self.X), model.labels_), "the new fit is not whole")
        return ended

    def start_threads(self, place: Path, seed: int) -> None:
        shared_out(lambda item: self.X @ self.X[item, 0], [])

    def check_threads(self, seconds: float, seed: int) -> bool:
        found: list[int] = []
        begun: list[int] = []

        def work(item: int) -> int:
            begun.append(item)
            np.linalg.norm(self.X @ self.X[item, 0])
            return item

        ended = interrupted(lambda: shared_out(work, found), seconds)
        count = len(begun)
        demand(found == list(range(len(found))), "results out of order")
        demand(ended or len(found) == N_ITEMS, "not all was done")
        time.sleep(SETTLED)
        demand(len(begun) == count, "work goes on after the call has ended")
        return ended

    def start_save(self, place: Path, seed: int) -> None:
        tuckermix.save(self.old, place / "model")

    def check_save(self, seconds: float, seed: int) -> bool:
        place = self.fresh()
        path = place / "model"
        if seed % 2:
            tuckermix.save(self.old, path)
        before = _digests(place)
        ended = interrupted(lambda: tuckermix.save(self.old, path), seconds)
        after = _digests(place)
        demand(not after or list(after) == ["model"], f"stray files: {list(after)}")
        demand(ended or after, "no file")
        demand(not before or before == after, "an equal model gave another file")
        if after:
            tuckermix.load(path)
        return ended

    def start_cluster(self, place: Path, seed: int) -> None:
        demand(self.cluster(place / "out") == DONE, "cluster failed")

    def check_cluster(self, seconds: float, seed: int) -> bool:
        place = self.fresh()
        out = place / "made" / "out"
        if seed % 2:
            shutil.copytree(self.old_results, out)
        before = _digests(place)
        codes: list[int] = []
        escaped = interrupted(lambda: codes.append(self.cluster(out)), seconds)
        after = _digests(place)
        names = {Path(name).name for name in after}
        demand(names in (set(), set(RESULTS)), f"stray or missing files: {sorted(names)}")
        changed = {name for name in after if after[name] != before.get(name)}
        demand(len(changed) in (0, len(RESULTS)), f"results of two runs: {sorted(changed)}")
        demand(after or not (place / "made").exists(), "an empty folder is left")
        if changed:
            tuckermix.load(out / "model.tuckermix")
        demand(escaped or codes[0] in (DONE, INTERRUPTED), f"exit code {codes}")
        demand(changed or escaped or codes == [INTERRUPTED], "done without results")
        return escaped or codes == [INTERRUPTED]

    def start_reproduce(self, place: Path, seed: int) -> None:
        demand(self.reproduce(place) == DONE, "reproduce failed")

    def check_reproduce(self, seconds: float, seed: int) -> bool:
        place = self.fresh()
        codes: list[int] = []
        escaped = interrupted(lambda: codes.append(self.reproduce(place)), seconds)
        held = _records(place)
        demand(self.reproduce(place) == DONE, "the next run does not go on")
        after = _records(place)
        demand(held.items() <= after.items(), "records are lost or changed")
        demand(len(after) == N_CELLS, f"{len(after)} records in place of {N_CELLS}")
        strange = [path.name for path in place.iterdir() if not path.name.startswith("r.jsonl")]
        demand(not strange, f"stray files: {strange}")
        return escaped or codes == [INTERRUPTED]

    def run(self, seed: int) -> tuple[str, bool]:
        """Interrupt the case of a seed and check it; return the case and whether it was cut."""
        rng = np.random.default_rng(seed)
        kind = KINDS[seed % len(KINDS)]
        handler, threads = signal.getsignal(signal.SIGINT), blas_threads()
        seconds = float(rng.uniform(0, LATER * self.seconds[kind]))
        try:
            ended = getattr(self, f"check_{kind}")(seconds, seed)
        finally:
            # Ctrl-C may have struck before `command` gave them back.
            sys.stdout, sys.stderr = sys.__stdout__, sys.__stderr__
        demand(signal.getsignal(signal.SIGINT) is handler, "the handler of Ctrl-C has changed")
        demand(blas_threads() == threads, f"{blas_threads()} threads in place of {threads}")
        return kind, ended


N_CELLS = 6  # two rows of the miniature table, three runs each


def _digests(place: Path) -> dict[str, str]:
    return {
        str(path.relative_to(place)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(place.rglob("*"))
        if path.is_file()
    }


def check_store(path: Path) -> None:
    """Check that a file of records can be read, up to half a line at the end."""
    try:
        read_store(path)
    except ValueError as error:
        demand(False, f"the store is damaged: {error}")


def _records(place: Path) -> dict[Any, Any]:
    path = place / "r.jsonl"
    if not path.exists() or not path.stat().st_size:
        return {}
    check_store(path)
    return {record.key: (record.finished, record.ac, record.nmi) for record in read_store(path)}


Counts = tuple[Counter[str], Counter[str], dict[int, str]]


def strike(first: int, count: int, step: int = 1) -> Counts:
    """Interrupt until `count` runs were cut short or failed.

    Parameters
    ----------
    first : int
        The first seed.
    count : int
        How many interrupts.
    step : int, default=1
        The distance of two seeds, so that several processes share them out.

    Returns
    -------
    cut, cases : Counter
        By case, how many runs were cut short, and how many there were.
    failures : dict
        What went wrong, by seed.
    """
    # A background job starts with Ctrl-C ignored, and would wait for its first interrupt for ever.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    logging.disable(logging.CRITICAL)
    warnings.simplefilter("ignore")
    cut: Counter[str] = Counter()
    cases: Counter[str] = Counter()
    failures: dict[int, str] = {}
    seed = first
    with tempfile.TemporaryDirectory() as folder, threadpool_limits(2, user_api="blas"):
        assault = Assault(Path(folder))
        told = 0
        while cut.total() + len(failures) < count:
            if cut.total() >= told + TELL:
                told = cut.total()
                print(f"from seed {first}: {told} of {count}, {len(failures)} failures", flush=True)
            try:
                kind, ended = assault.run(seed)
                cases[kind] += 1
                cut[kind] += ended
            except Exception as error:  # whatever it is, the other seeds go on
                failures[seed] = f"{type(error).__name__}: {str(error)[:80]}"
                print(f"seed {seed} ({KINDS[seed % len(KINDS)]}): {error!r}", flush=True)
            seed += step
    return cut, cases, failures


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--jobs", type=int, default=1, help="processes")
    options = parser.parse_args()
    counts = share_out(strike, options.first, options.count, options.jobs)
    cut = sum((one[0] for one in counts), Counter[str]())
    cases = sum((one[1] for one in counts), Counter[str]())
    wrong = sum(len(one[2]) for one in counts)
    print(f"{cut.total()} interrupts in {cases.total() + wrong} runs, {wrong} failures")
    for kind in cases:
        print(f"  {kind}: {cut[kind]} of {cases[kind]} runs were cut short")
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main())
