import gzip
import struct
from dataclasses import replace

import numpy as np
import pytest
import scipy.io

from tuckermix.datasets import ReadError, load
from tuckermix.datasets._registry import KNOWN

Image = pytest.importorskip("PIL.Image", reason="pillow is not installed")


@pytest.fixture
def tiny(monkeypatch):
    """Make a known dataset small enough to be written in a test."""

    def shrink(name, n_samples, n_classes):
        small = replace(KNOWN[name], n_samples=(n_samples,), n_classes=n_classes)
        monkeypatch.setitem(KNOWN, name, small)

    return shrink


def stack(n_samples, shape=(32, 32)):
    return np.random.default_rng(0).integers(0, 256, (n_samples, *shape), dtype=np.uint8)


@pytest.mark.parametrize(
    ("name", "file"),
    [("orl", "ORL_32x32.mat"), ("yaleb", "YaleB_32x32.mat"), ("pie", "Pose27_32x32.mat")],
)
@pytest.mark.parametrize("columns", [False, True])
def test_matlab_files_of_flat_faces(tmp_path, tiny, name, file, columns):
    tiny(name, 6, 3)
    X = stack(6)
    fea = X.transpose(0, 2, 1).reshape(6, 1024).astype(float)
    labels = np.array([1, 1, 2, 2, 3, 3])[:, None]
    scipy.io.savemat(tmp_path / file, {"fea": fea.T if columns else fea, "gnd": labels})
    data = load(name, tmp_path)
    assert data.X.dtype == np.uint8
    assert np.array_equal(data.X, X)
    assert data.labels.tolist() == [1, 1, 2, 2, 3, 3]
    assert data.name == name


def test_matlab_files_of_scaled_faces_stay_as_they_are(tmp_path, tiny):
    tiny("orl", 4, 2)
    fea = np.random.default_rng(0).random((4, 1024))
    scipy.io.savemat(tmp_path / "ORL_32x32.mat", {"fea": fea, "gnd": np.array([1, 1, 2, 2])})
    assert load("orl", tmp_path).X.dtype == np.float64


@pytest.mark.parametrize("folder", ["", "mnist", "MNIST/raw"])
@pytest.mark.parametrize("packed", [True, False])
def test_mnist_as_idx_files(tmp_path, tiny, folder, packed):
    tiny("mnist", 9, 3)
    where = tmp_path / folder
    where.mkdir(parents=True, exist_ok=True)
    X, y = stack(9, (28, 28)), np.arange(9, dtype=np.uint8) % 3
    for part, rows in (("train", slice(0, 6)), ("t10k", slice(6, 9))):
        for kind, array in (("images-idx3", X[rows]), ("labels-idx1", y[rows])):
            head = struct.pack(f">HBB{array.ndim}I", 0, 8, array.ndim, *array.shape)
            content = head + array.tobytes()
            name = f"{part}-{kind}-ubyte" + (".gz" if packed else "")
            (where / name).write_bytes(gzip.compress(content) if packed else content)
    data = load("mnist", tmp_path)
    assert np.array_equal(data.X, X)
    assert np.array_equal(data.labels, y)
    assert data.class_names[7] == "7"


def test_mnist_as_keras_has_it(tmp_path, tiny):
    tiny("mnist", 9, 3)
    X, y = stack(9, (28, 28)), np.arange(9) % 3
    np.savez(tmp_path / "mnist.npz", x_train=X[:6], y_train=y[:6], x_test=X[6:], y_test=y[6:])
    data = load("mnist", tmp_path)
    assert np.array_equal(data.X, X)
    assert np.array_equal(data.labels, y)


def save_image(path, array):
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(array).save(path)


def test_orl_as_folders(tmp_path, tiny):
    tiny("orl", 6, 3)
    for index in range(6):
        flat = np.full((112, 92), 10 * index, np.uint8)
        save_image(tmp_path / "att_faces" / f"s{index // 2 + 1}" / f"{index % 2 + 1}.pgm", flat)
    data = load("orl", tmp_path)
    assert data.labels.tolist() == [1, 1, 2, 2, 3, 3]
    assert np.array_equal(data.X[:, 0, 0], 10 * np.arange(6))
    assert data.names[:2] == ["s1/1.pgm", "s1/2.pgm"]


