"""Small valid inputs for every reader, made by code: what the mutators start from."""

from __future__ import annotations

import gzip
import io
import struct
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import tuckermix

__all__ = ["Seed", "corpus"]

Writer = Callable[[Path], Path]


@dataclass(frozen=True)
class Seed:
    """One valid input.

    Attributes
    ----------
    reader : str
        The reader that it is for.
    name : str
        What it is.
    target : str
        The file or folder to read, relative to the folder of the input.
    files : dict
        The content of each file by its path.
    options : dict
        What to pass to `read`.
    """

    reader: str
    name: str
    target: str
    files: dict[str, bytes]
    options: dict[str, Any] = field(default_factory=dict)


def _images(rng: np.random.Generator, *shape: int) -> np.ndarray:
    return rng.integers(0, 256, shape, dtype=np.uint8)


def _npy(path: Path, rng: np.random.Generator) -> dict[str, Path]:
    np.save(path / "c.npy", rng.random((6, 5, 4)))
    np.save(path / "f.npy", np.asfortranarray(rng.random((6, 5))).astype(">f4"))
    return {"C order": path / "c.npy", "Fortran order": path / "f.npy"}


def _npz(path: Path, rng: np.random.Generator) -> dict[str, Path]:
    arrays = {"images": _images(rng, 6, 5, 4), "labels": np.array(list("ababab"))}
    np.savez(path / "plain.npz", **arrays)
    np.savez_compressed(path / "packed.npz", **arrays)
    return {"stored": path / "plain.npz", "packed": path / "packed.npz"}


def _mat(path: Path, rng: np.random.Generator) -> dict[str, Path]:
    import h5py
    import scipy.io

    arrays = {"fea": rng.random((6, 8)), "gnd": np.arange(6.0)[:, None]}
    scipy.io.savemat(path / "4.mat", arrays, format="4")
    scipy.io.savemat(path / "5.mat", {**arrays, "s": {"f": 1}, "t": "text"})
    scipy.io.savemat(path / "7.mat", arrays, do_compression=True)
    with h5py.File(path / "73.mat", "w", userblock_size=512) as file:
        for name, value in arrays.items():
            file.create_dataset(name, data=value.T, chunks=True)
            file[name].attrs["MATLAB_class"] = np.bytes_("double")
    with open(path / "73.mat", "r+b") as stream:
        stream.write(b"MATLAB 7.3 MAT-file, Platform: GLNXA64".ljust(124) + b"\x00\x02IM")
    return {f"version {name}": path / f"{name}.mat" for name in ("4", "5", "7", "73")}


def _hdf5(path: Path, rng: np.random.Generator) -> dict[str, Path]:
    import h5py

    X = rng.integers(0, 9, (12, 5, 4)).astype("i4")
    options = {
        "contiguous": {},
        "gzip": {"chunks": (4, 5, 4), "compression": "gzip", "shuffle": True, "fletcher32": True},
        "lzf": {"chunks": (5, 5, 4), "compression": "lzf"},
    }
    for name, one in options.items():
        for libver in ("earliest", "latest"):
            with h5py.File(path / f"{name} {libver}.h5", "w", libver=libver) as file:
                file.create_dataset("data/images", data=X, **one)
                names = ["one", "two", "three"] * 4
                file.create_dataset("data/labels", data=np.array(names, dtype=object))
                file["data"].attrs["note"] = "text"
                file["link"] = h5py.SoftLink("/data/images")
    return {file.stem: file for file in sorted(path.glob("*.h5"))}


def _zarr(path: Path, rng: np.random.Generator) -> dict[str, Path]:
    import zarr

    X = rng.integers(0, 9, (12, 5, 4)).astype("i4")
    for version in (2, 3):
        root = zarr.open_group(path / f"version {version}", mode="w", zarr_format=version)
        root.create_array("images", data=X, chunks=(5, 5, 4))
        root.create_array("labels", shape=(12,), dtype=str, chunks=(12,))[:] = np.array(
            ["one", "two", "three"] * 4
        )
    for name, codec in {
        "gzip": zarr.codecs.GzipCodec(),
        "blosc": zarr.codecs.BloscCodec(typesize=4),
    }.items():
        zarr.create_array(path / name, data=X, chunks=(5, 5, 4), compressors=[codec])
    zarr.create_array(path / "shards", data=X, chunks=(2, 5, 4), shards=(4, 5, 4))
    return {folder.name: folder for folder in sorted(path.iterdir())}


def _idx(path: Path, rng: np.random.Generator) -> dict[str, Path]:
    images = struct.pack(">2x2B3I", 8, 3, 6, 5, 4) + _images(rng, 6, 5, 4).tobytes()
    labels = struct.pack(">2x2BI", 8, 1, 6) + bytes(range(6))
    found = {}
    for name, packed in (("plain", False), ("gzipped", True)):
        folder = path / name
        folder.mkdir()
        for kind, content in (("images-idx3", images), ("labels-idx1", labels)):
            file = folder / f"train-{kind}-ubyte{'.gz' if packed else ''}"
            file.write_bytes(gzip.compress(content) if packed else content)
        found[name] = folder
    return found


