"""Pictures of simple solid objects, rendered here: data to look at that need no download."""

from __future__ import annotations

import colorsys
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from tuckermix._validation import check_integer, check_random_state
from tuckermix.datasets._dataset import Dataset

Points = np.ndarray
Distance = Callable[[Points], np.ndarray]


def _box(p: Points, *half: float) -> np.ndarray:
    q = np.abs(p) - np.array(half, dtype=p.dtype)
    outside = np.linalg.norm(np.maximum(q, 0.0), axis=-1)
    return np.asarray(outside + np.minimum(q.max(axis=-1), 0.0))


def _ring(p: Points, radius: float, thickness: float, axis: int) -> np.ndarray:
    along = [p[..., i] for i in range(3) if i != axis]
    return np.asarray(np.hypot(np.hypot(*along) - radius, p[..., axis]) - thickness)


def _tube(p: Points, radius: float, half_height: float) -> np.ndarray:
    side = np.hypot(p[..., 0], p[..., 2]) - radius
    end = np.abs(p[..., 1]) - half_height
    outside = np.hypot(np.maximum(side, 0.0), np.maximum(end, 0.0))
    return np.asarray(np.minimum(np.maximum(side, end), 0.0) + outside)


def _cone(p: Points) -> np.ndarray:
    slope = math.hypot(0.75, 1.5)
    side = (np.hypot(p[..., 0], p[..., 2]) * 1.5 + (p[..., 1] - 0.75) * 0.75) / slope
    return np.asarray(np.maximum(side, -p[..., 1] - 0.75))


def _shifted(p: Points, *by: float) -> Points:
    return np.asarray(p - np.array(by, dtype=p.dtype))


def _dumbbell(p: Points) -> np.ndarray:
    ends = [np.linalg.norm(_shifted(p, 0.0, y, 0.0), axis=-1) - 0.38 for y in (0.55, -0.55)]
    return np.minimum(np.minimum(*ends), _tube(p, 0.13, 0.5))


def _star(p: Points) -> np.ndarray:
    beams = [_box(p, *np.roll((0.85, 0.17, 0.17), turn)) for turn in range(3)]
    return np.asarray(np.minimum.reduce(beams) - 0.04)


def _chain(p: Points) -> np.ndarray:
    links = [
        _ring(_shifted(p, x, 0.0, 0.0), 0.42, 0.13, axis) for x, axis in ((0.38, 2), (-0.38, 1))
    ]
    return np.minimum(*links)


def _table(p: Points) -> np.ndarray:
    corner = np.stack(
        [np.abs(p[..., 0]) - 0.58, p[..., 1] + 0.2, np.abs(p[..., 2]) - 0.58], axis=-1
    )
    return np.minimum(
        _box(_shifted(p, 0.0, 0.35, 0.0), 0.75, 0.08, 0.75), _box(corner, 0.09, 0.5, 0.09)
    )


SHAPES: dict[str, Distance] = {
    "ball": lambda p: np.linalg.norm(p, axis=-1) - 0.8,
    "cube": lambda p: _box(p, 0.56, 0.56, 0.56) - 0.04,
    "ring": lambda p: _ring(p, 0.68, 0.24, 1),
    "tin": lambda p: _tube(p, 0.52, 0.62) - 0.04,
    "cone": _cone,
    "diamond": lambda p: (np.abs(p).sum(axis=-1) - 1.0) / math.sqrt(3.0),
    "dumbbell": _dumbbell,
    "star": _star,
    "chain": _chain,
    "table": _table,
}
"""The distance of points to the surface of each object, negative inside."""


