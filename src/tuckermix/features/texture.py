"""How strong features are and how much they change, wherever they are."""

from __future__ import annotations

from typing import Any

from sklearn.base import BaseEstimator, TransformerMixin

from tuckermix._array_api import Array, get_namespace
from tuckermix._threads import one_blas_thread
from tuckermix._validation import EVERY_TRANSFORMER, check_fields
from tuckermix.features._input import check_samples, map_rows, over_chunks

MAP_AXES = 4
"""Axes of maps of pictures: samples, channels, height and width."""


class Texture(TransformerMixin, BaseEstimator):
    r"""Describe feature maps by the mean of each channel and by how much it changes.

    .. math::

        \mu_c = \operatorname{mean}_{u, t} x_c(u, t), \qquad
        \delta_c = \operatorname{mean}_u \operatorname{std}_t x_c(u, t) ,

    for places u and frames t; the change of pictures without frames is that over places. For
    water, smoke, grass and other textures, which look alike everywhere. It does not say where
    something is, so it is wrong for things. It stands behind `Network` or `Scattering`.

    Parameters
    ----------
    n_jobs : int or None, default=None
        How many threads work on blocks of samples, see `Scattering`.

    Attributes
    ----------
    sample_shape_ : tuple of int
        The shape of a sample.
    n_features_in_ : int
        ``X.shape[1]``, as scikit-learn sets it.

    See Also
    --------
    Network : Maps of every frame of a video.
    Scattering : Strokes of every frame, not trained.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.pipeline import make_pipeline
    >>> from tuckermix.features import Scattering, Texture
    >>> videos = np.random.default_rng(0).random((5, 24, 24, 16))
    >>> make_pipeline(Scattering(L=4, log=True), Texture()).fit_transform(videos).shape
    (5, 61, 2)
    """

    def __init__(self, *, n_jobs: int | None = None):
        self.n_jobs = n_jobs

    def fit(self, X: Any, y: Any = None) -> Texture:
        """Note the shape of a sample.

        Parameters
        ----------
        X : array of shape (n_samples, n_channels, height, width[, ..., n_frames])
            Feature maps.
        y : Ignored
            Present for scikit-learn's sake.

        Returns
        -------
        self : Texture
            The fitted transformer.
        """
        X = check_samples(self, X, reset=True)
        self._check_axes(X.ndim)
        return self

    @one_blas_thread
    def transform(self, X: Any) -> Array:
        """Return the mean and the change of each channel.

        Parameters
        ----------
        X : array of shape (n_samples, n_channels, height, width[, ..., n_frames])
            Feature maps of the shape on which the transformer was fitted.

        Returns
        -------
        texture : array of shape (n_samples, n_channels, 2)
            The mean, then the change.
        """
        return over_chunks(check_samples(self, X, reset=False), _mean_and_change)

    def _check_axes(self, ndim: int) -> None:
        if ndim < MAP_AXES:
            raise ValueError(
                f"{type(self).__name__} takes feature maps, (n_samples, n_channels, height, "
                f"width[, n_frames]). Got an array of {ndim} axes: put Network or Scattering first."
            )

    def _check_state(self) -> None:
        """Raise if what a file gave cannot be what `fit` sets."""
        check_fields(self, EVERY_TRANSFORMER)
        self._check_axes(len(self.sample_shape_) + 1)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.two_d_array = False
        tags.input_tags.three_d_array = True
        tags.array_api_support = True
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags


def _mean_and_change(X: Array) -> Array:
    """Return mean and change of each channel of maps in memory."""

    def rows(block: Array) -> Array:
        xp = get_namespace(block)
        if block.ndim == MAP_AXES:  # no frames: the change is that over places
            block = xp.reshape(block, (*block.shape[:2], 1, -1))
        change = xp.std(block, axis=-1)
        places = tuple(range(2, block.ndim))
        return xp.stack([xp.mean(block, axis=places), xp.mean(change, axis=places[:-1])], axis=2)

    return map_rows(X, rows)
