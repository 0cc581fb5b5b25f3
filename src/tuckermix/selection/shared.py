"""Features that several views and the final fit share, each computed once."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.pipeline import Pipeline

from tuckermix._array_api import Array, blocks, get_namespace, is_array, is_dask
from tuckermix.features import Scattering, Texture
from tuckermix.sources import as_blocks

EMBEDDINGS = "embeddings"
"""The name of the view of embeddings."""

PART = 64
"""Videos whose features are in memory at the same time."""

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
    embeddings : array of shape (n_samples, e_1, ...) or None, default=None
        Features of the samples that were computed elsewhere.
    """

    def __init__(self, X: Array, embeddings: Any = None):
        self.X = X
        self.embeddings = embeddings
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
        if isinstance(first, Embedded):
            return self.embeddings
        if not is_dask(self.X) and isinstance(transformers[-1], Texture):
            return self._texture(transformers)
        if is_dask(self.X) or len(transformers.steps) > 1 or not hasattr(first, "plain"):
            return in_memory(transformers.fit_transform(self.X))
        first.fit(self.X)
        if first.shared_bytes(int(self.X.shape[0])) > SHARED_BYTES:
            return first.transform(self.X)
        plain = first.plain()
        if repr(plain) not in self._kept:
            self._kept[repr(plain)] = plain.fit_transform(self.X)
        return first.from_plain(self._kept[repr(plain)])

    def transform(self, transformers: Pipeline | None) -> Array:
        """Return the features that fitted transformers give, without computing known ones again."""
        if transformers is None:
            return self.X
        first: Any = transformers.steps[0][1]
        if isinstance(first, Embedded):
            return self.embeddings
        if len(transformers.steps) == 1 and hasattr(first, "plain"):
            known = self._kept.get(repr(first.plain()))
            if known is not None:
                return first.from_plain(known)
        return in_memory(transformers.transform(self.X))

    def _texture(self, transformers: Pipeline) -> Array:
        """Fit features and their `Texture`, and return it: the features of all are large."""
        *before, (_, texture) = transformers.steps
        features: Any = Pipeline(before)
        features.fit(self.X)
        texture.fit(features.transform(self.X[:1, ...]))
        key = repr(transformers)
        if key not in self._kept or not isinstance(before[0][1], Scattering):
            self._kept[key] = get_namespace(self.X).concat(
                [
                    texture.transform(features.transform(self.X[part, ...]))
                    for part in blocks(int(self.X.shape[0]), 1, PART)
                ]
            )
        return self._kept[key]

    def of_part(self, X: Array, rows: np.ndarray) -> Features:
        """Return features of some of the samples, `X`, which are these rows of all."""
        E = self.embeddings
        return Features(X, None if E is None else as_blocks(E).take(rows))

    def check_embeddings(self, owner: str) -> None:
        """Raise where embeddings are none of these samples."""
        if self.embeddings is None:
            return
        if not is_array(self.embeddings):
            self.embeddings = np.asarray(self.embeddings)
        shape, n_samples = tuple(self.embeddings.shape), int(self.X.shape[0])
        if len(shape) < 2 or shape[0] != n_samples:
            raise ValueError(
                f"The embeddings of {owner} must be an array with a row for each of the "
                f"{n_samples} samples. Got one of shape {shape}."
            )


class Embedded(TransformerMixin, BaseEstimator):
    """Stand for embeddings, which `Features` has, in the pipeline of a candidate."""

    def fit(self, X: Any, y: Any = None) -> Embedded:
        """Learn nothing."""
        return self

    def transform(self, X: Any) -> Any:
        """Return embeddings as they are."""
        return X


def in_memory(features: Array) -> Array:
    """Keep features of samples on disk, where they fit: every pass would compute them again."""
    if not is_dask(features):
        return features
    from tuckermix.sources.dask import keep

    return keep(features)
