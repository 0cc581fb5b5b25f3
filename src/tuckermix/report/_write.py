"""Put the numbers into the template and the file on the disk."""

from __future__ import annotations

import base64
import hashlib
import os
from pathlib import Path
from typing import Any

import numpy as np

from tuckermix._array_api import to_numpy
from tuckermix._files import write_text
from tuckermix._optional import require
from tuckermix.features.registry import last_step
from tuckermix.plots import fitted
from tuckermix.plots.fitted import Placed, labels_of
from tuckermix.plots.style import COLOURS
from tuckermix.report import _content, _images, _listing, _svg
from tuckermix.summary import FitSummary, innermost, printable, sample_names, summarize_fit, surety

TEMPLATES = Path(__file__).with_name("templates")

DARK_COLOURS = {"#555555": "#bbbbbb", "#882255": "#e06c9f", "#332288": "#a89cf0"}
"""Stand-ins for the dark tones of the palette on a dark ground."""


def require_packages() -> None:
    """Say what to install where a package that the report needs is missing."""
    for module, package in (("jinja2", "jinja2"), ("PIL", "pillow")):
        require(module, "The report", "report", package=package)


def policy(style: str, script: str) -> str:
    """Return what the page may do: apply this style, run this script, show pictures it holds.

    Nothing else is allowed, whatever a name or a title might smuggle in, and nothing is fetched.

    Parameters
    ----------
    style, script : str
        The contents of the two elements, to the letter.

    Returns
    -------
    policy : str
        The value of a ``Content-Security-Policy``.
    """

    def digest(text: str) -> str:
        return base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()

    rules = (
        "default-src 'none'",
        f"style-src 'sha256-{digest(style)}'",
        f"script-src 'sha256-{digest(script)}'",
        "img-src data:",
        "base-uri 'none'",
        "form-action 'none'",
    )
    return "; ".join(rules)


