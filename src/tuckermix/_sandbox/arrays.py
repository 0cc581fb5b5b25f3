"""Files that hold named arrays, or columns, as libraries read them in the child process."""

from __future__ import annotations

import math
import os
import re
import warnings
from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import Any

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
    """Describe an array, with a "refusal" where its values are not read."""
    shape, more = item.shape or (), {"chunks": item.chunks}
    try:
        dtype = np.dtype(item.dtype)
    except TypeError:
        return part(name, shape, "", "values of a type that NumPy does not know")
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
    if matlab and "MATLAB_class" in item.attrs:
        kind = np.bytes_(item.attrs["MATLAB_class"]).decode("ascii", "replace")
        if kind in ("cell", "char"):
            return part(name, shape, "", f"a MATLAB {kind}")
    if string := h5py.check_string_dtype(dtype):
        length = string.length and min(string.length, MAX_TEXT)
        return part(name, shape, "str" if length is None else np.dtype(("U", length)), **more)
    if dtype.kind in NUMERIC_KINDS:
        return part(name, shape, dtype, **more)
    return part(name, shape, "", "Python objects" if dtype.hasobject else str(dtype)[:200])


class Zarr(Parser):
    """Arrays of a Zarr store, whose codecs and links the parent has looked at."""

    needs = ("zarr", "Reading Zarr", "io")

    def __init__(self, path: str, limit: int) -> None:
        super().__init__(path, limit)
        self.library.config.set({"threading.max_workers": 2})

    def _array(self, name: str) -> Any:
        place = os.path.join(self.path, name)
        version = 3 if os.path.exists(os.path.join(place, "zarr.json")) else 2
        return self.library.open_array(place, mode="r", zarr_format=version)

    def answer_list(self, arrays: Sequence[dict[str, Any]]) -> Answers:
        yield {"parts": [self._described(**array) for array in arrays]}, None

    def _described(
        self, name: str, shape: Sequence[int], files: int, refusal: Any
    ) -> dict[str, Any]:
        if refusal:  # what it holds is not known, and found out by nobody
            return part(name, shape, np.dtype(bool), refusal=refusal)
        array = self._array(name)
        chunks = getattr(array, "shards", None) or array.chunks
        n_chunks = math.prod(-(-a // b) for a, b in zip(array.shape, chunks, strict=True))
        if n_chunks > MAX_CHUNKS + ABSENT * files:
            refusal = [
                f"it declares {n_chunks} chunks and stores {files}", "Store it in larger chunks"
            ]  # fmt: skip
        kind = getattr(array.dtype, "kind", "O")
        text = kind == "T" or (kind == "O" and isinstance(array.fill_value, str | None))
        dtype: Any = array.dtype if kind in NUMERIC_KINDS + "SU" else "str" if text else ""
        note = "" if dtype else f"values of type {array.dtype}"
        return part(name, array.shape, dtype, note, chunks=chunks, refusal=refusal)

    def answer_read(self, name: str, region: Region, step: int) -> Answers:
        for said, values in in_pieces(self._array(name), region, step):
            plain = values.dtype.kind in NUMERIC_KINDS + "SU"
            yield said, values if plain else _as_text(values, name, self.limit)


class Mat(Parser):
    """MATLAB's files of versions 4 to 7 by SciPy."""

    needs = ("scipy.io", "Reading MATLAB files", "io")
    # All but the first have the names of NumPy's types.
    NUMBERS = re.compile("logical|double|single|u?int(8|16|32|64)")

    def answer_list(self) -> Answers:
        parts = []
        with open_regular(self.path) as stream:
            for name, shape, kind in self.library.whosmat(stream):
                dtype = kind.replace("logical", "bool") if self.NUMBERS.fullmatch(kind) else ""
                parts.append(part(name, shape, dtype, "" if dtype else f"a MATLAB {kind}"))
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

    needs = ("nibabel", "Reading NIfTI", "io")

    def answer_read(self) -> Answers:
        from nibabel import volumeutils

        with open_unpacked(self.path) as stream:
            header = self._header(stream.read(self.library.Nifti2Header.sizeof_hdr))
            shape, dtype = self._shape(header), header.get_data_dtype()
            slope, shift = header.get_slope_inter()
            nbytes = math.prod(shape) * dtype.itemsize
            scaled = 8 * math.prod(shape) if slope not in (None, 1) else 0
            sizes = " x ".join(map(str, shape))
            check_fits(f"its {sizes} voxels", nbytes + scaled, self.limit)
            stream.seek(int(header.get_data_offset()))
            content = stream.read(nbytes)
        if len(content) < nbytes:
            raise EOFError(f"of {nbytes} bytes of voxels, {len(content)} are here")
        voxels = np.frombuffer(content, dtype).reshape(shape, order="F")
        if slope is not None and (slope, shift) != (1, 0):
            # Single precision holds integers of 16 bits with room to spare.
            wide = np.float64 if dtype.itemsize > 2 else np.float32
            voxels = volumeutils.apply_read_scaling(voxels.astype(wide), slope, shift)
        if len(shape) >= 3:
            turned = self.library.io_orientation(header.get_best_affine())
            if np.isfinite(turned).all():
                voxels = self.library.apply_orientation(voxels, turned)
        yield {"axes": self.AXES[: voxels.ndim]}, voxels.astype(voxels.dtype.newbyteorder("="))

    def _header(self, start: bytes) -> Any:
        for kind in (self.library.Nifti1Header, self.library.Nifti2Header):
            if kind.may_contain_header(start):
                header = kind(start[: kind.sizeof_hdr], check=False)
                if header["magic"].item() != header.single_magic:
                    raise Refusal(
                        "its voxels lie in another file",
                        "Save it as one file ending in .nii or .nii.gz",
                    )
                if header.get_data_offset() < kind.sizeof_hdr:
                    raise ValueError("its voxels begin within its header")
                return header
        raise Refusal("it does not start like NIfTI, or ends within its header")

    def _shape(self, header: Any) -> tuple[int, ...]:
        """Return the sizes of what is read, without axes of 1 at the end."""
        shape = list(header.get_data_shape())
        while len(shape) > 1 and shape[-1] == 1:
            shape.pop()
        if not shape or min(shape) < 1:
            raise ValueError(f"its sizes {shape} are impossible")
        if len(shape) > len(self.AXES):
            raise Refusal(
                f"it has {len(shape)} axes, and scans have up to {len(self.AXES)}",
                "Save the parts as files of their own",
            )
        dtype = header.get_data_dtype()
        if dtype.kind not in NUMERIC_KINDS or dtype.itemsize > 8:
            raise Refusal(
                f"its voxels are of type {dtype}, which is no real number",
                "Save it as integers or floating-point numbers",
            )
        return tuple(shape)


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
        if kind in ("date", "other"):
            raise Refusal(f"the column {name!r} holds neither numbers nor texts", "Leave it out")
        shape = [len(column)]
        while isinstance(column.type, _lists()):
            lengths = column.value_lengths().unique().to_pylist()
            if len(lengths) != 1 or lengths[0] is None:
                raise Refusal(
                    f"the lists of the column {name!r} have different lengths",
                    "Store samples of one size",
                )
            column = column.flatten()
            shape += lengths
        values = column.to_numpy(zero_copy_only=False)
        if values.dtype.kind not in NUMERIC_KINDS:
            raise Refusal(f"the column {name!r} has gaps", "Fill them, or leave the column out")
        yield {}, values.reshape(shape)


def _lists() -> Any:
    import pyarrow

    return pyarrow.ListType, pyarrow.LargeListType, pyarrow.FixedSizeListType


def _kind_of_column(type_: Any) -> str:
    """Return "number", "text", "list" (of numbers), "date" or "other"."""
    from pyarrow import types

    inner = type_.value_type if types.is_dictionary(type_) else type_
    if types.is_string(inner) or types.is_large_string(inner):
        return "text"
    if types.is_temporal(inner):
        return "date"
    while isinstance(inner, _lists()):
        inner = inner.value_type
    number = types.is_integer(inner) or types.is_floating(inner) or types.is_boolean(inner)
    if not number or types.is_dictionary(type_):
        return "other"
    return "number" if inner is type_ else "list"