def make_objects(
    n_per_class: int = 20, size: int = 64, *, random_state: Any = None, return_X_y: bool = False
) -> Any:
    """Render colour pictures of ten solid objects.

    Each picture shows one object, slightly turned and tilted at random, in a random colour, under a
    light from a random side, before a background of its own. Colour and light say nothing about the
    class; the form does.

    Parameters
    ----------
    n_per_class : int, default=20
        The number of pictures of each object.
    size : int, default=64
        Height and width of a picture.
    random_state : None, int or RandomState, default=None
        Set an int for pictures that repeat.
    return_X_y : bool, default=False
        Whether to return ``(X, labels)`` instead of a `Dataset`.

    Returns
    -------
    dataset : Dataset
        `X` of shape (10 * n_per_class, size, size, 3), uint8, in a random order, and `labels`.

    Examples
    --------
    >>> from tuckermix.datasets import make_objects
    >>> make_objects(n_per_class=2, size=16, random_state=0)
    Dataset(rendered objects: X (20, 16, 16, 3) uint8, 10 classes)
    """
    check_integer(n_per_class, "n_per_class", "make_objects", minimum=1)
    check_integer(size, "size", "make_objects", minimum=8)
    rng = check_random_state(random_state)
    labels = rng.permutation(np.repeat(np.arange(len(SHAPES)), n_per_class))
    distances = list(SHAPES.values())
    X = np.stack([_picture(distances[label], size, rng) for label in labels])
    if return_X_y:
        return X, labels
    return Dataset(
        X=X,
        labels=labels,
        class_names=list(SHAPES),
        name="rendered objects",
        description="Ten solid objects in random colours and lights, rendered by tuckermix.",
    )


def _picture(distance: Distance, size: int, rng: Any) -> np.ndarray:
    """Return a picture of one object: turn, light and colours are drawn here."""
    turn, tilt = 0.5 + rng.uniform(-0.6, 0.6), -0.45 + rng.uniform(-0.15, 0.15)
    around, height = rng.uniform(0.0, math.pi), rng.uniform(0.4, 1.1)
    light = [
        math.cos(height) * math.cos(around),
        math.sin(height),
        math.cos(height) * math.sin(around),
    ]
    light[2] += 0.3  # never only from behind
    shade, gloss, cover = _render(distance, turn, tilt, np.array(light), size)
    colour = colorsys.hsv_to_rgb(rng.uniform(), rng.uniform(0.35, 0.75), rng.uniform(0.75, 1.0))
    ground = colorsys.hsv_to_rgb(rng.uniform(), rng.uniform(0.0, 0.15), rng.uniform(0.8, 0.95))
    fall = np.linspace(1.05, 0.85, size)[:, None, None]  # darker towards the bottom
    values = (1.0 - cover) * np.array(ground) * fall + shade * np.array(colour) + gloss
    return np.clip(255.0 * values, 0, 255).astype(np.uint8)


def _render(
    distance: Distance, turn: float, tilt: float, light: np.ndarray, size: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Follow parallel rays to the surface; return shade, gloss and cover of each pixel.

    Each pixel is the mean of two by two rays. A ray advances by the distance to the object until
    it is there.
    """
    n_rays, span = 2 * size, 1.25
    steps = ((np.arange(n_rays) + 0.5) / n_rays * 2.0 - 1.0) * span
    x, y = np.meshgrid(steps, -steps)
    a, b, c, d = math.cos(turn), math.sin(turn), math.cos(tilt), math.sin(tilt)
    rotation = np.array([[a, b * d, b * c], [0.0, c, -d], [-b, a * d, a * c]], dtype=np.float32)
    start = np.stack([x, y, np.full_like(x, 2.0)], axis=-1).reshape(-1, 3).astype(np.float32)
    start = start @ rotation.T
    forward = -rotation[:, 2]
    far = np.zeros(len(start), dtype=np.float32)
    live, hit = np.arange(len(start)), np.zeros(len(start), dtype=bool)
    for _ in range(28):
        step = distance(start[live] + far[live, None] * forward)
        far[live] += step
        hit[live[step < 4e-3]] = True
        live = live[(step >= 4e-3) & (far[live] < 4.0)]
    points = start[hit] + far[hit, None] * forward
    around = np.float32(2e-3) * np.eye(3, dtype=np.float32)
    normal = np.stack([distance(points + e) - distance(points - e) for e in around], axis=-1)
    normal /= np.maximum(np.linalg.norm(normal, axis=-1, keepdims=True), 1e-9)
    towards = rotation @ (light / np.linalg.norm(light)).astype(np.float32)
    middle = towards - forward
    middle /= np.linalg.norm(middle)
    found = np.zeros((3, len(start)), dtype=np.float32)
    found[0, hit] = 0.25 + 0.75 * np.clip(normal @ towards, 0.0, 1.0)
    found[1, hit] = 0.35 * np.clip(normal @ middle, 0.0, 1.0) ** 30
    found[2, hit] = 1.0
    shade, gloss, cover = found.reshape(3, size, 2, size, 2).mean(axis=(2, 4))[..., None]
    return shade, gloss, cover
