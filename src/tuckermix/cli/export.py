"""``tuckermix export``: one folder for each cluster, tables, and a contact sheet."""

from __future__ import annotations

import json
import os
import re
import shutil
import unicodedata
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any

from tuckermix._names import KINDS
from tuckermix.cli import _options as options
from tuckermix.cli._console import Console, UsageError

if TYPE_CHECKING:
    import numpy as np

    from tuckermix.cli._earlier import Earlier

SHEET, TABLES = "contact-sheet.html", ("labels.csv", "labels.json")

SHEET_SIDE = 160
"""The longest side of a picture on the contact sheet, in pixels: five stand in a row on paper.

Each view of a video or a volume has half of it."""

LONGEST = 80
"""Letters of the name of a folder: systems have 255 bytes, and paths have a limit too."""

RESERVED = re.compile(r"(con|prn|aux|nul|com\d|lpt\d)(\..*)?", re.IGNORECASE)
"""Names that Windows keeps for devices."""


def export(
    result: options.Argument,
    folder: options.Argument,
    copy: bool = False,
    quiet: options.Quiet = False,
) -> int:
    """Put the files of each cluster into a folder of its name.

    Beside the folders are labels.csv, labels.json and contact-sheet.html, which is for paper. The
    files are links to yours, or copies, and keep their names.

    Parameters
    ----------
    folder : FOLDER
        A new folder.
    copy
        Copies of the files, not links.
    """
    from tuckermix._files import csv_text, made_folder, write_text
    from tuckermix.cli._earlier import read_results
    from tuckermix.report import address, contact_sheet, files_below

    console, earlier = Console(quiet), read_results(result)
    if folder.is_symlink() or (folder.exists() and (not folder.is_dir() or any(folder.iterdir()))):
        raise UsageError(f"{folder} is there already: name a new folder.")
    names = earlier.names or [""] * len(earlier.labels)
    sources = files_below(earlier.roots, names)
    found = {place: path for place, path in enumerate(sources) if path is not None}
    if not found:
        raise UsageError(
            f"The samples of {result} are no files in {earlier.inputs[0]}: put them back there."
        )
    homes = _folders(earlier)
    rows: list[dict[str, Any]] = []
    with made_folder(folder), console.stage("Copying" if copy else "Linking"):
        taken: set[str] = {name.casefold() for name in (*TABLES, SHEET)}
        for place, source in found.items():
            label = int(earlier.labels[place])
            home = folder / homes[label]
            home.mkdir(exist_ok=True)
            target = home / _free(PurePosixPath(home.name, source.name), taken)
            _put(source, target, copy)
            about = {"name": earlier.name_of(label), "source": names[place]}
            rows.append({"file": f"{home.name}/{target.name}", "label": label, **about})
        write_text(folder / TABLES[0], csv_text([list(rows[0]), *(row.values() for row in rows)]))
        write_text(folder / TABLES[1], json.dumps(rows, indent=1) + "\n")
    with console.stage("Drawing the contact sheet"):
        clusters: dict[str, list[tuple[str, str | None]]] = {}
        drawn = _small_pictures(earlier, found, console)
        for row, picture in zip(rows, drawn, strict=True):
            home, _, name = row["file"].rpartition("/")
            shown = None if picture is None else address(picture)
            clusters.setdefault(home, []).append((name, shown))
        write_text(folder / SHEET, contact_sheet(clusters))
    if len(found) < len(sources):
        console.note(f"{len(sources) - len(found)} files are not there any more: left out.")
    console.note(f"{len(rows)} files in {len({row['label'] for row in rows})} folders in {folder}")
    return 0


def _folders(earlier: Earlier) -> dict[int, str]:
    """Return the name of the folder of each label."""
    taken: set[str] = {name.casefold() for name in (*TABLES, SHEET)}
    settings, folders = earlier.summary.get("settings"), {}
    labelled = isinstance(settings, dict) and settings.get("outliers") == "label"
    for label in sorted(set(earlier.labels.tolist())):
        usual = f"cluster {label}" if label >= 0 else "outliers" if labelled else "set aside"
        name = safe_name(earlier.name_of(label)) or usual
        folders[label] = _free(PurePosixPath(name), taken, ending=False)
    return folders


def safe_name(text: str) -> str:
    """Return a text as every system can name a folder; empty where nothing is left."""
    plain = unicodedata.normalize("NFC", text)
    plain = "".join(c if c.isprintable() and c not in '<>:"/\\|?*' else " " for c in plain)
    plain = " ".join(plain.split())[:LONGEST].strip(" .")
    return f"{plain}_" if RESERVED.fullmatch(plain) else plain


def _free(path: PurePosixPath, taken: set[str], ending: bool = True) -> str:
    """Return a name that no other in the same folder has, whatever its case."""
    stem, suffix = (path.stem, path.suffix) if ending else (path.name, "")
    number = 1
    while str(path).casefold() in taken:
        number += 1
        path = path.with_name(f"{stem} ({number}){suffix}")
    taken.add(str(path).casefold())
    return path.name


def _put(source: Path, target: Path, copy: bool) -> None:
    """Link or copy a file; where a system allows no links, it is copied."""
    if not copy:
        with suppress(OSError, NotImplementedError):
            target.symlink_to(os.path.abspath(source))
            return
    with source.open("rb") as stream, target.open("xb") as other:
        shutil.copyfileobj(stream, other)


def _small_pictures(
    earlier: Earlier, found: dict[int, Path], console: Console
) -> Iterator[np.ndarray | None]:
    """Yield a small picture of each file: a photograph as it is, views of other samples."""
    from tuckermix.cli import _earlier, _results
    from tuckermix.persistence import load
    from tuckermix.plots.pictures import picture_kind
    from tuckermix.report import Pictures, small_pictures

    kind = str(earlier.summary.get("kind"))
    if kind in ("image", "colour"):
        yield from small_pictures(list(found.values()), SHEET_SIDE)
        return
    places = list(found)
    names = [name for place, name in enumerate(earlier.names or ()) if place in found]
    there = replace(earlier, names=names, labels=earlier.labels[places])
    elsewhere: Any = {"embeddings": None, "network": None}
    try:
        data, _ = _earlier.samples_of(there, load(earlier.folder / _results.MODEL), elsewhere)
        kind = picture_kind(data.sample_shape, kind if kind in KINDS else "auto")
    except (UsageError, ValueError) as error:
        console.note(f"The contact sheet has names without pictures: {error}")
        yield from [None] * len(places)
        return
    yield from Pictures(data.X, kind).drawn(range(len(places)), SHEET_SIDE // 2)
