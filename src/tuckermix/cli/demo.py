"""``tuckermix demo``: what `cluster` does, on pictures that are rendered on the spot."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from tuckermix.cli import _options as options
from tuckermix.cli._console import Console

PICTURE = "clusters.png"
COMMAND = "tuckermix demo"
SEED, PICTURES = 0, 30  # of each object
DOTS_PER_INCH = 150


def demo(
    out: Annotated[Path, typer.Option("--out", "-o")] = Path("tuckermix-demo"),
    force: options.Force = False,
    as_json: options.AsJson = False,
    quiet: options.Quiet = False,
) -> int:
    """Cluster rendered pictures of ten objects; write a report.

    Writes labels with soft labels, a picture of the clusters, a report to open in a browser and
    the model to a folder. Prints how many clusters were found, without being told, and how well
    they agree with the objects.

    Parameters
    ----------
    out
        Folder for the results.
    """
    console = Console(quiet, as_json)
    console.begin("Rendering pictures")
    import numpy as np

    from tuckermix._files import atomic_path
    from tuckermix.cli import _results
    from tuckermix.cli.cluster import fit_and_write
    from tuckermix.datasets import make_objects
    from tuckermix.plots import MemberDisplay
    from tuckermix.plots.style import require_matplotlib
    from tuckermix.report import require_packages
    from tuckermix.selection import AutoClustering

    require_packages()
    plt = require_matplotlib("The demo")
    plt.switch_backend("Agg")  # a picture for a file needs no screen
    _results.refuse_to_replace(out, force, PICTURE, unless=COMMAND)
    with console.stage("Rendering pictures"):
        data = make_objects(PICTURES, random_state=SEED)
    model = AutoClustering(random_state=SEED)
    with _results.result_folder(out):
        code = fit_and_write(
            model,
            data,
            out,
            truth=np.array(data.class_names)[data.labels],
            source="rendered pictures of ten objects",
            title="Ten objects",
            command=COMMAND,
            kind="colour",
            console=console,
        )
        with console.stage("Drawing"), atomic_path(out / PICTURE) as path:
            display = MemberDisplay.from_estimator(model, data.X, n_members=6)
            display.figure_.savefig(path, dpi=DOTS_PER_INCH)
            plt.close(display.figure_)
    console.note(f"Open {out / _results.REPORT} in a browser, and look at {out / PICTURE}.")
    return code
