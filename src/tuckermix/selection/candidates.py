"""The candidates that samples of a shape have: views of them, each with a model."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from sklearn.base import clone
from sklearn.pipeline import Pipeline, make_pipeline

from tuckermix._array_api import Array, get_namespace
from tuckermix._estimators import Settings
from tuckermix._names import LOG_SCATTERING, PIXELS, SCATTERING
from tuckermix.clustering import TuckerClustering
from tuckermix.features import Scale, Scattering
from tuckermix.features.registry import BUILT_IN, TEXTURE, View, network_views
from tuckermix.labels import GraphLabels
from tuckermix.selection.multiview import MultiViewClustering
from tuckermix.selection.views import spectrum_of

AUTO, NETWORK, ALL = "auto", "network", "all"
FEATURES = (AUTO, PIXELS, SCATTERING, NETWORK, ALL)
"""Which views are compared."""

VIDEO_AXES = 3
"""Height, width and frames; colour is a fourth."""

NORM_ONE = "pixels of norm 1"
"""A view of tables, volumes and videos of amounts."""

NEAREST = "few neighbours"
"""The end of the names of views that have `CandidateSettings.near`."""

RELATIVE_SCATTERING = "relative scattering"
"""The name of the view of relative coefficients."""


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
    noisy : float
        Samples are mostly noise where the weaker half of their directions has this share of the
        energy. White noise spreads its energy evenly: planted clusters with noise of one standard
        deviation have 0.17 there, digits of 8 × 8 pixels 0.07.
    video_side, video_frames : int
        Frames that a network sees of a video or volume: 50 of them at 128 pixels take a fifth of a
        second and tell no more.
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
    noisy: float = 0.1
    video_side: int = 64
    video_frames: int = 10
    colour_side: int = 176
    grey_side: int = 128

    @property
    def near(self) -> dict[str, Any]:
        """Parameters of a model of many directions and few neighbours."""
        graph = GraphLabels(
            n_neighbors=self.near_neighbors, ridge_edge=self.near_edge, ridge_power=self.near_power
        )
        return {"assign_labels": graph, "ranks": self.near_ranks}


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

    Returns
    -------
    candidates : list of (str, estimator)
        Views of the samples themselves only, where they are no images, videos or volumes of at
        least 16 × 16. Tables, volumes and videos of amounts are also compared at norm 1.
    """
    settings = CandidateSettings.current()
    edge, power = settings.soft
    soft = {"assign_labels": GraphLabels(ridge_edge=edge, ridge_power=power)}
    of_pixels: list[tuple[str, Any]] = [
        (PIXELS, TuckerClustering()),
        (f"{PIXELS}, soft edge", TuckerClustering(**soft)),
    ]
    if not is_image(sample_shape):
        if noisy and len(sample_shape) <= 2:
            edge, power = settings.sharp
            graph = GraphLabels(ridge_edge=edge, ridge_power=power)
            sharp = TuckerClustering(assign_labels=graph)
            of_pixels.append((f"{PIXELS}, sharp edge", sharp))
        if norms:
            of_pixels += [
                (name.replace(PIXELS, NORM_ONE), make_pipeline(Scale("unit"), clone(model)))
                for name, model in of_pixels[:2]
            ]
        if features == PIXELS or not is_video(sample_shape):
            return of_pixels
        coloured = len(sample_shape) > VIDEO_AXES
        return _of_videos(of_pixels, features, network, coloured=coloured)
    near = make_pipeline(Scale("unit"), TuckerClustering(**settings.near))
    of_pixels.append((f"{NORM_ONE}, {NEAREST}", near))
    if features == PIXELS:
        return of_pixels
    colour = len(sample_shape) > 2 and sample_shape[2] > 1
    side = settings.colour_side if colour else settings.grey_side
    of_network = [(view.name, _under(view)) for view in network_views(network, size=side)]
    if features == NETWORK:
        return of_network
    of_waves = _of_waves(soft, settings.near)
    if features == SCATTERING:
        return of_waves
    both = [(PIXELS, TuckerClustering()), (LOG_SCATTERING, _strokes({}, log=True))]
    of_waves.insert(3, (f"{PIXELS} + {LOG_SCATTERING}", MultiViewClustering(both)))
    if features == AUTO:
        return [*of_pixels, *of_waves]
    for parts, model in [each for each in of_network if each[0].endswith("block 14")]:
        sums = [(parts, model), (LOG_SCATTERING, _strokes({}, log=True))]
        of_network.append((f"{parts} + {LOG_SCATTERING}", MultiViewClustering(sums)))
    return [*of_pixels, *of_waves, *of_network]


def _of_videos(
    of_pixels: list[tuple[str, Any]], features: str, network: Any, *, coloured: bool
) -> list[tuple[str, Any]]:
    """Return the candidates for videos and volumes, given those of pixels."""
    settings = CandidateSettings.current()
    size = {"size": settings.video_side, "frames": settings.video_frames}
    of_network = [
        (view.name, _under(view))
        for view in network_views(network, **size)
        if not view.name.endswith(("block 15", "pooled"))
    ]
    of_waves = [] if coloured else [(TEXTURE.name, _under(TEXTURE))]  # it knows no colours
    if features == NETWORK:
        return of_network
    if features == SCATTERING:
        return of_waves or of_pixels
    # Alone, a layer is chosen too often where texture is what differs.
    sums = [
        (f"{texture[0]} + {view[0]}", MultiViewClustering([(texture[0], clone(texture[1])), view]))
        for texture in of_waves
        for view in of_network
    ]
    return [*of_pixels, *of_waves, *((sums or of_network) if features == ALL else [])]


def _of_waves(soft: dict[str, Any], near: dict[str, Any]) -> list[tuple[str, Any]]:
    """Return views of the scattering transform, single ones first."""
    single: list[tuple[str, Any]] = [
        (SCATTERING, _strokes({})),
        (LOG_SCATTERING, _strokes({}, log=True)),
        (RELATIVE_SCATTERING, _strokes(soft, relative=True)),
    ]
    sums = [
        (
            f"{RELATIVE_SCATTERING} + {LOG_SCATTERING}{ending}",
            MultiViewClustering(
                [
                    (RELATIVE_SCATTERING, _strokes(options, relative=True)),
                    (LOG_SCATTERING, _strokes(options, log=True)),
                ]
            ),
        )
        for ending, options in (("", soft), (f", {NEAREST}", near))
    ]
    return single + sums


def _strokes(options: dict[str, Any], **kind: Any) -> Pipeline:
    """Return a model of the scattering transform."""
    return make_pipeline(Scattering(**kind), TuckerClustering(**options))


def _under(view: View) -> Pipeline:
    """Return a model of a view."""
    return make_pipeline(*view.transformers(), TuckerClustering())
