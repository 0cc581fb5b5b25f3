"""Pictures of objects that turn, made from the volumes of a tuning part.

Nothing may be chosen by COIL-20, which has no tuning part. What is special about it, objects seen
from all sides, some of them alike, is made here from voxel models: each model is a class, turned
about an axis step by step, with a surface of its own and light from the front.
"""

from __future__ import annotations

import numpy as np
from scipy import ndimage

from benchmarks.view_choices import tuning_part

FIRST = 9000
"""The seed of the first draw, apart from those of other benchmarks."""

SIDE = 32
"""Pixels of a side."""

SOLID = 0.4
"""What a voxel of a turned model must have to be seen."""

GRAIN, MARKS = 2.0, 0.15
"""How wide the marks on a surface are, in voxels, and how strong."""

SMOOTH, HAZE = 0.7, 0.3
"""How far depths are smoothed before their slope is taken, and how much darker the far end is."""


def turned_objects(n_objects: int, n_sides: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Draw models and picture each of them from all sides.

    Parameters
    ----------
    n_objects : int
        The number of models, which are the classes.
    n_sides : int
        Pictures of each, at even steps of a full turn.
    seed : int
        The number of the draw.

    Returns
    -------
    X : ndarray of shape (n_objects * n_sides, 32, 32)
        The pictures, from 0 to 1, float32.
    y : ndarray of shape (n_objects * n_sides,)
        The model that each shows.
    """
    volumes, rng = tuning_part("modelnet10").X, np.random.default_rng(FIRST + seed)
    pictures = []
    for place in rng.choice(len(volumes), n_objects, replace=False):
        volume = np.asarray(volumes[place], dtype=np.float32)
        brightness = rng.uniform(0.5, 1.0)
        marks = ndimage.gaussian_filter(rng.standard_normal(volume.shape), GRAIN)
        marks /= marks.std()
        for side in range(n_sides):
            angle = 360.0 * side / n_sides
            solid, surface = (
                ndimage.rotate(each, angle, axes=(0, 1), reshape=False, order=1)
                for each in (volume, marks)
            )
            pictures.append(brightness * picture(solid > SOLID, surface))
    X = np.array(pictures, dtype=np.float32)
    return X / X.max(), np.repeat(np.arange(n_objects), n_sides)


def picture(solid: np.ndarray, marks: np.ndarray) -> np.ndarray:
    """Picture a volume from the front: light falls along the first axis."""
    seen = solid.any(axis=0)
    first = np.argmax(solid, axis=0)
    far = first[seen].max() if seen.any() else 0
    depth = np.where(seen, first, far).astype(np.float64)
    slopes = np.gradient(ndimage.gaussian_filter(depth, SMOOTH))
    shade = 1.0 / np.sqrt(1.0 + slopes[0] ** 2 + slopes[1] ** 2)
    rows, columns = np.indices(first.shape)
    surface = 1.0 + MARKS * marks[first, rows, columns]
    image = np.where(seen, shade * surface * (1.0 - HAZE * depth / len(solid)), 0.0)
    return np.clip(ndimage.zoom(image.T[::-1], SIDE / len(image), order=1), 0.0, None)
