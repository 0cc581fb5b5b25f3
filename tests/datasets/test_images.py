import io

import numpy as np
import pytest

from tuckermix.datasets import ReadError, read

Image = pytest.importorskip("PIL.Image", reason="pillow is not installed")
tifffile = pytest.importorskip("tifffile", reason="tifffile is not installed")


def picture(seed, shape=(6, 5), dtype=np.uint8):
    return np.random.default_rng(seed).integers(0, np.iinfo(dtype).max, shape).astype(dtype)


def save(path, array):
    path.parent.mkdir(exist_ok=True, parents=True)
    Image.fromarray(array).save(path)


@pytest.mark.parametrize("suffix", ["png", "bmp", "pgm", "tif", "gif"])
def test_a_flat_folder_has_names_and_no_labels(tmp_path, suffix):
    for index in (2, 10, 1):
        save(tmp_path / f"s{index}.{suffix}", picture(index))
    (tmp_path / "notes.txt").write_text("not an image, and not looked at")
    (tmp_path / f".hidden.{suffix}").write_text("neither")
    data = read(tmp_path)
    assert data.names == [f"s1.{suffix}", f"s2.{suffix}", f"s10.{suffix}"]
    assert np.array_equal(data.X, [picture(1), picture(2), picture(10)])
    assert data.X.dtype == np.uint8
    assert data.labels is data.class_names is None


def test_subfolders_are_classes(tmp_path):
    for index, name in enumerate(("s1/b.png", "s10/a.png", "s2/a.png", "s2/deep/er.png")):
        save(tmp_path / name, picture(index))
    data = read(tmp_path)
    assert data.names == ["s1/b.png", "s2/a.png", "s2/deep/er.png", "s10/a.png"]
    assert data.labels.tolist() == [0, 1, 1, 2]
    assert data.class_names == ["s1", "s2", "s10"]


def test_one_subfolder_is_no_class(tmp_path):
    save(tmp_path / "images" / "a.png", picture(0))
    assert read(tmp_path).labels is None


def test_colour(tmp_path):
    colour, grey = picture(0, (6, 5, 3)), picture(1)
    save(tmp_path / "a.png", colour)
    assert np.array_equal(read(tmp_path).X[0], colour)
    expected = np.rint(colour @ [0.299, 0.587, 0.114])
    assert np.abs(read(tmp_path, grey=True).X[0] - expected).max() <= 1
    save(tmp_path / "b.png", grey)
    with pytest.raises(
        ReadError,
        match=r"'a.png' has shape \(6, 5, 3\) and 'b.png' has shape "
        r"\(6, 5\). Pass grey=True .* or grey=False",
    ):
        read(tmp_path)
    assert read(tmp_path, grey=True).X.shape == (2, 6, 5)
    assert np.array_equal(read(tmp_path, grey=True).X[1], grey)
    assert np.array_equal(read(tmp_path, grey=False).X[1], np.repeat(grey[..., None], 3, 2))


def test_sizes(tmp_path):
    save(tmp_path / "a.png", np.full((6, 5), 40, np.uint8))
    save(tmp_path / "b.png", np.full((4, 5), 90, np.uint8))
    with pytest.raises(
        ReadError,
        match=r"'a.png' has shape \(6, 5\) and 'b.png' has shape \(4, 5\)"
        r". Pass size=\(height, width\)",
    ):
        read(tmp_path)
    assert np.array_equal(read(tmp_path, size=(3, 4)).X, np.full((2, 3, 4), [[[40]], [[90]]]))
    assert read(tmp_path, size=7).X.shape == (2, 7, 7)


def test_resizing_averages(tmp_path):
    fine = picture(0, (64, 64), np.uint16)
    Image.fromarray(fine).save(tmp_path / "a.png")
    coarse = read(tmp_path, size=8).X[0]
    assert coarse.dtype == np.uint16
    assert coarse.mean() == pytest.approx(fine.mean(), rel=0.02)
    assert coarse.std() < 0.3 * fine.std()  # averages of noise, not samples of it


