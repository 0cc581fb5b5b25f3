"""The scattering transform against kymatio, and all of MNIST through it.

``python -m benchmarks.bench_scattering`` takes the ratio to kymatio's NumPy on equal images, one
thread, processor time of both in turn. With ``--mnist`` and ``TUCKERMIX_DATA`` it transforms and
clusters all 70,000 digits with several seeds, in a process of its own, and takes times and memory.
With ``--dask`` it fits the pipeline of both on all digits in memory and, from a Dask array and in a
process that may have less memory than the features take, out of core, and compares the labels. A
step of the pipeline stores the features in a file, because a fit reads them a dozen times;
``--anew`` leaves it out.
Results go to `scattering.json` and `scattering.md`, `scattering_mnist.json` and
`scattering_mnist.md`, `scattering_dask.json` and `scattering_dask.md`.
"""

from __future__ import annotations

import argparse
import json
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import scipy.special
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer
from threadpoolctl import threadpool_limits

from benchmarks import reporting
from tuckermix import TuckerClustering
from tuckermix.datasets import load, read
from tuckermix.features import Scattering
from tuckermix.metrics import clustering_accuracy, normalized_mutual_information

N_IMAGES = 256
EIGHT_BITS = 255
KIBIBYTE = 2**10
MEBIBYTE = 2**20
CHUNK = 1000
"""Digits in a chunk of the Dask array: 14 MB of features."""

DASK_LIMIT = 900 * MEBIBYTE
"""Memory of the process that works out of core, less than the features alone would take. The 10,000
landmarks of the labels take 270 MiB of it while they are put together."""


def kymatio_scattering(J: int, order: int) -> Callable[[Any], Any]:
    """Return kymatio's transform of images of 32 × 32 pixels."""
    if not hasattr(scipy.special, "sph_harm"):
        scipy.special.sph_harm = None  # imported by kymatio 0.3 for volumes, gone from SciPy 1.17
    from kymatio.numpy import Scattering2D

    return Scattering2D(J=J, shape=(32, 32), L=8, max_order=order)


def processor_time(function: Callable[[], Any]) -> float:
    began = time.process_time()
    function()
    return time.process_time() - began


def compare(J: int, order: int, repeats: int) -> dict[str, Any]:
    X = np.random.default_rng(0).random((N_IMAGES, 32, 32)).astype(np.float32)
    theirs, ours = kymatio_scattering(J, order), Scattering(J=J, order=order).fit(X)
    expected, found = theirs(X), ours.transform(X)
    error = np.abs(found - expected).max() / np.abs(expected).max()
    times = [
        (processor_time(lambda: ours.transform(X)), processor_time(lambda: theirs(X)))
        for _ in range(repeats)
    ]
    mine, other = (
        1e3 * statistics.median(values) / N_IMAGES for values in zip(*times, strict=True)
    )
    return {
        "what": f"scattering, J={J}, order {order}, 32 × 32, float32, difference {error:.0e}",
        "ours": f"{mine:.2f} ms an image",
        "reference": f"kymatio {other:.2f} ms",
        "ratio": f"{other / mine:.1f}",
        "goal": "≥ 2",
    }


def digits(log: bool, seeds: list[int]) -> dict[str, Any]:
    """Transform and cluster all digits; run in a process of its own, for the sake of its memory."""
    data = load("mnist")
    X = data.X.astype(np.float32) / EIGHT_BITS
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    scattering = Scattering(log=log)
    began = time.process_time()
    features = scattering.fit_transform(X)
    transform = time.process_time() - began
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    fits, scores = [], []
    for seed in seeds:
        model = TuckerClustering(10, random_state=seed)
        began = time.process_time()
        model.fit(features)
        fits.append(time.process_time() - began)
        scores.append(
            (
                clustering_accuracy(data.labels, model.labels_),
                normalized_mutual_information(data.labels, model.labels_),
            )
        )
    last = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return {
        "transform": transform,
        "fits": fits,
        "scores": scores,
        "transform_memory": (peak - before) * KIBIBYTE / features.nbytes,
        "memory": (last - before) * KIBIBYTE / features.nbytes,
    }


def row_of(log: bool, seeds: int) -> dict[str, Any]:
    command = [sys.executable, "-m", "benchmarks.bench_scattering", "--child", str(seeds)]
    done = subprocess.run(command + ["--log"] * log, capture_output=True, text=True, check=True)
    found = json.loads(done.stdout)
    scores = "; ".join(f"AC {ac:.4f}, NMI {nmi:.4f}" for ac, nmi in found["scores"])
    whole = found["transform"] + max(found["fits"])
    return {
        "what": f"mnist, 70,000 digits, {'log-' * log}scattering, {seeds} seeds",
        "ours": scores,
        "reference": f"transform {found['transform']:.0f} s, fit {max(found['fits']):.0f} s, "
        f"memory {found['memory']:.2f} times the features",
        "ratio": f"{whole:.0f} s",
        "goal": "AC ≥ 0.95, NMI ≥ 0.90, ≤ 240 s, memory < 3",
        **found,
    }


