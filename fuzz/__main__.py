"""Spoil files and read them: ``python -m fuzz --count 10000 --seed 0 --jobs 2``.

The same seed gives the same inputs. Each is read in a process with limits on time and memory; what
is neither read nor refused with `ReadError` or `ModelFileError` is a fault, and ends the command
with exit code 1. ``--only NUMBER`` repeats one input.
"""

from __future__ import annotations

import argparse
import dataclasses
import math
import os
import pickle
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from pathlib import Path

from fuzz.corpus import MAKERS, corpus

__all__ = ["fuzz", "main"]

BATCH = 5000
"""Inputs at most that one process reads before the next takes over."""

FINE = ("read", "refused", "contained")
"""What may become of an input; "contained" are refusals after a parser passed a limit or died in
the child."""

ENVIRONMENT = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "MALLOC_ARENA_MAX": "2"}
"""One thread for each process; and no address space that the C library sets aside for more."""

Outcomes = Counter[tuple[str, str]]
Fault = tuple[str, str, int]


def _batch(
    stored: Path, seed: int, numbers: range, readers: list[str], whole: bool, until: float
) -> list[Fault]:
    """Read some inputs; start again behind one that ended the process."""
    found: list[Fault] = []
    start = numbers.start
    while start < numbers.stop:
        command = [sys.executable, "-m", "fuzz.worker", str(stored), str(seed)]
        done = subprocess.run(
            [*command, str(start), str(numbers.stop), "whole" if whole else "loop", str(until)],
            capture_output=True,
            text=True,
            check=False,
            env={**os.environ, **ENVIRONMENT},
        )
        last = None
        for line in done.stdout.splitlines():
            kind, number, *rest = line.split("\t")
            if kind == "begin":
                if last is not None:
                    found.append((readers[last % len(readers)], "lost", last))
                last = int(number)
            elif kind == "end":
                found.append((rest[0], rest[1], int(number)))
                last = None
        if done.returncode == 0:
            break
        if last is None:
            raise RuntimeError(f"The worker ended between inputs: {done.stderr[-2000:]}")
        reason = "slow" if done.returncode == -14 else f"crash {done.returncode}"
        found.append((readers[last % len(readers)], reason, last))
        start = last + 1
    return found


def fuzz(
    count: int,
    seed: int = 0,
    jobs: int = 1,
    readers: tuple[str, ...] = tuple(MAKERS),
    first: int = 0,
    whole: bool = False,
    seconds: float = math.inf,
) -> tuple[Outcomes, list[Fault]]:
    """Spoil and read inputs.

    Parameters
    ----------
    count : int
        How many.
    seed : int, default=0
        The source of randomness.
    jobs : int, default=1
        Processes at a time.
    readers : tuple of str, default=all
        For which readers; they take turns.
    first : int, default=0
        The number of the first input.
    whole : bool, default=False
        Whether to read end to end, with a child for each reading, and not in the child's own loop.
    seconds : float, default=inf
        No input begins after this time.

    Returns
    -------
    outcomes : Counter
        How often what became of the inputs, by (reader, outcome).
    faults : list of (str, str, int)
        Reader, outcome and number of each input that was neither read nor refused.
    """
    outcomes: Outcomes = Counter()
    faults: list[Fault] = []
    folder = Path(tempfile.mkdtemp(prefix="fuzz-"))
    stored = folder / "corpus"
    stored.write_bytes(pickle.dumps([dataclasses.asdict(one) for one in corpus(readers)]))
    stop = first + count
    rounds = math.ceil(count / (jobs * BATCH))
    size = math.ceil(count / (jobs * rounds))  # all jobs end at about the same time
    pending = [range(start, min(stop, start + size)) for start in range(first, stop, size)]
    pending.reverse()
    lock = threading.Lock()
    failures: list[BaseException] = []

    until = time.time() + seconds

    def work() -> None:
        while pending and not failures and time.time() < until:
            with lock:
                numbers = pending.pop() if pending else range(0)
            try:
                found = _batch(stored, seed, numbers, sorted(readers), whole, until)
            except Exception as error:
                failures.append(error)
                return
            with lock:
                for reader, outcome, number in found:
                    outcomes[reader, outcome.split()[0]] += 1
                    if outcome not in FINE:
                        faults.append((reader, outcome, number))
                        print(f"{reader} {number}: {outcome}", file=sys.stderr, flush=True)

    threads = [threading.Thread(target=work) for _ in range(jobs)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    shutil.rmtree(folder)
    if failures:
        raise failures[0]
    return outcomes, sorted(faults, key=lambda fault: fault[2])


def table(outcomes: Outcomes) -> str:
    """Lay the counts out by reader and outcome, as the documentation shows them."""
    columns = [*FINE, *sorted({outcome for _, outcome in outcomes} - set(FINE))]
    lines = [["reader", "inputs", *columns], ["---", *["---:"] * (len(columns) + 1)]]
    readers = sorted({reader for reader, _ in outcomes})
    for reader in [*readers, "all"]:
        mine = readers if reader == "all" else [reader]
        counts = [sum(outcomes[one, column] for one in mine) for column in columns]
        lines.append([reader, *(f"{count:,}" for count in (sum(counts), *counts))])
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def main() -> int:
    """Run the command."""
    parser = argparse.ArgumentParser(prog="python -m fuzz", description=__doc__)
    parser.add_argument("--count", type=int, default=10_000, help="inputs to read")
    parser.add_argument("--seed", type=int, default=0, help="source of randomness")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="processes")
    parser.add_argument("--seconds", type=float, default=math.inf, help="begin nothing later")
    parser.add_argument("--only", type=int, help="repeat the input with this number")
    parser.add_argument("--readers", nargs="+", default=tuple(MAKERS), choices=tuple(MAKERS))
    parser.add_argument("--whole", action="store_true", help="end to end, as users read")
    given = parser.parse_args()
    first, count = (given.only, 1) if given.only is not None else (0, given.count)
    outcomes, faults = fuzz(
        count, given.seed, given.jobs, tuple(given.readers), first, given.whole, given.seconds
    )
    print(table(outcomes))
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
