"""Ways to spoil a file, each a function of its bytes and a generator of random numbers."""

from __future__ import annotations

import copy
import gzip
import io
import json
import os
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from fuzz.corpus import Seed, zip_parts

__all__ = ["spoil"]

EXTREMES = (0, 1, 2, 127, 128, 255, 2**15 - 1, 2**16 - 1, 2**24, 2**31 - 1, 2**31, 2**32 - 1)
EXTREMES += (2**63 - 1, 2**64 - 1)
"""Numbers at which lengths and offsets go wrong."""

VALUES: tuple[Any, ...] = (
    *(None, True, -1, 0, 1, 3, 2**16, 2**31, 2**63, 1e308, "", "x", "/etc/passwd", "../..", "NaN"),
    *([], {}, [0], [2**31, 2**31], [[]], "pickle", {"id": "pickle"}, {"name": "numcodecs.pickle"}),
    *("|O", "<f8", "<U9999999", "string", "vlen-utf8", {"name": "gzip"}, {"id": "zlib"}, [1] * 40),
)
"""Values for metadata."""


def _flip(content: bytearray, rng: np.random.Generator, other: bytes) -> bytearray:
    for _ in range(int(rng.integers(1, 9))):
        content[int(rng.integers(len(content)))] ^= 1 << int(rng.integers(8))
    return content


def _set(content: bytearray, rng: np.random.Generator, other: bytes) -> bytearray:
    for _ in range(int(rng.integers(1, 4))):
        content[int(rng.integers(len(content)))] = int(rng.choice((0, 1, 0x7F, 0x80, 0xFE, 0xFF)))
    return content


def _number(content: bytearray, rng: np.random.Generator, other: bytes) -> bytearray:
    width = int(rng.choice((2, 4, 8)))
    number = int(rng.choice(np.array(EXTREMES, dtype=np.uint64))) % 2 ** (8 * width)
    start = int(rng.integers(len(content)))
    if rng.random() < 0.5:
        start -= start % width
    order = "little" if rng.random() < 0.5 else "big"
    content[start : start + width] = number.to_bytes(width, order)  # type: ignore[arg-type]
    return content


def _cut(content: bytearray, rng: np.random.Generator, other: bytes) -> bytearray:
    return content[: int(rng.integers(len(content)))]


def _drop(content: bytearray, rng: np.random.Generator, other: bytes) -> bytearray:
    start = int(rng.integers(len(content)))
    del content[start : start + int(rng.integers(1, 65))]
    return content


def _repeat(content: bytearray, rng: np.random.Generator, other: bytes) -> bytearray:
    start = int(rng.integers(len(content)))
    piece = content[start : start + int(rng.integers(1, 65))]
    content[start:start] = piece * int(rng.integers(1, 9))
    return content


def _splice(content: bytearray, rng: np.random.Generator, other: bytes) -> bytearray:
    start, end = int(rng.integers(len(content))), int(rng.integers(len(other) + 1))
    return content[:start] + other[end:]


def _copy(content: bytearray, rng: np.random.Generator, other: bytes) -> bytearray:
    length = int(rng.integers(1, 65))
    source, target = int(rng.integers(len(content))), int(rng.integers(len(content)))
    content[target : target + length] = content[source : source + length]
    return content


MUTATORS: tuple[Callable[[bytearray, np.random.Generator, bytes], bytearray], ...] = (
    *(_flip, _set, _number, _number, _cut, _drop, _repeat, _splice, _copy),
)
"""All of them; numbers twice, which find most."""


def _places(value: Any, found: list[tuple[Any, Any]]) -> list[tuple[Any, Any]]:
    """List every (container, key) of a JSON value."""
    items = value.items() if isinstance(value, dict) else enumerate(value)
    for key, item in list(items):
        found.append((value, key))
        if isinstance(item, dict | list):
            _places(item, found)
    return found


def _edit(content: bytes, rng: np.random.Generator) -> bytes:
    """Change some values of a JSON text."""
    value = json.loads(content)
    for _ in range(int(rng.integers(1, 4))):
        places = _places(value, [])
        if not places:
            break
        container, key = places[int(rng.integers(len(places)))]
        choice = int(rng.integers(len(VALUES) + 2))
        if choice < len(VALUES):
            container[key] = copy.deepcopy(VALUES[choice])  # which later edits may change
        elif choice == len(VALUES):
            del container[key]
        else:
            source, name = places[int(rng.integers(len(places)))]
            container[key] = json.loads(json.dumps(source[name]))
    return json.dumps(value).encode()


def _bytes(content: bytes, rng: np.random.Generator, other: bytes) -> bytes:
    """Spoil the content of one file."""
    looks_like_json = content[:1] in (b"{", b"[")
    if looks_like_json and rng.random() < 0.8:
        return _edit(content, rng)
    parts = zip_parts(content) if rng.random() < 0.7 else None
    if parts:  # inside, with a right checksum: else nothing gets past it
        name = sorted(parts)[int(rng.integers(len(parts)))]
        parts[name] = _bytes(parts[name], rng, other)
        target = io.BytesIO()
        method = zipfile.ZIP_DEFLATED if rng.random() < 0.5 else zipfile.ZIP_STORED
        with zipfile.ZipFile(target, "w", method) as archive:
            for member, part in parts.items():
                archive.writestr(member, part)
        return target.getvalue()
    if content.startswith(b"\x1f\x8b") and rng.random() < 0.7:  # inside, for the same reason
        return gzip.compress(_bytes(gzip.decompress(content), rng, other), mtime=0)
    spoilt = bytearray(content)
    for _ in range(int(rng.choice((1, 1, 1, 2, 4)))):
        if spoilt:
            spoilt = MUTATORS[int(rng.integers(len(MUTATORS)))](spoilt, rng, other)
    return bytes(spoilt)


def _rearrange(folder: Path, seed: Seed, rng: np.random.Generator) -> None:
    """Change what a folder holds: links, pipes, decoys, files that are missing or twice."""
    names = sorted(seed.files)
    file = folder / names[int(rng.integers(len(names)))]
    choice = int(rng.integers(6))
    if choice == 0:
        file.unlink()
    elif choice == 1:
        file.unlink()
        file.symlink_to("/etc/passwd")
    elif choice == 2:
        file.unlink()
        os.mkfifo(file)
    elif choice == 3:
        (file.parent / "zarr.json").write_text('{"node_type": "array"}')
    elif choice == 4:
        (file.parent / "linked").symlink_to(folder)
    else:
        file.rename(file.with_name(f"2{file.name}"))


def spoil(seed: Seed, others: list[Seed], folder: Path, rng: np.random.Generator) -> Path:
    """Write a spoilt copy of a valid input into an empty folder.

    Parameters
    ----------
    seed : Seed
        The valid input.
    others : list of Seed
        Inputs of the same reader, to take pieces from.
    folder : Path
        Where to write.
    rng : Generator
        The source of randomness.

    Returns
    -------
    target : Path
        What to read.
    """
    names = sorted(seed.files)
    chosen = names[int(rng.integers(len(names)))]
    rearranged = len(names) > 1 and rng.random() < 0.15
    for name, content in seed.files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        if name == chosen and not rearranged:
            donor = others[int(rng.integers(len(others)))].files
            other = donor[sorted(donor)[int(rng.integers(len(donor)))]]
            content = _bytes(content, rng, other)
        (folder / name).write_bytes(content)
    if rearranged:
        _rearrange(folder, seed, rng)
    return folder / seed.target
