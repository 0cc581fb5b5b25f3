"""Store rows of measurements as JSON and Markdown, with what is needed to repeat them."""

from __future__ import annotations

import datetime
import json
import os
import platform
import statistics
import time
from collections.abc import Callable
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import tuckermix
from tuckermix._reading import stated

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
