import importlib.util
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
    data = read(tmp_path)
    assert np.array_equal(data.X, read(tmp_path, grey=False).X)
    assert data.extra["reading"]["grey"] is False
    assert data.extra["notes"] == [
        "1 of 2 files are in colour: the others got three equal colours. To change this: grey=True."
    ]
    assert read(tmp_path, grey=True).X.shape == (2, 6, 5)
    assert np.array_equal(read(tmp_path, grey=True).X[1], grey)
    assert np.array_equal(read(tmp_path, grey=False).X[1], np.repeat(grey[..., None], 3, 2))


def test_sizes(tmp_path):
    save(tmp_path / "a.png", np.full((6, 5), 40, np.uint8))
    save(tmp_path / "b.png", np.full((4, 5), 90, np.uint8))
    data = read(tmp_path)
    assert data.X.shape == (2, 5, 6)  # the mean of the proportions, and the usual longest side
    (note,) = data.extra["notes"]
    assert note == (
        "Pictures of 4 × 5 to 6 × 5 were scaled and cropped to 5 × 6. To change this: "
        "size=(height, width), fit='pad'."
    )
    with pytest.raises(ReadError, match=r"'a.png' has shape \(6, 5\) and 'b.png' has shape"):
        read(tmp_path, size="original")
    assert np.array_equal(read(tmp_path, size=(3, 4)).X, np.full((2, 3, 4), [[[40]], [[90]]]))
    assert read(tmp_path, size=7).X.shape == (2, 7, 7)


def test_resizing_averages(tmp_path):
    fine = picture(0, (64, 64), np.uint16)
    Image.fromarray(fine).save(tmp_path / "a.png")
    coarse = read(tmp_path, size=8, fit="stretch").X[0]
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
    *colours, alpha = np.moveaxis(picture(0, (6, 5, 4)).astype(float), 2, 0)
    on_white = 255 - (255 - np.stack(colours, 2)) * alpha[..., None] / 255
    assert np.abs(read(tmp_path / "3").X[0] - on_white).max() <= 1
    assert "are white" in read(tmp_path / "3").extra["notes"][0]
    assert read(tmp_path / "4").X.shape == (1, 6, 5, 3)
    assert np.array_equal(read(tmp_path / "5").X[0], picture(1, (6, 5), np.uint16))


def test_pictures_are_turned_upright(tmp_path):
    exif = Image.Exif()
    exif[0x0112] = 6
    Image.fromarray(picture(0)).save(tmp_path / "a.png", exif=exif)
    assert np.array_equal(read(tmp_path).X[0], np.rot90(picture(0), -1))


def test_mixed_depths_are_scaled_one_by_one(tmp_path):
    save(tmp_path / "a.png", picture(0))
    save(tmp_path / "b.png", picture(0).astype(np.uint16) * 100 + 7)
    save(tmp_path / "c.png", np.full((6, 5), 9, np.uint8))
    data = read(tmp_path)
    assert data.X.dtype == np.uint8
    assert np.array_equal(data.X[0], data.X[1])
    assert (data.X[0].min(), data.X[0].max(), data.X[2].max()) == (0, 255, 0)
    assert data.extra["reading"]["scale"] == "sample"
    assert "values of type uint16 and uint8: each" in data.extra["notes"][0]
    stored = read(tmp_path, scale="none")
    assert stored.X.dtype == np.uint16
    assert np.array_equal(stored.X[:2], [picture(0), picture(0).astype(np.uint16) * 100 + 7])


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
    with pytest.raises(ReadError, match=r"its array .* would take 270 bytes .* max_bytes=269. If"):
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
        read(tmp_path, size="original", max_bytes=129_999)
    data = read(tmp_path, max_bytes=129_999)
    assert 4 * data.X.size <= 129_999 / 2
    assert "which saves memory and time" in data.extra["notes"][0]


def test_long_files(tmp_path):
    save(tmp_path / "a.png", picture(0, (4, 4)))
    with open(tmp_path / "a.png", "ab") as stream:
        stream.write(bytes(10**5))
    with pytest.raises(ReadError, match=r"the file itself would take 1000\d\d bytes in memory"):
        read(tmp_path, max_bytes=99_999)


def animation(path, n_frames, seed=0):
    frames = [Image.fromarray(picture(seed + index, (6, 5, 3))) for index in range(n_frames)]
    frames[0].save(path, save_all=True, append_images=frames[1:])
    with Image.open(path) as stored:
        found = []
        for index in range(n_frames):
            stored.seek(index)
            found.append(np.asarray(stored.convert("RGB")))
    return np.array(found)


