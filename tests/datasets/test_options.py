import pytest
from tests.cases import each

from tuckermix._machine import default_limit
from tuckermix._reading import Refusal
from tuckermix.datasets import ReadError, read
from tuckermix.datasets._options import Options


@each(
    "options, message",
    [
        ({"key": 3}, "'key' parameter of read must be None or the name of an array. Got 3"),
        ({"label_key": True}, "'label_key' parameter of read must be None, False or the name"),
        ({"sample_axis": 1.5}, "'sample_axis' parameter of read must be None or an integer"),
        ({"sample_axis": True}, "'sample_axis' parameter of read must be None or an integer"),
        ({"sample_shape": (2, 0)}, "'sample_shape' parameter of read must be an integer >= 1"),
        ({"size": (1, 2, 3)}, "'size' parameter of read must be an integer or a pair"),
        ({"size": 0}, "'size' parameter of read must be an integer >= 1"),
        ({"grey": "yes"}, "'grey' parameter of read must be None, True or False"),
        ({"frames": 0}, "'frames' parameter of read must be an integer >= 1"),
        ({"lazy": "maybe"}, "'lazy' parameter of read must be True, False or 'auto'"),
        ({"remember": 1}, "'remember' parameter of read must be None or a function"),
        ({"on_error": "go on"}, "'on_error' parameter of read must be 'stop' or 'skip'"),
        ({"axes": "NQ"}, "'axes' parameter of read must be some of the letters NTZYXC"),
        ({"axes": 3}, "'axes' parameter of read must be some of the letters NTZYXC"),
        ({"channels": [1.5]}, "'channels' parameter of read must be numbers or names"),
        ({"channels": []}, "'channels' parameter of read must be numbers or names"),
        ({"chunks": 0}, "'chunks' parameter of read must be an integer >= 1"),
        ({"max_bytes": -1}, "'max_bytes' parameter of read must be an integer >= 1"),
    ],
)
def test_options_are_checked_before_the_file_is_touched(options, message):
    with pytest.raises(ValueError, match=message) as caught:
        read("no such file", **options)
    assert not isinstance(caught.value, ReadError)


def test_what_was_given_is_kept_in_one_form():
    options = Options.checked(size=3, sample_shape=[2, 2], frames=4)
    assert options.size == (3, 3)
    assert options.sample_shape == (2, 2)
    assert options.max_bytes == default_limit()
    assert Options.checked(size=[2, 3], max_bytes=7).size == (2, 3)
    assert Options.checked(max_bytes=7).max_bytes == 7


def test_options_that_do_not_apply_are_refused_by_name():
    options = Options.checked(size=3, grey=False, frames=4)
    options.refuse(("axes", "channels"), "tables", "Leave the option out")
    with pytest.raises(Refusal, match=r"size and grey cannot be applied to tables\. Leave the opt"):
        options.refuse(("size", "axes", "grey"), "tables", "Leave the option out")
