"""Eight folders such as people have: each function fills one and returns its number of samples."""

import numpy as np
from PIL import Image

SIDE = 160


def scene(rng, kind, height=SIDE, width=SIDE, phase=0.0):
    """Draw stripes, rings or a chessboard in colours of their own, from 0 to 1."""
    y, x = np.mgrid[:height, :width] / min(height, width)
    waves = [np.sin(25 * x + phase), np.sin(30 * np.hypot(x - 0.5, y - 0.5) + phase),
             np.sign(np.sin(12 * x + phase) * np.sin(12 * y))][kind]  # fmt: skip
    colours = np.array([[0.8, 0.3, 0.2], [0.2, 0.5, 0.8], [0.4, 0.8, 0.3]])[kind]
    picture = 0.5 + 0.35 * waves[..., None] * colours + 0.1 * colours
    return np.clip(picture + rng.normal(0, 0.03, (height, width, 1)), 0, 1)


def as_bytes(picture):
    return Image.fromarray(np.rint(255 * picture).astype(np.uint8))


def phone(folder, rng):
    """Photographs upright and wide, turned by EXIF, some with more than one picture in a file."""
    for index in range(30):
        size = [(180, 240), (240, 180), (300, 225)][index % 5 % 3]
        image = as_bytes(scene(rng, index % 3, *size))
        exif = Image.Exif()
        exif[0x0112] = [1, 6, 3, 8][index % 4]
        image.save(folder / f"IMG_{index:04}.JPG", format="JPEG", exif=exif)
    more = [as_bytes(scene(rng, index)) for index in range(2)]
    more[0].save(folder / "IMG_9999.JPG", format="MPO", save_all=True, append_images=more[1:])
    return 31


def scans(folder, rng):
    """Grey pages of slightly different sizes, some of two values only, one in CMYK."""
    for index in range(24):
        grey = as_bytes(scene(rng, index % 3, 200 + index, 150 - index % 7)).convert("L")
        kind = ["L", "1", "P"][index % 5 % 3]
        grey.convert(kind).save(folder / f"page{index}.{['png', 'bmp', 'gif'][index % 3]}")
    as_bytes(scene(rng, 0)).convert("CMYK").save(folder / "cover.jpg")
    return 25


def depths(folder, rng):
    """Pictures of 8 and of 16 bits, of one size."""
    for index in range(24):
        grey = scene(rng, index % 3).max(axis=2)
        if index % 2:
            Image.fromarray((300 + 4000 * grey).astype(np.uint16)).save(folder / f"{index}.tif")
        else:
            as_bytes(grey).save(folder / f"{index}.png")
    return 24


def microscope(folder, rng):
    """16-bit TIFF of which little of the range is used, larger than what is compared."""
    for index in range(24):
        grey = scene(rng, index % 3, 256, 256).max(axis=2)
        Image.fromarray((90 + 700 * grey).astype(np.uint16)).save(folder / f"field_{index}.tif")
    return 24


def animations(folder, rng):
    """Animated GIF of 3 to 9 frames."""
    for index in range(18):
        frames = [
            as_bytes(scene(rng, index % 3, 96, 96, phase=n)).quantize(32)
            for n in range(3 + index % 7)
        ]
        frames[0].save(folder / f"{index}.gif", save_all=True, append_images=frames[1:])
    return 18


def videos(folder, rng):
    """Videos of unequal length and size."""
    import av

    for index in range(12):
        height, width = [(96, 128), (128, 96)][index % 2]
        with av.open(str(folder / f"clip{index}.mp4"), "w") as container:
            stream = container.add_stream("mpeg4", rate=10)
            stream.height, stream.width, stream.pix_fmt = height, width, "yuv420p"
            for n in range(5 + 4 * index):
                frame = as_bytes(scene(rng, index % 3, height, width, phase=0.3 * n))
                container.mux(stream.encode(av.VideoFrame.from_image(frame)))
            container.mux(stream.encode())
    return 12


def junk(folder, rng):
    """Pictures of all formats among other files, one of them broken, one no picture."""
    for index in range(24):
        picture = as_bytes(scene(rng, index % 3, 120 + index, 140))
        if index % 4 == 0:
            picture.putalpha(Image.fromarray(np.full(picture.size[::-1], 255 - index, np.uint8)))
        kind = ("png", "png", "webp", "jpg")[index % 4]
        picture.save(folder / f"{index}.{kind}")
    (folder / "notes.txt").write_text("bought on Tuesday")
    (folder / "Thumbs.db").write_bytes(rng.bytes(500))
    (folder / "0.png.json").write_text("{}")
    whole = (folder / "5.png").read_bytes()
    (folder / "broken.png").write_bytes(whole[: len(whole) // 2])
    (folder / "letter.jpg").write_text("no picture")
    return 24


def nested(folder, rng):
    """Years, months and days; a video and an animation among the pictures."""
    for index in range(24):
        place = folder / str(2019 + index % 3) / f"{1 + index % 5:02}" / "trip"
        place.mkdir(parents=True, exist_ok=True)
        as_bytes(scene(rng, index % 3, 150, 200)).save(place / f"{index}.jpg")
    frames = [as_bytes(scene(rng, 1, 96, 96, phase=n)) for n in range(3)]
    frames[0].save(folder / "2019" / "party.gif", save_all=True, append_images=frames[1:])
    return 25


FOLDERS = [phone, scans, depths, microscope, animations, videos, junk, nested]