def render_report(
    model: Any,
    X: Any,
    *,
    truth: Any = None,
    names: Any = None,
    title: str = "Clusters",
    source: str | None = None,
    seconds: float | None = None,
    proba: Any = None,
    command: str | None = None,
    kind: str = "auto",
    summary: FitSummary | None = None,
    placed: Placed | None = None,
    scene: tuple[int, int] | None = None,
    folder: str | os.PathLike[str] | None = None,
    page_folder: str | os.PathLike[str] | None = None,
    skipped: Any = (),
) -> str:
    """Return the report on a fitted clustering as one page of HTML.

    Parameters
    ----------
    model : TuckerClustering, MultiViewClustering, AutoClustering or Pipeline
        The fitted clustering, or a pipeline of features and a clustering: the report shows the
        samples and their means in each cluster, not the features.
    X : array of shape (n_samples, d_1, ...)
        The samples that it was fitted on.
    truth : array-like of shape (n_samples,), default=None
        Known classes, to compare with.
    names : sequence of str, default=None
        A name for each sample, such as its file.
    title : str, default="Clusters"
        The heading.
    source : str, default=None
        Where the samples came from, in words.
    seconds : float, default=None
        How long the fit took.
    proba : array of shape (n_samples, n_clusters), default=None
        The soft labels of `X`; None computes them.
    command : str, default=None
        The command that made the report, shown so that it can be repeated.
    kind : {"auto", "signal", "image", "colour", "channels", "volume", "video"}, default="auto"
        How a sample is shown; see the displays.
    summary : FitSummary, default=None
        The figures of the fit, where they are known already; None computes them.
    placed : Placed, default=None
        Soft labels and places of the samples, see `tuckermix.plots.fitted`; None computes them.
    scene : tuple of int, default=None
        Height and width of the scene whose pixels are the samples: labels and mixing weights are
        shown as maps then.
    folder : str or path, default=None
        Where the files of the samples lie, below which `names` are paths: each picture is linked
        to its file then.
    page_folder : str or path, default=None
        Where the page will lie: links to files are relative to it. None writes whole paths.
    skipped : sequence of (str, str), default=()
        Files that were not read, each with the reason, to be listed.

    Returns
    -------
    page : str
        HTML that needs no other file and no network.
    """
    require_packages()
    import jinja2
    from markupsafe import Markup

    final, reading = last_step(model), getattr(model, "reading_", None)
    transformers = () if final is model else tuple(step for _, step in model.steps[:-1])
    found = labels_of(final if final is model else model, X, "The report")
    if placed is None:
        placed = fitted.placed(model, X)
    proba = to_numpy(placed.proba if proba is None else proba)
    inner, samples = innermost(model), X
    images = None if inner is model else X
    X = X if placed.seen is None else placed.seen
    # Outliers are shown with the cluster that they resemble most, and counted.
    labels = np.where(found < 0, proba.argmax(axis=1), found)
    base, missing = _listing.linked(names, folder, page_folder)
    named = sample_names(names, X.shape[0])
    if truth is not None:
        truth = np.asarray(to_numpy(truth) if hasattr(truth, "shape") else truth)
        if truth.shape != (X.shape[0],):
            raise ValueError(
                f"truth has shape {truth.shape}, but X has {X.shape[0]} samples: "
                "give one class for each sample."
            )
        if truth.dtype.kind not in "biuf":
            truth = np.array([printable(name) for name in truth.tolist()])
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(TEMPLATES),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    subject = _content.Subject(
        inner, X, labels, proba, named, truth, kind, images, found < 0, placed.places
    )
    cards = _content.cards(subject)
    on_cards = [member.sample for card in cards for member in (*card.typical, *card.doubtful)]
    listing = _listing.listing(labels, on_cards)
    drawn = _content.sample_map(subject, listing.samples[listing.marks])
    data = _listing.listing_data(subject, listing, names is not None, base, missing)
    if summary is None:
        summary = summarize_fit(
            final, samples, proba, labels=found, truth=truth, seconds=seconds, seen=placed.seen
        )
    return environment.get_template("report.html.j2").render(
        title=printable(title),
        source=None if source is None else printable(source),
        n_samples=X.shape[0],
        facts=_content.facts(summary),
        kind=subject.shown_kind,
        of_images=images is not None,
        surety=surety(summary.settings)[0],
        cards=cards,
        map=drawn,
        data={**data, **drawn.data},
        full=_listing.full_pictures(subject, listing, on_cards),
        places=dict(zip(on_cards, listing.places(on_cards), strict=True)),
        n_listed=len(listing.samples),
        full_megabytes=_images.FULL_BYTES // 1_000_000,
        skipped=[(printable(name), _sentence(printable(reason))) for name, reason in skipped],
        confusion=_content.confusion(truth, labels),
        charts=_content.charts(inner),
        selection=_content.selection(getattr(final, "selection_", None)),
        scene_maps=_content.scene_maps(inner, labels, scene),
        settings=[(name, repr(value)) for name, value in summary.settings.items()],
        versions=list(summary.versions.items()),
        snippet=_content.snippet(
            final, transformers, _content.reading_lines(source, reading, bool(skipped), scene)
        ),
        n_outliers=int((found < 0).sum()),
        command=None if command is None else printable(command),
        colours=COLOURS,
        dark=[DARK_COLOURS.get(colour, colour) for colour in COLOURS],
        size=_svg,
        policy=policy,
        style=Markup((TEMPLATES / "report.css").read_text(encoding="utf-8")),
        script=Markup((TEMPLATES / "report.js").read_text(encoding="utf-8")),
    )


def _sentence(text: str) -> str:
    """Begin a text with a capital letter, and with nothing else changed."""
    return text[:1].upper() + text[1:]


def write_report(path: str | os.PathLike[str], model: Any, X: Any, **options: Any) -> None:
    """Write the report on a fitted clustering to `path`, atomically.

    Parameters
    ----------
    path : str or path
        The HTML file to write.
    model : TuckerClustering or Pipeline
        The fitted clustering, or a pipeline that ends in one.
    X : array of shape (n_samples, d_1, ...)
        The samples that it was fitted on.
    **options
        The options of `render_report`: `truth`, `names`, `title`, `source`, `seconds`, `proba`,
        `command`, `kind`, `summary`, `placed`, `scene`, `folder`, `skipped`. Links to files are
        relative to `path`.
    """
    here = {"page_folder": Path(path).parent, **options}
    write_text(path, render_report(model, X, **here))
