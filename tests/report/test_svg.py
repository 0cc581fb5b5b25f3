import numpy as np
import pytest
from tests.cases import each

from tuckermix.report._svg import chart, linear_ticks

NORMAL = str.maketrans("⁻⁰¹²³⁴⁵⁶⁷⁸⁹", "-0123456789")


def test_chart_falls_with_its_numbers():
    drawn = chart("Cost", [0, 1, 2], [9.0, 4.0, 1.0])
    heights = [y for _, y in drawn.points]
    assert heights == sorted(heights)  # y grows downwards
    assert drawn.table[0] == ("0", "9")


@each("values", [[5.0], [5.0, 5.0], [0.0, 0.0], [1e-16, 0.0], [1e200, 1.0]])
@each("log", [False, True])
def test_chart_of_anything_is_finite(values, log):
    drawn = chart("Gap", range(len(values)), values, log=log)
    assert np.isfinite(drawn.points).all()


def test_chart_leaves_out_what_is_unknown():
    assert chart("Gap", [0, 1], [np.nan, np.nan]) is None
    assert len(chart("Gap", [0, 1, 2], [np.nan, 1.0, 2.0]).points) == 2


@pytest.mark.parametrize("seed", range(5))
def test_ticks_differ_lie_inside_and_say_where_they_are(seed):
    rng = np.random.default_rng(seed)
    spans = [(128212.0, 128650.0), (1e-9, 2e-9), (3e12, 4e12), (0.5, 0.50001), (-5.0, 5.0)]
    spans += [(1.1312e8, 1.1335e8), (1.13e8, 1.13e8 + 3)]
    low = 10.0 ** rng.uniform(-8, 9, size=20)
    spans += [(a, a + a * 10.0 ** rng.uniform(-9, 3)) for a in low]
    for low, high in spans:
        values, texts, unit = linear_ticks(low, high)
        assert len(set(texts)) == len(texts) >= 2, (low, high)
        assert max(map(len, texts)) <= 10, texts
        slack = 1e-6 * (high - low)
        assert low - slack <= values[0]
        assert values[-1] <= high + slack
        # What is written, in its unit, is where the tick stands.
        factor, start = 1.0, 0.0
        for part in filter(None, unit.split(", ")):
            if part.startswith("in 10"):
                factor = 10.0 ** int(part.removeprefix("in 10").translate(NORMAL))
            else:
                start = float(part.removeprefix("above "))
        written = [start + factor * float(text.replace(",", "")) for text in texts]
        rounding = 1e-5 * abs(start)  # the lowest value is told with six digits
        np.testing.assert_allclose(written, values, atol=slack + rounding)


def test_charts_of_large_costs_can_be_read():
    drawn = chart("Cost", [0, 1, 2], [1.1335e8, 1.1315e8, 1.1312e8])
    assert drawn.unit == "in 10⁸"
    assert [text for _, text in drawn.y_ticks] == ["1.1315", "1.1320", "1.1325", "1.1330", "1.1335"]
    drawn = chart("Gap", [0, 1], [1e-3, 1e-12], log=True)
    assert {text for _, text in drawn.y_ticks} >= {"10⁻³", "10⁻¹²"}
