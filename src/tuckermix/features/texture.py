"""How strong and how fast the strokes of a moving texture are, as a transformer of N-way arrays."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, TransformerMixin, clone

from tuckermix._array_api import Array, get_namespace, is_dask, to_numpy
from tuckermix._fields import EVERY_TRANSFORMER, check_fields, is_positive
from tuckermix._resources import one_blas_thread
from tuckermix._validation import check_integer
from tuckermix.features._input import check_samples, map_rows, over_chunks
from tuckermix.features.scattering import Scattering, typical

__all__ = ["Texture"]

IMAGE_AXES = 3
"""Axes of an array of images: samples, height and width."""


@dataclass(frozen=True)
class TextureSettings:
    """Constants of the transform.

    Attributes
    ----------
    log_floor : float
        Added before the logarithm, in units of the mean intensity. Coefficients of two transforms
        in a row are small: with 1e-4 those of time hardly count, with 1e-5 noise of pixels does.
    block_bytes : int
        Coefficients of frames that are held at a time.
    """

    log_floor: float = 3e-5
    block_bytes: int = 64 * 2**20


SETTINGS = TextureSettings()


class Texture(TransformerMixin, BaseEstimator):
    r"""Describe videos of textures by how strong strokes are and how fast they come and go.

    A scattering transform of every frame gives paths p by cells; a second one, along time, is taken
    of every path in every cell. Averages over cells and time are left,

    .. math:: T(p, q) = \log\bigl( \operatorname{mean}_{u, t} S_q[ S_p[x](u, \cdot) ](t) / m
        + 3 \cdot 10^{-5} \bigr) ,

    for each sample an array of strokes p by tempos q, with m the median over the fitted samples of
    their mean intensity. It does not say where in the picture or when something is, which is right
    for water, smoke and grass, and wrong for things. Slices of volumes are like frames.

    Parameters
    ----------
    J : int, default=3
        The number of scales in space.
    L : int, default=4
        The number of angles in half a turn.
    J_time : int, default=3
        The number of scales in time.
    space : None or tuple of two int, default=None
        The axes of `X` that are height and width; None means axes 1 and 2. The last of the others
        is time, and the rest are channels, which are averaged too.
    n_jobs : int or None, default=None
        How many threads work on blocks of samples, see `Scattering`.

    Attributes
    ----------
    sample_shape_ : tuple of int
        The shape of a sample.
    n_features_in_ : int
        ``X.shape[1]``, as scikit-learn sets it.
    scale_ : float
        The median m.

    See Also
    --------
    Scattering : The transform of each frame, which keeps where things are.

    Examples
    --------
    >>> import numpy as np
    >>> from tuckermix.features import Texture
    >>> videos = np.random.default_rng(0).random((4, 24, 24, 16))
    >>> Texture().fit_transform(videos).shape
    (4, 61, 7)
    """

    def __init__(
        self,
        J: int = 3,
        L: int = 4,
        J_time: int = 3,
        *,
        space: Any = None,
        n_jobs: int | None = None,
    ):
        self.J = J
        self.L = L
        self.J_time = J_time
        self.space = space
        self.n_jobs = n_jobs

    def fit(self, X: Any, y: Any = None) -> Texture:
        """Note the shape of a sample and the scale of intensities.

        Parameters
        ----------
        X : array of shape (n_samples, height, width, n_frames)
            The videos.
        y : Ignored
            Present for scikit-learn's sake.

        Returns
        -------
        self : Texture
            The fitted transformer.
        """
        self._check_params()
        X = check_samples(self, X, reset=True)
        self._axes(X.ndim)
        means = over_chunks(X, _mean_intensities)
        self.scale_ = typical(to_numpy(means.compute() if is_dask(means) else means))
        return self

    @one_blas_thread
    def transform(self, X: Any) -> Array:
        """Return the statistics of textures.

        Parameters
        ----------
        X : array of shape (n_samples, height, width, n_frames)
            Videos of the shape on which the transformer was fitted.

        Returns
        -------
        statistics : array of shape (n_samples, n_paths, n_time_paths)
            One row for each path in space.
        """
        X = check_samples(self, X, reset=False)
        return over_chunks(X, partial(_statistics, self))

    def _axes(self, ndim: int) -> tuple[tuple[int, int], int]:
        """Return the axes of space and of time."""
        name = type(self).__name__
        if ndim <= IMAGE_AXES:
            raise ValueError(
                f"{name} takes videos, (n_samples, height, width, n_frames). Got {ndim} axes: "
                "use Scattering for images."
            )
        axes = (1, 2) if self.space is None else self.space
        if not isinstance(axes, tuple | list) or not all(type(axis) is int for axis in axes):
            axes = ()
        places = tuple(axis % ndim if -ndim <= axis < ndim else 0 for axis in axes)
        if len(places) != 2 or 0 in places or places[0] == places[1]:
            raise ValueError(
                f"The 'space' parameter of {name} must be None or two different axes of X from 1 "
                f"to {ndim - 1}. Got {self.space!r} instead."
            )
        others = [axis for axis in range(1, ndim) if axis not in places]
        return (places[0], places[1]), others[-1]

    def _check_params(self) -> None:
        for name in ("J", "L", "J_time"):
            check_integer(getattr(self, name), name, type(self).__name__)

    def _check_state(self) -> None:
        """Raise if what a file gave cannot be what `fit` sets."""
        self._check_params()
        check_fields(self, {**EVERY_TRANSFORMER, "scale_": is_positive})
        self._axes(len(self.sample_shape_) + 1)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.two_d_array = False
        tags.input_tags.three_d_array = True
        tags.array_api_support = True
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags


def _mean_intensities(X: Array) -> Array:
    """Return the mean absolute value of each sample."""

    def means(block: Array) -> Array:
        xp = get_namespace(block)
        return xp.mean(xp.abs(block), axis=tuple(range(1, block.ndim)))

    return map_rows(X, means)


def _statistics(texture: Texture, X: Array) -> Array:
    """Return the statistics of samples in memory."""
    space, time = texture._axes(X.ndim)
    of_frames, of_time = Scattering(texture.J, texture.L), Scattering(texture.J_time)
    others = [axis for axis in range(1, X.ndim) if axis not in (*space, time)]

    def rows(block: Array) -> Array:
        xp = get_namespace(block)
        block = xp.permute_dims(block, (0, *space, *others, time))
        block = xp.reshape(block, (*block.shape[:3], -1))
        frames = clone(of_frames).fit_transform(block)
        n, n_paths = frames.shape[:2]
        series = xp.reshape(frames, (-1, int(X.shape[time])))
        tempos = xp.mean(clone(of_time).fit_transform(series), axis=2)
        tempos = xp.reshape(tempos, (n, n_paths, -1, tempos.shape[-1]))
        return xp.log(xp.abs(xp.mean(tempos, axis=2)) / texture.scale_ + SETTINGS.log_floor)

    n_values = math.prod(int(size) for size in X.shape[1:])
    n_bytes = n_values * np.dtype(np.float64).itemsize * texture.L * texture.J
    return map_rows(X, rows, max(1, SETTINGS.block_bytes // n_bytes))
