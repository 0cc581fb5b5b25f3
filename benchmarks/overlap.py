"""What the choices of the first round had seen: ``TUCKERMIX_DATA=… python -m benchmarks.overlap``.

The weights of the labels were settled on draws from all of each dataset, before there was a split
into a part for choices and a part for reports. This counts which share of the images in the draws
of Tables 2 to 6 had also been in those draws. Results go to `overlap.json` and `overlap.md`.
"""

from __future__ import annotations

import argparse
import json
from collections import defaultdict
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import reporting
from benchmarks.quality import draw_places
from tuckermix.datasets import DatasetNotFound, load
from tuckermix.experiments import EXPERIMENTS, draw_indices
from tuckermix.experiments.splits import EVERYTHING

FIRST_ROUND_SEED = 77
FIRST_ROUND = (
    ("pie", 24, 42, 2),
    ("pie", 68, 9, 2),
    ("orl", 10, 10, 12),
    ("orl", 20, 10, 4),
    ("yaleb", 10, 64, 6),
    ("yaleb", 38, 64, 1),
    ("cbcl", 2, 600, 10),
    ("mnist", 3, 100, 10),
    ("mnist", 5, 100, 10),
    ("mnist", 7, 100, 10),
    ("mnist", 10, 100, 6),
    ("modelnet10", 4, 90, 3),
)
"""Dataset, classes, samples of each, draws: what `label_choices` looked at when it chose."""
TABLE_RUNS = {"table2": 10, "table3": 5, "table4": 5, "table5": 5, "table6": 5}
"""The runs of the published records."""


def looked_at(name: str, labels: Any) -> Any:
    """Mark the images that were in a draw of the first round."""
    marked = np.zeros(len(labels), dtype=bool)
    for data, n_classes, each, n_draws in FIRST_ROUND:
        if data == name:
            for seed in range(FIRST_ROUND_SEED, FIRST_ROUND_SEED + n_draws):
                marked[draw_places(labels, n_classes, each, seed)] = True
    return marked


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "results")
    options = parser.parse_args()
    shares: dict[str, list[float]] = defaultdict(list)
    for table, runs in TABLE_RUNS.items():
        for row in EXPERIMENTS[table].rows:
            # The published draws are from everything, and what came with the split is not in them.
            if row.dataset not in {name for name, *_ in FIRST_ROUND} or row.paper_row == "":
                continue
            try:
                labels = np.asarray(load(row.dataset).labels)
            except DatasetNotFound as error:
                print(f"skipped: {error}")
                continue
            marked = looked_at(row.dataset, labels)
            whole = replace(row, part=EVERYTHING)
            for run in range(1 if row.redraw == "nothing" else runs):
                drawn = draw_indices(whole, table, run, labels)
                shares[row.dataset].append(float(marked[drawn].mean()))
    rows = {name: {"least": min(found), "most": max(found)} for name, found in shares.items()}
    command = "TUCKERMIX_DATA=… python -m benchmarks.overlap"
    about = reporting.environment()
    lines = [
        reporting.heading(command, "Share of a draw that the first round had seen", about),
        "",
        "| dataset | least | most |",
        "|---|---|---|",
        *(
            f"| {name} | {100 * v['least']:.0f} % | {100 * v['most']:.0f} % |"
            for name, v in rows.items()
        ),
    ]
    options.out.mkdir(parents=True, exist_ok=True)
    document = {"command": command, "environment": about, "shares": rows}
    (options.out / "overlap.json").write_text(json.dumps(document, indent=1) + "\n")
    (options.out / "overlap.md").write_text("\n".join([*lines, ""]))
    print("\n".join(lines))


if __name__ == "__main__":
    main()