def test_yale_as_folders_without_the_ambient_pictures(tmp_path, tiny):
    tiny("yaleb", 2, 2)
    for person in ("yaleB01", "yaleB02"):
        for name in ("P00A+000E+00.pgm", "P00_Ambient.pgm"):
            save_image(
                tmp_path / "CroppedYale" / person / f"{person}_{name}", stack(1, (192, 168))[0]
            )
    assert load("yaleb", tmp_path).X.shape == (2, 32, 32)


def test_face_folders_refused(tmp_path, tiny):
    (tmp_path / "att_faces").mkdir()
    with pytest.raises(ReadError, match=r"att_faces: the folder holds no images. Unpack"):
        load("orl", tmp_path)
    save_image(tmp_path / "att_faces" / "1.pgm", stack(1)[0])
    with pytest.raises(
        ReadError, match=r"att_faces: it has no subfolders. Keep one folder for each"
    ):
        load("orl", tmp_path)


@pytest.mark.parametrize("where", ["cbcl/train", "faces/train", "cbcl"])
def test_cbcl_as_folders(tmp_path, tiny, where):
    tiny("cbcl", 3, 2)
    X = stack(3, (19, 19))
    for name, image in zip(("face/a", "non-face/b", "non-face/c"), X, strict=True):
        save_image(tmp_path / where / f"{name}.pgm", image)
    data = load("cbcl", tmp_path)
    assert data.labels.tolist() == [1, 0, 0]
    assert data.class_names == ["non-face", "face"]
    assert np.array_equal(data.X, X)


def test_cbcl_folders_refused(tmp_path):
    for name in ("cats", "dogs"):
        save_image(tmp_path / "cbcl" / name / "a.pgm", stack(1, (19, 19))[0])
    with pytest.raises(ReadError, match=r"its subfolders are not 'face' and 'non-face'. Name the"):
        load("cbcl", tmp_path)


def test_cbcl_as_text(tmp_path, tiny):
    tiny("cbcl", 3, 2)
    X = np.random.default_rng(0).random((3, 361)).round(6)
    rows = [" ".join(map(str, row)) + f" {label}" for row, label in zip(X, (1, -1, 1), strict=True)]
    text = tmp_path / "svm.train.normgrey"
    text.write_text("\n".join(["3", "361", *rows]))
    data = load("cbcl", tmp_path)
    assert np.array_equal(data.X.reshape(3, -1), X)
    assert data.labels.tolist() == [1, 0, 1]
    text.write_text("\n".join(["4", "361", *rows]))
    with pytest.raises(ReadError, match=r"announces 4 lines of 361 numbers and has 3 of 362. Get"):
        load("cbcl", tmp_path)
    text.write_text("\n".join(["3", "361", *rows[:2], "1 2 x"]))
    with pytest.raises(ReadError, match="normgrey: it is damaged"):
        load("cbcl", tmp_path)


def test_voxels_and_spectra(tmp_path, monkeypatch):
    rng = np.random.default_rng(0)
    known = replace(KNOWN["modelnet10"], n_samples=(4,), n_classes=2, sample_shape=(2, 2, 2))
    monkeypatch.setitem(KNOWN, "modelnet10", known)
    grids = rng.integers(0, 2, (4, 2, 2, 2), dtype=np.uint8)
    split = np.array([0, 0, 1, 1], np.int16)
    np.savez(tmp_path / "modelnet10_vox32.npz", images=grids, labels=[0, 0, 1, 1], is_test=split)
    data = load("modelnet10", tmp_path)
    assert data.extra["is_test"].tolist() == [False, False, True, True]
    assert data.class_names[1] == "bed"
    known = replace(KNOWN["samson"], n_samples=(12,), n_classes=2, sample_shape=(5,))
    monkeypatch.setitem(KNOWN, "samson", known)
    cube, labels = rng.random((3, 4, 5)), rng.permutation(np.arange(12) % 2).reshape(3, 4)
    np.savez(
        tmp_path / "samson.npz", cube=cube, labels=labels, abundances=rng.random((3, 4, 2)),
        endmembers=rng.random((2, 5)),
    )  # fmt: skip
    data = load("samson", tmp_path)
    assert np.array_equal(data.X[5], cube[1, 1])
    assert data.labels[5] == labels[1, 1]
    assert data.extra["abundances"].shape == (12, 2)
    assert data.extra["image_shape"] == (3, 4)


