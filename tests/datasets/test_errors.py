import builtins
import pickle

import numpy as np
import pytest

from tuckermix.datasets import DatasetNotFound, ReadError, read


def test_errors_of_the_system(tmp_path, monkeypatch):
    np.save(tmp_path / "a.npy", np.zeros((3, 3)))
    for error, message in (
        (PermissionError(), "permission is denied. Check who may read it"),
        (MemoryError(), "its content does not fit into memory. Store it as"),
        (FileNotFoundError(), "it does not exist. Check the path"),
        (RecursionError("deep\n\n" + 400 * "x"), r"\(RecursionError: deep x+\). Get the file anew"),
    ):

        def fail(*args, error=error, **kwargs):
            raise error

        monkeypatch.setattr("tuckermix.datasets._npy._header", fail)
        with pytest.raises(ReadError, match=f"a.npy: .*{message}") as caught:
            read(tmp_path / "a.npy")
        assert len(str(caught.value)) < 600
        assert caught.value.__cause__ is error


@pytest.mark.parametrize(
    ("name", "package", "message"),
    [
        ("a.h5", "h5py", r"Reading HDF5 needs h5py: install tuckermix\[io\]\."),
        ("folder.zarr", "zarr", r"Reading Zarr needs zarr: install tuckermix\[io\]\."),
        ("images", "PIL", r"Reading images needs pillow: install tuckermix\[io\]\."),
        ("a.tif", "tifffile", r"Reading TIFF needs tifffile: install tuckermix\[io\]\."),
        ("a.avi", "av", r"Reading videos needs av: install tuckermix\[io\]\."),
        ("a.npy", "dask", r"Reading in chunks needs dask: install tuckermix\[dask\]\."),
    ],
)
def test_absent_packages(tmp_path, monkeypatch, name, package, message):
    real = builtins.__import__

    def without(module, *args, **kwargs):
        if module.split(".")[0] == package:
            raise ImportError(module)
        return real(module, *args, **kwargs)

    if name == "folder.zarr":
        (tmp_path / name).mkdir()
        (tmp_path / name / ".zgroup").write_text("{}")
    elif name == "images":
        (tmp_path / name).mkdir()
        (tmp_path / name / "a.png").write_bytes(b"x")
    elif name == "a.npy":
        np.save(tmp_path / name, np.zeros((4, 4)))
    else:
        (tmp_path / name).write_bytes(b"x")
    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(ImportError, match=message):
        read(tmp_path / name, **({"chunks": 2} if package == "dask" else {}))


def test_errors_travel_between_processes():
    for error in (ReadError("Cannot read a: b. C."), DatasetNotFound("The dataset is not here.")):
        again = pickle.loads(pickle.dumps(error))
        assert type(again) is type(error)
        assert str(again) == str(error)
