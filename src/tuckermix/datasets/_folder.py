"""Folders of files: one sample per file, one class per subfolder."""

from __future__ import annotations

import logging
import os
import re
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path

import numpy as np

from tuckermix._names import SKIP
from tuckermix._reading import ReadError, Refusal, check_fits, reading
from tuckermix.datasets._dataset import Dataset
from tuckermix.datasets._options import OneReader, Options

LOGGED = 100
"""How often the progress through a folder is logged: once a percent."""

TOTAL_REMEDY = "Pass a smaller size, grey=True, or a larger max_bytes"
"""The remedy for files that would pass the limit together."""

logger = logging.getLogger(__name__)


def natural_key(name: str) -> list[tuple[int, int, str]]:
    """Return a key that sorts "s2" before "s10"."""
    parts = re.split(r"(\d+)", name)
    return [
        (1, int(part), part) if part.isdigit() and part.isascii() else (0, 0, part.lower())
        for part in parts
    ]


def files_in(folder: Path, suffixes: Collection[str]) -> list[str]:
    """List the files with one of `suffixes`, in natural order, as paths relative to `folder`.

    Hidden files and folders are left out; links to folders are followed, but never in a circle.
    """
    return sorted(_walk(folder, "", tuple(suffixes), set()), key=natural_key)


def _walk(folder: Path, prefix: str, suffixes: tuple[str, ...], seen: set[str]) -> Iterator[str]:
    real = os.path.realpath(folder)
    if real in seen:
        return
    seen.add(real)
    with os.scandir(folder) as scan:
        items = [item for item in scan if not item.name.startswith(".")]
    for item in items:
        if item.is_dir():
            yield from _walk(folder / item.name, f"{prefix}{item.name}/", suffixes, seen)
        elif item.name.lower().endswith(suffixes):
            yield prefix + item.name


def stack_files(
    folder: Path,
    names: Sequence[str],
    read_one: OneReader,
    options: Options,
    kind: str,
    skipped: Sequence[tuple[str, str]] = (),
) -> Dataset:
    """Read every file and stack them; the first folder of a name is the class.

    Parameters
    ----------
    folder : Path
        Where the files lie.
    names : sequence of str
        Their paths relative to `folder`.
    read_one : callable
        Reads one file, given its path and the options; returns the sample and how it is drawn.
    options : Options
        What the caller asked for.
    kind : str
        What the files are called in messages, in the plural.
    skipped : sequence of (str, str), default=()
        Files that were left out before, and why.

    Returns
    -------
    dataset : Dataset
        The samples, their names, and labels where there are two subfolders or more.
    """
    X: np.ndarray | None = None
    drawn: set[str] = set()
    read: list[str] = []
    left_out = list(skipped)
    if options.remember is not None:
        read_one = options.remember(read_one)
    for index, name in enumerate(names):
        if index % max(1, len(names) // LOGGED) == 0:
            done = {"share": index / len(names)}
            logger.info("%d of %d %s", index, len(names), kind, extra=done)
        path = folder / name
        try:
            with reading(path):
                sample, as_what = read_one(path, options)
        except ReadError as error:
            if options.on_error != SKIP:
                raise
            left_out.append((name, reason(error, path)))
            continue
        if X is None:
            total = f"{len(names)} samples of shape {sample.shape}"
            check_fits(total, len(names) * sample.nbytes, options.max_bytes, TOTAL_REMEDY)
            X = np.empty((len(names), *sample.shape), dtype=sample.dtype)
        if sample.shape != X.shape[1:]:
            shapes = f"{read[0]!r} has shape {X.shape[1:]} and {name!r} has shape {sample.shape}"
            raise Refusal(
                f"its files differ: {shapes}",
                "Bring them to one shape in the program that made them; of pictures, size does so",
            )
        if not np.can_cast(sample.dtype, X.dtype, "safe"):
            X = X.astype(np.result_type(sample.dtype, X.dtype))
        X[len(read)] = sample
        read.append(name)
        drawn.add(as_what)
    if X is None:
        raise none_read(left_out, kind)
    labels, class_names, notes = _classes(read, kind)
    return Dataset(
        X=X[: len(read)],
        labels=labels,
        names=read,
        class_names=class_names,
        name=folder.resolve().name,
        extra={
            "skipped": left_out,
            "notes": notes,
            "kind": drawn.pop() if len(drawn) == 1 else "auto",
        },
    )


def _classes(
    names: Sequence[str], kind: str
) -> tuple[np.ndarray | None, list[str] | None, list[str]]:
    """Take the first folder of each name as its class, where that says something."""
    first = [name.partition("/")[0] if "/" in name else "" for name in names]
    labels, classes = numbered(first)
    if len(classes) < 2:
        return None, None, []
    if "" in classes:
        outside = names[first.index("")]
        note = (
            f"Some {kind} lie in subfolders and some, like {outside!r}, do not: subfolders were "
            "not taken for classes."
        )
        return None, None, [note]
    return labels, classes, []


def numbered(names: Sequence[str]) -> tuple[np.ndarray, list[str]]:
    """Return the number of each name among the different ones, and these in their order."""
    classes = sorted(set(names), key=natural_key)
    number = {name: index for index, name in enumerate(classes)}
    return np.array([number[name] for name in names], dtype=np.int64), classes


def reason(error: Exception, path: Path) -> str:
    """Return why a file is left out, without its name."""
    return str(error).removeprefix(f"Cannot read {path}: ")


def none_read(skipped: Sequence[tuple[str, str]], kind: str) -> Refusal:
    """Build the refusal of a folder whose files are all left out."""
    first, problem = skipped[0]
    problem, _, remedy = problem.partition(". ")
    return Refusal(
        f"none of its {len(skipped)} {kind} can be read, neither {first!r}: {problem}",
        remedy.rstrip("."),
    )