def stored(features: Any, path: Path) -> Any:
    """Write a lazy array to a file, chunk by chunk, and return what reads it from there."""
    import dask.array as da

    file = np.lib.format.open_memmap(path, "w+", features.dtype, features.shape)
    da.store(features, file, lock=False)
    return read(path, chunks=CHUNK).X


def label_digits(folder: Path, lazy: bool, n_digits: int, anew: bool) -> dict[str, Any]:
    """Fit the pipeline to digits in memory or from a Dask array, and store the labels."""
    X = load("mnist").X[:n_digits]
    keep = FunctionTransformer(partial(stored, path=folder / "features.npy"))
    steps = [keep] * (lazy and not anew)
    pipeline = make_pipeline(Scattering(), *steps, TuckerClustering(10, random_state=0))
    began = time.process_time()
    if lazy:
        import dask
        import dask.array as da

        # All private memory that can be written: heap, arrays and stacks, but no files.
        resource.setrlimit(resource.RLIMIT_DATA, (DASK_LIMIT, DASK_LIMIT))
        with dask.config.set(scheduler="synchronous"):
            chunks = (CHUNK, *X.shape[1:])
            labels = pipeline.fit_predict(da.from_array(X, chunks)).compute()
    else:
        labels = pipeline.fit_predict(X)
    np.save(folder / f"labels-{lazy}.npy", labels)
    return {
        "seconds": time.process_time() - began,
        "resident": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * KIBIBYTE,
        "sweeps": int(pipeline[-1].n_iter_),
    }


def compare_dask(n_digits: int, anew: bool) -> dict[str, Any]:
    """Compare labels in memory and out of core, each from a process of its own."""
    command = [sys.executable, "-m", "benchmarks.bench_scattering", "--digits", str(n_digits)]
    command += ["--anew"] * anew
    found = []
    with tempfile.TemporaryDirectory() as folder:
        for lazy in (False, True):
            order = [*command, "--label", folder, *["--dask"] * lazy]
            done = subprocess.run(order, stdout=subprocess.PIPE, text=True, check=True)
            found.append(json.loads(done.stdout))
        inside, outside = (np.load(Path(folder) / f"labels-{lazy}.npy") for lazy in (False, True))
    truth = load("mnist").labels[:n_digits]
    shown = [
        f"{each['seconds']:.0f} s, {each['resident'] / MEBIBYTE:.0f} MiB resident" for each in found
    ]
    different = int(np.sum(inside != outside))
    return {
        "what": f"mnist, {n_digits:,} digits, pipeline of scattering and clustering from Dask, "
        f"features {'computed anew in each pass' if anew else 'stored in a file'}, "
        f"limit {DASK_LIMIT // MEBIBYTE} MiB",
        "ours": f"{different} labels differ; AC {clustering_accuracy(truth, outside):.4f}; "
        f"{shown[1]}",
        "reference": f"in memory {shown[0]}",
        "ratio": "",
        "goal": "0 labels differ",
        "different": different,
        "in_memory": found[0],
        "out_of_core": found[1],
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--mnist", action="store_true", help="all digits instead, some minutes")
    parser.add_argument("--dask", action="store_true", help="all digits out of core, some minutes")
    parser.add_argument("--anew", action="store_true", help="store no features for --dask")
    parser.add_argument("--digits", type=int, default=70_000, help="how many digits for --dask")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "results")
    parser.add_argument("--child", type=int, default=0, help=argparse.SUPPRESS)
    parser.add_argument("--log", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--label", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.label:
        with threadpool_limits(1):
            found = label_digits(options.label, options.dask, options.digits, options.anew)
            print(json.dumps(found))
        return
    if options.child:
        with threadpool_limits(1):
            print(json.dumps(digits(options.log, list(range(options.child)))))
        return
    if not (options.mnist or options.dask):
        rows = []
        with threadpool_limits(1):
            for J, order in ((2, 1), (2, 2), (3, 1), (3, 2)):
                rows.append(compare(J, order, options.repeats))
                print(reporting.lines_of(rows[-1:])[-1], flush=True)
        command = "python -m benchmarks.bench_scattering"
        reporting.store(rows, options.out, "scattering", command)
    if options.mnist:
        rows = [row_of(log, options.seeds) for log in (False, True)]
        command = "TUCKERMIX_DATA=… python -m benchmarks.bench_scattering --mnist"
        reporting.store(rows, options.out, "scattering_mnist", command)
    if options.dask:
        command = "TUCKERMIX_DATA=… python -m benchmarks.bench_scattering --dask"
        rows = [compare_dask(options.digits, options.anew)]
        reporting.store(rows, options.out, "scattering_dask", command)


if __name__ == "__main__":
    main()
