import pytest

from tuckermix.cli._console import UsageError
from tuckermix.cli._options import parse_ranks, sizes


@pytest.mark.parametrize(
    ("text", "value"),
    [(None, None), ("32", 32), ("32x24", (32, 24)), ("3,4,5", (3, 4, 5)), ("8×9", (8, 9))],
)
def test_sizes(text, value):
    assert sizes(text, "--size") == value


@pytest.mark.parametrize(
    ("text", "value"), [(None, None), ("12", 12), ("12x10", (12, 10)), ("0.95", 0.95)]
)
def test_ranks(text, value):
    assert parse_ranks(text) == value


@pytest.mark.parametrize("text", ["big", "3x", "1.5", "0", "-1"])
def test_wrong_ranks_are_told(text):
    if text in ("0", "-1"):  # whole numbers: the estimator knows which are allowed
        assert parse_ranks(text) == int(text)
    else:
        with pytest.raises(UsageError, match="--ranks must be one or more whole numbers"):
            parse_ranks(text)
