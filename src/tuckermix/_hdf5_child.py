"""What runs libhdf5 on a file from a stranger: a process of its own, which may die of it.

Damaged structures can keep the library busy without end or make it take any amount of memory, and
nothing inside a process can stop that. So the reader of HDF5 starts this module as a process with
limits, asks it where arrays lie and how they are stored, and reads the values itself. Only what
the library alone can turn into numbers or strings comes from here.

A request is a line of JSON. An answer is two lengths, that many bytes of JSON and that many bytes.
"""

from __future__ import annotations

import json
import math
import os
import struct
import sys
import time
from array import array
from collections.abc import Callable
from typing import Any, BinaryIO

import numpy as np

from tuckermix._archives import NUMERIC_KINDS
from tuckermix._reading import Refusal

LENGTHS = struct.Struct("<2Q")
"""The lengths of the two parts of an answer."""

MAX_ANSWER = 16 * 2**20
"""Bytes of JSON in an answer: more than a kilobyte for each array that a file may have."""

ROOM = 48 * 2**20
"""Bytes that the library may take beyond the limit of the caller, for its caches and tables."""

MAX_ATTRIBUTE = 64
"""Bytes of the attribute in which MATLAB keeps the name of a class."""

REFERENCE_BYTES = 16
"""Bytes that stand in the place of a string of any length: its length, and where it lies."""

LONGEST_TYPE = 200
"""Characters of the name of a type that are passed on."""

LONGEST_MESSAGE = 1000
"""Characters of what the library says that are passed on."""

NO_MEMORY = "memory allocation failed"
"""What the library says when it gets no memory."""

PROBE_USERBLOCK = 512
"""Bytes before the content of a file that is made to see how the library counts offsets."""


SIGNATURE = b"\x89HDF\r\n\x1a\n"
"""The first bytes of HDF5."""


def serve(path: str, limit: int, seconds: int, requests: BinaryIO, answers: BinaryIO) -> None:
    """Answer requests about a file until there are no more.

    Parameters
    ----------
    path : str
        The file.
    limit : int
        Bytes that the library may take, beside `ROOM`.
    seconds : int
        Processor time for everything; the system ends the process then.
    requests, answers : binary streams
        Where requests come from and answers go.
    """
    import h5py

    answer_requests(lambda: h5py.File(path, "r"), ACTIONS, limit, seconds, requests, answers)


def answer_requests(
    opened: Callable[[], Any],
    actions: dict[str, Callable[..., tuple[Any, Any]]],
    limit: int,
    seconds: int,
    requests: BinaryIO,
    answers: BinaryIO,
) -> None:
    """Answer requests about what `opened` gives, within limits on memory and time.

    Parameters
    ----------
    opened : callable
        Opens the file, at the first request.
    actions : dict of str to callable
        What can be asked for; each gets the open file and returns an answer.
    limit, seconds : int
        Bytes, beside `ROOM`, and processor time.
    requests, answers : binary streams
        Where requests come from and answers go.
    """
    _limit(limit + ROOM, seconds)
    _send(answers, {"ready": True})
    file: Any = None
    for line in requests:
        request = json.loads(line)
        try:
            if file is None:
                file = opened()
            said, content = actions[request.pop("do")](file, **request)
        except Refusal as error:
            said, content = {"refusal": error.args}, b""
        except MemoryError:
            said, content = {"memory": True}, b""
        except Exception as error:
            said, content = {"fault": [type(error).__name__, str(error)[:LONGEST_MESSAGE]]}, b""
            if NO_MEMORY in str(error):
                said = {"memory": True}
        _send(answers, said, content)


def _limit(nbytes: int, seconds: int) -> None:
    """Limit what this process may take from now on, as far as the system can."""
    try:
        import resource
    except ImportError:  # Windows has none; the caller ends the process after a time
        return
    used = math.ceil(time.process_time())
    limits = [(resource.RLIMIT_CPU, used + seconds), (resource.RLIMIT_CORE, 0)]
    if sys.platform == "linux":
        with open("/proc/self/statm") as stream:
            pages = int(stream.read().split()[0])
        limits.append((resource.RLIMIT_AS, pages * os.sysconf("SC_PAGE_SIZE") + nbytes))
    for kind, most in limits:
        _, hard = resource.getrlimit(kind)
        if hard != resource.RLIM_INFINITY:
            most = min(most, hard)
        resource.setrlimit(kind, (most, most))


def _send(answers: BinaryIO, said: Any, content: Any = b"") -> None:
    text = json.dumps(said).encode()
    if len(text) > MAX_ANSWER:
        said = ["the names of its arrays take too much memory", "Store fewer arrays"]
        text, content = json.dumps({"refusal": said}).encode(), b""
    answers.write(LENGTHS.pack(len(text), len(content)))
    answers.write(text)
    answers.write(content)
    answers.flush()


def _list(file: Any, most: int, matlab: bool) -> tuple[Any, bytes]:
    """List the arrays, those in groups as "group/name". Links are not followed."""
    import h5py

    found: list[Any] = []
    seen = [0]

    def visit(name: str, item: Any) -> None:
        seen[0] += 1
        if seen[0] > most:
            raise Refusal(f"it holds more than {most} objects", "Store fewer arrays")
        if not isinstance(item, h5py.Dataset) or (matlab and name.startswith("#")):
            return
        shape = [int(size) for size in item.shape or ()]
        found.append([name, shape, *_type(item), _matlab_class(item) if matlab else ""])

    file.visititems(visit)
    return found, b""


