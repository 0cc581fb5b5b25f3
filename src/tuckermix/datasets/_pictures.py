"""Images, scans and videos: folders of them, and one file cut into samples."""

from __future__ import annotations

import logging
import os
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from tuckermix._archives import Entry
from tuckermix._axes import arrange, chosen_axes, kind_of
from tuckermix._names import SKIP
from tuckermix._reading import ReadError, Refusal, check_fits, reading
from tuckermix._sandbox import question
from tuckermix.datasets._arrays import NPY_SUFFIXES, Stored, read_sample
from tuckermix.datasets._container import assemble
from tuckermix.datasets._dataset import Dataset
from tuckermix.datasets._options import OneReader, Options
from tuckermix.datasets._plan import Look, Plan, plan, sized

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
    return assemble(path, [Stored.told("tiff", path, options, said)], options)


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


TOTAL_REMEDY = "Pass a smaller size, grey=True, or a larger max_bytes"
"""The remedy for files that would pass the limit together."""


def natural_key(name: str) -> list[tuple[int, int, str]]:
    """Return a key that sorts "s2" before "s10"."""
    parts = re.split(r"(\d+)", name)
    return [
        (1, int(part), part) if part.isdigit() and part.isascii() else (0, 0, part.lower())
        for part in parts
    ]


def files_in(folder: Path, suffixes: Collection[str]) -> list[str]:
    """List the files with one of `suffixes`, in natural order, as paths relative to `folder`.

    Hidden files and folders are left out; links to folders are followed, but never in a circle.
    """
    return sorted(_walk(folder, "", tuple(suffixes), set()), key=natural_key)


def _walk(folder: Path, prefix: str, suffixes: tuple[str, ...], seen: set[str]) -> Iterator[str]:
    real = os.path.realpath(folder)
    if real in seen:
        return
    seen.add(real)
    with os.scandir(folder) as scan:
        items = [item for item in scan if not item.name.startswith(".")]
    for item in items:
        if item.is_dir():
            yield from _walk(folder / item.name, f"{prefix}{item.name}/", suffixes, seen)
        elif item.name.lower().endswith(suffixes):
            yield prefix + item.name


FILES: tuple[tuple[str, frozenset[str], str], ...] = (
    ("images", IMAGE_SUFFIXES, "picture"),
    ("videos", VIDEO_SUFFIXES, "picture"),
    ("scans", NIFTI_SUFFIXES, "nifti"),
    ("arrays", NPY_SUFFIXES, "array"),
)
"""Files that hold one sample each: what they are, how they end, and what reads one of them."""

ENDINGS = f"Known endings are {', '.join(sorted(end for _, ends, _ in FILES for end in ends))}"
"""The remedy for files of other kinds."""


def read_folder(path: Path, options: Options) -> Dataset:
    """Read the images and videos of a folder, or else its scans, or its arrays."""
    images, videos = files_in(path, IMAGE_SUFFIXES), files_in(path, VIDEO_SUFFIXES)
    # Arrays and scans beside images are something about them, such as their labels.
    names = [*images, *videos] or files_in(path, NIFTI_SUFFIXES) or files_in(path, NPY_SUFFIXES)
    if not names:
        raise Refusal("the folder holds no images or videos, no scans and no arrays", ENDINGS)
    inside = ("key", "label_key", "sample_axis", "sample_shape", "chunks", "lazy")
    given = [name for name in inside if getattr(options, name) not in (False, "auto")]
    options.refuse(given, "a folder of files", "Leave the option out")
    return read_files(path, names, options)


def read_files(folder: Path, names: Sequence[str], options: Options) -> Dataset:
    """Read files that hold one sample each: pictures and videos, or scans, or arrays."""
    found: dict[str, tuple[str, str]] = {}
    for name in names:
        for kind, ends, parser in FILES:
            if name.lower().endswith(tuple(ends)):
                found.setdefault(parser, (kind, name))
                break
        else:
            raise Refusal(f"files like {name!r} hold no samples that can be read", ENDINGS)
    if len(found) > 1:
        (one, first), (two, second) = list(found.values())[:2]
        raise Refusal(
            f"it holds {one}, like {first!r}, and {two}, like {second!r}",
            "Put them into folders of their own",
        )
    ((parser, (kind, _)),) = found.items()
    if parser == "picture":
        return _read_pictures(folder, names, options, kind)
    paths = [folder / name for name in names]
    read_one = read_sample if parser == "array" else Ahead(parser, paths, options)
    return stack_files(folder, names, read_one, options, kind)


