import pytest

from tuckermix.experiments import reproduce, show


@pytest.fixture
def db(fakes, tmp_path):
    path = tmp_path / "r.sqlite"
    reproduce(fakes.table("random", "failing"), jobs=0, db=path)
    return path


def test_all_forms_come_from_the_records_alone(fakes, db, tmp_path):
    table = fakes.table("random", "failing")
    first = show(db, targets=table, out=tmp_path / "a")
    second = show(db, targets=table, out=tmp_path / "b")
    assert sorted(path.name for path in first.files) == [
        "fake.csv",
        "fake.md",
        "overview.md",
        "records.csv",
        "results.html",
    ]
    assert first.text == second.text
    for one, other in zip(first.files, second.files, strict=True):
        assert one.read_bytes() == other.read_bytes()
    assert "The matrix is singular." in first.text


def test_without_a_folder_nothing_is_written(fakes, db):
    shown = show(db, targets=fakes.table("random"))
    assert shown.files == []
    assert shown.text


def test_only_the_forms_asked_for(fakes, db, tmp_path):
    shown = show(db, targets=fakes.table("random"), formats=["md"], out=tmp_path / "a")
    assert [path.name for path in shown.files] == ["fake.md", "overview.md"]
    assert shown.text == ""


def test_an_unknown_form_is_refused(db):
    with pytest.raises(ValueError, match="'formats' parameter of show must be one of 'terminal'"):
        show(db, formats=["pdf"])


def test_tables_never_computed_are_shown_empty(db):
    text = show(db, targets="table5", formats=["terminal"]).text
    assert "YaleB" in text
    assert "1 of 1 not computed yet." in text