def test_other_modes(tmp_path):
    grey = picture(0)
    for index, image in enumerate(
        [
            Image.fromarray(grey > 100),
            Image.fromarray(grey).convert("LA"),
            Image.fromarray(grey).convert("P"),
            Image.fromarray(picture(0, (6, 5, 4))),
            Image.fromarray(picture(1, (6, 5, 3))).quantize(4),
            Image.fromarray(picture(1, (6, 5), np.uint16)),
        ]
    ):
        folder = tmp_path / str(index)
        folder.mkdir()
        image.save(folder / "a.png")
    assert np.array_equal(read(tmp_path / "0").X[0], 255 * (grey > 100))
    assert np.array_equal(read(tmp_path / "1").X[0], grey)
    assert np.array_equal(read(tmp_path / "2").X[0], grey)
    assert np.array_equal(read(tmp_path / "3").X[0], picture(0, (6, 5, 4))[..., :3])
    assert read(tmp_path / "4").X.shape == (1, 6, 5, 3)
    assert np.array_equal(read(tmp_path / "5").X[0], picture(1, (6, 5), np.uint16))


def test_pictures_are_turned_upright(tmp_path):
    exif = Image.Exif()
    exif[0x0112] = 6
    Image.fromarray(picture(0)).save(tmp_path / "a.png", exif=exif)
    assert np.array_equal(read(tmp_path).X[0], np.rot90(picture(0), -1))


def test_mixed_depths_take_the_larger(tmp_path):
    save(tmp_path / "a.png", picture(0))
    save(tmp_path / "b.png", picture(1, dtype=np.uint16))
    data = read(tmp_path)
    assert data.X.dtype == np.uint16
    assert np.array_equal(data.X[0], picture(0))
    assert np.array_equal(data.X[1], picture(1, dtype=np.uint16))


@pytest.mark.parametrize("compression", [None, "zlib", "lzw"])
def test_pages_of_a_tiff_are_samples(tmp_path, compression):
    pages = picture(0, (7, 6, 5), np.uint16)
    if compression == "lzw":
        images = [Image.fromarray(page) for page in pages]
        images[0].save(
            tmp_path / "a.tif", save_all=True, append_images=images[1:], compression="tiff_lzw"
        )
    else:
        tifffile.imwrite(tmp_path / "a.tif", pages, compression=compression)
    assert np.array_equal(read(tmp_path / "a.tif").X, pages)
    assert read(tmp_path / "a.tif", size=(3, 2)).X.shape == (7, 3, 2)


def test_colour_pages(tmp_path):
    pages = picture(0, (7, 6, 5, 3))
    tifffile.imwrite(tmp_path / "a.tif", pages, photometric="rgb")
    assert np.array_equal(read(tmp_path / "a.tif").X, pages)
    assert read(tmp_path / "a.tif", grey=True).X.shape == (7, 6, 5)
    tifffile.imwrite(
        tmp_path / "b.tif", pages.transpose(0, 3, 1, 2), photometric="rgb", planarconfig="separate"
    )
    assert np.array_equal(read(tmp_path / "b.tif").X, pages)


def test_narrow_pages_are_not_taken_for_colours(tmp_path):
    pages = picture(0, (7, 6, 3))
    tifffile.imwrite(tmp_path / "a.tif", pages, photometric="minisblack")
    assert np.array_equal(read(tmp_path / "a.tif").X, pages)


def test_in_a_folder_each_tiff_is_a_sample(tmp_path):
    volumes = picture(0, (2, 7, 6, 5))
    for name, volume in zip("ab", volumes, strict=True):
        tifffile.imwrite(tmp_path / f"{name}.tif", volume)
    assert np.array_equal(read(tmp_path).X, volumes)
    assert read(tmp_path, size=4).X.shape == (2, 7, 4, 4)


