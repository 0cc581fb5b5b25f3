"""Recover planted simplices and unmix a scene: ``python -m benchmarks.unmixing``.

Planted simplices are recovered without noise and at 40 dB, and with a twentieth of the samples
thrown far out. One setting of `outside` serves all rows: a hundredth of the samples for each
component, and with outliers their share. It was chosen while looking at the draws 0 to 2; the
table has draws that were not looked at. Times are processor times of one thread.

The second table needs ``TUCKERMIX_DATA``, the folder with `samson_unmixing.npz`. Results go to
`unmixing_planted.md` and `unmixing_samson.md`.
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
from scipy.optimize import linear_sum_assignment

from benchmarks import reporting
from benchmarks.unmixing_methods import (
    affine_coordinates,
    archetypal_analysis,
    fcls,
    mvsa,
    nfindr,
    sisal,
    vca,
)
from tuckermix import TuckerClustering

DRAWS = 3
OUTSIDE = 0.01
"""Share of the samples that noise may take beyond each facet."""
OUTLIERS = 0.05
COMMAND = "TUCKERMIX_DATA=… python -m benchmarks.unmixing"


def planted(n_components: int, seed: int, snr: float | None) -> tuple[np.ndarray, np.ndarray]:
    """Draw 1,500 mixtures of uniform vertices in 40 dimensions, no weight above 0.9."""
    rng = np.random.default_rng(seed)
    vertices = rng.uniform(size=(n_components, 40))
    weights = np.empty((0, n_components))
    while len(weights) < 1500:
        drawn = rng.dirichlet(np.full(n_components, 0.6), size=6000)
        weights = np.vstack([weights, drawn[drawn.max(axis=1) <= 0.9]])
    weights = weights[:1500]
    X = weights @ vertices
    if snr is not None:
        X = X + (np.mean(X**2) / 10 ** (snr / 10)) ** 0.5 * rng.standard_normal(X.shape)
    return X, weights


def matched(weights: np.ndarray, truth: np.ndarray) -> tuple[float, np.ndarray]:
    """Return the root mean squared error under the best matching, and the matching."""
    squares = np.sum((weights[:, :, None] - truth[:, None, :]) ** 2, axis=0)
    rows, columns = linear_sum_assignment(squares)
    return float(np.sum(squares[rows, columns]) / truth.size) ** 0.5, columns


def barycentric(Z: np.ndarray, vertices: np.ndarray) -> np.ndarray:
    lifted = np.column_stack([np.ones(len(vertices)), vertices])
    return np.column_stack([np.ones(len(Z)), Z]) @ np.linalg.inv(lifted)


def with_outliers(X: np.ndarray, n_components: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Throw some samples four times as far out as any other, within the plane of the mixtures."""
    rng = np.random.default_rng(seed)
    Z, basis, mean = affine_coordinates(X, n_components - 1)
    chosen = rng.choice(len(X), int(OUTLIERS * len(X)), replace=False)
    far = rng.standard_normal((len(chosen), n_components - 1))
    Z[chosen] = 4 * np.abs(Z).max() * far / np.linalg.norm(far, axis=1, keepdims=True)
    return mean + Z @ basis, np.setdiff1d(np.arange(len(X)), chosen)


def ours(X: np.ndarray, n_components: int, outside: float) -> TuckerClustering:
    return TuckerClustering(
        2,
        n_components=n_components,
        ranks=X.shape[1],
        memberships="min-volume",
        outside=outside,
        assign_labels="subspace",
        random_state=0,
    ).fit(X)


def planted_table(first: int) -> list[str]:
    """Compare on planted simplices; the largest error of the draws."""
    names = (
        "min-volume",
        f"min-volume, outside={OUTSIDE} K",
        "MVSA",
        "SISAL",
        "VCA + FCLS",
        f"5 % outliers: outside={OUTLIERS}",
    )
    lines = [
        f"| components | noise | {' | '.join(names)} | gap of min-volume |",
        "|---" * (len(names) + 3) + "|",
    ]
    for n_components in (3, 6, 10, 12):
        for snr in (None, 40.0):
            errors: dict[str, list[float]] = {name: [] for name in names}
            times: dict[str, list[float]] = {name: [] for name in names}
            gaps = []
            for seed in range(first, first + DRAWS):
                X, truth = planted(n_components, seed, snr)
                Z = np.linalg.svd(X - X.mean(axis=0), full_matrices=False)[0]
                Z = Z[:, : n_components - 1] * len(X) ** 0.5
                thrown, kept = with_outliers(X, n_components, seed)
                gaps.append(ours(X, n_components, 0.0).gap_)
                ways: dict[str, Callable[[], np.ndarray]] = dict(
                    zip(
                        names,
                        (
                            lambda X=X, k=n_components: ours(X, k, 0.0).memberships_,
                            lambda X=X, k=n_components: ours(X, k, OUTSIDE * k).memberships_,
                            lambda Z=Z: barycentric(Z, mvsa(Z, np.random.default_rng(0))),
                            lambda Z=Z: barycentric(Z, sisal(Z, np.random.default_rng(0))),
                            lambda X=X, k=n_components: fcls(
                                X, vca(X, k, np.random.default_rng(0))
                            ),
                            lambda X=thrown, k=n_components: ours(X, k, OUTLIERS).memberships_,
                        ),
                        strict=True,
                    )
                )
                for name, way in ways.items():
                    began = time.process_time()
                    found = way()
                    times[name].append(time.process_time() - began)
                    some = kept if name == names[-1] else slice(None)
                    errors[name].append(matched(found[some], truth[some])[0])
            cells = [f"{max(errors[n]):.4f} ({np.median(times[n]):.2f} s)" for n in names]
            noise = "none" if snr is None else f"{snr:.0f} dB"
            cells.append(f"{max(map(abs, gaps)):.0e}")
            lines.append(f"| {n_components} | {noise} | {' | '.join(cells)} |")
            print(lines[-1], flush=True)
    return lines