def test_animations(tmp_path):
    """Among pictures one frame of them is taken; a folder of them holds videos of one length."""
    frames = [animation(tmp_path / f"{name}.gif", count) for name, count in (("a", 3), ("b", 5))]
    animation(tmp_path / "c.gif", 3)
    data = read(tmp_path)
    assert (data.X.shape, data.extra["kind"]) == ((3, 3, 6, 5, 3), "video")
    assert np.array_equal(data.X[:2], [frames[0], frames[1][[0, 2, 4]]])
    assert data.extra["notes"] == [
        "Files have 3 to 5 frames: 3 of each were taken, evenly spaced. To change this: frames=..."
    ]
    assert np.array_equal(read(tmp_path, frames=1).X, [frames[0][0], frames[1][0], frames[0][0]])
    for name in "defg":
        save(tmp_path / f"{name}.png", picture(9))
    data = read(tmp_path)
    assert np.array_equal(data.X[:2], [frames[0][0], frames[1][0]])
    assert "3 of 7 files have several frames or pages: one picture" in data.extra["notes"][0]
    assert data.extra["reading"]["frames"] == 1
    for name in "efg":
        (tmp_path / f"{name}.png").unlink()
    assert read(tmp_path).extra["skipped"] == [
        ("d.png", "it is a single picture among videos or stacks: frames=1 takes pictures only")
    ]


def test_proportions_are_kept_unless_asked_for(tmp_path):
    wide = np.zeros((40, 80), np.uint8)
    wide[:, 20:60] = 200
    save(tmp_path / "a.png", wide)
    assert read(tmp_path, size=40).X.min() == 200  # the middle
    padded = read(tmp_path, size=80, fit="pad").X[0]
    assert np.array_equal(padded[20:60], wide)
    assert np.ptp(padded[:20]) == 0  # bars of one value
    assert (read(tmp_path, size=40, fit="stretch").X == 0).mean() == pytest.approx(0.5, abs=0.1)
    with pytest.raises(ValueError, match="The 'fit' parameter of read must be one of"):
        read(tmp_path, fit="fold")


def test_the_longest_side_is_limited(tmp_path):
    """Large photographs are decoded in small, upright, with the same values up to resampling."""
    y, x = np.mgrid[:600, :800]
    shown = np.stack([x / 4, y / 4, (x + y) / 8], axis=2).astype(np.uint8)
    exif = Image.Exif()
    exif[0x0112] = 6
    Image.fromarray(np.rot90(shown)).save(tmp_path / "a.jpg", exif=exif, quality=95)
    Image.fromarray(shown).save(tmp_path / "b.png")
    Image.fromarray(shown).save(tmp_path / "c.jpg", format="MPO", save_all=True, append_images=[
        Image.fromarray(shown[::4, ::4])])  # fmt: skip
    data = read(tmp_path)
    assert data.X.shape == (3, 96, 128, 3)
    expected = np.asarray(Image.fromarray(shown).resize((128, 96), Image.Resampling.BILINEAR))
    assert np.abs(data.X.astype(float) - expected).max() < 6
    assert "Pictures of 600 × 800 were scaled to 96 × 128" in data.extra["notes"][0]
    again = read(tmp_path, **data.extra["reading"])
    assert np.array_equal(again.X, data.X)
    assert again.extra["notes"] == []


def test_heic_names_what_it_needs(tmp_path):
    if importlib.util.find_spec("pillow_heif") is not None:
        pytest.skip("pillow-heif is installed")
    (tmp_path / "a.heic").write_bytes(b"\0\0\0\x18ftypheic" + bytes(40))
    with pytest.raises(ReadError, match=r"a.heic: it is HEIC.* Install pillow-heif, or convert"):
        read(tmp_path)


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
    with pytest.raises(ReadError, match=r"y/3\.png"):  # headers come first
        read(tmp_path)
    data = read(tmp_path, on_error="skip")
    assert np.array_equal(data.X, [picture(1), picture(2)])
    assert (data.names, data.class_names) == (["x/1.png", "y/2.png"], ["x", "y"])
    skipped = dict(data.extra["skipped"])
    assert list(skipped) == ["x/0.png", "y/3.png"]
    assert skipped["x/0.png"].startswith("it is damaged or not what its name says")
    assert skipped["y/3.png"].startswith("it is not an image")
    for name in data.names:
        (tmp_path / name).write_bytes(b"text")
    with pytest.raises(
        ReadError, match=r"none of its 4 images can be read, neither 'x/1.png': it is not an image"
    ):
        read(tmp_path, on_error="skip")


def test_pages_among_images_give_the_middle_one(tmp_path):
    save(tmp_path / "a.png", picture(0))
    pages = picture(0, (5, 6, 5))
    tifffile.imwrite(tmp_path / "b.tif", pages, photometric="minisblack")
    assert np.array_equal(read(tmp_path).X, [picture(0), pages[2]])
    tifffile.imwrite(tmp_path / "c.tif", picture(0, (2, 4, 6, 5)), photometric="minisblack")
    tifffile.imwrite(tmp_path / "d.tif", picture(0, (2, 6, 5)), photometric="minisblack",
                     metadata={"axes": "CYX"})  # fmt: skip
    data = read(tmp_path)
    assert data.names == ["a.png", "b.tif"]
    assert [name for name, _ in data.extra["skipped"]] == ["c.tif", "d.tif"]


def test_stacks_of_unequal_length(tmp_path):
    pages = picture(0, (9, 6, 5))
    for name, count in (("a", 9), ("b", 5), ("c", 5)):
        tifffile.imwrite(tmp_path / f"{name}.tif", pages[:count], photometric="minisblack")
    data = read(tmp_path)
    assert np.array_equal(data.X, [pages[::2], pages[:5], pages[:5]])


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
