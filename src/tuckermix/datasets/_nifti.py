"""NIfTI, the format of brain scans, gzipped or not: its header is checked here before nibabel.

A header declares sizes and where the voxels begin, and a gzipped file can declare any. So the
header is held against the limit first; nibabel gets the header and just the bytes of the voxels,
without the extensions that may stand between them.
"""

from __future__ import annotations

import math
import struct
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import numpy as np

from tuckermix._optional import require
from tuckermix._reading import Refusal, check_fits, open_unpacked
from tuckermix.datasets._axes import WORDS, arrange, chosen_axes, kind_of, sample_letter
from tuckermix.datasets._dataset import Dataset
from tuckermix.datasets._options import Options

NIFTI_SUFFIXES = frozenset({".nii", ".nii.gz"})
"""File names of NIfTI."""

DTYPES = {2: "u1", 4: "i2", 8: "i4", 16: "f4", 64: "f8", 256: "i1", 512: "u2", 768: "u4"}
DTYPES |= {1024: "i8", 1280: "u8"}
"""Types of voxels by their number in the format: the real ones."""

AXES = "XYZTC"
"""The axes of the format, in its order; the fifth holds the entries of vectors."""

N_DIMENSIONS = 7
"""Axes that the format has room for; those behind the fifth must have length one."""

MAX_OFFSET = 2**26
"""Bytes before the voxels, for extensions; they are read over."""

SCALED_BYTES = 8
"""Bytes of a voxel while it is scaled."""

FIRST, SECOND = 348, 540
"""Bytes of the header, of the two versions of the format; each names its own length first."""


@dataclass(frozen=True)
class Header:
    """What a header says, as far as it is needed before the voxels are read.

    Attributes
    ----------
    fields : nibabel header
        All that it says.
    shape : tuple of int
        The sizes of the axes, those of length one at the end left out.
    dtype : dtype
        The type of the voxels.
    offset : int
        Where they begin.
    scaled : bool
        Whether they are to be multiplied and shifted.
    """

    fields: Any
    shape: tuple[int, ...]
    dtype: np.dtype
    offset: int
    scaled: bool

    @property
    def nbytes(self) -> int:
        """The bytes of the voxels as they are stored."""
        return math.prod(self.shape) * self.dtype.itemsize


def read_nifti(path: Path, options: Options) -> Dataset:
    """Read a scan whose times are the samples, or else its slices."""
    X, axes = _volume(path, options)
    first = sample_letter(axes, X.shape)
    X, axes = arrange(X, axes, first, options.channels)
    note = (
        f"Samples are the {X.shape[0]} entries along {first} ({WORDS[first]}): set axes to say "
        "otherwise, with N for the samples, or name a folder of scans."
    )
    kind = kind_of(axes[1:], X.shape[1:])
    extra = {"notes": [] if options.axes else [note], "kind": kind}
    return Dataset(X=np.ascontiguousarray(X), name=path.name, extra=extra)


def read_scan(path: Path, options: Options) -> tuple[np.ndarray, str]:
    """Read one scan, and how it is drawn."""
    X, axes = arrange(*_volume(path, options), channels=options.channels)
    return X, kind_of(axes, X.shape)


def _volume(path: Path, options: Options) -> tuple[np.ndarray, str]:
    """Read the voxels with the letters of their axes, turned as a person lies on the back."""
    remedy = "Leave the option out, or resample the scans in the program that made them"
    options.refuse(("size", "frames", "grey"), "scans", remedy)
    with open_unpacked(path) as stream:
        header = _header(stream)
        declared = math.prod(header.shape) * (SCALED_BYTES if header.scaled else 0) + header.nbytes
        sizes = " x ".join(map(str, header.shape))
        check_fits(f"its {sizes} voxels", declared, options.max_bytes)
        stream.read(header.offset - header.fields.sizeof_hdr)
        content = stream.read(header.nbytes)
    if len(content) < header.nbytes:
        raise EOFError(f"{header.nbytes} bytes of voxels are declared, and {len(content)} are here")
    X = _by_nibabel(header, content)
    return X, chosen_axes(options.axes, AXES[: X.ndim], X.shape)


def _header(stream: IO[bytes]) -> Header:
    """Read and check the header."""
    head = stream.read(4)
    if len(head) < 4:
        raise EOFError("it ends within its header")
    lengths = {order: struct.unpack(f"{order}i", head)[0] for order in "<>"}
    order = next((order for order, length in lengths.items() if length in (FIRST, SECOND)), "")
    if not order:
        raise Refusal("it does not start like NIfTI")
    length = lengths[order]
    content = head + stream.read(length - 4)
    if len(content) < length:
        raise EOFError("it ends within its header")
    nibabel = require("nibabel", "Reading NIfTI", "io")
    kind = nibabel.Nifti1Header if length == FIRST else nibabel.Nifti2Header
    fields = kind(content, endianness=order, check=False)
    dims, datatype = tuple(fields["dim"].tolist()), int(fields["datatype"])
    names = ("vox_offset", "scl_slope", "scl_inter")
    offset, slope, shift = (float(fields[name]) for name in names)
    if fields["magic"].item() != (b"n+1" if length == FIRST else b"n+2"):
        raise Refusal(
            "its voxels lie in another file, or it is of the older format Analyze",
            "Save it as one file ending in .nii or .nii.gz",
        )
    count = dims[0]
    if not 1 <= count <= N_DIMENSIONS or min(dims[1 : count + 1]) < 1:
        raise ValueError(f"its sizes {dims} are impossible")
    shape = list(dims[1 : count + 1])
    while len(shape) > 1 and shape[-1] == 1:
        shape.pop()
    if len(shape) > len(AXES):
        raise Refusal(
            f"it has {len(shape)} axes, and scans have up to {len(AXES)}",
            "Save the parts as files of their own",
        )
    if datatype not in DTYPES:
        raise Refusal(
            f"its voxels are of the type number {datatype}, which is no real number",
            "Save it as integers or floating-point numbers",
        )
    if not length + 4 <= offset <= MAX_OFFSET or offset != int(offset):
        raise ValueError(f"its voxels begin at the impossible place {offset}")
    scaled = bool(math.isfinite(slope) and slope != 0 and (slope, shift) != (1, 0))
    dtype = np.dtype(order + DTYPES[datatype])
    return Header(fields, tuple(shape), dtype, int(offset), scaled)


def _by_nibabel(header: Header, content: bytes) -> np.ndarray:
    """Let nibabel scale the voxels and turn their axes to right, front and top."""
    nibabel, fields = require("nibabel", "Reading NIfTI", "io"), header.fields
    voxels = np.frombuffer(content, dtype=header.dtype).reshape(header.shape, order="F")
    slope, shift = fields.get_slope_inter() if header.scaled else (None, None)
    if slope is not None:
        # Single precision holds integers of 16 bits with room to spare.
        wide = header.dtype.itemsize > 2
        voxels = nibabel.volumeutils.apply_read_scaling(
            voxels.astype(np.float64 if wide else np.float32), slope, shift
        )
    if len(header.shape) >= 3:
        turned = nibabel.io_orientation(fields.get_best_affine())
        if np.isfinite(turned).all():
            voxels = nibabel.apply_orientation(voxels, turned)
    return np.asarray(voxels, dtype=voxels.dtype.newbyteorder("="))
