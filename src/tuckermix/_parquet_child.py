"""What runs pyarrow on a table from a stranger: a process of its own, as libhdf5 has one.

Pages of a Parquet file declare what they unpack to, and the library believes them. In a process
with limits it may take what it wants. Requests and answers are those of `tuckermix._hdf5_child`.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any, BinaryIO

import numpy as np

from tuckermix._archives import NUMERIC_KINDS
from tuckermix._hdf5_child import answer_requests
from tuckermix._reading import Refusal, check_fits

MAX_COLUMNS = 100_000
"""Columns of a table; one for each pixel of a large image."""

MAX_NESTING = 6
"""Lists within lists: a sample has no more axes."""

MAX_METADATA = 2**24
"""Texts and lists in the description of a table, and bytes of one text."""


def serve(path: str, limit: int, seconds: int, requests: BinaryIO, answers: BinaryIO) -> None:
    """Answer requests about a table until there are no more.

    Parameters
    ----------
    path : str
        The file.
    limit : int
        Bytes that the library may take, beside a fixed room.
    seconds : int
        Processor time for everything; the system ends the process then.
    requests, answers : binary streams
        Where requests come from and answers go.
    """
    import pyarrow
    import pyarrow.compute
    import pyarrow.parquet

    # Its own allocators reserve a gigabyte of addresses at once, which the limit is on.
    pyarrow.set_memory_pool(pyarrow.system_memory_pool())
    pyarrow.set_cpu_count(1)

    def opened() -> Any:
        file = pyarrow.parquet.ParquetFile(
            path,
            memory_map=False,
            pre_buffer=False,
            thrift_string_size_limit=MAX_METADATA,
            thrift_container_size_limit=MAX_METADATA,
        )
        declared = sum(
            max(0, file.metadata.row_group(group).total_byte_size)
            for group in range(file.metadata.num_row_groups)
        )
        check_fits("its columns", declared, limit)
        return file

    answer_requests(opened, ACTIONS, limit, seconds, requests, answers)


def _columns(file: Any) -> tuple[Any, bytes]:
    """List the columns, each with its kind, and count the rows."""
    schema = file.schema_arrow
    if len(schema) > MAX_COLUMNS:
        raise Refusal(f"it has more than {MAX_COLUMNS} columns", "Store the pixels as lists")
    return {
        "rows": int(file.metadata.num_rows),
        "columns": [[field.name, _kind(field.type)] for field in schema],
    }, b""


def _kind(type_: Any) -> str:
    """Return "number", "text", "list" (of numbers) or "other"."""
    from pyarrow import types

    if types.is_dictionary(type_):
        type_ = type_.value_type
        return "text" if types.is_string(type_) or types.is_large_string(type_) else "other"
    if types.is_string(type_) or types.is_large_string(type_):
        return "text"
    depth = 0
    while _is_list(type_) and depth <= MAX_NESTING:
        type_, depth = type_.value_type, depth + 1
    number = types.is_integer(type_) or types.is_floating(type_) or types.is_boolean(type_)
    if not number or depth > MAX_NESTING:
        return "other"
    return "list" if depth else "number"


def _is_list(type_: Any) -> bool:
    from pyarrow import types

    return types.is_list(type_) or types.is_large_list(type_) or types.is_fixed_size_list(type_)


def _read(file: Any, name: str) -> tuple[Any, Any]:
    """Read one column: numbers, lists of equal lengths as an array, or texts."""
    from pyarrow import types

    column = file.read(columns=[name], use_threads=False).column(name).combine_chunks()
    kind = _kind(column.type)
    if kind == "text":
        if types.is_dictionary(column.type):
            column = column.dictionary_decode()
        encoded = [(value or "").encode() for value in column.to_pylist()]
        lengths = np.array([len(one) for one in encoded], dtype=np.int64)
        return {"count": len(encoded)}, lengths.tobytes() + b"".join(encoded)
    if kind == "other":
        raise Refusal(f"the column {name!r} holds neither numbers nor texts", "Leave it out")
    shape = [len(column)]
    while _is_list(column.type):
        column, length = _flat(column, name)
        shape.append(length)
    values = column.to_numpy(zero_copy_only=False)
    if values.dtype.kind not in NUMERIC_KINDS:
        raise Refusal(f"the column {name!r} has gaps", "Fill them, or leave the column out")
    values = np.ascontiguousarray(values)
    return {"dtype": values.dtype.str, "shape": shape}, values.view("u1").data


def _flat(column: Any, name: str) -> tuple[Any, int]:
    """Put lists of one length behind one another."""
    import pyarrow.compute

    lengths = pyarrow.compute.list_value_length(column)
    least, most = (pyarrow.compute.min_max(lengths)[key].as_py() for key in ("min", "max"))
    if least is None or least != most or column.null_count:
        raise Refusal(
            f"the lists of the column {name!r} have lengths from {least} to {most}",
            "Store samples of one size",
        )
    return column.flatten(), int(most)


ACTIONS: dict[str, Callable[..., tuple[Any, Any]]] = {"columns": _columns, "read": _read}
"""What can be asked for."""


def main() -> None:
    """Run as a process: the path, the limit and the seconds are its last three arguments."""
    path, limit, seconds = sys.argv[-3:]
    serve(path, int(limit), int(seconds), sys.stdin.buffer, sys.stdout.buffer)
