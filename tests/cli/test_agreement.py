"""The command and Python give the same labels: on digits, a folder, a table, volumes, videos."""

import csv

import numpy as np
import pytest

from tuckermix import AutoClustering
from tuckermix.datasets import load, make_dynamic_textures, make_tensor_clusters, read

pytestmark = pytest.mark.slow


def pictures(path):
    Image = pytest.importorskip("PIL.Image", reason="pillow is not installed")
    y, x = np.mgrid[:40, :60] / 40
    rng = np.random.default_rng(0)
    path.mkdir()
    for index in range(45):
        wave = np.sin([20 * x, 20 * y, 15 * (x + y)][index % 3] + rng.uniform(0, 6))
        grey = np.clip(120 + 90 * wave + rng.normal(0, 9, wave.shape), 0, 255).astype(np.uint8)
        image = Image.fromarray(grey if index % 2 else grey[:, 10:50])
        (image if index % 4 else image.convert("RGB")).save(path / f"{index}.png")


def table(path):
    data = make_tensor_clusters(90, (6,), 3, noise=0.2, random_state=0)
    X = data.X * [1, 100, 3, 0.01, 7, 2]
    rows = [",".join(map(repr, map(float, row))) for row in X]
    path.write_text("\n".join(["a,b,c,d,e,f", *rows]))


def volumes(path):
    np.save(path, make_tensor_clusters(60, (8, 9, 10), 3, noise=0.3, random_state=0).X)


def videos(path):
    av = pytest.importorskip("av", reason="av is not installed")
    data = make_dynamic_textures(24, n_classes=3, shape=(32, 32), n_frames=14, random_state=0)
    low, high = data.X.min(), data.X.max()
    path.mkdir()
    for index, clip in enumerate(data.X):
        with av.open(str(path / f"{index}.avi"), "w") as container:
            stream = container.add_stream("ffv1", rate=25)
            stream.height, stream.width, stream.pix_fmt = 32, 32, "gray"
            frames = np.rint(255 * (clip - low) / (high - low)).astype(np.uint8)
            for frame in frames[: 10 + index % 5]:
                container.mux(stream.encode(av.VideoFrame.from_ndarray(frame, format="gray")))
            container.mux(stream.encode())


@pytest.mark.parametrize("features", ["auto", "pixels"])
@pytest.mark.parametrize(
    "source",
    ["digits", pictures, table, volumes, videos],
    ids=lambda one: getattr(one, "__name__", one),
)
def test_labels_are_those_of_python(run, tmp_path, source, features):
    ends = {table: ".csv", volumes: ".npy"}
    name = "digits"
    if source != "digits":
        name = str(tmp_path / f"input{ends.get(source, '')}")
        source(tmp_path / f"input{ends.get(source, '')}")
    out = tmp_path / "out"
    assert run("cluster", name, "--features", features, "-o", out, "-q")[0] == 0
    with open(out / "labels.csv", newline="") as stream:
        labels = [int(row["label"]) for row in csv.DictReader(stream)]
    X = load(name).X if source == "digits" else read(name).X
    model = AutoClustering(features=features, random_state=0).fit(X)
    assert labels == model.labels_.tolist()
    # The model remembers how its own samples were read, and reads new ones in the same way.
    code, printed, _ = run("predict", out, name, "-q")
    assert code == 0
    assert printed == (out / "labels.csv").read_text()
