"""Write the model files beside this script, with the package in version 0.2.0 on the path."""

from pathlib import Path

import numpy as np
from sklearn.pipeline import make_pipeline

import tuckermix
from tuckermix import AutoClustering, MultiViewClustering, TuckerClustering, baselines
from tuckermix.datasets import make_tensor_clusters
from tuckermix.features import Scale, Scattering

HERE = Path(__file__).parent
NEW_BASELINES = ("ADSSC", "AutoSC", "EnSC", "LSR", "SSCOMP")


def main() -> None:
    X = make_tensor_clusters(36, (6, 5), 3, positive=True, random_state=0).X
    new = make_tensor_clusters(12, (6, 5), 3, positive=True, random_state=1).X
    wavelets = Scattering(J=1, L=2, log=True)
    views = [
        ("pixels", TuckerClustering(random_state=0)),
        ("log-scattering", make_pipeline(wavelets, TuckerClustering(random_state=0))),
    ]
    models = {
        "auto-float64": AutoClustering(3, random_state=0),
        "auto-float32": AutoClustering("auto", candidates=views, random_state=0),
        "views-float64": MultiViewClustering(views, n_clusters=3, random_state=0),
        "calibrated-float64": TuckerClustering(3, calibrate=True, random_state=0),
        "outliers-float64": TuckerClustering(3, outliers="label", random_state=0),
        "min-volume-float32": TuckerClustering(3, memberships="min-volume", random_state=0),
        "pipeline-float64": make_pipeline(
            Scale("dataset", percentiles=(1, 99)), wavelets, TuckerClustering(3, random_state=0)
        ),
    }
    models |= {
        f"{name}-float64": getattr(baselines, name)(3, random_state=0) for name in NEW_BASELINES
    }
    answers = {"new": new}
    for name, model in models.items():
        kind = name.rpartition("-")[2]
        model.fit(X.astype(kind))
        tuckermix.save(model, HERE / f"{name}.model")
        last = model[-1] if hasattr(model, "steps") else model
        answers[f"{name}|labels_"] = last.labels_
        for method in ("predict", "predict_proba", "transform", "outlier_scores"):
            if hasattr(model, method):
                answers[f"{name}|{method}"] = getattr(model, method)(new.astype(kind))
    np.savez_compressed(HERE / "answers.npz", **answers)


if __name__ == "__main__":
    main()
