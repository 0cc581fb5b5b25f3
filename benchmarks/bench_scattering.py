"""The scattering transform against kymatio, and all of MNIST through it.

``python -m benchmarks.bench_scattering`` takes the ratio to kymatio's NumPy on equal images, one
thread, processor time of both in turn. With ``--mnist`` and ``TUCKERMIX_DATA`` it transforms and
clusters all 70,000 digits with several seeds, in a process of its own, and takes times and memory.
Results go to
`scattering.json` and `scattering.md`, and to `scattering_mnist.json` and `scattering_mnist.md`.
"""

from __future__ import annotations

import argparse
import json
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import scipy.special
from threadpoolctl import threadpool_limits

from benchmarks import reporting
from tuckermix import TuckerClustering
from tuckermix.datasets import load
from tuckermix.features import Scattering
from tuckermix.metrics import clustering_accuracy, normalized_mutual_information

N_IMAGES = 256
EIGHT_BITS = 255
KIBIBYTE = 2**10


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


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--mnist", action="store_true", help="all digits too, some minutes")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "results")
    parser.add_argument("--child", type=int, default=0, help=argparse.SUPPRESS)
    parser.add_argument("--log", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        with threadpool_limits(1):
            print(json.dumps(digits(options.log, list(range(options.child)))))
        return
    rows = []
    with threadpool_limits(1):
        for J, order in ((2, 1), (2, 2), (3, 1), (3, 2)):
            rows.append(compare(J, order, options.repeats))
            print(reporting.lines_of(rows[-1:])[-1], flush=True)
    command = "python -m benchmarks.bench_scattering"
    reporting.store(rows, options.out, "scattering", command)
    if options.mnist:
        rows = [row_of(log, options.seeds) for log in (False, True)]
        command = f"TUCKERMIX_DATA=… {command} --mnist"
        reporting.store(rows, options.out, "scattering_mnist", command)


if __name__ == "__main__":
    main()