def test_tiff_refused(tmp_path):
    tifffile.imwrite(tmp_path / "one.tif", picture(0))
    with pytest.raises(
        ReadError, match=r"one.tif: it holds one image of shape \(6, 5\), and .* folder"
    ):
        read(tmp_path / "one.tif")
    with tifffile.TiffWriter(tmp_path / "mixed.tif") as writer:
        writer.write(picture(0))
        writer.write(picture(0, (3, 3)))
    with pytest.raises(
        ReadError, match=r"mixed.tif: its pages differ in size: \(3, 3\), \(6, 5\). Save"
    ):
        read(tmp_path / "mixed.tif")
    tifffile.imwrite(tmp_path / "c.tif", np.zeros((9, 6, 5), np.complex64))
    with pytest.raises(ReadError, match=r"c.tif: its pages have dtype complex64. Save it with"):
        read(tmp_path / "c.tif")
    tifffile.imwrite(tmp_path / "big.tif", picture(0, (9, 6, 5)))
    with pytest.raises(ReadError, match=r"its pages would take 270 bytes .* max_bytes=269. If"):
        read(tmp_path / "big.tif", max_bytes=269)
    whole = (tmp_path / "big.tif").read_bytes()
    (tmp_path / "cut.tif").write_bytes(whole[:60])
    with pytest.raises(ReadError, match=r"Cannot read .*cut.tif"):
        read(tmp_path / "cut.tif")


