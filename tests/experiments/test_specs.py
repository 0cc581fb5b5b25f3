import pytest

from tuckermix.experiments.specs import Experiment, Row


def test_an_unknown_redraw_is_refused():
    with pytest.raises(ValueError, match="'redraw' parameter of Row must be one of 'classes'"):
        Row("a", "digits", (2, 2), redraw="everything")


def test_fixed_classes_and_another_number_of_classes_are_refused():
    with pytest.raises(ValueError, match="fixes 2 classes but has n_classes=3"):
        Row("a", "digits", (2, 2), n_classes=3, classes=(1, 2))


def test_an_unknown_row_is_named_with_those_there_are():
    table = Experiment("mine", "", (Row("a", "digits", (2, 2)),), ())
    with pytest.raises(KeyError, match="mine has no row 'b': its rows are 'a'"):
        table.row("b")


def test_remarks_are_no_parameters():
    plain = Row("a", "digits", (2, 2))
    remarked = Row("a", "digits", (2, 2), note="A remark.", paper_row="b", comparable=False)
    assert plain.parameters() == remarked.parameters()
    assert plain.parameters() != Row("a", "digits", (2, 3)).parameters()
