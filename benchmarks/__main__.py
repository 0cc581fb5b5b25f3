"""Run the benchmarks of the core: ``python -m benchmarks [--quick] [--write]``.

Figures are medians of processor time from this run on this machine, ours and the peer's in turn,
one thread for both. They are printed and stored as `core.json` and `core.md`, outside version
control unless ``--write`` puts them among the published results.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import joblib
from threadpoolctl import threadpool_limits

from benchmarks import bench_core, reporting


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="small data, few repeats")
    parser.add_argument("--only", default="", help="run the benchmarks whose name contains this")
    parser.add_argument("--out", type=Path, help="folder for the figures")
    parser.add_argument("--write", action="store_true", help="replace the published figures")
    options = parser.parse_args()
    here = Path(__file__).parent
    folder = options.out or here / ("results" if options.write else "_scratch")
    rows = []
    with threadpool_limits(1), joblib.parallel_config(n_jobs=1):
        for benchmark in bench_core.BENCHMARKS:
            if options.only in benchmark.__name__:
                rows.extend(benchmark(quick=options.quick))
                print(reporting.lines_of(rows[-1:])[-1], flush=True)
    kind = "Medians of processor time in one run, one thread"
    reporting.store(rows, folder, "core", "python -m benchmarks", kind)
    print(f"Stored in {folder}.")


if __name__ == "__main__":
    main()
