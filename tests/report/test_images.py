"""Pictures: from files, without what files tell besides, and within their bytes."""

import base64
import io

import numpy as np
import pytest
from PIL import Image

from tuckermix.plots.pictures import views
from tuckermix.report._images import (
    PageSettings,
    Pictures,
    address,
    fitting_side,
    sprite_sheet,
    thumbnail,
)


def opened(text):
    head, _, content = text.partition(",")
    assert head in ("data:image/png;base64", "data:image/webp;base64")
    return Image.open(io.BytesIO(base64.b64decode(content)))


def test_pictures_come_from_files_in_their_own_proportions(photos):
    files = sorted(photos.iterdir())[:12]
    X = np.zeros((12, 8, 8, 3))
    drawn = list(Pictures(X, "colour", files).drawn(range(12), 100))
    for picture, path in zip(drawn, files, strict=True):
        with Image.open(path) as image:
            wide, high = image.size
        assert max(picture.shape[:2]) == 100
        assert picture.shape[1] / picture.shape[0] == pytest.approx(wide / high, rel=0.02)
        assert picture.std() > 10


def test_what_a_file_tells_besides_its_picture_stays_at_home(photos):
    path = min(photos.iterdir())
    assert b"SECRET PLACE" in path.read_bytes()
    (picture,) = Pictures(np.zeros((1, 8, 8, 3)), "colour", [path]).drawn([0], 100)
    text = address(picture)
    assert b"SECRET" not in base64.b64decode(text.partition(",")[2])
    assert not opened(text).getexif()


def test_a_picture_is_upright(tmp_path):
    exif = Image.Exif()
    exif[0x0112] = 6
    Image.fromarray(np.tile(np.arange(80, dtype=np.uint8), (40, 1))).save(
        tmp_path / "a.jpg", exif=exif
    )
    (picture,) = Pictures(np.zeros((1, 4, 4)), "image", [tmp_path / "a.jpg"]).drawn([0], 100)
    assert picture.shape == (80, 40)


def test_files_that_cannot_be_opened_are_drawn_as_they_were_read(photos, tmp_path):
    broken = tmp_path / "broken.png"
    broken.write_bytes(b"\x89PNG\r\n\x1a\nnothing more")
    X = np.arange(3 * 16.0).reshape(3, 4, 4)
    drawn = list(Pictures(X, "image", [min(photos.iterdir()), broken, None]).drawn([0, 1, 2], 50))
    assert max(drawn[0].shape) == 50
    assert drawn[1].shape == drawn[2].shape == (4, 4)
    assert drawn[2].min() < drawn[2].max() == 255


def test_sixteen_bits_and_floats_are_not_black(tmp_path):
    tifffile = pytest.importorskip("tifffile")
    rng = np.random.default_rng(0)
    Image.fromarray((4000 * rng.random((30, 40))).astype(np.uint16)).save(tmp_path / "a.png")
    tifffile.imwrite(tmp_path / "b.tif", (900 * rng.random((30, 40))).astype(np.uint16))
    tifffile.imwrite(tmp_path / "c.tif", rng.random((30, 40)).astype(np.float32))
    files = sorted(tmp_path.iterdir())
    for picture in Pictures(np.zeros((3, 4, 4)), "image", files).drawn(range(3), 100):
        assert picture.dtype == np.uint8
        assert 100 < picture.mean() < 160


def test_transparent_pictures_lie_on_white(tmp_path):
    Image.new("RGBA", (20, 10), (255, 0, 0, 0)).save(tmp_path / "a.png")
    (picture,) = Pictures(np.zeros((1, 4, 4, 3)), "colour", [tmp_path / "a.png"]).drawn([0], 50)
    assert (picture == 255).all()


@pytest.mark.parametrize(("kind", "n_views"), [("video", 6), ("volume", 3), ("channels", 5)])
def test_samples_of_several_views_are_laid_side_by_side(kind, n_views):
    X = np.random.default_rng(0).normal(size=(4, 7, 6, 5))
    pictures = Pictures(X, kind)
    expected = views(X, kind, limits=pictures.limits)
    assert expected.shape[1] == n_views
    high, wide = expected.shape[2:4]
    for picture in pictures.drawn(range(4), 100):
        assert picture.shape == (-(-n_views // 3) * (high + 1) - 1, 3 * (wide + 1) - 1)


@pytest.mark.parametrize("shape", [(20, 30), (31, 17), (40, 40, 3), (5, 100)])
def test_shrinking_keeps_the_mean_and_the_bound(shape):
    y, x = np.mgrid[: shape[0], : shape[1]] / 10
    picture = (128 + 100 * np.sin(x + 2 * y)).astype(np.uint8)
    picture = np.stack([picture] * 3, axis=-1) if len(shape) == 3 else picture
    small = np.asarray(thumbnail(picture, 10))
    assert max(small.shape[:2]) <= 10
    np.testing.assert_allclose(small.mean(), picture.mean(), atol=6)
    assert np.asarray(thumbnail(picture[:4, :5], 10)).shape[:2] == (4, 5)  # never enlarged


def test_small_pictures_keep_each_pixel():
    picture = np.random.default_rng(0).integers(0, 256, (9, 7), dtype=np.uint8)
    np.testing.assert_array_equal(opened(address(picture)), picture)


def test_bytes_are_kept_to(photos):
    files = sorted(photos.iterdir())
    pictures = Pictures(np.zeros((60, 8, 8, 3)), "colour", files)
    for room in (30_000, 60_000):
        side = fitting_side(pictures, range(60), room, (40, 240))
        total = sum(len(address(one)) for one in pictures.drawn(range(60), side))
        assert 0.5 * room < total < 1.4 * room


def test_the_sheet_holds_each_picture_where_it_says(photos):
    files = sorted(photos.iterdir())[:7]
    drawn = list(Pictures(np.zeros((7, 8, 8, 3)), "colour", files).drawn(range(7), 200))
    sheet = sprite_sheet([thumbnail(one, 64) for one in drawn])
    whole = np.asarray(opened(sheet.address).convert("RGB")).astype(float)
    assert whole.shape[:2] == (sheet.rows * sheet.tile[1], sheet.columns * sheet.tile[0])
    for place, (wide, high) in enumerate(sheet.sizes):
        top, left = place // sheet.columns * sheet.tile[1], place % sheet.columns * sheet.tile[0]
        found = whole[top : top + high, left : left + wide]
        expected = np.asarray(Image.fromarray(drawn[place]).resize((wide, high))).astype(float)
        assert np.abs(found - expected).mean() < 12


def test_the_sheet_keeps_to_its_bytes():
    noise = np.random.default_rng(0).integers(0, 256, (300, 64, 64, 3), dtype=np.uint8)
    with PageSettings(sheet_bytes=100_000).use():
        sheet = sprite_sheet([Image.fromarray(one) for one in noise])
    assert len(sheet.address) < 140_000
    assert min(sheet.tile) >= 8