def test_an_image_that_is_none(tmp_path):
    save(tmp_path / "a.png", picture(0))
    for content in (b"text", b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 9 9\n"):
        (tmp_path / "b.png").write_bytes(content)
        with pytest.raises(
            ReadError, match=r"b.png: it is not an image, or of a kind .* Remove it"
        ):
            read(tmp_path)
    stream = io.BytesIO()
    Image.fromarray(picture(0, (60, 50))).save(stream, "png")
    (tmp_path / "b.png").write_bytes(stream.getvalue()[:-1000])
    with pytest.raises(ReadError, match=r"b.png: it is damaged"):
        read(tmp_path)


def test_limits(tmp_path):
    save(tmp_path / "a.png", picture(0, (100, 100)))
    with pytest.raises(ReadError, match=r"a.png: its 100 x 100 pixels would take 120000 bytes"):
        read(tmp_path, max_bytes=119_999)
    for index in range(12):
        save(tmp_path / f"b{index}.png", picture(0, (100, 100)))
    with pytest.raises(
        ReadError, match=r"13 samples of shape \(100, 100\) would take 130000 bytes"
    ):
        read(tmp_path, max_bytes=129_999)


def test_long_files(tmp_path):
    save(tmp_path / "a.png", picture(0, (4, 4)))
    with open(tmp_path / "a.png", "ab") as stream:
        stream.write(bytes(10**5))
    with pytest.raises(ReadError, match=r"the file itself would take 1000\d\d bytes in memory"):
        read(tmp_path, max_bytes=99_999)


def test_other_refusals(tmp_path):
    frames = [Image.fromarray(picture(index)) for index in range(3)]
    frames[0].save(tmp_path / "a.gif", save_all=True, append_images=frames[1:])
    with pytest.raises(ReadError, match=r"a.gif: it is an animation of 3 frames. Convert it"):
        read(tmp_path)
    (tmp_path / "a.gif").unlink()


def test_files_beside_subfolders_give_no_classes(tmp_path):
    save(tmp_path / "a.png", picture(0))
    save(tmp_path / "sub" / "b.png", picture(1))
    data = read(tmp_path)
    assert data.names == ["a.png", "sub/b.png"]
    assert data.labels is data.class_names is None
    (note,) = data.extra["notes"]
    assert note.startswith("Some images lie in subfolders and some, like 'a.png', do not")


def test_a_stack_of_volumes_is_one_sample_of_a_folder(tmp_path):
    X = picture(0, (2, 7, 6, 5))
    tifffile.imwrite(tmp_path / "b.tif", X)
    data = read(tmp_path)
    assert np.array_equal(data.X[0], X)
    assert data.extra["kind"] == "video"


def test_one_broken_image_need_not_stop_a_folder(tmp_path):
    for index in range(4):
        save(tmp_path / ("x" if index < 2 else "y") / f"{index}.png", picture(index))
    whole = (tmp_path / "x" / "0.png").read_bytes()
    (tmp_path / "x" / "0.png").write_bytes(whole[: len(whole) // 2])
    (tmp_path / "y" / "3.png").write_bytes(b"text")
    with pytest.raises(ReadError, match=r"x/0\.png"):
        read(tmp_path)
    data = read(tmp_path, on_error="skip")
    assert np.array_equal(data.X, [picture(1), picture(2)])
    assert (data.names, data.class_names) == (["x/1.png", "y/2.png"], ["x", "y"])
    (first, why), (second, other) = data.extra["skipped"]
    assert (first, second) == ("x/0.png", "y/3.png")
    assert why.startswith("it is damaged or not what its name says")
    assert other.startswith("it is not an image")
    for name in data.names:
        (tmp_path / name).write_bytes(b"text")
    with pytest.raises(
        ReadError, match=r"none of its 4 images can be read, neither 'x/0.png': it is damaged"
    ):
        read(tmp_path, on_error="skip")


def test_pages_among_images_are_told(tmp_path):
    save(tmp_path / "a.png", picture(0))
    tifffile.imwrite(tmp_path / "b.tif", picture(0, (4, 6, 5)), photometric="minisblack")
    for grey in (None, True):
        with pytest.raises(ReadError, match=r"Take 'b\.tif' out of the folder, or save its pages"):
            read(tmp_path, grey=grey)


def test_channels_of_images(tmp_path):
    colours = picture(0, (6, 5, 3))
    save(tmp_path / "a.png", colours)
    assert np.array_equal(read(tmp_path, channels=1).X[0], colours[..., 1])
    assert np.array_equal(read(tmp_path, channels=[2, 0]).X[0], colours[..., [2, 0]])
    assert read(tmp_path, channels=[2, 0]).extra["kind"] == "channels"
    with pytest.raises(ReadError, match=r"it has no channel 3: it has 3, numbered from 0"):
        read(tmp_path, channels=3)
    with pytest.raises(ReadError, match=r"its axes are YXC, and axes='NYX' was asked for"):
        read(tmp_path, axes="NYX")
    save(tmp_path / "a.png", picture(0))
    with pytest.raises(ReadError, match=r"it has no channels to choose from"):
        read(tmp_path, channels=0)


def test_axes_of_pages_can_be_said(tmp_path):
    X = picture(0, (4, 2, 6, 5))
    tifffile.imwrite(tmp_path / "a.tif", X, photometric="minisblack")
    data = read(tmp_path / "a.tif", axes="NCYX")
    assert np.array_equal(data.X, X.transpose(0, 2, 3, 1))
    assert data.extra["kind"] == "channels"
    assert np.array_equal(read(tmp_path / "a.tif", axes="NCYX", channels=1).X, X[:, 1])
    assert np.array_equal(read(tmp_path / "a.tif", axes="ZNYX").X, X.transpose(1, 0, 2, 3))
    assert read(tmp_path / "a.tif", axes="NTYX", size=3).X.shape == (4, 2, 3, 3)
    assert read(tmp_path / "a.tif", axes="NTYX").extra["kind"] == "video"
    with pytest.raises(
        ReadError, match=r"axes='NYX' names 3 axes, and it has 4, TZYX of shape \(4, 2, 6, 5\)"
    ):
        read(tmp_path / "a.tif", axes="NYX")
    with pytest.raises(ReadError, match=r"its axes TXC do not end in height and width"):
        read(tmp_path / "a.tif", axes="NTXC", size=3)
