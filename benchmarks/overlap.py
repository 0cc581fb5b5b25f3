"""What the choices of the first round had seen: ``TUCKERMIX_DATA=… python -m benchmarks.overlap``.

The weights of the labels were settled on draws from all of each dataset, before there was a split
into a part for choices and a part for reports. This counts which share of the images in the draws
of Tables 2 to 6 and of the table beyond the paper had also been in those draws. Results go to
`overlap.json` and `overlap.md`.
"""

from __future__ import annotations

import argparse
import json
from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import reporting
from benchmarks.quality import draw_places
from tuckermix.datasets import DatasetNotFound, load
from tuckermix_bench import EXPERIMENTS, draw_indices
from tuckermix_bench.draws import part_indices

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
TABLES = ("table2", "table3", "table4", "table5", "table6", "beyond")


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
    for table in TABLES:
        for row in EXPERIMENTS[table].rows:
            if row.dataset not in {name for name, *_ in FIRST_ROUND} or row.of is not None:
                continue
            try:
                data = load(row.dataset)
            except DatasetNotFound as error:
                print(f"skipped: {error}")
                continue
            labels = np.asarray(data.labels)
            marked = looked_at(row.dataset, labels)
            is_test = data.extra.get("is_test")
            allowed = part_indices(row.dataset, row.part, labels, is_test=is_test)
            for run in range(1 if row.redraw == "nothing" else row.runs):
                drawn = draw_indices(row, table, run, labels, allowed=allowed)
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
