"""Images, scans and videos: folders of them, and one file cut into samples."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from tuckermix._archives import Entry
from tuckermix._axes import arrange, chosen_axes, kind_of
from tuckermix._reading import Refusal, check_fits
from tuckermix._sandbox import question
from tuckermix.datasets._arrays import Stored
from tuckermix.datasets._container import assemble
from tuckermix.datasets._dataset import Dataset
from tuckermix.datasets._options import Options
from tuckermix.datasets._plan import Look, sized

logger = logging.getLogger(__name__)

TIFF_SUFFIXES = frozenset({".tif", ".tiff"})
"""File names of TIFF."""

IMAGE_SUFFIXES = (
    TIFF_SUFFIXES
    | frozenset(
        {".png", ".jpg", ".jpeg", ".jpe", ".jfif", ".bmp", ".pgm", ".ppm", ".pbm", ".pnm", ".gif"}
    )
    | frozenset({".webp", ".avif", ".heic", ".heif"})
)
"""File names of images."""

NIFTI_SUFFIXES = frozenset({".nii", ".nii.gz"})
"""File names of NIfTI."""

VIDEO_SUFFIXES = frozenset(
    {".avi", ".mp4", ".m4v", ".mov", ".mkv", ".webm", ".mpg", ".mpeg", ".ogv"}
)
"""File names of videos."""

PIXELS = 2**21
"""Pixels of a frame, by which the time for decoding is estimated."""


def is_video(path: Path) -> bool:
    """Tell a video by its name."""
    return path.suffix.lower() in VIDEO_SUFFIXES


def looks_at(
    folder: Path, names: Sequence[str], options: Options
) -> Iterator[tuple[str, Look | Exception]]:
    """Yield each file with what its header says, or why it cannot be read."""
    paths = [folder / name for name in names]
    asked = [question("video" if is_video(path) else "picture", "look", path) for path in paths]
    # Neighbours in the list share a parser: others would load one after the other.
    answers = options.sandbox.each(asked)
    for index, (name, answer) in enumerate(zip(names, answers, strict=True)):
        if index % 1000 == 0:
            logger.info("looking at %d of %d files", index, len(names))
        yield name, answer if isinstance(answer, Exception) else Look.of(answer[0], options)


class Ahead:
    """Reads files of a folder in the sandbox, which is asked for the next ones before they are due.

    Parameters
    ----------
    kind : {"picture", "nifti"}
        What the files are.
    paths : sequence of Path
        The files in the order in which they are wanted; some may be left out.
    options : Options
        What the caller asked for, or the plan decided.
    places : sequence of int, list or None, default=()
        Which entries of its first axis are taken of each file, see `plan`.
    """

    def __init__(
        self, kind: str, paths: Sequence[Path], options: Options, places: Sequence[Any] = ()
    ) -> None:
        if kind == "nifti":
            refuse_for_scans(options)
        self.sandbox = options.sandbox
        self.questions = []
        names = ("axes", "channels", "grey", "size", "fit", "scale") if kind == "picture" else ()
        asked = {name: getattr(options, name) for name in names}
        for path, wanted in zip(paths, places or [None] * len(paths), strict=True):
            if kind == "picture":
                asked["places"] = wanted
            one = "video" if kind == "picture" and is_video(path) else kind
            # A video is decoded up to the last frame that is wanted.
            decoded = wanted[-1] * PIXELS if isinstance(wanted, list) else 0
            self.questions.append(question(one, "read", path, decoded, **asked))
        self.places = {path: place for place, path in enumerate(paths)}
        self.next = -1
        self.answers: Iterator[Any] = iter(())

    def __call__(self, path: Path, options: Options) -> tuple[np.ndarray, str]:
        """Read one file; return the sample and how it is drawn."""
        place = self.places[path]
        if place != self.next:
            self.answers = self.sandbox.each(self.questions[place:])
        self.next = place + 1
        answer = next(self.answers)
        if isinstance(answer, Exception):
            raise answer
        said, sample = answer
        if "axes" in said:  # a scan
            axes = chosen_axes(options.axes, said["axes"], sample.shape)
            sample, axes = arrange(sample, axes, channels=options.channels)
            return sample, kind_of(axes, sample.shape)
        return sample, str(said["kind"])


def read_tiff(path: Path, options: Options) -> Dataset:
    """Read a TIFF file whose pages are the samples."""
    said, _ = options.sandbox.ask("tiff", "list", path)
    pages = Stored.told("tiff", path, options, said)
    return assemble(path, [pages], options, colour=bool(said["colour"]))


def refuse_for_scans(options: Options) -> None:
    """Refuse what cannot be done to scans."""
    remedy = "Leave the option out, or resample the scans in the program that made them"
    options.refuse(("size", "frames", "grey"), "scans", remedy)


def read_nifti(path: Path, options: Options) -> Dataset:
    """Read a scan whose times are the samples, or else its slices."""
    refuse_for_scans(options)
    said, X = options.sandbox.ask("nifti", "read", path)
    return assemble(
        path, [Entry(shape=X.shape, dtype=X.dtype, axes=said["axes"], read=lambda: X)], options
    )


def read_video_file(path: Path, options: Options) -> Dataset:
    """Read one video: its frames are the samples, or its clips of `frames` frames."""
    said, _ = options.sandbox.ask("video", "look", path)
    look = Look.of(said, options)
    planes = look.shape[0] * (3 if look.colour and not options.grey else 1)
    options, notes = sized([look.size], planes, options)
    video = _frames(path, options)
    if options.frames is not None:
        count = video.shape[0] // options.frames
        if count < 1:
            raise Refusal(
                f"it has {video.shape[0]} frames and frames={options.frames} were asked for",
                "Pass a smaller frames",
            )
        video = video[: count * options.frames]
        video = video.reshape(count, options.frames, *video.shape[1:])
        return Dataset(X=video, name=path.name, extra={"kind": "video", "notes": notes})
    return Dataset(X=video, name=path.name, extra={"notes": notes})


def _frames(path: Path, options: Options) -> np.ndarray:
    """Collect the frames of a video, within the limit on memory."""
    asked = {"grey": options.grey, "size": options.size, "fit": options.fit}
    collected: list[np.ndarray] = []
    total = 0
    for said, frame in options.sandbox.pieces("video", "frames", path, **asked):
        if "more" not in said:
            break
        collected.append(frame)
        total += frame.nbytes
        remedy = "Pass a smaller size, grey=True, fewer frames, or a larger max_bytes"
        what = f"its first {len(collected)} frames"
        check_fits(what, total, options.max_bytes, remedy, verb="take")
    return np.stack(collected)
