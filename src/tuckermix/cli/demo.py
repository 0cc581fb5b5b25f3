"""``tuckermix demo``: what it does, on data that come with scikit-learn."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from tuckermix.cli import _options as options
from tuckermix.cli._console import Console

PICTURE = "clusters.png"
COMMAND = "tuckermix demo"
SEED = 0
DOTS_PER_INCH = 150


def demo(
    out: Annotated[Path, typer.Option("--out", "-o", help="Folder for the results.")] = Path(
        "tuckermix-demo"
    ),
    force: options.Force = False,
    as_json: options.AsJson = False,
    quiet: options.Quiet = False,
) -> int:
    """Cluster 1,797 handwritten digits and show what came out.

    Writes labels with soft labels, a picture of the clusters, a report to open in a browser and
    the model to a folder, and prints how well the clusters agree with the true digits.
    """
    from tuckermix.cli import _results
    from tuckermix.cli._input import floating
    from tuckermix.cli.cluster import fit_and_write
    from tuckermix.clustering import TuckerClustering
    from tuckermix.datasets import load
    from tuckermix.plots.style import require_matplotlib
    from tuckermix.report import require_packages

    require_packages()
    require_matplotlib("The demo")
    console = Console(quiet)
    data = load("digits")
    model = TuckerClustering(10, random_state=SEED)
    X = floating(data.X)
    _results.refuse_to_replace(out, force, unless=COMMAND)
    with _results.result_folder(out):
        code = fit_and_write(
            model,
            X,
            out,
            truth=data.labels,
            names=None,
            source="scikit-learn's handwritten digits",
            title="Handwritten digits",
            command=COMMAND,
            kind="image",
            console=console,
            as_json=as_json,
        )
        with console.stage("Drawing"):
            draw_clusters(model, X, out / PICTURE)
    console.note(f"Open {out / _results.REPORT} in a browser, and look at {out / PICTURE}.")
    return code


def draw_clusters(model: object, X: object, path: Path) -> None:
    """Write the centroids with typical and doubtful members of each cluster to `path`."""
    import matplotlib

    matplotlib.use("Agg")  # a picture for a file needs no screen
    from tuckermix._files import atomic_path
    from tuckermix.plots import MemberDisplay

    display = MemberDisplay.from_estimator(model, X, n_members=6)
    with atomic_path(path) as temporary:
        display.figure_.savefig(temporary, dpi=DOTS_PER_INCH)
    import matplotlib.pyplot as plt

    plt.close(display.figure_)
