"""Reading samples from whatever they are stored in."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np

from tuckermix._array_api import is_dask
from tuckermix._names import CROP
from tuckermix._reading import Refusal, check_regular, open_regular, reading
from tuckermix.datasets import _arrays, _pictures, _table, _zarr
from tuckermix.datasets._dataset import Dataset
from tuckermix.datasets._options import OneReader, Options

Reader = Callable[[Path, Options], Dataset]

READERS: dict[str, Reader] = {
    ".npy": _arrays.read_npy,
    ".npz": _arrays.read_npz,
    ".mat": _arrays.read_mat,
    ".h5": _arrays.read_hdf5,
    ".hdf5": _arrays.read_hdf5,
    ".hdf": _arrays.read_hdf5,
    **dict.fromkeys(_pictures.NIFTI_SUFFIXES, _pictures.read_nifti),
    **dict.fromkeys(_table.TABLE_SUFFIXES, _table.read_table),
    **dict.fromkeys(_pictures.TIFF_SUFFIXES, _pictures.read_tiff),
    **dict.fromkeys(_pictures.VIDEO_SUFFIXES, _pictures.read_video_file),
}
"""Readers by the end of the file name."""

BY_MAGIC: list[tuple[bytes, Reader]] = [
    (b"\x93NUMPY", _arrays.read_npy),
    (b"PK\x03\x04", _arrays.read_npz),
    (b"\x89HDF\r\n\x1a\n", _arrays.read_hdf5),
    (b"MATLAB ", _arrays.read_mat),
    (b"II*\x00", _pictures.read_tiff),
    (b"MM\x00*", _pictures.read_tiff),
]
"""Readers by the first bytes, for files whose name does not tell."""

KINDS = (
    ".npy, .npz, .mat, HDF5, Zarr, idx, TIFF, NIfTI, a video, a table (.csv, .tsv, .parquet), or a "
    "folder of images, videos, scans or arrays"
)
"""The kinds of input, for messages."""


def read(
    path: str | os.PathLike[str],
    *,
    key: str | None = None,
    label_key: str | bool | None = None,
    sample_axis: int | None = None,
    sample_shape: int | tuple[int, ...] | None = None,
    size: int | tuple[int, int] | str | None = None,
    fit: str = CROP,
    grey: bool | None = None,
    frames: int | None = None,
    channels: int | str | Sequence[int | str] | None = None,
    axes: str | None = None,
    scale: str | Mapping[str, Any] | None = None,
    drop: str | Sequence[str] | None = None,
    lazy: bool | str = False,
    chunks: int | None = None,
    on_error: str = "stop",
    max_bytes: int | None = None,
    remember: Callable[[OneReader], OneReader] | None = None,
) -> Dataset:
    """Read samples, and labels where there are any, from a file or a folder.

    The kind is told by the name, or else by the first bytes:

    - ``.npy``; ``.npz``; ``.mat`` of any version; HDF5 (``.h5``, ``.hdf5``, ``.hdf``); Zarr stores
      of version 2 or 3 in a folder;
    - MNIST's idx files, gzipped or not, with the labels found by name beside the images; a folder
      of them is read as one dataset, the training part first;
    - a folder of images (PNG, JPEG, BMP, PGM and relatives, GIF, WebP, AVIF, TIFF, and HEIC with
      pillow-heif) or of videos, one sample each; subfolders, where there are two or more, are the
      classes;
    - NIfTI scans (``.nii``, ``.nii.gz``): a folder of them, one sample each, or one file, whose
      times are the samples, or else its slices; a folder of ``.npy`` files, one sample each;
    - a table (``.csv``, ``.tsv``, ``.parquet``) with a column of paths, which lie in its folder or
      below, or with a column for each pixel, or, in Parquet, a column of lists;
    - one video: its frames are the samples, or, with `frames`, its clips of that length;
    - multi-page TIFF: its pages are the samples. In a folder, each TIFF is one sample.

    Colour samples have a last axis of 3; videos have their frames first. Nothing in a file is ever
    executed, no link in it is followed, and no pickles are read.

    Pictures and videos of a folder may differ in everything. A look at all headers decides how they
    make one array: the options that are None. ``extra["notes"]`` says what was decided, and
    ``extra["reading"]`` has it as options, by which new files are read in the same way.

    Parameters
    ----------
    path : str or path
        The file or folder.
    key : str, default=None
        The name of the array of samples, with groups as "group/name". None takes a common name
        (``images``, ``X``, ``data``, ``fea`` ...) or else the only numeric array with two axes or
        more.
    label_key : str or False, default=None
        The name of the labels; for idx files, the name of the file. None takes a common name
        (``labels``, ``gnd``, ``targets``, ``y`` beside ``X`` ...) if there is one; False reads
        none.
    sample_axis : int, default=None
        The axis of the samples. None means the first, in MATLAB files the last of three or more,
        unless only another one is as long as the labels.
    sample_shape : int or tuple of int, default=None
        Unfold flat samples into this shape: column by column in MATLAB files, as MATLAB does, row
        by row elsewhere.
    size : int, (height, width) or "original", default=None
        Bring images and frames to this size. None: their longest side has at most 128 pixels, of
        many down to 64, and fewer where the whole array would pass a gigabyte in single precision.
        Their proportions are the mean of all.
    fit : {"crop", "pad", "stretch"}, default="crop"
        What happens to images of other proportions. "crop" keeps the middle: bars would be the
        strongest edges of a picture, and tell upright ones from wide ones. "pad" suits single
        objects that fill their pictures.
    grey : bool, default=None
        True makes colour samples grey, False gives grey images three colours. None: colour if any
        of them has it.
    frames : int, default=None
        Frames, or pages, to take of each video or stack of a folder, evenly spaced, and the length
        of clips of one video. None: as many as the usual one has, at most 32; 1 makes pictures.
    channels : int, str or sequence of those, default=None
        Which channels to keep, by number or, in OME-TIFF, by name; a single one loses its axis.
    axes : str, default=None
        What the axes of a stored array or a stack of pages mean, a letter for each: N samples,
        T time, Z depth, Y height, X width, C channels. Samples get their axes in the order TZYXC;
        without an N, one file is cut along T, else Z, else C. None takes what the file says.
    scale : {"none", "sample", "columns"} or dict, default=None
        What is done with values. "sample": each picture from its darkest to its brightest value, as
        bytes. "columns": columns of a table to mean 0 and deviation 1; a dict has the "mean" and
        the "deviation" of each. None: "sample" where pictures have different types, "columns" where
        deviations differ by a factor of ten, else "none".
    drop : str or sequence of str, default=None
        Columns of a table to leave out.
    lazy : bool or "auto", default=False
        Whether to leave the samples on disk: a memory map for ``.npy``, a Dask array for HDF5,
        MATLAB 7.3 and Zarr. "auto" does so where they would pass `max_bytes`.
    chunks : int, default=None
        Samples in a chunk: gives a Dask array for ``.npy`` too.
    on_error : {"stop", "skip"}, default="stop"
        What to do at a file of a folder that cannot be read: stop there, or leave it out and list
        it in ``extra["skipped"]``, as (name, reason).
    max_bytes : int, default=None
        The most that the samples may take in memory once unpacked, checked before unpacking: a
        small file can claim any size. None means half of the machine's memory.
    remember : callable, default=None
        For folders and tables of paths: is given the function ``(path, options) -> array`` that
        reads one file, and returns the one to use in its place, such as one that remembers what it
        read. `tuckermix cluster` goes on after a kill by this.

    Returns
    -------
    dataset : Dataset
        `X` with samples first, in the type in which they are stored; `labels` or None; `names` of
        the files for folders, else None; `extra` with what was skipped and with ``"notes"``, what
        else a reader of the result should know, such as which axis was taken.

    Raises
    ------
    ReadError
        For whatever is wrong with the file; the message names it and the remedy.

    Examples
    --------
    >>> from tuckermix.datasets import read
    >>> read("faces.mat", sample_shape=(32, 32))  # doctest: +SKIP
    Dataset(faces.mat: X (400, 32, 32) uint8, 40 classes)
    """
    given = locals().copy()  # the arguments, all of which but the path are options
    source = Path(given.pop("path"))
    options = Options.checked(**given)
    with ExitStack() as ending:
        ending.callback(options.sandbox.close)
        data = read_with(source, options)
        if is_dask(data.X):  # it will ask, and ends the child when it goes
            ending.pop_all()
        return data


def read_with(source: Path, options: Options) -> Dataset:
    """Read a file or a folder, given options that are checked."""
    with reading(source):
        if not source.exists():
            raise Refusal("it does not exist", "Check the path")
        if source.is_dir():
            return _read_folder(source, options)
        check_regular(source, source.stat().st_mode)
        return _reader(source)(source, options)


def _reader(path: Path) -> Reader:
    """Find the reader for a file."""
    if path.stat().st_size == 0:
        raise Refusal("it is empty")
    for end, reader in READERS.items():
        if path.name.lower().endswith(end):
            return reader
    if re.search(r"(idx\d|ubyte)(\.gz)?$", path.name, re.IGNORECASE):
        return _arrays.read_idx
    if path.suffix.lower() in _pictures.IMAGE_SUFFIXES:
        raise Refusal(
            "it holds one image, and samples are many", "Name the folder in which the images lie"
        )
    with open_regular(path) as stream:
        head = stream.read(16)
    for magic, reader in BY_MAGIC:
        if head.startswith(magic):
            return reader
    if _arrays.is_idx(path):
        return _arrays.read_idx
    raise Refusal("its kind is not known", f"Name one of these: {KINDS}")


def _read_folder(path: Path, options: Options) -> Dataset:
    """Tell what a folder holds, and read it."""
    if _zarr.is_zarr(path):
        return _arrays.read_zarr(path, options)
    if pairs := _arrays.find_pairs(path):
        return join([_arrays.read_idx(pair, options) for pair in pairs], path)
    return _pictures.read_folder(path, options)


def join(parts: list[Dataset], path: Path) -> Dataset:
    """Put datasets with equal sample shapes behind one another."""
    if len(parts) == 1:
        return parts[0]
    shapes = {part.sample_shape for part in parts}
    if len(shapes) > 1:
        raise Refusal(
            f"its files hold samples of different shapes: {', '.join(map(str, sorted(shapes)))}",
            "Read them one by one",
        )
    labels: Any = [part.labels for part in parts]
    known = all(part is not None for part in labels)
    return Dataset(
        X=np.concatenate([part.X for part in parts]),
        labels=np.concatenate(labels) if known else None,
        name=path.resolve().name,
    )
