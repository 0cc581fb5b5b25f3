"""The forms in which the known datasets are passed around, each with its reader."""

from __future__ import annotations

import io
import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import numpy as np

from tuckermix._names import STRETCH
from tuckermix._pixels import as_grey_values
from tuckermix._reading import Refusal, open_regular, read_error
from tuckermix.datasets import _pictures
from tuckermix.datasets._dataset import Dataset
from tuckermix.datasets._options import OneReader, Options
from tuckermix.datasets._read import join, read, read_with


@dataclass(frozen=True)
class Layout:
    """One form of a dataset.

    Attributes
    ----------
    patterns : tuple of str
        Names of its file or folder, with ``*`` for any text; upper and lower case are the same.
    read : callable
        Reads it, given the path.
    says : str
        What it is, for a person who looks for it.
    """

    patterns: tuple[str, ...]
    read: Callable[[Path], Dataset]
    says: str


def plain_archive(path: Path) -> Dataset:
    """Read an archive with `images` and `labels`."""
    return read(path, key="images", label_key="labels")


def column_images(shape: tuple[int, int], path: Path) -> Dataset:
    """Read MATLAB's flat images, one a row or a column, each stored column by column."""
    data = read(path)
    if data.X.ndim == 2:
        data = read(path, sample_shape=shape)
    return replace(data, X=as_grey_values(data.X)) if data.X.dtype.kind == "f" else data


def idx_folder(path: Path) -> Dataset:
    """Read all idx files of the folder in which one of them lies, the training part first."""
    return read(path.parent)


def keras_archive(path: Path) -> Dataset:
    """Read the archive that Keras hands out, or a plain one."""
    try:
        return plain_archive(path)
    except ValueError:
        parts = [read(path, key=f"x_{part}", label_key=f"y_{part}") for part in ("train", "test")]
        return join(parts, path)


def face_folder(size: tuple[int, int], path: Path) -> Dataset:
    """Read one folder a person; the pictures without a light of their own are left out."""
    names = [
        name
        for name in _pictures.files_in(path, _pictures.IMAGE_SUFFIXES)
        if "ambient" not in name.lower()
    ]
    if not names:
        raise Refusal("the folder holds no images", "Unpack the archive into it")
    options = Options.checked(size=size, grey=True, fit=STRETCH)
    data = _pictures.read_files(path, names, options)
    if data.labels is None:
        raise Refusal("it has no subfolders", "Keep one folder for each person")
    return replace(data, labels=data.labels + 1)


CBCL_SIDE = 19
"""Pixels of a side of CBCL's images."""


def cbcl_images(path: Path) -> Dataset:
    """Read CBCL's folders `face` and `non-face` of PGM files; faces are class 1."""
    data = read(path, grey=True)
    if data.class_names is None or sorted(data.class_names) != ["face", "non-face"]:
        raise Refusal(
            "its subfolders are not 'face' and 'non-face'", "Name the folder 'train' of CBCL"
        )
    assert data.labels is not None
    faces = data.labels == data.class_names.index("face")
    return replace(data, labels=faces.astype(np.int64))


def cbcl_text(path: Path) -> Dataset:
    """Read CBCL's text form: two counts, then lines of 361 grey values and 1 or -1."""
    with open_regular(path) as raw, io.TextIOWrapper(raw, encoding="ascii") as stream:
        count, width = int(stream.readline()), int(stream.readline())
        table = np.loadtxt(stream, dtype=np.float64, ndmin=2)
    n_pixels = CBCL_SIDE**2
    if width not in (n_pixels, n_pixels + 1) or table.shape != (count, n_pixels + 1):
        raise Refusal(
            f"it announces {count} lines of {width} numbers and has {table.shape[0]} of "
            f"{table.shape[1]}",
            "Get the file again; each line has 361 grey values and the class",
        )
    X = table[:, :-1].reshape(count, CBCL_SIDE, CBCL_SIDE)
    return Dataset(X, labels=(table[:, -1] > 0).astype(np.int64))


