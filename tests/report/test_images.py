import base64
import io

import numpy as np
import pytest

from tuckermix.report._images import (
    card_side,
    contact_sheet,
    full_address,
    png,
    sprite_sheet,
    thumb_side,
)

Image = pytest.importorskip("PIL.Image")


def decoded(address):
    head, body = address.split(",", 1)
    content = base64.b64decode(body)
    kind = "png" if content.startswith(b"\x89PNG") else "jpeg"
    assert head == f"data:image/{kind};base64"
    return np.asarray(Image.open(io.BytesIO(content)).convert("RGB")) / 255


@pytest.mark.parametrize(("n_views", "columns"), [(1, 1), (3, 3), (6, 3), (5, 3)])
def test_views_of_a_sample_stand_in_rows(n_views, columns):
    views = np.random.default_rng(0).random((n_views, 9, 7))
    sheet = decoded(contact_sheet(views))[..., 0]
    rows = -(-n_views // columns)
    assert sheet.shape == (rows * 10 - 1, columns * 8 - 1)
    for index, view in enumerate(views):
        top, left = index // columns * 10, index % columns * 8
        part = sheet[top : top + 9, left : left + 7]
        assert np.abs(part - view).max() < 0.04
    if n_views > 1:
        assert np.abs(sheet[:, 7] - 0.5).max() < 0.04  # grey between them


@pytest.mark.parametrize("seed", range(3))
def test_grey_pictures_survive_to_half_a_level(seed):
    picture = np.random.default_rng(seed).random((20, 30))
    back = np.asarray(Image.open(io.BytesIO(png(picture))).convert("L")) / 255
    assert np.abs(back - picture).max() <= 0.5 / 15 + 1 / 255


def test_colour_pictures_keep_their_colours():
    picture = np.zeros((16, 16, 3))
    picture[:8, :, 0] = picture[8:, :, 2] = 1
    back = np.asarray(Image.open(io.BytesIO(png(picture))).convert("RGB")) / 255
    np.testing.assert_allclose(back, picture, atol=0.02)


def test_large_pictures_are_shrunk():
    assert decoded(contact_sheet(np.ones((1, 200, 100)))).shape == (128, 64, 3)
    assert decoded(contact_sheet(np.ones((1, 200, 100)), 48)).shape == (48, 24, 3)


def test_cards_of_many_clusters_have_smaller_pictures():
    assert card_side(10) == card_side(1) == 128
    assert card_side(10**6) == 48
    assert 48 < card_side(800) < 128


def smooth(side, rng):
    """Make a picture with as little noise as a photograph has."""
    wave = np.sin(np.linspace(0, 9, side))
    return 0.5 + 0.25 * (wave[:, None] + wave) + 0.02 * rng.normal(size=(side, side))


def test_large_pictures_keep_their_greys():
    picture = smooth(96, np.random.default_rng(0))
    back = decoded(contact_sheet(picture[None]))[..., 0]
    assert np.abs(back - np.clip(picture, 0, 1)).mean() < 0.015  # sixteen greys: 0.02
    assert len(np.unique(back)) > 100


@pytest.mark.parametrize("shape", [(1, 40, 30), (3, 40, 30), (6, 20, 20, 3)])
def test_views_in_full_stand_side_by_side(shape):
    views = np.random.default_rng(1).random(shape)
    back = decoded(full_address(views))
    n, height, width = shape[:3]
    assert back.shape == (height, n * (width + 2) - 2, 3)
    assert np.abs(back[:, :width].mean() - views[0].mean()) < 0.02


def test_pictures_in_full_end_at_the_size_of_a_screen():
    assert decoded(full_address(np.zeros((1, 3000, 1500)))).shape == (1024, 512, 3)


def test_thumbnails_of_many_samples_keep_to_what_a_phone_can_hold():
    assert thumb_side(300) == 96
    assert 30 < thumb_side(10_000) < 48
    assert thumb_side(10_000) ** 2 * 10_000 <= 16e6


def test_sheet_holds_every_picture_in_its_place():
    pictures = np.linspace(0, 1, 130)[:, None, None] * np.ones((130, 5, 7))
    sheet = sprite_sheet(pictures)
    assert (sheet.columns, sheet.rows, sheet.width, sheet.height) == (100, 2, 7, 5)
    picture = decoded(sheet.address)[..., 0]
    for index in (0, 57, 100, 129):
        y, x = index // 100 * 5, index % 100 * 7
        assert np.abs(picture[y : y + 5, x : x + 7] - index / 129).max() < 0.04


def test_sheet_keeps_to_its_budget():
    pictures = np.random.default_rng(0).random((300, 28, 28))
    sheet = sprite_sheet(pictures, budget=40_000)
    assert len(base64.b64decode(sheet.address.split(",")[1])) <= 40_000
    assert sheet.width < 28


def test_the_sheet_of_photographs_keeps_greys_and_places():
    rng = np.random.default_rng(3)
    pictures = np.stack([smooth(64, rng) * share for share in np.linspace(0.2, 1, 130)])
    sheet = sprite_sheet(pictures)
    assert (sheet.width, sheet.height) == (64, 64)
    back = decoded(sheet.address)[..., 0]
    for index in (0, 57, 100, 129):
        y, x = index // 100 * 64, index % 100 * 64
        assert np.abs(back[y : y + 64, x : x + 64] - np.clip(pictures[index], 0, 1)).mean() < 0.015