def _read_pictures(folder: Path, names: Sequence[str], options: Options, kind: str) -> Dataset:
    """Look at pictures and videos, plan how they make one array, and read them."""
    looks: dict[str, Look] = {}
    skipped: dict[str, str] = {}
    for name, look in looks_at(folder, names, options):
        with _skipping(folder, name, options, skipped):
            if isinstance(look, Exception):
                raise look
            looks[name] = look
    chosen = plan(looks, options) if looks else Plan(options)
    skipped |= chosen.left_out
    kept = [name for name in looks if name not in skipped]
    places = [chosen.places.get(name) for name in kept]
    ahead = Ahead("picture", [folder / name for name in kept], chosen.options, places)
    data = stack_files(folder, names, ahead, chosen.options, kind, skipped)
    notes = [*chosen.notes, *data.extra["notes"]]
    return replace(data, extra={**data.extra, "notes": notes, "reading": chosen.reading})


@contextmanager
def _skipping(folder: Path, name: str, options: Options, skipped: dict[str, str]) -> Iterator[None]:
    """Note why a file cannot be read, where such files are to be left out."""
    path = folder / name
    try:
        with reading(path):
            yield
    except ReadError as error:
        if options.on_error != SKIP:
            raise
        skipped[name] = str(error).removeprefix(f"Cannot read {path}: ")


def stack_files(
    folder: Path,
    names: Sequence[str],
    read_one: OneReader,
    options: Options,
    kind: str,
    skipped: Mapping[str, str] | None = None,
) -> Dataset:
    """Read every file and stack them; the first folder of a name is the class.

    Parameters
    ----------
    folder : Path
        Where the files lie.
    names : sequence of str
        Their paths relative to `folder`.
    read_one : callable
        Reads one file, given its path and the options; returns the sample and how it is drawn.
    options : Options
        What the caller asked for.
    kind : str
        What the files are called in messages, in the plural.
    skipped : dict of str to str, default=None
        Names of files that are left out, and why.

    Returns
    -------
    dataset : Dataset
        The samples, their names, and labels where there are two subfolders or more.
    """
    X: np.ndarray | None = None
    drawn: set[str] = set()
    read: list[str] = []
    left_out = dict(skipped or {})
    wanted = [name for name in names if name not in left_out]
    if options.remember is not None:
        read_one = options.remember(read_one)
    for index, name in enumerate(wanted):
        if index % max(1, len(wanted) // 100) == 0:  # once a percent
            done = {"share": index / len(wanted)}
            logger.info("%d of %d %s", index, len(wanted), kind, extra=done)
        with _skipping(folder, name, options, left_out):
            sample, as_what = read_one(folder / name, options)
        if name in left_out:
            continue
        if X is None:
            total = f"{len(wanted)} samples of shape {sample.shape}"
            check_fits(total, len(wanted) * sample.nbytes, options.max_bytes, TOTAL_REMEDY)
            X = np.empty((len(wanted), *sample.shape), dtype=sample.dtype)
        if sample.shape != X.shape[1:]:
            shapes = f"{read[0]!r} has shape {X.shape[1:]} and {name!r} has shape {sample.shape}"
            raise Refusal(
                f"its files differ: {shapes}",
                "Bring them to one shape in the program that made them; of pictures, size does so",
            )
        if not np.can_cast(sample.dtype, X.dtype, "safe"):
            X = X.astype(np.result_type(sample.dtype, X.dtype))
        X[len(read)] = sample
        read.append(name)
        drawn.add(as_what)
    reasons = [(name, left_out[name]) for name in names if name in left_out]
    if X is None:
        first, why = next(iter(left_out.items()))
        problem, _, remedy = why.partition(". ")
        raise Refusal(
            f"none of its {len(names)} {kind} can be read, neither {first!r}: {problem}",
            remedy.rstrip("."),
        )
    labels, class_names, notes = classes_of(read, kind)
    drawn_as = drawn.pop() if len(drawn) == 1 else "auto"
    return Dataset(
        X=X[: len(read)],
        labels=labels,
        names=read,
        class_names=class_names,
        name=folder.resolve().name,
        extra={"skipped": reasons, "notes": notes, "kind": drawn_as},
    )


def classes_of(
    names: Sequence[str], kind: str
) -> tuple[np.ndarray | None, list[str] | None, list[str]]:
    """Take the first folder of each name as its class, where that says something."""
    first = [name.partition("/")[0] if "/" in name else "" for name in names]
    labels, classes = numbered(first)
    if len(classes) < 2:
        return None, None, []
    if "" in classes:
        outside = names[first.index("")]
        note = (
            f"Some {kind} lie in subfolders and some, like {outside!r}, do not: subfolders were "
            "not taken for classes."
        )
        return None, None, [note]
    return labels, classes, []


def numbered(names: Sequence[str]) -> tuple[np.ndarray, list[str]]:
    """Return the number of each name among the different ones, and these in their order."""
    classes = sorted(set(names), key=natural_key)
    number = {name: index for index, name in enumerate(classes)}
    return np.array([number[name] for name in names], dtype=np.int64), classes
