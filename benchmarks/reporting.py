"""Store rows of measurements as JSON and Markdown, with what is needed to repeat them."""

from __future__ import annotations

import datetime
import json
import math
import os
import platform
import statistics
import time
from collections.abc import Callable, Iterable
from concurrent.futures import ProcessPoolExecutor, as_completed
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import numpy as np

import tuckermix
from tuckermix._machine import stated
from tuckermix.datasets import DatasetNotFound

PACKAGES = ("tuckermix", "numpy", "scipy", "scikit-learn", "tensorly", "pymanopt", "torch")


def in_turn(functions: dict[str, Callable[[], Any]], repeats: int) -> dict[str, float]:
    """Take the medians of the processor time of several functions, which run in turn.

    Other load changes it less than wall time, and hits all of them.
    """
    times: dict[str, list[float]] = {name: [] for name in functions}
    for _ in range(repeats):
        for name, function in functions.items():
            began = time.process_time()
            function()
            times[name].append(time.process_time() - began)
    return {name: statistics.median(values) for name, values in times.items()}


def computed(
    path: Path, tasks: dict[str, tuple[Any, ...]], function: Callable[..., Any], jobs: int | None
) -> dict[str, Any]:
    """Compute what a file does not hold yet, in processes, and store each result when it is there.

    `tasks` has the arguments of `function` by name. Returns the results by name, those of earlier
    runs among them, which the file has under "draws".
    """
    draws: dict[str, Any] = {}
    if path.exists():
        draws = json.loads(path.read_text(encoding="utf-8"))["draws"]
    with ProcessPoolExecutor(jobs) as pool:
        running = {
            pool.submit(function, *task): name for name, task in tasks.items() if name not in draws
        }
        for done in as_completed(running):
            draws[running[done]] = done.result()
            print(running[done], flush=True)
            path.write_text(json.dumps({"draws": draws}) + "\n", encoding="utf-8")
    return draws


def paired(values: np.ndarray, before: np.ndarray) -> dict[str, float]:
    """Return the mean of values, and of their differences to others of the same draws."""
    gaps = values - before
    error = float(gaps.std(ddof=1) / math.sqrt(len(gaps))) if len(gaps) > 1 else 0.0
    return {"mean": float(values.mean()), "gain": float(gaps.mean()), "error": error}


def numbers_found(
    found: dict[str, dict[str, list[int]]], true: dict[str, int]
) -> tuple[dict[str, float], list[str]]:
    """Lay out the numbers of clusters that were found.

    `found` has them by column and rule, `true` the right one of each column. Returns the mean
    distance in octaves by rule, and the lines of a table.
    """
    rules = list(next(iter(found.values())))
    lines = ["", "| number found | " + " | ".join(rules) + " |", "|---" * (len(rules) + 1) + "|"]
    octaves: dict[str, list[float]] = {rule: [] for rule in rules}
    for column, numbers in found.items():
        for rule in rules:
            octaves[rule] += [abs(math.log2(number / true[column])) for number in numbers[rule]]
        lists = [", ".join(map(str, numbers[rule])) for rule in rules]
        lines.append(f"| {column} | " + " | ".join(lists) + " |")
    means = {rule: float(np.mean(values)) for rule, values in octaves.items()}
    shown = " | ".join(f"{value:.2f}" for value in means.values())
    return means, [*lines, f"| mean octaves | {shown} |"]


def environment() -> dict[str, Any]:
    """Describe the machine and the versions of the packages in play."""
    versions = {}
    for package in PACKAGES:
        try:
            versions[package] = version(package)
        except PackageNotFoundError:
            continue
    versions["tuckermix"] = tuckermix.__version__  # of the code that runs, installed or not
    return {
        "date": datetime.datetime.now(datetime.UTC).date().isoformat(),
        "python": platform.python_version(),
        "processor": stated("/proc/cpuinfo", "model name")
        or platform.processor()
        or platform.machine(),
        "cores": os.cpu_count(),
        "load": round(os.getloadavg()[0], 1),
        "versions": versions,
    }


def lines_of(rows: list[dict[str, Any]]) -> list[str]:
    """Lay out rows as a Markdown table."""
    lines = ["| what | ours | reference | ratio | goal |", "|---|---|---|---|---|"]
    for row in rows:
        lines.append(
            f"| {row['what']} | {row['ours']} | {row['reference']} | {row['ratio']} "
            f"| {row['goal']} |"
        )
    return lines


def table_by_data(
    titles: Iterable[str], cases: Iterable[Any], rows: Callable[[Any], Iterable[Iterable[Any]]]
) -> list[str]:
    """Lay out what a function gives for each case as a Markdown table, printed as it grows.

    Cases whose dataset is not there are left out.
    """
    titles = list(titles)
    lines = ["| " + " | ".join(titles) + " |", "|" + "---|" * len(titles)]
    for case in cases:
        try:
            for cells in rows(case):
                lines.append("| " + " | ".join(map(str, cells)) + " |")
                print(lines[-1], flush=True)
        except DatasetNotFound as error:
            print(f"skipped: {error}")
    return lines


def heading(command: str, kind: str, about: dict[str, Any]) -> str:
    """Say how the figures came about: the command, the machine and the versions."""
    versions = ", ".join(f"{package} {number}" for package, number in about["versions"].items())
    return (
        f"Command: `{command}`. {kind}; {about['processor']}, {about['cores']} cores, "
        f"load {about['load']}, Python {about['python']}, {versions}; {about['date']}."
    )


def store(
    rows: list[dict[str, Any]],
    folder: Path,
    name: str,
    command: str,
    kind: str = "Medians of one run",
) -> None:
    """Write `name.json` and `name.md`, and print the table."""
    folder.mkdir(parents=True, exist_ok=True)
    about = environment()
    text = "\n".join([heading(command, kind, about), "", *lines_of(rows), ""])
    document = {"command": command, "environment": about, "rows": rows}
    (folder / f"{name}.json").write_text(json.dumps(document, indent=1) + "\n")
    (folder / f"{name}.md").write_text(text)
    print(text)
