"""The scattering transform of images and signals, as a transformer of N-way arrays."""

from __future__ import annotations

import math
from dataclasses import field
from typing import Any, ClassVar

import numpy as np
from sklearn.base import clone

from tuckermix._array_api import Array, divisor, double, get_namespace, is_dask, to_numpy
from tuckermix._estimators import declare
from tuckermix._validation import check_integer, check_switch, is_positive, none_or, one_of
from tuckermix.features._cascade import Cascade
from tuckermix.features._input import ArrayTransformer, as_float, map_rows, over_chunks, space_axes
from tuckermix.features._wavelets import BORDERS, layout_for

ORDERS = (1, 2)


@declare
class Scattering(ArrayTransformer):
    r"""Describe images by averages of the moduli of their wavelet coefficients.

    .. math::

        S_0 = x * \phi, \qquad S_1 = |x * \psi_{j_1,\theta_1}| * \phi, \qquad
        S_2 = ||x * \psi_{j_1,\theta_1}| * \psi_{j_2,\theta_2}| * \phi ,

    with Morlet wavelets of `J` scales and `L` angles and averages over cells of :math:`2^J` pixels.
    Small shifts and deformations move the result little. It is an array of paths by cells, which
    `tuckermix.TuckerClustering` takes as it is. Nothing is learned, except with `log` a scale.

    Parameters
    ----------
    J : int, default=3
        The number of scales; cells have 2**J pixels a side.
    L : int, default=8
        The number of angles in half a turn. Signals have none.
    order : {1, 2}, default=2
        The largest number of wavelets along a path.
    log : bool, default=False
        Whether to return log(S / m + 0.001), with m the median over the fitted samples of the mean
        low-pass coefficient: contrast then counts by its ratio.
    relative : bool, default=False
        Whether to return each path of a sample in units of its largest cell: where a path is strong
        then counts, and not how strong it is. Not together with `log`.
    border : {"mirror", "zero", "periodic"}, default="mirror"
        What lies beyond the border: the image mirrored, nothing, or the image again.
    space : None, int or tuple of int, default=None
        The axes of `X` that are space, one or two. None means axis 1 for an array of two axes
        (signals), and axes 1 and 2 for more (images). All others are channels, each transformed
        alone.
    size : int or None, default=None
        Images whose shorter side is longer are shrunk to that many pixels, in proportion. None
        leaves all as they are.
    n_jobs : int or None, default=None
        How many threads work on blocks of samples in NumPy; -1 for all processors. None takes the
        number of ``joblib.parallel_config``, else ``OMP_NUM_THREADS``, else all processors that the
        process may use. The results are the same for any number; see :doc:`/threads`.

    Attributes
    ----------
    sample_shape_ : tuple of int
        The shape of a sample.
    n_features_in_ : int
        ``X.shape[1]``, as scikit-learn sets it.
    scale_ : float
        The median m that `log` divides by; 1 without `log`.

    See Also
    --------
    Scale : Bring intensities to one range first.

    Notes
    -----
    Images of any size are completed to a multiple of 2**J pixels and framed by a cell on each side,
    which is left out of the result. Integers of up to 16 bits and half floats are taken as float32,
    wider integers as float64. The result of a Dask array is lazy. It has the shape
    (n_samples, n_paths, c_1[, c_2], ...): for each path an array of cells, then the channels. Paths
    go by the first wavelet (scale, then angle), then by the second.

    References
    ----------
    Bruna and Mallat, Invariant Scattering Convolution Networks, IEEE Transactions on Pattern
    Analysis and Machine Intelligence 35(8), 2013.

    Examples
    --------
    >>> import numpy as np
    >>> from tuckermix.features import Scattering
    >>> images = np.random.default_rng(0).random((5, 28, 28))
    >>> Scattering(J=3).fit_transform(images).shape
    (5, 217, 4, 4)
    """

    J: int = field(default=3, kw_only=False)
    L: int = field(default=8, kw_only=False)
    order: int = field(default=2, kw_only=False)
    log: bool = field(default=False, kw_only=False)
    relative: bool = False
    border: str = "mirror"
    space: Any = None
    size: int | None = None
    n_jobs: int | None = None

    _rules: ClassVar = {
        "size": none_or(check_integer),
        **dict.fromkeys(("J", "L", "order"), check_integer),
        **dict.fromkeys(("log", "relative"), check_switch),
        "border": one_of(BORDERS),
    }
    _fields: ClassVar = {"scale_": is_positive}

    def _learn(self, X: Array) -> None:
        self._space(X.ndim)
        self.scale_ = 1.0
        if self.log:
            means = over_chunks(X, self._mean_intensity)
            means = to_numpy(means.compute() if is_dask(means) else means)
            # The mean where half of the samples are blank.
            self.scale_ = float(np.median(means)) or float(np.mean(means)) or 1.0

    def _transformed(self, X: Array) -> Array:
        """Return the coefficients of samples in memory, (n, n_paths, c_1[, c_2], channels ...)."""
        space = self._space(X.ndim)
        cascade = self._cascade(X, space)

        def transform(block: Array) -> Array:
            xp = get_namespace(block)
            x, channels = _columns(block, space)
            # The transform follows the size of the numbers; at size one no square leaves their
            # range.
            peak = divisor(xp.max(xp.abs(x), axis=tuple(range(x.ndim - 1))))
            S = cascade(x / peak)
            S = self.from_plain(S * xp.reshape(peak, (-1, *(1,) * (S.ndim - 1))))
            if not channels:
                return S
            S = xp.reshape(S, (block.shape[0], *channels, *S.shape[1:]))
            n = len(channels)
            return xp.permute_dims(S, (0, *range(n + 1, S.ndim), *range(1, n + 1)))

        n_channels = math.prod(X.shape[1:]) // math.prod(X.shape[axis] for axis in space)
        return map_rows(X, transform, cascade.block_size // n_channels)

    def _mean_intensity(self, X: Array) -> Array:
        """Return the mean absolute low-pass coefficient of each sample."""
        space = self._space(X.ndim)
        cascade = self._cascade(X, space)

        def means(block: Array) -> Array:
            xp = get_namespace(block)
            x, _ = _columns(block, space)
            averages = xp.abs(double(cascade.averages(x)))  # their sum may overflow float32
            columns = xp.mean(averages, axis=tuple(range(averages.ndim - 1)))
            return xp.mean(xp.reshape(columns, (block.shape[0], -1)), axis=1)

        return map_rows(X, means)

    def _cascade(self, X: Array, space: tuple[int, ...]) -> Cascade:
        sizes = tuple(int(X.shape[axis]) for axis in space)
        setting = (int(self.J), int(self.L), int(self.order), self.border, self.size)
        return Cascade(layout_for(sizes, *setting), as_float(X[:1, ...]))

    def logarithm(self, coefficients: Array) -> Array:
        """Return what `transform` returns with `log`, from what it returns without.

        Parameters
        ----------
        coefficients : array of any shape
            Coefficients of samples, in memory.

        Returns
        -------
        logarithms : array of the same shape
            ``log(|S| / m + 0.001)`` with m the `scale_` of this transformer.
        """
        xp = get_namespace(coefficients)
        # In units of the mean intensity: what is far smaller is noise of the pixels.
        return xp.log(xp.abs(coefficients) / self.scale_ + 1e-3)

    def plain(self) -> Scattering:
        """Return the transformer, not fitted, from whose result `from_plain` makes this one's."""
        return clone(self).set_params(log=False, relative=False)

    def shared_bytes(self, n_samples: int) -> int:
        """Return about how much memory the coefficients of samples take: 16 bytes per entry."""
        shape = self.sample_shape_
        space = [shape[axis - 1] for axis in self._space(len(shape) + 1)]
        scale = 1.0 if self.size is None else min(1.0, self.size / min(space))
        return math.ceil(16 * n_samples * math.prod(shape) * scale ** len(space))

    def from_plain(self, coefficients: Array) -> Array:
        """Return what `transform` returns, from what it returns without `log` and `relative`.

        Parameters
        ----------
        coefficients : array of shape (n_samples, n_paths, c_1[, c_2], ...)
            Coefficients of samples, in memory.

        Returns
        -------
        coefficients : array of the same shape
            The same array where neither is asked for.
        """
        if self.relative:
            return _relative(coefficients, len(self._space(len(self.sample_shape_) + 1)))
        return self.logarithm(coefficients) if self.log else coefficients

    def _check_params(self) -> None:
        super()._check_params()
        if self.order not in ORDERS:
            raise ValueError(
                f"The 'order' parameter of {type(self).__name__} must be 1 or 2. "
                f"Got {self.order!r} instead."
            )
        if self.log and self.relative:
            raise ValueError(
                f"{type(self).__name__} takes logarithms or relative coefficients: not both."
            )

    def _check_state(self) -> None:
        super()._check_state()
        self._space(len(self.sample_shape_) + 1)

    def _space(self, ndim: int) -> tuple[int, ...]:
        """Return the axes of space, counted from the front, or raise if they are not valid."""
        if self.space is None:
            return (1,) if ndim == 2 else (1, 2)
        return space_axes(self.space, ndim, (1, 2), type(self).__name__)


def _columns(X: Array, space: tuple[int, ...]) -> tuple[Array, tuple[int, ...]]:
    """Bring the axes of space to the front and join all others; return the channels' sizes too."""
    xp = get_namespace(X)
    others = [axis for axis in range(1, X.ndim) if axis not in space]
    moved = xp.permute_dims(X, (*space, 0, *others))
    sizes = tuple(int(X.shape[axis]) for axis in space)
    return xp.reshape(moved, (*sizes, -1)), tuple(int(X.shape[axis]) for axis in others)


def _relative(S: Array, n_space: int) -> Array:
    """Divide each path of each channel by its largest cell; the cells are the axes from 2 on."""
    xp = get_namespace(S)
    return S / divisor(xp.max(xp.abs(S), axis=tuple(range(2, 2 + n_space)), keepdims=True))
