import gzip
import struct

import numpy as np
import pytest

from tuckermix.datasets import ReadError, read

nibabel = pytest.importorskip("nibabel", reason="nibabel is not installed")


def scan(seed, shape=(5, 6, 7), dtype=np.int16):
    return np.random.default_rng(seed).integers(0, 100, shape).astype(dtype)


def save(path, X, affine=None, kind=nibabel.Nifti1Image):
    path.parent.mkdir(parents=True, exist_ok=True)
    nibabel.save(kind(X, np.eye(4) if affine is None else affine, dtype=X.dtype), path)


@pytest.mark.parametrize(
    ("kind", "suffix", "dtype"),
    [
        (nibabel.Nifti1Image, ".nii", "u1"),
        (nibabel.Nifti1Image, ".nii.gz", "i2"),
        (nibabel.Nifti2Image, ".nii", "f8"),
        (nibabel.Nifti2Image, ".nii.gz", ">f4"),
        (nibabel.Nifti1Image, ".nii", ">i2"),
    ],
)
def test_a_folder_of_scans(tmp_path, kind, suffix, dtype):
    volumes = [scan(seed, dtype=dtype) for seed in range(3)]
    for index, volume in enumerate(volumes):
        save(tmp_path / ("ill" if index else "well") / f"{index}{suffix}", volume, kind=kind)
    data = read(tmp_path)
    assert np.array_equal(data.X, [volume.T for volume in volumes[1:] + volumes[:1]])
    assert data.X.dtype == np.dtype(dtype).newbyteorder("=")
    assert data.class_names == ["ill", "well"]
    assert data.extra["kind"] == "volume"


def test_one_file_is_cut_along_time_or_depth(tmp_path):
    X = scan(0, (5, 6, 7, 4))
    save(tmp_path / "a.nii.gz", X)
    data = read(tmp_path / "a.nii.gz")
    assert np.array_equal(data.X, X.T)
    assert "the 4 entries along T (time)" in data.extra["notes"][0]
    save(tmp_path / "b.nii", X[..., 0])
    assert np.array_equal(read(tmp_path / "b.nii").X, X[..., 0].T)
    said = read(tmp_path / "b.nii", axes="NYX")
    assert np.array_equal(said.X, X[..., 0])
    assert said.extra["notes"] == []
    with pytest.raises(ReadError, match=r"axes='NYXZ' names 4 axes, and it has 3, XYZ of shape"):
        read(tmp_path / "b.nii", axes="NYXZ")


@pytest.mark.parametrize("seed", range(3))
def test_all_scans_are_turned_the_same_way(tmp_path, seed):
    """Scans stored in other orientations show the same head."""
    rng = np.random.default_rng(seed)
    X = scan(seed)
    save(tmp_path / "0.nii", X)
    for index in (1, 2):
        order = rng.permutation(3)
        flips = rng.choice([-1, 1], 3)
        turned = np.column_stack([order, flips]).astype(float)
        stored = nibabel.as_closest_canonical(nibabel.Nifti1Image(X, np.eye(4)))
        nibabel.save(stored.as_reoriented(turned), tmp_path / f"{index}.nii")
    data = read(tmp_path)
    assert np.array_equal(data.X, [X.T] * 3)


@pytest.mark.parametrize("dtype", ["u1", "i2", "i4"])
def test_scaled_voxels(tmp_path, dtype):
    image = nibabel.Nifti1Image(scan(0, dtype=dtype), np.eye(4))
    image.header.set_slope_inter(0.5, -3.0)
    nibabel.save(image, tmp_path / "a.nii.gz")
    expected = nibabel.load(tmp_path / "a.nii.gz").get_fdata()
    np.testing.assert_allclose(read(tmp_path).X[0], expected.T, rtol=1e-6)


def test_vectors_are_channels(tmp_path):
    X = scan(0, (5, 6, 7, 1, 3), np.float32)
    save(tmp_path / "a.nii", X)
    assert np.array_equal(read(tmp_path, channels=2).X[0][0], X[:, :, :, 0, 2].T)
    assert read(tmp_path / "a.nii", channels=[0, 2], axes="XYZTC").X.shape == (7, 1, 6, 5, 2)


def changed(content, **fields):
    """Change fields of a header of the first version: offset and form by name."""
    places = {"dim": (40, "<8h"), "datatype": (70, "<h"), "offset": (108, "<f")}
    content = bytearray(content)
    for name, values in fields.items():
        start, form = places[name]
        struct.pack_into(form, content, start, *values)
    return bytes(content)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"dim": (3, 5, 6, -7, 1, 1, 1, 1)}, "are impossible|damaged"),
        ({"dim": (9, 5, 6, 7, 1, 1, 1, 1)}, "axes, and scans have up to 5|begin within its header"),
        ({"dim": (3, 32767, 32767, 32767, 1, 1, 1, 1)}, "voxels would take .* the limit is"),
        ({"dim": (6, 1, 1, 1, 1, 2, 2, 1)}, "it has 6 axes, and scans have up to 5"),
        ({"datatype": (32,)}, "of type complex64, which is no real number"),
        ({"offset": (12.0,)}, "begin within its header"),
        ({"offset": (float("nan"),)}, "damaged"),
        ({"offset": (1e9,)}, "bytes of voxels, 0 are here"),
        ({"dim": (3, 50, 6, 7, 1, 1, 1, 1)}, "bytes of voxels, 420 are here"),
    ],
)
@pytest.mark.parametrize("packed", [False, True])
def test_headers_that_lie(tmp_path, fields, message, packed):
    save(tmp_path / "a.nii", scan(0))
    content = changed((tmp_path / "a.nii").read_bytes(), **fields)
    name = tmp_path / ("b.nii.gz" if packed else "b.nii")
    name.write_bytes(gzip.compress(content) if packed else content)
    with pytest.raises(ReadError, match=message):
        read(name, max_bytes=2**24)


def test_other_refusals(tmp_path):
    save(tmp_path / "a.nii", scan(0))
    whole = (tmp_path / "a.nii").read_bytes()
    (tmp_path / "b.nii").write_bytes(b"no NIfTI")
    with pytest.raises(ReadError, match="it does not start like NIfTI"):
        read(tmp_path / "b.nii")
    for length in (2, 100):
        (tmp_path / "b.nii").write_bytes(whole[:length])
        with pytest.raises(ReadError, match="or ends within its header"):
            read(tmp_path / "b.nii")
    (tmp_path / "b.nii").write_bytes(whole[:344] + b"ni1\0" + whole[348:])
    with pytest.raises(ReadError, match="its voxels lie in another file"):
        read(tmp_path / "b.nii")
    with pytest.raises(ReadError, match="size and grey cannot be applied to scans"):
        read(tmp_path / "a.nii", size=3, grey=True)