def voxels(path: Path) -> Dataset:
    """Read an archive with `images`, `labels` and `is_test`."""
    data = plain_archive(path)
    split = read(path, key="is_test", label_key=False, sample_shape=1)
    return replace(data, extra={"is_test": split.X.ravel().astype(bool)})


def pixels(path: Path) -> Dataset:
    """Read a hyperspectral scene; its pixels are the samples, its bands the features."""
    parts = {
        key: read(path, key=key, label_key=False, sample_axis=0).X
        for key in ("cube", "abundances", "endmembers", "labels")
    }
    height, width, n_bands = parts["cube"].shape
    return Dataset(
        X=parts["cube"].reshape(height * width, n_bands),
        labels=parts["labels"].ravel().astype(np.int64),
        extra={
            "image_shape": (height, width),
            "abundances": parts["abundances"].reshape(height * width, -1),
            "endmembers": parts["endmembers"],
        },
    )


CLIP_NAME = re.compile(r"^(.*?)[\W_]*\d+\.\w+$")
"""Files of a flat folder of clips: the class, then the number of the clip."""


def videos(n_frames: int, size: tuple[int, int], path: Path) -> Dataset:
    """Read clips of videos: as video files, as arrays, or as folders of frames.

    Classes are the first folders, or, where all clips lie in one folder, what stands before the
    number in the names of the files.
    """
    options = Options.checked(size=size, grey=True, frames=n_frames, fit=STRETCH)
    readers: list[tuple[frozenset[str], OneReader]] = [
        (_pictures.VIDEO_SUFFIXES, _first_clip),
        (frozenset({".npy", ".mat"}), partial(_clip_array, (n_frames, *size))),
    ]
    for suffixes, read_one in readers:
        if names := _pictures.files_in(path, suffixes):
            return _with_classes(_pictures.stack_files(path, names, read_one, options, "clips"))
    frames: dict[str, list[str]] = {}
    for name in _pictures.files_in(path, _pictures.IMAGE_SUFFIXES):
        frames.setdefault(name.rpartition("/")[0], []).append(name)
    if not frames or set(frames) == {""}:
        raise Refusal(
            "the folder holds no clips", "Keep one folder per class, with its videos in it"
        )
    clips = sorted(frames, key=_pictures.natural_key)
    for clip in clips:
        if len(frames[clip]) < n_frames:
            problem = f"it has {len(frames[clip])} frames and not {n_frames}"
            raise read_error(path / clip, problem, "Get the folder again")
    files = [file for clip in clips for file in frames[clip][:n_frames]]
    read_image = _pictures.Ahead("picture", [path / file for file in files], options)
    X = _pictures.stack_files(path, files, read_image, options, "frames").X
    labels, class_names, _ = _pictures.classes_of(clips, "clips")
    X = X.reshape(len(clips), n_frames, *size)
    return _with_classes(Dataset(X, labels, names=clips, class_names=class_names))


def _first_clip(path: Path, options: Options) -> tuple[np.ndarray, str]:
    return _pictures.read_video_file(path, options).X[0], "video"


def _clip_array(shape: tuple[int, ...], path: Path, options: Options) -> tuple[np.ndarray, str]:
    plain = replace(options, size=None, grey=None, frames=None, label_key=False)
    clip = read_with(path, plain).X
    if clip.shape != shape:
        raise Refusal(f"it has shape {clip.shape} and not {shape}")
    return clip, "video"


def _with_classes(data: Dataset) -> Dataset:
    """Take the classes from the names of the clips where there are no folders."""
    if data.labels is not None:
        return data
    assert data.names is not None
    found = [CLIP_NAME.match(name.rpartition("/")[2]) for name in data.names]
    if not all(found):
        raise Refusal("its clips have no classes", "Keep one folder for each class")
    labels, class_names = _pictures.numbered([match[1] for match in found if match])
    return replace(data, labels=labels, class_names=class_names)
