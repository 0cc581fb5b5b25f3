"""Published records come back as they were, and bad files are named."""

import pytest

from tuckermix.experiments.importing import import_records
from tuckermix.experiments.rendering import records_csv
from tuckermix.experiments.store import RunRecord, Store


def record(run, **values):
    options = {"status": "ok", "ac": 0.123456789012345, "nmi": 0.5, "classes": [3, 1], **values}
    return RunRecord("paper", "table3", "K=3", "MM", run, "digest", **options)


@pytest.fixture
def published(tmp_path):
    path = tmp_path / "records.csv"
    failed = record(1, status="failed", ac=None, nmi=None, error="no luck")
    path.write_text(records_csv([record(0), failed]), encoding="utf-8")
    return path


def test_records_come_back_and_are_not_added_twice(tmp_path, published):
    db = tmp_path / "store.sqlite"
    assert import_records(published, db) == 2
    assert import_records(published, db) == 0
    with Store(db) as store:
        first, second = sorted(store.records(), key=lambda item: item.run)
    assert first.ac == 0.123456789012345
    assert first.classes == [3, 1]
    assert second.status == "failed"
    assert second.error == "no luck"
    assert second.ac is None


def test_records_of_the_store_win(tmp_path, published):
    db = tmp_path / "store.sqlite"
    with Store(db) as store:
        store.add(record(0, ac=0.9))
    assert import_records(published, db) == 1
    with Store(db) as store:
        assert store.records(run=0)[0].ac == 0.9


def test_other_files_are_refused(tmp_path, published):
    other = tmp_path / "other.csv"
    other.write_text("a,b\n1,2\n", encoding="utf-8")
    with pytest.raises(ValueError, match=r"must be a records\.csv .* Got \['a', 'b'\]"):
        import_records(other, tmp_path / "store.sqlite")
    text = published.read_text(encoding="utf-8")
    published.write_text(text.replace("0.123456789012345", "much"), encoding="utf-8")
    with pytest.raises(ValueError, match=r"Line 2 of .*records\.csv is no record"):
        import_records(published, tmp_path / "store.sqlite")
