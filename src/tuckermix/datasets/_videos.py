"""Videos: a folder of them, one sample each, or one file cut into samples."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from tuckermix._optional import require
from tuckermix._reading import Refusal, check_fits, open_regular
from tuckermix.datasets._dataset import Dataset
from tuckermix.datasets._options import Options
from tuckermix.datasets._pixels import match, resize

VIDEO_SUFFIXES = frozenset(
    {".avi", ".mp4", ".m4v", ".mov", ".mkv", ".webm", ".mpg", ".mpeg", ".ogv"}
)
"""File names of videos."""

CONTAINERS = "avi,mov,matroska,webm,mpeg,mpegvideo,mpegts,ogg,m4v"
"""Containers that may be opened. The library behind also knows playlists, which name other files
and hosts; a file from a stranger must not make us open those."""

BYTES_PER_PIXEL = 3
"""Bytes of a pixel in colour."""

MAX_PIXELS = 2**31 - 1
"""The most pixels of a frame that the library behind can be told."""

SPARE_PIXELS = 2**16
"""Pixels by which a decoder may round a frame up to whole blocks."""

GREY_FORMATS = ("gray", "gray8", "gray10le", "gray12le", "gray16le", "monow", "monob")
"""Pixel formats without colour."""


def read_video_file(path: Path, options: Options) -> Dataset:
    """Read one video: its frames are the samples, or its clips of `frames` frames."""
    video = _stack(_frames(path, options), options)
    if options.frames is not None:
        count = video.shape[0] // options.frames
        if count < 1:
            raise _too_short(video.shape[0], options.frames)
        video = video[: count * options.frames]
        video = video.reshape(count, options.frames, *video.shape[1:])
        return Dataset(X=video, name=path.name, extra={"kind": "video"})
    return Dataset(X=video, name=path.name)


def read_video(path: Path, options: Options) -> tuple[np.ndarray, str]:
    """Read a video as (frames, height, width), in colour with a last axis of 3.

    Returns
    -------
    video : array
        The frames.
    kind : str
        How it is drawn: "video".
    """
    video = _stack(_frames(path, options), options, limit=options.frames)
    if options.frames is not None and video.shape[0] < options.frames:
        raise _too_short(video.shape[0], options.frames)
    return video, "video"


def _too_short(count: int, frames: int) -> ValueError:
    return Refusal(
        f"it has {count} frames and frames={frames} were asked for", "Pass a smaller frames"
    )


def _stack(frames: Iterator[np.ndarray], options: Options, limit: int | None = None) -> np.ndarray:
    """Collect frames up to a number, within the limit on memory."""
    collected: list[np.ndarray] = []
    total = 0
    for frame in frames:
        collected.append(resize(match(frame, options.grey), options.size))
        total += collected[-1].nbytes
        remedy = "Pass a smaller size, grey=True, fewer frames, or a larger max_bytes"
        what = f"its first {len(collected)} frames"
        check_fits(what, total, options.max_bytes, remedy, verb="take")
        if limit is not None and len(collected) == limit:
            break
    if not collected:
        raise Refusal("it has no frames")
    return np.stack(collected)


def _check_frame(width: int, height: int, options: Options) -> None:
    check_fits("one of its frames", BYTES_PER_PIXEL * width * height, options.max_bytes)


def _frames(path: Path, options: Options) -> Iterator[np.ndarray]:
    """Decode the first video stream of a file frame by frame."""
    av = require("av", "Reading videos", "io")
    with open_regular(path) as raw, _container(av, raw) as container:
        if not container.streams.video:
            raise Refusal("it has no pictures", "Name a file that holds a video")
        stream = container.streams.video[0]
        grey = stream.codec_context.pix_fmt in GREY_FORMATS
        _check_frame(stream.codec_context.width, stream.codec_context.height, options)
        # What the head of a file says need not hold for its frames: the decoder must know too.
        most = options.max_bytes // BYTES_PER_PIXEL + SPARE_PIXELS
        stream.codec_context.options = {"max_pixels": str(min(most, MAX_PIXELS))}
        for frame in _decoded(container, stream):
            _check_frame(frame.width, frame.height, options)
            yield frame.to_ndarray(format="gray" if grey or options.grey else "rgb24")


def _container(av: Any, raw: BinaryIO) -> Any:
    """Open a container. FFmpeg refuses tables of 2 GiB and more as if memory had run out."""
    # The stream is handed over open: no name that the file contains is ever opened.
    options = {"format_whitelist": CONTAINERS, "protocol_whitelist": ""}
    try:
        return av.open(raw, mode="r", container_options=options)
    except MemoryError as error:
        raise ValueError("it declares a table that does not fit into memory") from error


def _decoded(container: Any, stream: Any) -> Iterator[Any]:
    """Decode frames. FFmpeg refuses packets beyond its limits as if memory had run out, too."""
    try:
        yield from container.decode(stream)
    except MemoryError as error:
        raise ValueError("it declares a packet that does not fit into memory") from error
