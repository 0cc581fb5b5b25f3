"""``tuckermix export``: one folder for each cluster, tables, and a contact sheet."""

from __future__ import annotations

import html
import json
import os
import re
import shutil
import unicodedata
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tuckermix.cli import _options as options
from tuckermix.cli._console import Console, UsageError
from tuckermix.cli.apply import Result

if TYPE_CHECKING:
    from tuckermix.cli._earlier import Earlier

SHEET, TABLES = "contact-sheet.html", ("labels.csv", "labels.json")

SHEET_SIDE = 160
"""The longest side of a picture on the contact sheet, in pixels: five stand in a row on paper."""

LONGEST = 80
"""Letters of the name of a folder: systems have 255 bytes, and paths have a limit too."""

RESERVED = re.compile(r"(con|prn|aux|nul|com\d|lpt\d)(\..*)?", re.IGNORECASE)
"""Names that Windows keeps for devices."""


def export(
    result: Result,
    folder: Annotated[
        Path, typer.Argument(metavar="FOLDER", help="A new folder.", show_default=False)
    ],
    copy: Annotated[bool, typer.Option("--copy", help="Copies of the files, not links.")] = False,
    quiet: options.Quiet = False,
) -> int:
    """Put the files of each cluster into a folder of its name.

    Beside the folders are labels.csv, labels.json and contact-sheet.html, which is for paper. The
    files are links to yours, or copies, and keep their names.
    """
    from tuckermix._files import csv_text, made_folder, write_text
    from tuckermix.cli._earlier import read_results

    console, earlier = Console(quiet), read_results(result)
    if folder.is_symlink() or (folder.exists() and (not folder.is_dir() or any(folder.iterdir()))):
        raise UsageError(f"{folder} is there already: name a new folder.")
    sources = files_of(earlier)
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
            home = folder / homes[int(earlier.labels[place])]
            home.mkdir(exist_ok=True)
            target = home / _free(source.name, str(home.relative_to(folder)), taken)
            _put(source, target, copy)
            rows.append(
                {
                    "file": target.relative_to(folder).as_posix(),
                    "label": int(earlier.labels[place]),
                    "name": earlier.name_of(int(earlier.labels[place])),
                    "source": (earlier.names or [])[place],
                }
            )
        write_text(folder / TABLES[0], csv_text([list(rows[0]), *(row.values() for row in rows)]))
        write_text(folder / TABLES[1], json.dumps(rows, indent=1) + "\n")
    with console.stage("Drawing the contact sheet"):
        write_text(folder / SHEET, contact_sheet(rows, list(found.values())))
    if len(found) < len(sources):
        console.note(f"{len(sources) - len(found)} files are not there any more: left out.")
    console.note(f"{len(rows)} files in {len({row['label'] for row in rows})} folders in {folder}")
    return 0


def files_of(earlier: Earlier) -> list[Path | None]:
    """Return the file of each sample, or None where no file below the inputs has it."""
    from tuckermix.report import is_file

    roots = earlier.roots
    return [
        roots[0] / name if is_file(roots, name) else None
        for name in earlier.names or [""] * len(earlier.labels)
    ]


def _folders(earlier: Earlier) -> dict[int, str]:
    """Return the name of the folder of each label."""
    taken: set[str] = {name.casefold() for name in (*TABLES, SHEET)}
    settings = earlier.summary.get("settings")
    labelled = isinstance(settings, dict) and settings.get("outliers") == "label"
    beside = "outliers" if labelled else "set aside"
    return {
        label: _free(
            safe_name(earlier.name_of(label)) or (f"cluster {label}" if label >= 0 else beside),
            "",
            taken,
        )
        for label in sorted(set(earlier.labels.tolist()))
    }


def safe_name(text: str) -> str:
    """Return a text as every system can name a folder; empty where nothing is left."""
    plain = unicodedata.normalize("NFC", text)
    plain = "".join(c if c.isprintable() and c not in '<>:"/\\|?*' else " " for c in plain)
    plain = " ".join(plain.split())[:LONGEST].strip(" .")
    return f"{plain}_" if RESERVED.fullmatch(plain) else plain


def _free(name: str, home: str, taken: set[str]) -> str:
    """Return a name that no other in the same folder has, whatever its case."""
    stem, dot, ending = name.rpartition(".") if home else (name, "", "")
    if not stem:
        stem, dot, ending = name, "", ""
    number, free = 1, name
    while f"{home}/{free}".lstrip("/").casefold() in taken:
        number += 1
        free = f"{stem} ({number}){dot}{ending}"
    taken.add(f"{home}/{free}".lstrip("/").casefold())
    return free


def _put(source: Path, target: Path, copy: bool) -> None:
    """Link or copy a file; where a system allows no links, it is copied."""
    if not copy:
        with suppress(OSError, NotImplementedError):
            target.symlink_to(os.path.abspath(source))
            return
    with source.open("rb") as stream, target.open("xb") as other:
        shutil.copyfileobj(stream, other)


def contact_sheet(rows: list[dict[str, Any]], files: list[Path]) -> str:
    """Return a page for paper: the pictures of each cluster, small, with their names."""
    from tuckermix._machine import default_limit
    from tuckermix._sandbox import Sandbox, question
    from tuckermix.report import address

    small: dict[str, Any] = {"kind": "picture", "do": "small", "side": SHEET_SIDE}
    asked = [question(path=path, **small) for path in files]
    clusters: dict[str, list[str]] = {}
    for row, answer in zip(rows, Sandbox(default_limit()).each(asked), strict=True):
        home, _, name = row["file"].rpartition("/")
        shown = "" if isinstance(answer, Exception) else f'<img src="{address(answer[1])}" alt="">'
        figure = f"<figure>{shown}<figcaption>{html.escape(name)}</figcaption></figure>"
        clusters.setdefault(home, []).append(figure)
    parts = [
        f"<section><h2>{html.escape(home)} <small>{len(figures):,}</small></h2>"
        f"<div>{''.join(figures)}</div></section>"
        for home, figures in sorted(clusters.items())
    ]
    return (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8"><meta http-equiv='
        "\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'; "
        'img-src data:"><meta name="viewport" content="width=device-width"><title>Contact sheet'
        "</title><style>body{font:10pt system-ui,sans-serif;margin:8mm}div{display:grid;gap:4mm;"
        "grid-template-columns:repeat(auto-fill,minmax(32mm,1fr))}figure{margin:0;break-inside:"
        "avoid}img{width:100%;height:30mm;object-fit:contain}figcaption{font-size:7pt;"
        "overflow-wrap:anywhere}h2{break-after:avoid}small{font-weight:400;color:#555}</style>"
        f"</head><body>\n{chr(10).join(parts)}\n</body></html>\n"
    )