@pytest.fixture
def clips(monkeypatch):
    """Make DynTex++ three clips of 4 frames of 6 x 6 in two classes."""
    from functools import partial

    from tuckermix.datasets import _layouts

    known = KNOWN["dyntex++"]
    folder = replace(known.layouts[1], read=partial(_layouts.videos, 4, (6, 6)))
    small = replace(
        known,
        n_samples=(3,),
        n_classes=2,
        sample_shape=(4, 6, 6),
        layouts=(known.layouts[0], folder),
    )
    monkeypatch.setitem(KNOWN, "dyntex++", small)
    return stack(3, (4, 6, 6))


def write_video(path, frames):
    av = pytest.importorskip("av", reason="av is not installed")
    path.parent.mkdir(parents=True, exist_ok=True)
    with av.open(str(path), "w") as container:
        stream = container.add_stream("ffv1", rate=25)
        stream.height, stream.width, stream.pix_fmt = frames.shape[1], frames.shape[2], "gray"
        for frame in frames:
            container.mux(stream.encode(av.VideoFrame.from_ndarray(frame, format="gray")))
        container.mux(stream.encode())


def write_frames(path, frames):
    for index, frame in enumerate(frames):
        save_image(path / f"{index}.png", frame)


def write_array(path, frames):
    path.parent.mkdir(parents=True, exist_ok=True)
    np.save(path, frames)


def write_matlab(path, frames):
    path.parent.mkdir(parents=True, exist_ok=True)
    scipy.io.savemat(path, {"clip": frames.transpose(1, 2, 0)})


@pytest.mark.parametrize(
    ("write", "suffix"),
    [(write_video, ".avi"), (write_frames, ""), (write_array, ".npy"), (write_matlab, ".mat")],
)
def test_clips_in_folders(tmp_path, clips, write, suffix):
    names = [f"smoke/1{suffix}", f"water/1{suffix}", f"water/2{suffix}"]
    for name, clip in zip(names, clips, strict=True):
        write(tmp_path / "DynTex++" / name, clip)
    data = load("dyntex++", tmp_path)
    assert np.array_equal(data.X, clips)
    assert data.labels.tolist() == [0, 1, 1]
    assert data.class_names == ["smoke", "water"]
    assert data.names == names


def test_clips_in_one_folder(tmp_path, clips):
    for name, clip in zip(("c1_1", "c2_1", "c2_2"), clips, strict=True):
        write_array(tmp_path / "dyntexpp" / f"{name}.npy", clip)
    data = load("dyntex++", tmp_path)
    assert data.labels.tolist() == [0, 1, 1]
    assert data.class_names == ["c1", "c2"]


def test_clips_in_an_archive(tmp_path, clips):
    np.savez(tmp_path / "dyntex++.npz", images=clips, labels=[0, 1, 1])
    assert np.array_equal(load("dyntex++", tmp_path).X, clips)


def test_clips_refused(tmp_path, clips):
    folder = tmp_path / "DynTex++"
    folder.mkdir()
    with pytest.raises(ReadError, match=r"the folder holds no clips. Keep one folder per class"):
        load("dyntex++", tmp_path)
    write_frames(folder / "smoke" / "1", clips[0][:3])
    with pytest.raises(ReadError, match=r"1: it has 3 frames and not 4. Get the folder again"):
        load("dyntex++", tmp_path)
    write_array(folder / "nameless.npy", clips[0])
    with pytest.raises(ReadError, match=r"its clips have no classes. Keep one folder for each"):
        load("dyntex++", tmp_path)
    write_array(folder / "nameless.npy", clips[0][:, 1:])
    with pytest.raises(ReadError, match=r"npy: it has shape \(4, 5, 6\) and not \(4, 6, 6\)"):
        load("dyntex++", tmp_path)
