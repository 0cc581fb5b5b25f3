"""Write the model files beside this script, with the package in version 0.1.0 on the path."""

from pathlib import Path

import numpy as np

import tuckermix
from tuckermix import TuckerClustering, baselines
from tuckermix.datasets import make_tensor_clusters

HERE = Path(__file__).parent
WAYS = ("graph", "subspace", "memberships", "argmax")


def main() -> None:
    X = make_tensor_clusters(36, (5, 4), 3, positive=True, random_state=0).X
    new = make_tensor_clusters(12, (5, 4), 3, positive=True, random_state=1).X
    models = {
        f"tucker-{way}-{dtype}": TuckerClustering(3, assign_labels=way, random_state=0).fit(
            X.astype(dtype)
        )
        for way in WAYS
        for dtype in ("float32", "float64")
    }
    models["tucker-trust-region-float64"] = TuckerClustering(
        3, solver="trust-region", assign_labels="memberships", max_iter=10, random_state=0
    ).fit(X)
    for name in baselines.__all__:
        models[name] = getattr(baselines, name)(3, max_iter=5, random_state=0).fit(X)
    answers = {"new": new}
    for name, model in models.items():
        tuckermix.save(model, HERE / f"{name}.model")
        asked = new.astype("float32" if name.endswith("32") else "float64")
        answers[f"{name}|labels_"] = model.labels_
        answers[f"{name}|memberships_"] = model.memberships_
        for method in ("predict", "predict_proba", "transform"):
            if hasattr(model, method):
                answers[f"{name}|{method}"] = getattr(model, method)(asked)
    np.savez_compressed(HERE / "answers.npz", **answers)


if __name__ == "__main__":
    main()