def _pictures(path: Path, rng: np.random.Generator) -> dict[str, Path]:
    from PIL import Image, features

    found = {}
    for suffix in ("png", "jpg", "gif", "bmp", "ppm", "webp"):
        folder = path / suffix
        for name, shape in (("a", (8, 9, 3)), ("b", (8, 9, 3))):
            file = folder / name / f"1.{suffix}"
            file.parent.mkdir(parents=True)
            Image.fromarray(_images(rng, *shape)).save(file)
        found[suffix] = folder
    grey = path / "grey"
    grey.mkdir()
    Image.fromarray(_images(rng, 8, 9)).save(grey / "1.png", exif=_turned(Image))
    Image.fromarray(_images(rng, 8, 9)).convert("P").save(grey / "2.png")
    mixed = path / "mixed"  # sizes, colours, depths and frames that differ, in one folder
    mixed.mkdir()
    clear = Image.fromarray(_images(rng, 6, 7, 4))
    frames = [Image.fromarray(_images(rng, 6, 7, 3)) for _ in range(3)]
    for suffix in ("gif", "webp", *(("avif",) if features.check("avif") else ())):
        frames[0].save(mixed / f"1.{suffix}", save_all=True, append_images=frames[1:])
    clear.save(mixed / "2.png")
    clear.convert("CMYK").save(mixed / "3.jpg")
    Image.fromarray(_images(rng, 5, 5).astype("u2")).save(mixed / "4.png")
    frames[0].save(mixed / "5.tif", save_all=True, append_images=frames[1:])
    return {**found, "grey": grey, "mixed": mixed}


def _turned(Image: Any) -> Any:
    exif = Image.Exif()
    exif[0x0112] = 3
    return exif


def _tiff(path: Path, rng: np.random.Generator) -> dict[str, Path]:
    from PIL import Image

    pages = [Image.fromarray(_images(rng, 8, 9)) for _ in range(3)]
    colours = [Image.fromarray(_images(rng, 16, 16, 3)) for _ in range(2)]
    for how in ("raw", "packbits", "tiff_lzw", "tiff_adobe_deflate"):
        pages[0].save(path / f"{how}.tif", save_all=True, append_images=pages[1:], compression=how)
    colours[0].save(path / "jpeg.tif", save_all=True, append_images=colours[1:], compression="jpeg")
    wide = [Image.fromarray(_images(rng, 8, 9).astype("i4")) for _ in range(2)]
    wide[0].save(path / "big.tif", save_all=True, append_images=wide[1:], big_tiff=True)
    planes = "".join(
        f'<TiffData IFD="{5 - n}" FirstC="{n % 2}" FirstZ="{n // 2}"/>' for n in range(6)
    )
    note = (
        '<OME xmlns="http://www.openmicroscopy.org/Schemas/OME/2016-06"><Image ID="Image:0">'
        '<Pixels DimensionOrder="XYCZT" SizeX="9" SizeY="8" SizeC="2" SizeZ="3" SizeT="1">'
        f'<Channel Name="a"/><Channel Name="b"/>{planes}</Pixels></Image></OME>'
    )
    six = [Image.fromarray(_images(rng, 8, 9)) for _ in range(6)]
    six[0].save(path / "ome.tif", save_all=True, append_images=six[1:], description=note)
    stack = "ImageJ=1.53\nimages=6\nchannels=2\nslices=3\n"
    six[0].save(path / "imagej.tif", save_all=True, append_images=six[1:], description=stack)
    return {file.stem: file for file in sorted(path.glob("*.tif"))}


def _nifti(path: Path, rng: np.random.Generator) -> dict[str, Path]:
    import nibabel

    turned = np.array([[0.0, -2, 0, 5], [1, 0, 0, 3], [0, 0, -1, 2], [0, 0, 0, 1]])
    for name, kind, dtype in (("1", nibabel.Nifti1Image, "i2"), ("2", nibabel.Nifti2Image, "f4")):
        image = kind(rng.integers(0, 99, (5, 4, 6, 3)).astype(dtype), turned)
        image.header.set_slope_inter(*((0.5, 3.0) if dtype == "i2" else (1.0, 0.0)))
        image.header.extensions.append(nibabel.nifti1.Nifti1Extension("comment", b"note"))
        for suffix in ("nii", "nii.gz"):
            nibabel.save(image, path / f"{name}.{suffix}")
    return {file.name: file for file in sorted(path.iterdir())}


def _table(path: Path, rng: np.random.Generator) -> dict[str, Path]:
    folder = path / "paths"
    folder.mkdir()
    for index, sample in enumerate(rng.random((4, 3, 2))):
        np.save(folder / f"{index}.npy", sample)
    rows = [f"{index}.npy;kind {index % 2}" for index in range(4)]
    (folder / "paths.csv").write_text("\n".join(["path;class", *rows]))
    lines = [",".join(map(str, row)) for row in _images(rng, 6, 5).tolist()]
    (path / "pixels.csv").write_text("\n".join(["y,a,b,c,d", *lines]))
    (path / "wide.tsv").write_bytes("name\ta\tb\none\t1.5\t2\ntwo\t3\t-4e3\n".encode("utf-16"))
    files = (folder / "paths.csv", path / "pixels.csv", path / "wide.tsv")
    return {"folder of arrays": folder, **{file.name: file for file in files}}


