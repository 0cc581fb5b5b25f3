import numpy as np
import pytest

from tuckermix.datasets import ReadError
from tuckermix.datasets._options import Options
from tuckermix.datasets._pictures import files_in, natural_key, stack_files


def touch(path):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.touch()


def test_numbers_sort_as_numbers():
    names = ["s10/a", "s2/b", "S1/a", "s2/a10", "s2/a9", "s", "10", "9"]
    expected = ["9", "10", "s", "S1/a", "s2/a9", "s2/a10", "s2/b", "s10/a"]
    assert sorted(names, key=natural_key) == expected


def test_what_is_listed(tmp_path):
    for name in ("b.PNG", "a/x.png", "a/x.txt", ".git/x.png", "a/.x.png"):
        touch(tmp_path / name)
    assert files_in(tmp_path, {".png"}) == ["a/x.png", "b.PNG"]


def test_a_circle_of_links_ends(tmp_path):
    touch(tmp_path / "a" / "a.png")
    (tmp_path / "a" / "again").symlink_to(tmp_path)
    assert files_in(tmp_path, {".png"}) == ["a/a.png"]


def test_samples_are_stacked_with_names_and_classes(tmp_path):
    samples = {"x/1": np.ones((2, 2), np.uint8), "y/1": np.full((2, 2), 300, np.uint16)}

    def read_one(path, options):
        return samples[path.relative_to(tmp_path).as_posix()], "image"

    data = stack_files(tmp_path, list(samples), read_one, Options.checked(), "things")
    assert data.X.dtype == np.uint16
    assert data.X[:, 0, 0].tolist() == [1, 300]
    assert (data.names, data.class_names) == (["x/1", "y/1"], ["x", "y"])
    with pytest.raises(ReadError, match=r"2 samples of shape \(2, 2\) would take 8 bytes"):
        stack_files(tmp_path, list(samples), read_one, Options.checked(max_bytes=7), "things")
    samples["y/1"] = np.ones((2, 3), np.uint8)
    with pytest.raises(ReadError, match=r"'x/1' has shape \(2, 2\) and 'y/1' has shape \(2, 3\)"):
        stack_files(tmp_path, list(samples), read_one, Options.checked(), "things")


def test_how_samples_are_drawn_is_what_all_files_say(tmp_path):
    kinds = {"1": "volume", "2": "volume", "3": "video"}

    def read_one(path, options):
        return np.zeros((2, 2, 2)), kinds[path.name]

    for names, kind in ((["1", "2"], "volume"), (["1", "2", "3"], "auto")):
        data = stack_files(tmp_path, names, read_one, Options.checked(), "things")
        assert data.extra["kind"] == kind


def test_what_was_read_before_may_be_remembered(tmp_path):
    """A wrapper sees every file, and what it answers is taken."""
    asked = []

    def read_one(path, options):
        return np.full(2, int(path.name)), "signal"

    def remember(function):
        def known(path, options):
            asked.append(path.name)
            return function(path, options) if path.name != "1" else (np.full(2, 7), "signal")

        return known

    options = Options.checked(remember=remember)
    data = stack_files(tmp_path, ["1", "2"], read_one, options, "things")
    assert asked == ["1", "2"]
    assert data.X[:, 0].tolist() == [7, 2]


def test_an_error_names_the_file(tmp_path):
    def fail(path, options):
        raise KeyError("inside")

    with pytest.raises(ReadError, match=r"b\.png: it is damaged .*KeyError"):
        stack_files(tmp_path, ["b.png"], fail, Options.checked(), "images")


def test_progress_is_logged_with_its_share(tmp_path, caplog):
    names = [f"{index}.png" for index in range(250)]
    with caplog.at_level("INFO", logger="tuckermix"):
        one = (np.zeros(2), "signal")
        stack_files(tmp_path, names, lambda *_: one, Options.checked(), "images")
    shares = [record.share for record in caplog.records]
    assert shares == sorted(shares)
    assert 0 == shares[0] < shares[-1] < 1
    assert len(shares) == 125  # about once a percent, however many files there are
    assert caplog.records[1].getMessage() == "2 of 250 images"
