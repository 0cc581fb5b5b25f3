"""Time the readers beside another version: ``python benchmarks/reading.py --against SRC``.

Writes a folder of PNG files and stacks of HDF5, Zarr and TIFF, and reads each in a new process, in
turns with the other version, which lies in the folder SRC. Prints the medians: seconds of the
processor, those of child processes included, which other work on the machine changes little, and
seconds of the clock.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

READ = """
import gc, os, sys, time
from tuckermix.datasets import read
path, lazy = sys.argv[1], sys.argv[2] == "lazy"
start, before = time.perf_counter(), sum(os.times()[:4])
X = read(path, max_bytes=2**33, **({"lazy": True} if lazy else {})).X
total = float(X.sum(dtype="f8").compute() if lazy else X[-1].sum())
taken = time.perf_counter() - start
del X
gc.collect()  # ends the children, whose time counts then
print(sum(os.times()[:4]) - before, taken, total)
"""


def write(folder: Path, n_images: int, mebibytes: int, only: list[str]) -> dict[str, Path]:
    """Write what is read."""
    import h5py
    import tifffile
    import zarr
    from PIL import Image

    rng = np.random.default_rng(0)
    rows = 16
    X = rng.integers(0, 64, (4 * mebibytes, 512, 512), dtype=np.uint8)

    def images(path: Path) -> None:
        path.mkdir()
        for number in range(n_images):
            pixels = rng.integers(0, 256, (64, 64), dtype=np.uint8)
            Image.fromarray(pixels).save(path / f"{number}.png")

    def hdf5(path: Path, X: np.ndarray, **options: Any) -> None:
        with h5py.File(path, "w") as file:
            file.create_dataset("X", data=X, **options)

    chunks = (rows, 512, 512)
    writers: dict[str, Callable[[Path], Any]] = {
        "png": images,
        "plain.h5": lambda path: hdf5(path, X),
        "packed.h5": lambda path: hdf5(path, X[::4], chunks=chunks, compression="lzf"),
        "plain.zarr": lambda path: zarr.create_array(path, data=X, chunks=chunks, compressors=None),
        "packed.zarr": lambda path: zarr.create_array(path, data=X, chunks=chunks),
        "plain.tif": lambda path: tifffile.imwrite(path, X, photometric="minisblack"),
        "plain.npy": lambda path: np.save(path, X),
    }
    for name in only or writers:
        writers[name](folder / name)
    return {path.name: path for path in sorted(folder.iterdir())}


def measure(source: Path, path: Path, how: str) -> list[float]:
    """Read once in a process of its own."""
    environment = {**os.environ, "PYTHONPATH": str(source), "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-c", READ, str(path), how]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        return [float("nan")] * 3
    return [float(number) for number in done.stdout.split()]


def main() -> None:
    """Run the command."""
    parser = argparse.ArgumentParser(description=__doc__)
    here = Path(__file__).resolve().parents[1] / "src"
    parser.add_argument("--against", type=Path, default=here, help="folder of another version")
    parser.add_argument("--images", type=int, default=10_000)
    parser.add_argument("--mebibytes", type=int, default=1024)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--only", nargs="+", help="files to read")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        found = write(Path(folder), given.images, given.mebibytes, given.only)
        print("| what | processor | other | ratio | clock | other | ratio |")
        print("| --- |" + 6 * " ---: |")
        for name, path in found.items():
            for how in ("whole", "lazy"):
                if how == "lazy" and name in ("png", "plain.npy"):
                    continue
                times: dict[Path, list[list[float]]] = {here: [], given.against: []}
                for _ in range(given.repeats):
                    for source, list_ in times.items():
                        list_.append(measure(source, path, how))
                new, old = (
                    [statistics.median(column) for column in zip(*one, strict=True)]
                    for one in (times[here], times[given.against])
                )
                assert new[2] == old[2] or old[0] != old[0], (new, old)
                pairs = [(mine, its, mine / its) for mine, its in zip(new[:2], old, strict=False)]
                cells = " | ".join(f"{number:.2f}" for pair in pairs for number in pair)
                print(f"| {name}, {how} | {cells} |", flush=True)


if __name__ == "__main__":
    main()
