"""Features that several views and the final fit share, each computed once."""

from __future__ import annotations

from typing import Any

from sklearn.pipeline import Pipeline

from tuckermix._array_api import Array, is_dask

__all__ = ["Features"]

SHARED_BYTES = 2**29
"""Features that take more memory than this are computed again for every view."""


class Features:
    """Samples, and the scattering coefficients of them that have been computed.

    A plain view, its logarithm, their sum and the fit of the chosen one look at the same
    coefficients, which take longer than all the rest of a fit.

    Parameters
    ----------
    X : array of shape (n_samples, d_1, ...)
        The samples.
    """

    def __init__(self, X: Array):
        self.X = X
        self._kept: dict[str, Any] = {}

    def fit_transform(self, transformers: Pipeline | None) -> Array:
        """Fit transformers to the samples and return their features.

        Parameters
        ----------
        transformers : Pipeline or None
            Fitted here; None stands for the samples themselves.

        Returns
        -------
        features : array of shape (n_samples, ...)
            What ``transformers.fit_transform`` returns.
        """
        if transformers is None:
            return self.X
        first: Any = transformers.steps[0][1]
        if is_dask(self.X) or len(transformers.steps) > 1 or not hasattr(first, "plain"):
            return transformers.fit_transform(self.X)
        first.fit(self.X)
        if first.shared_bytes(int(self.X.shape[0])) > SHARED_BYTES:
            return first.transform(self.X)
        plain = first.plain()
        if repr(plain) not in self._kept:
            self._kept[repr(plain)] = plain.fit_transform(self.X)
        return first.from_plain(self._kept[repr(plain)])
