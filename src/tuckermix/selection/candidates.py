"""The candidates that samples of a shape have: views of them, each with a model."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from sklearn.pipeline import make_pipeline

from tuckermix._array_api import Array, double, get_namespace
from tuckermix._estimators import Settings
from tuckermix.clustering import TuckerClustering
from tuckermix.features import registry
from tuckermix.features.registry import BUILT_IN, NORM_ONE, PIXELS, SCATTERING, TEXTURE, View
from tuckermix.labels import GraphLabels
from tuckermix.numerics.tensor import squared_norm
from tuckermix.selection.multiview import MultiViewClustering
from tuckermix.selection.views import spectrum_of

AUTO, NETWORK, ALL = "auto", "network", "all"
FEATURES = (AUTO, PIXELS.name, SCATTERING.name, NETWORK, ALL)
"""Which views are compared."""

VIDEO_AXES = 3
"""Height, width and frames; colour is a fourth."""


@dataclass(frozen=True)
class CandidateSettings(Settings):
    """Which views samples have, and how they are weighted.

    Attributes
    ----------
    smallest_image : int
        Images with a shorter side have no room for wavelets of three scales.
    most_channels : int
        A third axis of at most this size is colour; a longer one is that of a volume, or time.
    soft : tuple of two float
        Edge and power of a flatter ridge, in which weak directions count more.
    sharp : tuple of two float
        Those of few directions, for tables and small samples that are mostly noise. On others such
        a view is stable for the wrong reason: it sees the light rather than the face.
    near_edge, near_power, near_neighbors, near_ranks : float, float, int, float
        Views of many directions and few neighbours. At norm 1: an image that is nearly black has
        little but its direction, and few others of its person are like it. Of strokes: an object
        seen from all sides is a chain of images, each of them near to the next.
    narrow : int
        A table is narrow where as many directions hold `narrow_share` of its energy, as spectra do
        that are mixtures of a few. What tells mixtures apart is in weaker directions too.
    narrow_share : float
        The share of the energy that makes a table narrow.
    narrow_ranks, narrow_edge : float and float
        The share of the energy that the second view of a narrow table keeps, and its edge.
    noisy : float
        Samples are mostly noise where the weaker half of their directions has this share of the
        energy. White noise spreads its energy evenly: planted clusters with noise of one standard
        deviation have 0.17 there, digits of 8 × 8 pixels 0.07.
    video_side, video_frames : int
        Frames that a network sees of a video or volume: 50 of them at 128 pixels take a fifth of a
        second and tell no more.
    waves_side : int
        The shorter side of images whose wavelets are compared. The time grows with its square.
    colour_side, grey_side : int
        The shorter side of images that a network sees. Photographs are understood better at 176
        pixels than at 128, grey drawings and faces of 32 pixels a side are not.
    """

    smallest_image: int = 16
    most_channels: int = 4
    soft: tuple[float, float] = (3.0, 0.5)
    sharp: tuple[float, float] = (1.0, 2.0)
    near_edge: float = 6.0
    near_power: float = 0.5
    near_neighbors: int = 8
    near_ranks: float = 0.99
    narrow: int = 10
    narrow_share: float = 0.98
    narrow_ranks: float = 0.9999
    narrow_edge: float = 1.0
    noisy: float = 0.1
    video_side: int = 64
    video_frames: int = 10
    waves_side: int = 64
    colour_side: int = 176
    grey_side: int = 128

    def weighting(self, name: str) -> dict[str, Any]:
        """Return the parameters of a model that weighs directions "even", "soft" and so on."""
        if name == "even":
            return {}
        if name == "all":
            graph = GraphLabels(ridge_edge=self.narrow_edge)
            return {"assign_labels": graph, "ranks": self.narrow_ranks}
        if name == "near":
            edge, power, width = self.near_edge, self.near_power, self.near_neighbors
            graph = GraphLabels(n_neighbors=width, ridge_edge=edge, ridge_power=power)
            return {"assign_labels": graph, "ranks": self.near_ranks}
        edge, power = self.soft if name == "soft" else self.sharp
        return {"assign_labels": GraphLabels(ridge_edge=edge, ridge_power=power)}


def is_image(sample_shape: tuple[int, ...]) -> bool:
    """Tell whether samples of a shape are images large enough for wavelets."""
    settings = CandidateSettings.current()
    sides, channels = sample_shape[:2], sample_shape[2:]
    if len(sample_shape) not in (2, 3) or min(sides) < settings.smallest_image:
        return False
    return not channels or channels[0] <= settings.most_channels


def is_video(sample_shape: tuple[int, ...]) -> bool:
    """Tell whether samples of a shape are videos or volumes whose frames are large enough.

    Frames or slices are the third axis, and colour may be a fourth.
    """
    settings = CandidateSettings.current()
    if is_image(sample_shape) or len(sample_shape) not in (3, 4):
        return False
    coloured = len(sample_shape) == 3 or sample_shape[3] <= settings.most_channels
    return coloured and min(sample_shape[:2]) >= settings.smallest_image


def is_noisy(X: Array) -> bool:
    """Tell whether samples in memory have much energy in the weaker half of their directions."""
    energies = spectrum_of(X, None).values ** 2
    weak, limit = energies[len(energies) // 2 :], CandidateSettings.current().noisy
    return float(weak.sum()) > limit * float(energies.sum())


def is_narrow(X: Array) -> bool:
    """Tell whether a table in memory has nearly all its energy in a few of its many columns."""
    settings = CandidateSettings.current()
    if X.ndim > 2 or X.shape[1] <= settings.narrow:
        return False
    energies = spectrum_of(X, settings.narrow).values ** 2
    X = double(X)
    total = squared_norm(X - get_namespace(X).mean(X, axis=0))
    return float(energies.sum()) >= settings.narrow_share * total


def has_norms(X: Array) -> bool:
    """Tell whether samples in memory may be compared at norm 1.

    They are tables, volumes or videos of amounts, with no negative entry: spectra differ in
    brightness, volumes in how much they fill, and twice a sample is more of the same. Where entries
    have both signs, zero is a convention, and so are directions that are seen from there.
    """
    matrices = 3
    return X.ndim != matrices and bool(get_namespace(X).min(X) >= 0)


def built_in_candidates(
    sample_shape: tuple[int, ...],
    features: str,
    *,
    network: Any = BUILT_IN,
    noisy: bool = False,
    norms: bool = False,
    narrow: bool = False,
) -> list[tuple[str, Any]]:
    """Return the candidates for samples of a shape.

    Parameters
    ----------
    sample_shape : tuple of int
        The shape of a sample.
    features : {"auto", "pixels", "scattering", "network", "all"}
        Which views are asked for.
    network : str, path or torch.nn.Module, default="efficientnet-lite0"
        The network whose maps are views.
    noisy : bool, default=False
        Whether the samples are mostly noise, see `is_noisy`.
    norms : bool, default=False
        Whether samples may be compared at norm 1, see `has_norms`.
    narrow : bool, default=False
        Whether the samples are near few directions, see `is_narrow`.

    Returns
    -------
    candidates : list of (str, estimator)
        Views of the samples themselves only, where they are no images, videos or volumes of at
        least 16 × 16. Tables, volumes and videos of amounts are also compared at norm 1, and narrow
        tables in all directions.
    """
    # Of a few directions all weigh the same, whatever the edge.
    second = (", all directions", "all") if narrow else (", soft edge", "soft")
    weightings = [("", "even"), second]
    rows: list[Row] = [(f"{PIXELS.name}{words}", [(PIXELS, way)]) for words, way in weightings]
    if is_image(sample_shape):
        rows += _of_images(sample_shape, network)
    else:
        if noisy and len(sample_shape) <= 2:
            rows.append((f"{PIXELS.name}, sharp edge", [(PIXELS, "sharp")]))
        if norms:
            rows += [(f"{NORM_ONE.name}{words}", [(NORM_ONE, way)]) for words, way in weightings]
        if is_video(sample_shape):
            rows += _of_videos(sample_shape, features, network)
    wanted = [row for row in rows if _is_wanted(row, features)]
    if not wanted:
        wanted = [row for row in rows if _is_wanted(row, PIXELS.name)]
    return [_candidate(*row) for row in wanted]


Row = tuple[str, list[tuple[View, str]]]
"""A candidate: its name, and the views that it sums, each with its weighting."""


def _of_images(sample_shape: tuple[int, ...], network: Any) -> list[Row]:
    """Return the candidates for images beside pixels."""
    settings = CandidateSettings.current()
    small = min(sample_shape[:2]) <= settings.waves_side
    size = {} if small else {"size": settings.waves_side}
    plain, log, relative = (
        View(view.name, view.words, (("Scattering", {**view.steps[0][1], **size}),))
        for view in (SCATTERING, registry.LOG_SCATTERING, registry.RELATIVE_SCATTERING)
    )
    colour = len(sample_shape) > 2 and sample_shape[2] > 1
    side = settings.colour_side if colour else settings.grey_side
    layers = registry.network_views(network, size=side)
    both = f"{relative.name} + {log.name}"
    return [
        (registry.NORM_ONE_NEAREST.name, [(NORM_ONE, "near")]),
        (plain.name, [(plain, "even")]),
        (log.name, [(log, "even")]),
        (relative.name, [(relative, "soft")]),
        (f"{PIXELS.name} + {log.name}", [(PIXELS, "even"), (log, "even")]),
        (both, [(relative, "soft"), (log, "soft")]),
        (f"{both}, few neighbours", [(relative, "near"), (log, "near")]),
        *((layer.name, [(layer, "even")]) for layer in layers),
        *(
            (f"{layer.name} + {log.name}", [(layer, "even"), (log, "even")])
            for layer in layers
            if layer.name.endswith("block 14")
        ),
    ]


def _of_videos(sample_shape: tuple[int, ...], features: str, network: Any) -> list[Row]:
    """Return the candidates for videos and volumes beside pixels."""
    settings = CandidateSettings.current()
    seen = {"size": settings.video_side, "frames": settings.video_frames}
    layers = registry.network_views(network, **seen)
    layers = [view for view in layers if not view.name.endswith(("block 15", "pooled"))]
    rows: list[Row] = [(layer.name, [(layer, "even")]) for layer in layers]
    if len(sample_shape) > VIDEO_AXES:  # texture knows no colours
        return rows
    texture: Row = (TEXTURE.name, [(TEXTURE, "even")])
    if features == ALL:  # alone, a layer is chosen too often where texture is what differs
        rows = [(f"{TEXTURE.name} + {name}", [*texture[1], *parts]) for name, parts in rows]
    return [texture, *rows]


def _is_wanted(row: Row, features: str) -> bool:
    """Tell whether `features` asks for a candidate, by what its views look at."""
    kinds = {view.steps[0][0] if view.steps else "" for view, _ in row[1]}
    return {
        PIXELS.name: kinds <= {"", "Scale"},
        SCATTERING.name: kinds == {"Scattering"},
        NETWORK: kinds == {"Network"},
        AUTO: "Network" not in kinds,
        ALL: True,
    }[features]


def _candidate(name: str, parts: list[tuple[View, str]]) -> tuple[str, Any]:
    """Return the name and the estimator of a candidate."""
    models: list[tuple[str, Any]] = []
    for view, weighting in parts:
        model: Any = TuckerClustering(**CandidateSettings.current().weighting(weighting))
        if view.steps:
            model = make_pipeline(*view.transformers(), model)
        models.append((view.name, model))
    return name, models[0][1] if len(models) == 1 else MultiViewClustering(models)