def _parquet(path: Path, rng: np.random.Generator) -> dict[str, Path]:
    import pyarrow
    from pyarrow import parquet

    kinds = ["a", "b"] * 3
    lists = pyarrow.table({"image": _images(rng, 6, 12).tolist(), "label": kinds})
    numbers = pyarrow.table({"y": range(6), **dict(zip("ab", rng.random((2, 6)), strict=True))})
    for name, table in (("lists", lists), ("numbers", numbers)):
        for how in ("none", "snappy", "zstd"):
            parquet.write_table(table, path / f"{name} {how}.parquet", compression=how)
    return {file.stem: file for file in sorted(path.glob("*.parquet"))}


def _video(path: Path, rng: np.random.Generator) -> dict[str, Path]:
    import av

    found = {}
    for suffix, codec, layout in (("avi", "ffv1", "gray"), ("mp4", "mpeg4", "yuv420p")):
        file = path / f"a.{suffix}"
        with av.open(str(file), "w") as container:
            stream = container.add_stream(codec, rate=5)
            stream.width, stream.height, stream.pix_fmt = 32, 32, layout
            for _ in range(4):
                picture = av.VideoFrame.from_ndarray(_images(rng, 32, 32, 3), format="rgb24")
                container.mux(stream.encode(picture.reformat(format=layout)))
            container.mux(stream.encode())
        found[suffix] = file
    return found


def _model(path: Path, rng: np.random.Generator) -> dict[str, Path]:
    from sklearn.pipeline import make_pipeline

    from tuckermix.baselines import LSR, MultiplicativeNMF, PCAMultinomial
    from tuckermix.features import Scale, Scattering

    X = np.abs(tuckermix.datasets.make_tensor_clusters(30, (4, 3), 3, random_state=0).X)
    plain = partial(tuckermix.TuckerClustering, n_clusters=3, random_state=0)
    models: dict[str, Any] = {
        labels: plain(assign_labels=labels) for labels in ("graph", "subspace", "memberships")
    }
    models |= {
        "argmax": plain(assign_labels="argmax", memberships="min-volume"),
        "calibrated": plain(calibrate=True, memberships="archetypes"),
        "gaps": plain(missing="impute"),
        "PCAMultinomial": PCAMultinomial(3, random_state=0, tol=0.1),
        "NMF": MultiplicativeNMF(3, random_state=0, tol=0.1),
        "LSR": LSR(3, random_state=0),
        # Estimators that hold others.
        "pipeline": make_pipeline(Scale("sample"), plain()),
        "auto": tuckermix.AutoClustering(3, features="pixels", random_state=0),
    }
    views = [("pixels", plain()), ("scaled", make_pipeline(Scale("dataset"), plain()))]
    models["views"] = tuckermix.MultiViewClustering(views, n_clusters=3, random_state=0)
    found = {}
    for name, model in models.items():
        found[name] = path / f"{name}.tuckermix"
        tuckermix.save(model.fit(X), found[name])
    stream = plain().partial_fit(X).partial_fit(X)
    waves = make_pipeline(Scattering(J=1), plain()).fit(rng.random((12, 8, 8)))
    for name, model in (("stream", stream), ("waves", waves)):
        found[name] = path / f"{name}.tuckermix"
        tuckermix.save(model, found[name])
    return found


MAKERS: dict[str, Callable[[Path, np.random.Generator], dict[str, Path]]] = {
    "npy": _npy,
    "npz": _npz,
    "mat": _mat,
    "hdf5": _hdf5,
    "zarr": _zarr,
    "idx": _idx,
    "images": _pictures,
    "tiff": _tiff,
    "nifti": _nifti,
    "table": _table,
    "parquet": _parquet,
    "video": _video,
    "model": _model,
}
"""What writes the inputs of each reader; another reader is another line here."""


def corpus(readers: tuple[str, ...] = tuple(MAKERS)) -> list[Seed]:
    """Make the valid inputs of some readers."""
    import tuckermix.datasets  # noqa: F401  (the models need data)

    seeds = []
    for reader in readers:
        with tempfile.TemporaryDirectory() as folder:
            made = MAKERS[reader](Path(folder), np.random.default_rng(0))
            for name, target in made.items():
                # A file in a folder of its own brings along what lies beside it.
                around = target if target.is_dir() else target.parent
                alone = around == Path(folder)
                files = [target] if alone else sorted(around.rglob("*"))
                content = {
                    file.relative_to(folder).as_posix(): file.read_bytes()
                    for file in files
                    if file.is_file()
                }
                relative = target.relative_to(folder).as_posix()
                seeds.append(Seed(reader, name, relative, content))
    return seeds


def zip_parts(content: bytes) -> dict[str, bytes] | None:
    """Return the members of a zip archive, or None where it is none."""
    import zipfile

    if not content.startswith(b"PK"):
        return None
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        return {name: archive.read(name) for name in archive.namelist()}
