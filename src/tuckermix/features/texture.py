"""How strong features are and how much they change, wherever they are."""

from __future__ import annotations

from tuckermix._array_api import Array, get_namespace
from tuckermix._estimators import declare
from tuckermix.features._input import ArrayTransformer, map_rows

MAP_AXES = 4
"""Axes of maps of pictures: samples, channels, height and width."""


@declare
class Texture(ArrayTransformer):
    r"""Describe feature maps by the mean of each channel and by how much it changes.

    .. math::

        \mu_c = \operatorname{mean}_{u, t} x_c(u, t), \qquad
        \delta_c = \operatorname{mean}_u \operatorname{std}_t x_c(u, t) ,

    for places u and frames t; the change of pictures without frames is that over places. For
    water, smoke, grass and other textures, which look alike everywhere. It does not say where
    something is, so it is wrong for things. It stands behind `Network` or `Scattering`. Maps of
    shape (n_samples, n_channels, height, width[, ..., n_frames]) become (n_samples, n_channels, 2),
    the mean, then the change.

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

    n_jobs: int | None = None

    _takes_rows = False

    def _learn(self, X: Array) -> None:
        self._check_axes(X.ndim)

    def _transformed(self, X: Array) -> Array:
        return map_rows(X, _mean_and_change)

    def _check_axes(self, ndim: int) -> None:
        if ndim < MAP_AXES:
            raise ValueError(
                f"{type(self).__name__} takes feature maps, (n_samples, n_channels, height, "
                f"width[, n_frames]). Got an array of {ndim} axes: put Network or Scattering first."
            )

    def _check_state(self) -> None:
        super()._check_state()
        self._check_axes(len(self.sample_shape_) + 1)


def _mean_and_change(X: Array) -> Array:
    """Return mean and change of each channel of maps."""
    xp = get_namespace(X)
    if X.ndim == MAP_AXES:  # no frames: the change is that over places
        X = xp.reshape(X, (*X.shape[:2], 1, -1))
    change = xp.std(X, axis=-1)
    places = tuple(range(2, X.ndim))
    return xp.stack([xp.mean(X, axis=places), xp.mean(change, axis=places[:-1])], axis=2)
