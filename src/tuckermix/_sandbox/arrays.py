"""Files that hold named arrays, or columns, as libraries read them in the child process."""

from __future__ import annotations

import math
import os
import warnings
from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import Any, ClassVar

import numpy as np

from tuckermix._optional import require
from tuckermix._reading import Refusal, check_fits, open_regular, open_unpacked

NUMERIC_KINDS = "buif"
MAX_PARTS = 10_000
MAX_COLUMNS = 100_000
MAX_TEXT = 2**29 - 1  # the longest text that NumPy allows, in characters
MAX_CHUNKS, ABSENT = 20_000, 20  # chunks to look for at least, and for each that is there

Answers = Iterator[tuple[dict[str, Any], Any]]
Region = Sequence[Sequence[int]]


def part(
    name: str, shape: Sequence[int], dtype: Any, note: str = "", **more: Any
) -> dict[str, Any]:
    """Describe an array: `dtype` is "" for what is not read and "str" for strings of any length."""
    return {
        "name": name,
        "shape": [int(size) for size in shape],
        "dtype": dtype if isinstance(dtype, str) else np.dtype(dtype).str,
        "note": note,
        **more,
    }


def in_pieces(array: Any, region: Region, step: int) -> Answers:
    """Read a region of what is indexed like an array, `step` entries of the first axis at a time.

    Pieces end at multiples of `step`. No step means one piece.
    """
    within = tuple(slice(low, high) for low, high in region)
    if not step:
        yield {}, array[within]
        return
    low, last = region[0]
    while low < last:
        high = min(last, (low // step + 1) * step)
        yield {"more": high < last}, array[(slice(low, high), *within[1:])]
        low = high


def _as_text(values: Any, name: str, limit: int) -> np.ndarray:
    """Return strings of any length as an array, which is as wide as the longest."""
    texts = np.asarray(values, dtype=object)
    longest = max((len(one) for one in texts.flat), default=0)
    what = f"the {texts.size} strings of {name!r}, one of {longest} characters,"
    declared = texts.size * max(1, longest) * np.dtype("U1").itemsize
    check_fits(what, declared, limit, "Store shorter names, or numbers")
    return texts.astype(str)


class Parser:
    """A file as a library parses it: each method `answer_...` answers one kind of question."""

    needs: tuple[str, ...] = ()
    library: Any = None

    @classmethod
    def load(cls) -> None:
        """Import the library, before the memory is limited."""
        cls.library = require(*cls.needs)

    def __init__(self, path: str, limit: int) -> None:
        self.path, self.limit = path, limit


class Hdf5(Parser):
    """HDF5 by h5py. Links are not followed; what lies in other files is refused."""

    needs = ("h5py", "Reading HDF5", "io")

    def __init__(self, path: str, limit: int) -> None:
        with open_regular(path):
            self.file, self.limit = self.library.File(path, "r", locking=False), limit

    def answer_list(self, matlab: bool) -> Answers:
        found: list[dict[str, Any]] = []
        seen = [0]

        def visit(name: str, item: Any) -> None:
            seen[0] += 1
            if seen[0] > MAX_PARTS:
                raise Refusal(f"it holds more than {MAX_PARTS} objects", "Store fewer arrays")
            if isinstance(item, self.library.Dataset) and not (matlab and name.startswith("#")):
                found.append(_of_hdf5(self.library, name, item, matlab))

        self.file.visititems(visit)
        yield {"parts": found}, None

    def answer_read(self, name: str, region: Region, step: int) -> Answers:
        item = self.file[name]
        text = self.library.check_string_dtype(item.dtype) and item.dtype.kind == "O"
        for said, values in in_pieces(item.asstr() if text else item, region, step):
            yield said, _as_text(values, item.name, self.limit) if text else values


def _of_hdf5(h5py: Any, name: str, item: Any, matlab: bool) -> dict[str, Any]:
    shape = item.shape or ()
    try:
        dtype = np.dtype(item.dtype)
    except TypeError:
        return part(name, shape, "", "values of a type that NumPy does not know")
    more: dict[str, Any] = {"chunks": item.chunks}
    if item.external or item.is_virtual:
        more["refusal"] = [
            f"the values of {item.name!r} lie in other files",
            "Copy them into this file, with h5repack for example",
        ]
    plist = item.id.get_create_plist()
    for number in range(plist.get_nfilters()):
        code = plist.get_filter(number)[0]
        if not h5py.h5z.filter_avail(code):
            more["refusal"] = [
                f"{item.name!r} is packed with the filter number {code}, which is not known here",
                "Store it with gzip instead, with h5repack for example",
            ]
    note = ""
    if matlab and "MATLAB_class" in item.attrs:
        kind = np.bytes_(item.attrs["MATLAB_class"]).decode("ascii", "replace")
        note = f"a MATLAB {kind}" if kind in ("cell", "char") else ""
    string = h5py.check_string_dtype(dtype)
    if note:
        return part(name, shape, "", note)
    if string is not None:
        length = string.length
        text: Any = "str" if length is None else np.dtype(("U", min(length, MAX_TEXT)))
        return part(name, shape, text, **more)
    if dtype.kind in NUMERIC_KINDS and dtype.fields is None and dtype.subdtype is None:
        return part(name, shape, dtype, **more)
    return part(name, shape, "", "" if dtype.hasobject else str(dtype)[:200])


class Zarr(Parser):
    """Arrays of a Zarr store, whose codecs and links the parent has looked at."""

    needs = ("zarr", "Reading Zarr", "io")

    def __init__(self, path: str, limit: int) -> None:
        super().__init__(path, limit)
        self.library.config.set({"threading.max_workers": 2})
        self.arrays: dict[str, Any] = {}

    def _array(self, name: str, version: int) -> Any:
        if name not in self.arrays:
            place = os.path.join(self.path, *name.split("/")) if name else self.path
            self.arrays[name] = self.library.open_array(place, mode="r", zarr_format=version)
        return self.arrays[name]

    def answer_list(self, nodes: Sequence[tuple[str, int, int]]) -> Answers:
        parts = []
        for name, version, n_files in nodes:
            array = self._array(name, version)
            chunks = getattr(array, "shards", None) or array.chunks
            more = {"chunks": chunks, "version": version}
            n_chunks = math.prod(-(-a // b) for a, b in zip(array.shape, chunks, strict=True))
            if n_chunks > MAX_CHUNKS + ABSENT * n_files:
                more["refusal"] = [
                    f"it declares {n_chunks} chunks and stores {n_files}",
                    "Store it in larger chunks",
                ]
            kind = getattr(array.dtype, "kind", "O")
            text = kind == "T" or (kind == "O" and isinstance(array.fill_value, str | None))
            dtype: Any = array.dtype if kind in NUMERIC_KINDS + "SU" else "str" if text else ""
            note = "" if dtype else f"values of type {array.dtype}"
            parts.append(part(name, array.shape, dtype, note, **more))
        yield {"parts": parts}, None

    def answer_read(self, name: str, region: Region, step: int, version: int) -> Answers:
        for said, values in in_pieces(self._array(name, version), region, step):
            plain = values.dtype.kind in NUMERIC_KINDS + "SU"
            yield said, values if plain else _as_text(values, name, self.limit)


class Mat(Parser):
    """MATLAB's files of versions 4 to 7 by SciPy."""

    needs = ("scipy.io", "Reading MATLAB files", "io")
    CLASSES: ClassVar = {
        "double": "f8",
        "single": "f4",
        "logical": "?",
        **{f"int{8 * n}": f"i{n}" for n in (1, 2, 4, 8)},
        **{f"uint{8 * n}": f"u{n}" for n in (1, 2, 4, 8)},
    }

    def answer_list(self) -> Answers:
        parts = []
        with open_regular(self.path) as stream:
            for name, shape, kind in self.library.whosmat(stream):
                note = "" if kind in self.CLASSES else f"a MATLAB {kind}"
                parts.append(part(name, shape, self.CLASSES.get(kind, ""), note))
        yield {"parts": parts}, None

    def answer_read(self, name: str, region: Region, step: int) -> Answers:
        kind = "complex array"
        with open_regular(self.path) as stream, warnings.catch_warnings():
            warnings.simplefilter("error", np.exceptions.ComplexWarning)
            with suppress(np.exceptions.ComplexWarning):
                values = self.library.loadmat(stream, variable_names=[name], mat_dtype=True)[name]
                kind = "" if values.dtype.kind in NUMERIC_KINDS else str(values.dtype)
        if kind:
            raise Refusal(
                f"{name!r} holds a MATLAB {kind}, and samples are real numbers",
                "Store the samples as an array of integers or floating-point numbers",
            )
        yield from in_pieces(values, region, step)


class Nifti(Parser):
    """Brain scans by nibabel, gzipped or not, scaled and turned to right, front and top."""

    AXES = "XYZTC"
    FIRST, SECOND = 348, 540  # bytes of the header of each version, which it names first

    needs = ("nibabel", "Reading NIfTI", "io")

    def __init__(self, path: str, limit: int) -> None:
        super().__init__(path, limit)
        with open_unpacked(path) as stream:
            head = stream.read(4)
            length = next(
                (n for n in (self.FIRST, self.SECOND) for order in ("little", "big")
                 if head == n.to_bytes(4, order)), 0
            )  # fmt: skip
            if len(head) == 4 and not length:
                raise Refusal("it does not start like NIfTI")
            content = head + stream.read(max(0, length - 4))
        if len(content) < max(4, length):
            raise EOFError("it ends within its header")
        kind = self.library.Nifti1Header if length == self.FIRST else self.library.Nifti2Header
        self.header = header = kind(content, check=False)
        if header["magic"].item() != (b"n+1" if length == self.FIRST else b"n+2"):
            raise Refusal(
                "its voxels lie in another file, or it is of the older format Analyze",
                "Save it as one file ending in .nii or .nii.gz",
            )
        shape = list(header.get_data_shape())
        while len(shape) > 1 and shape[-1] == 1:
            shape.pop()
        if not shape or min(shape) < 1:
            raise ValueError(f"its sizes {tuple(shape)} are impossible")
        if len(shape) > len(self.AXES):
            raise Refusal(
                f"it has {len(shape)} axes, and scans have up to {len(self.AXES)}",
                "Save the parts as files of their own",
            )
        self.shape, self.dtype = tuple(shape), header.get_data_dtype()
        if self.dtype.kind not in NUMERIC_KINDS or self.dtype.itemsize > 8:
            raise Refusal(
                f"its voxels are of type {self.dtype}, which is no real number",
                "Save it as integers or floating-point numbers",
            )
        self.offset = int(header.get_data_offset())
        if self.offset < length:
            raise ValueError(f"its voxels begin at the impossible place {self.offset}")
        self.scaling = header.get_slope_inter()
        self.nbytes = math.prod(self.shape) * self.dtype.itemsize
        scaled = 8 * math.prod(self.shape) if self.scaling[0] not in (None, 1) else 0
        sizes = " x ".join(map(str, shape))
        check_fits(f"its {sizes} voxels", self.nbytes + scaled, limit)

    def answer_read(self) -> Answers:
        from nibabel import volumeutils

        with open_unpacked(self.path) as stream:
            stream.seek(self.offset)
            content = stream.read(self.nbytes)
        if len(content) < self.nbytes:
            raise EOFError(
                f"{self.nbytes} bytes of voxels are declared, and {len(content)} are here"
            )
        voxels = np.frombuffer(content, self.dtype).reshape(self.shape, order="F")
        slope, shift = self.scaling
        if slope is not None and (slope, shift) != (1, 0):
            # Single precision holds integers of 16 bits with room to spare.
            wide = np.float64 if self.dtype.itemsize > 2 else np.float32
            voxels = volumeutils.apply_read_scaling(voxels.astype(wide), slope, shift)
        if len(self.shape) >= 3:
            turned = self.library.io_orientation(self.header.get_best_affine())
            if np.isfinite(turned).all():
                voxels = self.library.apply_orientation(voxels, turned)
        yield {"axes": self.AXES[: voxels.ndim]}, voxels.astype(voxels.dtype.newbyteorder("="))


class Parquet(Parser):
    """Tables by pyarrow."""

    needs = ("pyarrow.parquet", "Reading Parquet", "io")

    @classmethod
    def load(cls) -> None:
        super().load()
        pyarrow = require("pyarrow", "Reading Parquet", "io")
        # Its own allocators reserve a gigabyte of addresses at once, which the limit is on.
        pyarrow.set_memory_pool(pyarrow.system_memory_pool())
        pyarrow.set_cpu_count(1)

    def __init__(self, path: str, limit: int) -> None:
        super().__init__(path, limit)
        with open_regular(path):
            self.file = self.library.ParquetFile(path, memory_map=False, pre_buffer=False)
        groups = range(self.file.metadata.num_row_groups)
        declared = (self.file.metadata.row_group(group).total_byte_size for group in groups)
        check_fits("its columns", sum(max(0, size) for size in declared), limit)

    def answer_list(self) -> Answers:
        schema = self.file.schema_arrow
        if len(schema) > MAX_COLUMNS:
            raise Refusal(f"it has more than {MAX_COLUMNS} columns", "Store the pixels as lists")
        kinds = [[field.name, _kind_of_column(field.type)] for field in schema]
        yield {"rows": int(self.file.metadata.num_rows), "columns": kinds}, None

    def answer_read(self, name: str) -> Answers:
        """Read one column: numbers, lists of equal lengths as an array, or texts."""
        column = self.file.read(columns=[name], use_threads=False).column(name).combine_chunks()
        kind = _kind_of_column(column.type)
        if kind == "text":
            texts = [value or "" for value in column.to_pylist()]
            yield {}, _as_text(texts, name, self.limit)
            return
        if kind == "other":
            raise Refusal(f"the column {name!r} holds neither numbers nor texts", "Leave it out")
        shape = [len(column)]
        while _is_list(column.type):
            column, length = _flat(column, name)
            shape.append(length)
        values = column.to_numpy(zero_copy_only=False)
        if values.dtype.kind not in NUMERIC_KINDS:
            raise Refusal(f"the column {name!r} has gaps", "Fill them, or leave the column out")
        yield {}, values.reshape(shape)


def _kind_of_column(type_: Any) -> str:
    """Return "number", "text", "list" (of numbers) or "other"."""
    from pyarrow import types

    if types.is_dictionary(type_):
        type_ = type_.value_type
        return "text" if types.is_string(type_) or types.is_large_string(type_) else "other"
    if types.is_string(type_) or types.is_large_string(type_):
        return "text"
    nested = _is_list(type_)
    while _is_list(type_):
        type_ = type_.value_type
    number = types.is_integer(type_) or types.is_floating(type_) or types.is_boolean(type_)
    return ("list" if nested else "number") if number else "other"


def _is_list(type_: Any) -> bool:
    from pyarrow import types

    return types.is_list(type_) or types.is_large_list(type_) or types.is_fixed_size_list(type_)


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