def samson_table(folder: Path) -> list[str]:
    """Unmix the Samson scene with pixels of unit norm, every method on the same pixels."""
    with np.load(folder / "samson_unmixing.npz", allow_pickle=False) as data:
        cube, truth = data["cube"].astype(float), data["abundances"].astype(float)
        spectra = data["endmembers"].astype(float)
    truth = truth.reshape(-1, truth.shape[-1])
    cube /= np.linalg.norm(cube, axis=2, keepdims=True)
    n_bands = cube.shape[2]
    X, rng = cube.reshape(-1, n_bands), np.random.default_rng(0)

    def fitted(samples: np.ndarray, ranks: object, **options: object) -> tuple:
        model = TuckerClustering(
            3, n_components=3, ranks=ranks, assign_labels="subspace", random_state=0, **options
        ).fit(samples)
        centre = tuple(size // 2 for size in model.sample_shape_[:-1])
        return model.components_[(slice(None), *centre)], model.memberships_

    padded = np.pad(cube, ((1, 1), (1, 1), (0, 0)), mode="reflect")
    windows = np.lib.stride_tricks.sliding_window_view(padded, (3, 3), axis=(0, 1))
    patches = windows.transpose(0, 1, 3, 4, 2).reshape(-1, 3, 3, n_bands)
    ways: dict[str, Callable[[], tuple]] = {
        "`archetypes`": lambda: fitted(X, n_bands, memberships="archetypes"),
        "`archetypes`, patches of 3 × 3": lambda: fitted(
            patches, (3, 3, 30), memberships="archetypes"
        ),
        "`min-volume`, outside=0.2": lambda: fitted(
            X, n_bands, memberships="min-volume", outside=0.2
        ),
        "`min-volume`": lambda: fitted(X, n_bands, memberships="min-volume"),
        "archetypal analysis, all bands": lambda: archetypal_analysis(X, 3, rng),
        "VCA + FCLS": lambda: (v := vca(X, 3, rng), fcls(X, v)),
        "N-FINDR + FCLS": lambda: (v := nfindr(X, 3, rng), fcls(X, v)),
    }
    lines = ["| method | abundance RMSE | spectral angle | seconds |", "|---|---|---|---|"]
    for name, way in ways.items():
        began = time.perf_counter()
        vertices, weights = way()
        seconds = time.perf_counter() - began
        error, order = matched(weights, truth)
        cosines = np.sum(vertices * spectra[order], axis=1) / (
            np.linalg.norm(vertices, axis=1) * np.linalg.norm(spectra[order], axis=1)
        )
        angle = float(np.mean(np.arccos(np.clip(cosines, -1.0, 1.0))))
        lines.append(f"| {name} | {error:.4f} | {angle:.4f} | {seconds:.1f} |")
        print(lines[-1], flush=True)
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "results")
    parser.add_argument("--only", default="", choices=["", "planted", "samson"])
    parser.add_argument("--first", type=int, default=100, help="the first draw that is planted")
    options = parser.parse_args()
    heading = reporting.heading(COMMAND, f"Largest of {DRAWS} draws", reporting.environment())
    if options.only != "samson":
        text = "\n".join([heading, "", *planted_table(options.first), ""])
        (options.out / "unmixing_planted.md").write_text(text)
    folder = os.environ.get("TUCKERMIX_DATA")
    if folder and options.only != "planted":
        heading = reporting.heading(COMMAND, "One run", reporting.environment())
        text = "\n".join([heading, "", *samson_table(Path(folder)), ""])
        (options.out / "unmixing_samson.md").write_text(text)


if __name__ == "__main__":
    main()
