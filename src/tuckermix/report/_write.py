"""Put the numbers into the template and the file on the disk."""

from __future__ import annotations

import base64
import hashlib
import html
import os
from contextlib import suppress
from pathlib import Path
from typing import Any
from urllib.parse import quote

import numpy as np

from tuckermix._array_api import to_numpy
from tuckermix._files import write_text
from tuckermix._optional import require
from tuckermix.features.registry import last_step
from tuckermix.plots import fitted
from tuckermix.plots.fitted import Placed, labels_of
from tuckermix.report import _content
from tuckermix.report._samples import Subject, content
from tuckermix.summary import (
    FitSummary,
    cluster_names,
    innermost,
    printable,
    sample_names,
    summarize_fit,
    surety,
)

TEMPLATES = Path(__file__).with_name("templates")

SCRIPTS = "base state picture tiles clusters all tray map viewer choose main"
"""The modules of the script, in the order in which they are put together."""


def require_packages() -> None:
    """Say what to install where a package that the report needs is missing."""
    for module, package in (("jinja2", "jinja2"), ("PIL", "pillow")):
        require(module, "The report", "report", package=package)


def style() -> str:
    """Return the style of every page that this version writes."""
    return (TEMPLATES / "report.css").read_text(encoding="utf-8")


def script() -> str:
    """Return the script of every page that this version writes."""
    files = (TEMPLATES / f"{name}.js" for name in SCRIPTS.split())
    parts = "\n\n".join(file.read_text(encoding="utf-8").rstrip() for file in files)
    return f'"use strict";\n(function () {{\n{parts}\n}})();\n'


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
    digests = (hashlib.sha256(text.encode()).digest() for text in (style, script))
    styles, scripts = (f"'sha256-{base64.b64encode(one).decode()}'" for one in digests)
    return (
        f"default-src 'none'; style-src {styles}; script-src {scripts}; img-src data:; "
        "base-uri 'none'; form-action 'none'"
    )


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
    folder: Any = None,
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
    folder : str, path or list of them, default=None
        Where the files of the samples lie: each picture is linked to its file then. `names` are
        paths below the first folder, and may lead from there into the others.
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
    from markupsafe import Markup

    final, reading = last_step(model), getattr(model, "reading_", None)
    transformers = () if final is model else tuple(step for _, step in model.steps[:-1])
    found = labels_of(model, X, "The report")
    if placed is None:
        placed = fitted.placed(model, X)
    proba = to_numpy(placed.proba if proba is None else proba)
    inner, seen = innermost(model), X if placed.seen is None else placed.seen
    # Outliers are shown with the cluster that they resemble most, and counted.
    labels = np.where(found < 0, proba.argmax(axis=1), found)
    files, base = linked(names, folder, page_folder)
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
    subject = Subject(
        inner, seen, labels, proba, named, placed.places, truth, kind, X, found < 0,
        names is not None, cluster_names(model), placed.unlike,
    )  # fmt: skip
    shown = content(subject, files)
    data = shown.pop("data")
    listed = range(X.shape[0]) if data["samples"] is None else data["samples"]
    unlinked = [at for at, sample in enumerate(listed) if files and files[sample] is None]
    data |= {"base": base, "unlinked": unlinked}
    if summary is None:
        summary = summarize_fit(
            final, X, proba, labels=found, truth=truth, seconds=seconds, seen=placed.seen
        )
    css, js = style(), script()
    lines = _content.reading_lines(source, reading, bool(skipped), scene)
    return _rendered(
        "report.html.j2",
        title=title,
        source=source,
        n_samples=X.shape[0],
        n_outliers=int((found < 0).sum()),
        noun=data["noun"],
        data=data,
        **shown,
        facts=_content.facts(summary),
        surety=surety(summary.settings)[0],
        skipped=skipped,
        confusion=_content.confusion(truth, labels),
        charts=_content.charts(inner),
        selection=_content.selection(getattr(final, "selection_", None)),
        scene_maps=_content.scene_maps(inner, labels, scene),
        settings={name: _content.in_words(value) for name, value in summary.settings.items()},
        versions=summary.versions,
        snippet=_content.snippet(final, transformers, lines),
        command=command,
        policy=policy(css, js),
        style=Markup(css),
        script=Markup(js),
    )


def contact_sheet(clusters: dict[str, list[tuple[str, str | None]]]) -> str:
    """Return a page for paper: of each cluster the names, with small pictures as addresses."""
    return _rendered("contact-sheet.html.j2", clusters=clusters)


def _rendered(template: str, **values: Any) -> str:
    """Fill in a template, in which all texts are escaped and can be stored."""
    import jinja2

    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(TEMPLATES),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    return printable(environment.get_template(template).render(values))


def linked(
    names: Any, folder: Any, page: str | os.PathLike[str] | None
) -> tuple[list[Path | None], str | None]:
    """Find the files that names stand for, as seen from the page.

    Parameters
    ----------
    names : sequence of str or None
        The names of the samples: paths below `folder`.
    folder : path, list of paths, or None
        Where the files lie; names start from the first.
    page : path or None
        The folder of the page: links are relative to it, so that both can move together. None
        writes the whole path.

    Returns
    -------
    files : list of (Path or None)
        The file of each sample, None where its name is no file there; empty where none is one.
    base : str or None
        The address of the folder, with a slash at its end; None where no name is a file.
    """
    if folder is None or names is None:
        return [], None
    roots = [Path(one) for one in (folder if isinstance(folder, list) else [folder])]
    files = files_below(roots, names)
    if not any(files):
        return [], None
    base = roots[0].resolve().as_uri().rstrip("/")
    if page is not None:
        with suppress(ValueError):  # another drive
            relative = os.path.relpath(roots[0].resolve(), Path(page).resolve())
            base = quote(os.fsencode(relative.replace(os.sep, "/")))
    return files, f"{base}/"


def files_below(roots: list[Path], names: Any) -> list[Path | None]:
    """Return the file of each name, None where no file below `roots` has it.

    Names start from the first root and may lead into the others. A name that an address of plain
    text cannot hold has no file.
    """
    places = [root.resolve() for root in roots]

    files: list[Path | None] = []
    for name in map(str, names):
        files.append(None)
        with suppress(OSError, ValueError):
            name.encode()
            path = roots[0] / name
            if any(path.resolve().is_relative_to(place) for place in places) and path.is_file():
                files[-1] = path
    return files


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


class Report:
    """The report of a fitted clustering in a notebook: the page in a frame of its own.

    The frame keeps the styles of the notebook and of the page apart, and the page cannot reach the
    notebook.

    Parameters
    ----------
    model : estimator
        The fitted clustering.
    X : array of shape (n_samples, d_1, ...)
        The samples that it was fitted on.
    height : int, default=800
        The height of the frame in pixels.
    **options
        The options of `render_report`.
    """

    def __init__(self, model: Any, X: Any, *, height: int = 800, **options: Any) -> None:
        self.height = int(height)
        self.page = render_report(model, X, **options)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the page to a file, atomically."""
        write_text(path, self.page)

    def __repr__(self) -> str:
        return f"Report of {len(self.page) / 1e6:.1f} MB: save(path) writes it to a file."

    def _repr_html_(self) -> str:
        page = html.escape(self.page, quote=True)
        return (
            '<iframe sandbox="allow-scripts allow-downloads allow-popups" title="Report" '
            f'width="100%" height="{self.height}" style="border: 0" srcdoc="{page}"></iframe>'
        )
