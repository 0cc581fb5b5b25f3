import base64
import io

import numpy as np
import pytest

from tuckermix.report._images import picture_address, png, sprite_sheet

Image = pytest.importorskip("PIL.Image")


def decoded(address):
    head, body = address.split(",", 1)
    assert head == "data:image/png;base64"
    return np.asarray(Image.open(io.BytesIO(base64.b64decode(body))).convert("RGB")) / 255


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
    assert decoded(picture_address(np.ones((200, 100)))).shape == (64, 32, 3)


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
