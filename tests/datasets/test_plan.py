import math

import pytest

from tuckermix.datasets._options import Options
from tuckermix.datasets._plan import Look, PlanSettings, plan

GREY = {"type": "|u1", "colour": False}


def still(height, width, **facts):
    return Look("YX", (height, width), **{**GREY, **facts})


def film(n, letter="T", size=(8, 8)):
    return Look(f"{letter}YX", (n, *size), **GREY)


def decided(looks, **options):
    return plan({str(index): look for index, look in enumerate(looks)}, Options.checked(**options))


def test_proportions_are_the_mean_of_all():
    upright, wide = still(400, 300), still(300, 400)
    assert decided([upright, wide]).options.size == (128, 128)
    assert decided([upright, upright]).options.size == (128, 96)
    height, width = decided([upright] * 9 + [wide]).options.size
    assert (height, round(math.log(width / height) / math.log(3 / 4), 1)) == (128, 0.8)
    assert decided([still(20, 30), still(40, 60)]).options.size == (30, 45)  # no detail is added
    assert decided([upright, wide], size=9).options.size == (9, 9)


def test_nothing_is_told_where_nothing_was_decided():
    chosen = decided([still(20, 30)] * 3)
    assert chosen.notes == []
    assert chosen.reading == {"size": (20, 30), "fit": "crop", "grey": True, "scale": "none"}


def test_many_pictures_are_smaller():
    sizes = [
        decided([still(500, 400)] * n_samples).options.size for n_samples in (10, 3000, 30_000)
    ]
    assert sizes[::2] == [(128, 102), (64, 51)]
    assert 64 < sizes[1][0] < 128


@pytest.mark.parametrize("n_samples", [10, 1000])
def test_the_array_keeps_to_a_number_of_entries(n_samples):
    with PlanSettings(entries=10**6).use():
        chosen = decided([still(500, 400)] * n_samples)
    height, width = chosen.options.size
    assert n_samples * height * width <= 1.05e6
    assert ("saves memory" in chosen.notes[0]) == (n_samples == 1000)


def test_most_files_say_what_the_others_are_taken_for():
    few = decided([still(8, 8), still(8, 8), film(9), film(7, "Z")])
    assert few.places == {"2": 0, "3": 3}
    assert few.options.frames == 1
    many = decided([still(8, 8), film(9), film(7), film(9)])
    assert many.options.frames == 9
    assert many.places["2"][::4] == [0, 3, 6]
    assert len(many.places["2"]) == 9
    assert list(many.left_out) == ["0"]
    assert list(decided([still(8, 8)] * 3 + [film(9)], frames=4).left_out) == ["0", "1", "2"]
    assert decided([film(9), film(5)], frames=1).places == {"0": 0, "1": 0}


def test_long_videos_give_few_frames_of_their_beginning():
    chosen = decided([film(10**6), film(40)])
    first, second = chosen.places.values()
    assert (len(first), len(second)) == (32, 32)
    assert first[-1] < PlanSettings().reach
    assert second[-1] == 39


def test_channels_that_are_no_colours_are_not_mixed():
    five = Look("YXC", (8, 8, 5), **GREY)
    chosen = decided([five, five, still(8, 8)])
    assert chosen.left_out == {"2": "its channels are 0, and those of most files are 5"}
    assert chosen.options.grey is None
    said = {"axes": "YXC", "shape": (8, 8, 5), **GREY}
    for channels, letters in (([1], "YX"), ([0, 2], "YXC")):
        assert Look.of(said, Options.checked(channels=channels)).axes == letters