def _type(item: Any) -> tuple[str, int, str]:
    """Return the type of an array: what kind it is, its length if it is text, what NumPy calls it.

    Kinds are "number", "text" (fixed length), "string" (any length) and "other".
    """
    import h5py

    try:
        dtype = np.dtype(item.dtype)
    except TypeError:
        return "other", 0, "values of a type that NumPy does not know"
    string = h5py.check_string_dtype(dtype)
    if string is not None:
        return ("string", 0, "") if string.length is None else ("text", string.length, "")
    if dtype.kind in NUMERIC_KINDS and dtype.fields is None and dtype.subdtype is None:
        return "number", 0, dtype.str
    return "other", 0, "" if dtype.hasobject else str(dtype)[:LONGEST_TYPE]


def _matlab_class(item: Any) -> str:
    """Read the class that MATLAB noted, if it is a short text as MATLAB writes it."""
    from h5py import h5a

    if not h5a.exists(item.id, b"MATLAB_class"):
        return ""
    attribute = h5a.open(item.id, b"MATLAB_class")
    dtype = attribute.dtype
    if attribute.shape != () or dtype.kind != "S" or dtype.itemsize > MAX_ATTRIBUTE:
        return ""
    value = np.empty((), dtype=dtype)
    attribute.read(value)
    return bytes(value[()]).decode("ascii", "replace")


def _describe(file: Any, name: str, most: int) -> tuple[Any, Any]:
    """Say how an array is stored; the bytes are a table of its chunks.

    A row of the table has the number of the chunk along each axis, where it starts in the file,
    how many bytes it takes there, and which filters were left out.
    """
    import h5py

    item = file[name]
    if item.external or item.is_virtual:
        raise Refusal(
            f"the values of {item.name!r} lie in other files",
            "Copy them into this file, with h5repack for example",
        )
    kind = item.id.get_type()
    varies = isinstance(kind, h5py.h5t.TypeStringID) and kind.is_variable_str()
    plist = item.id.get_create_plist()
    filters = [plist.get_filter(position) for position in range(plist.get_nfilters())]
    said: dict[str, Any] = {
        "shape": [int(size) for size in item.shape],
        "type": _type(item),
        "filters": [(number, list(settings)) for number, _, settings, _ in filters],
        "chunks": None if item.chunks is None else [int(size) for size in item.chunks],
        "value_bytes": REFERENCE_BYTES if varies else int(kind.get_size()),
        "offset": None,
        "plain": False,
        "fill": "",
    }
    if said["type"][0] == "number":
        dtype = np.dtype(said["type"][2])
        said["plain"] = bool(kind == h5py.h5t.py_create(item.dtype, logical=True))
        said["fill"] = np.asarray(item.fillvalue, dtype=dtype).tobytes().hex()
    if item.chunks is None:
        said["compact"] = plist.get_layout() == h5py.h5d.COMPACT
        # Behind a block of the user, the library gives an offset even where nothing is stored.
        absent = said["compact"] or not item.id.get_storage_size()
        said["offset"] = None if absent else item.id.get_offset()
        return said, b""
    shift = file.userblock_size if file.userblock_size and _shift() else 0
    rows = array("q")

    def note(info: Any) -> None:
        rows.extend(a // b for a, b in zip(info.chunk_offset, item.chunks, strict=True))
        rows.extend((info.byte_offset + shift, info.size, info.filter_mask))
        if len(rows) * rows.itemsize > most:
            raise Refusal(
                f"the table of the chunks of {item.name!r} takes more than {most} bytes",
                "If you trust the file, raise max_bytes, or store it anew in larger chunks",
            )

    item.id.chunk_iter(note)
    return said, memoryview(rows).cast("B")


def _shift() -> bool:
    """Tell whether the library counts the offsets of chunks from behind the user's block.

    Versions differ; a small file in memory shows what this one does.
    """
    import h5py

    content = np.arange(64, dtype="u1")
    with h5py.File(
        "probe", "w", driver="core", backing_store=False, userblock_size=PROBE_USERBLOCK
    ) as file:
        item = file.create_dataset("X", data=content, chunks=content.shape)
        file.flush()
        found: list[int] = []
        item.id.chunk_iter(lambda info: found.append(info.byte_offset))
        image = file.id.get_file_image()
    # The image may start at the user's block or behind it, where the signature is.
    behind = image.index(content.tobytes()) - image.index(SIGNATURE)
    return bool(found[0] == behind)


def _read(file: Any, name: str, region: list[list[int]]) -> tuple[Any, Any]:
    """Let the library read numbers or text of fixed length."""
    item = file[name]
    values = np.asarray(item[tuple(slice(low, high) for low, high in region)])
    if values.dtype.kind not in NUMERIC_KINDS + "S":
        raise TypeError(f"values of type {values.dtype} are not read")
    values = np.ascontiguousarray(values).reshape(-1)
    return {"dtype": values.dtype.str}, values.view("u1").data


def _strings(file: Any, name: str, region: list[list[int]]) -> tuple[Any, Any]:
    """Let the library read strings of any length; the bytes are their lengths, then all of them."""
    found = np.ravel(file[name][tuple(slice(low, high) for low, high in region)]).tolist()
    encoded = [one.encode() if isinstance(one, str) else bytes(one) for one in found]
    lengths = np.array([len(one) for one in encoded], dtype=np.int64)
    return {"count": len(encoded)}, lengths.tobytes() + b"".join(encoded)


ACTIONS: dict[str, Callable[..., tuple[Any, Any]]] = {
    "list": _list,
    "describe": _describe,
    "read": _read,
    "strings": _strings,
}
"""What can be asked for."""


def main() -> None:
    """Run as a process: the path, the limit and the seconds are its last three arguments."""
    path, limit, seconds = sys.argv[-3:]
    serve(path, int(limit), int(seconds), sys.stdin.buffer, sys.stdout.buffer)
