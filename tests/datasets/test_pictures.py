import numpy as np
import pytest

from tuckermix.datasets import ReadError, read

av = pytest.importorskip("av", reason="av is not installed")

LOSSLESS = {"grey": ("gray", "gray"), "colour": ("bgr0", "rgb24")}


def film(seed, n_frames=5, height=8, width=12, colour=False):
    shape = (n_frames, height, width, 3) if colour else (n_frames, height, width)
    return np.random.default_rng(seed).integers(0, 256, shape, dtype=np.uint8)


def save(path, frames):
    path.parent.mkdir(exist_ok=True, parents=True)
    stored, given = LOSSLESS["colour" if frames.ndim == 4 else "grey"]
    with av.open(str(path), "w") as container:
        stream = container.add_stream("ffv1", rate=25)
        stream.height, stream.width, stream.pix_fmt = frames.shape[1], frames.shape[2], stored
        for frame in frames:
            container.mux(stream.encode(av.VideoFrame.from_ndarray(frame, format=given)))
        container.mux(stream.encode())


def test_a_folder_of_videos(tmp_path):
    for index, name in enumerate(("smoke/v1.avi", "smoke/v2.avi", "water/v1.mkv")):
        save(tmp_path / name, film(index))
    data = read(tmp_path)
    assert data.names == ["smoke/v1.avi", "smoke/v2.avi", "water/v1.mkv"]
    assert data.labels.tolist() == [0, 0, 1]
    assert np.array_equal(data.X, [film(0), film(1), film(2)])


def test_colour_grey_and_size(tmp_path):
    colour = film(0, colour=True)
    save(tmp_path / "a.avi", colour)
    assert np.array_equal(read(tmp_path).X[0], colour)
    grey = read(tmp_path, grey=True).X[0].astype(float)
    assert grey.shape == (5, 8, 12)
    assert np.abs(grey - colour @ [0.299, 0.587, 0.114]).max() < 3
    assert read(tmp_path, size=(4, 6), grey=True).X.shape == (1, 5, 4, 6)


def test_numbers_of_frames(tmp_path):
    save(tmp_path / "a.avi", film(0, 5))
    save(tmp_path / "b.avi", film(1, 7))
    save(tmp_path / "c.avi", film(2, 5))
    data = read(tmp_path)
    assert np.array_equal(data.X, [film(0, 5), film(1, 7)[[0, 2, 3, 4, 6]], film(2, 5)])
    assert "Files have 5 to 7 frames: 5 of each were taken" in data.extra["notes"][0]
    assert np.array_equal(read(tmp_path, frames=3).X[0], film(0, 5)[[0, 2, 4]])
    assert read(tmp_path, frames=6).X.shape == (3, 6, 8, 12)
    assert np.array_equal(read(tmp_path, frames=1).X[1], film(1, 7)[0])


def test_one_video_is_cut_into_samples(tmp_path):
    save(tmp_path / "a.avi", film(0, 7))
    assert np.array_equal(read(tmp_path / "a.avi").X, film(0, 7))
    assert np.array_equal(read(tmp_path / "a.avi", frames=3).X, film(0, 7)[:6].reshape(2, 3, 8, 12))
    with pytest.raises(ReadError, match=r"a.avi: it has 7 frames and frames=8 were asked for"):
        read(tmp_path / "a.avi", frames=8)


def test_common_compression(tmp_path):
    path = tmp_path / "a.mp4"
    with av.open(str(path), "w") as container:
        stream = container.add_stream("mpeg4", rate=25)
        stream.height, stream.width, stream.pix_fmt = 32, 32, "yuv420p"
        for value in (30, 90, 150):
            frame = np.full((32, 32, 3), value, np.uint8)
            container.mux(stream.encode(av.VideoFrame.from_ndarray(frame, format="rgb24")))
        container.mux(stream.encode())
    X = read(path, grey=True).X
    assert X.shape == (3, 32, 32)
    assert np.abs(X.mean(axis=(1, 2)) - [30, 90, 150]).max() < 20


def test_limits(tmp_path):
    save(tmp_path / "a.avi", film(0, 7))
    with pytest.raises(
        ReadError, match=r"its first 4 frames take 384 bytes .* max_bytes=300. Pass"
    ):
        read(tmp_path / "a.avi", size="original", max_bytes=300)
    assert read(tmp_path / "a.avi", max_bytes=1000).X.shape == (7, 3, 5)
    with pytest.raises(ReadError, match=r"one of its frames would take 288 bytes .* max_bytes=200"):
        read(tmp_path / "a.avi", max_bytes=200)


def test_a_playlist_opens_nothing(tmp_path):
    save(tmp_path / "hidden" / "real.avi", film(0))
    real = tmp_path / "hidden" / "real.avi"
    for name, text in (
        ("a.mp4", f"#EXTM3U\n#EXT-X-TARGETDURATION:1\n#EXTINF:1,\nfile://{real}\n#EXT-X-ENDLIST\n"),
        ("b.avi", f"ffconcat version 1.0\nfile '{real}'\n"),
    ):
        (tmp_path / name).write_text(text)
        with pytest.raises(ReadError, match=f"{name}: it is damaged or not what its name says"):
            read(tmp_path / name)


def test_damaged(tmp_path):
    save(tmp_path / "a.avi", film(0))
    whole = (tmp_path / "a.avi").read_bytes()
    for content in (b"no video", whole[:100]):
        (tmp_path / "a.avi").write_bytes(content)
        with pytest.raises(ReadError, match=r"Cannot read .*a.avi"):
            read(tmp_path / "a.avi")


def test_sound_alone(tmp_path):
    with av.open(str(tmp_path / "a.mkv"), "w") as container:
        stream = container.add_stream("pcm_s16le", rate=8000)
        sound = av.AudioFrame.from_ndarray(np.zeros((1, 800), np.int16), layout="mono")
        sound.sample_rate = 8000
        container.mux(stream.encode(sound))
        container.mux(stream.encode())
    with pytest.raises(
        ReadError, match=r"a.mkv: it has no pictures. Name a file that holds a video"
    ):
        read(tmp_path / "a.mkv")


def test_a_video_without_frames(tmp_path):
    with av.open(str(tmp_path / "a.avi"), "w") as container:
        stream = container.add_stream("ffv1", rate=25)
        stream.height, stream.width, stream.pix_fmt = 8, 8, "gray"
        container.start_encoding()
    with pytest.raises(ReadError, match=r"a\.avi: it has no frames. Get the file again"):
        read(tmp_path / "a.avi")


@pytest.mark.parametrize(("box", "place", "claimed"), [("stts", 8, 2**31 - 1), ("stsz", 24, 2**29)])
def test_a_table_or_packet_of_any_length_is_refused(tmp_path, box, place, claimed):
    with av.open(str(tmp_path / "a.mp4"), "w") as container:
        stream = container.add_stream("mpeg4", rate=5)
        stream.width, stream.height, stream.pix_fmt = 32, 32, "yuv420p"
        for frame in film(0, 4, 32, 32):
            picture = av.VideoFrame.from_ndarray(frame, format="gray").reformat(format="yuv420p")
            container.mux(stream.encode(picture))
        container.mux(stream.encode())
    content = bytearray((tmp_path / "a.mp4").read_bytes())
    assert read(tmp_path / "a.mp4").X.shape[0] == 4
    size = content.index(box.encode()) + place
    content[size : size + 4] = claimed.to_bytes(4, "big")
    (tmp_path / "a.mp4").write_bytes(content)
    with pytest.raises(ReadError, match="its parser needs more memory"):
        read(tmp_path / "a.mp4")
