import csv
import errno
import io
import sqlite3

import pytest

from tuckermix_bench.draws import seed_of
from tuckermix_bench.store import (
    RunRecord,
    Store,
    import_records,
    read_records,
    records_csv,
)


def record(run=0, method="MM", **fields):
    values = {"digest": "d", "status": "ok", "ac": 0.5, "nmi": 0.25, "seconds": 1.0} | fields
    return RunRecord("paper", "table3", "K=4", method, run, **values)


def test_what_is_written_is_read_back(tmp_path):
    full = record(
        classes=[2, 3],
        warnings=["w"],
        parameters={"ranks": [2, 2]},
        versions={"numpy": "2"},
        extras={"history": [{"cost": 1.5}]},
        error=None,
    )
    with Store(tmp_path / "a" / "r.sqlite") as store:
        store.add(full)
        store.add(record(1, status="failed", ac=None, nmi=None, error="It broke."))
        assert store.records()[0] == full
        assert store.records(run=1)[0].error == "It broke."
        assert store.records(method="ALS") == []


def test_a_later_record_of_the_same_cell_takes_its_place(tmp_path):
    with Store(tmp_path / "r.sqlite") as store:
        store.add(record())
        store.add(record(ac=0.75))
        assert [found.ac for found in store.records()] == [0.75]


def test_records_survive_the_end_of_the_process(tmp_path):
    with Store(tmp_path / "r.sqlite") as store:
        store.add(record())
    with Store(tmp_path / "r.sqlite") as store:
        assert len(store.records()) == 1


def test_a_method_is_deleted_in_one_call(tmp_path):
    with Store(tmp_path / "r.sqlite") as store:
        for run in range(3):
            store.add(record(run))
            store.add(record(run, method="ALS"))
        assert store.delete(method="MM") == 3
        assert {found.method for found in store.records()} == {"ALS"}
        with pytest.raises(ValueError, match="would delete every record"):
            store.delete()


def test_a_misspelt_field_is_refused(tmp_path):
    with (
        Store(tmp_path / "r.sqlite") as store,
        pytest.raises(ValueError, match="no field 'methd': its fields are profile"),
    ):
        store.records(methd="MM")


def test_stale_records_are_those_of_other_code(tmp_path):
    with Store(tmp_path / "r.sqlite") as store:
        store.add(record(0, fingerprint="old"))
        store.add(record(1, fingerprint="new"))
        store.add(record(0, method="ALS", fingerprint="old"))
        keys = {found.key for found in store.records()}
        assert store.delete_stale(keys - {record(0).key}, {"MM": "new"}) == 0
        assert store.delete_stale(keys, {"MM": "new"}) == 1
        assert {found.key for found in store.records()} == keys - {record(0).key}


def test_a_second_writer_is_refused_until_the_first_is_done(tmp_path):
    with Store(tmp_path / "r.sqlite") as first, Store(tmp_path / "r.sqlite") as second:
        with (
            first.writing(),
            pytest.raises(RuntimeError, match="Another run is writing to"),
            second.writing(),
        ):
            pass
        with second.writing():
            second.add(record())


def test_a_reader_sees_records_while_a_run_writes(tmp_path):
    with Store(tmp_path / "r.sqlite") as writer, writer.writing():
        writer.add(record(0))
        with Store(tmp_path / "r.sqlite", read_only=True) as reader:
            assert len(reader.records()) == 1
            writer.add(record(1))
            assert len(reader.records()) == 2
            with pytest.raises(PermissionError, match=r"Cannot read .* make the file"):
                reader.add(record(2))


def test_reading_where_nothing_is_says_what_to_do(tmp_path):
    with pytest.raises(FileNotFoundError, match="run `tuckermix reproduce` first"):
        Store(tmp_path / "absent.sqlite", read_only=True)
    assert not (tmp_path / "absent.sqlite").exists()
    sqlite3.connect(tmp_path / "empty.sqlite").close()
    (tmp_path / "empty.sqlite").touch()
    with pytest.raises(ValueError, match="holds no results"):
        Store(tmp_path / "empty.sqlite", read_only=True)


def test_another_kind_of_file_is_refused(tmp_path):
    (tmp_path / "text").write_text("no database " * 100)
    with pytest.raises(ValueError, match="is no SQLite file"):
        Store(tmp_path / "text")


def test_a_full_disk_is_named(tmp_path):
    with Store(tmp_path / "r.sqlite") as store:
        pages = store._connection.execute("PRAGMA page_count").fetchone()[0]
        store._connection.execute(f"PRAGMA max_page_count = {pages}")
        store.add(record(0))  # there is room for some in the first page of the table
        with pytest.raises(OSError, match=r"No space left on device: .*r\.sqlite") as caught:
            store.add(record(1, error="long " * 5000))
        assert caught.value.errno == errno.ENOSPC
    with Store(tmp_path / "r.sqlite") as store:  # what fitted is there
        assert [found.run for found in store.records()] == [0]


def test_a_folder_in_the_way_is_told(tmp_path):
    (tmp_path / "r.sqlite").mkdir()
    with pytest.raises(PermissionError, match=r"Cannot write .*r\.sqlite.* name another file"):
        Store(tmp_path / "r.sqlite")


def test_a_read_only_folder_is_told(tmp_path):
    (tmp_path / "r.sqlite.lock").mkdir()  # root may write anywhere, but not over a folder
    with (
        Store(tmp_path / "r.sqlite") as store,
        pytest.raises(PermissionError, match=r"Cannot write .*r\.sqlite"),
        store.writing(),
    ):
        pass


def test_a_damaged_file_is_told(tmp_path):
    path = tmp_path / "r.sqlite"
    with Store(path) as store:
        for run in range(200):
            store.add(record(run))
    whole = bytearray(path.read_bytes())
    size = 4096  # of a page; the first holds the header and the schema
    for start in range(size, len(whole), size):
        whole[start : start + 100] = b"\xff" * 100
    path.write_bytes(whole)
    with Store(path, read_only=True) as store:
        for read in (store.records, store.digests):
            with pytest.raises(ValueError, match=r"r\.sqlite.* is damaged .* restore it"):
                read()


def test_what_goes_with_the_next_version_works_and_says_so(tmp_path):
    path = tmp_path / "r.sqlite"
    with Store(path) as store:
        for run in range(200):
            store.add(record(run, fingerprint="new" if run else "old", error="x" * 500))
        with pytest.warns(DeprecationWarning, match=r"Store\.check goes with version 0\.3"):
            store.check()
        with pytest.warns(DeprecationWarning, match=r"Store\.stale goes with version 0\.3"):
            assert [found.run for found in store.stale({"MM": "new", "ALS": "x"})] == [0]
    whole = bytearray(path.read_bytes())
    whole[8192:12288] = b"\xff" * 4096
    path.write_bytes(whole)
    with (
        Store(path) as store,
        pytest.warns(DeprecationWarning, match="every reading"),
        pytest.raises(ValueError, match="is damaged"),
    ):
        store.check()


def test_a_file_that_another_program_holds_is_told(tmp_path, monkeypatch):
    monkeypatch.setattr("tuckermix_bench.store.BUSY_SECONDS", 0.01)
    with Store(tmp_path / "r.sqlite") as store:
        other = sqlite3.connect(tmp_path / "r.sqlite", isolation_level=None)
        other.execute("BEGIN EXCLUSIVE")
        with pytest.raises(RuntimeError, match=r"is held by another program for more than 0\.01 s"):
            store.add(record(0))
        other.close()


def test_another_error_of_sqlite_names_the_file(tmp_path):
    with Store(tmp_path / "r.sqlite") as store:
        store._connection.execute("DROP TABLE records")
        with pytest.raises(RuntimeError, match=r"Cannot use .*r\.sqlite.* \(no such table"):
            store.records()


def test_a_later_format_is_refused(tmp_path):
    connection = sqlite3.connect(tmp_path / "r.sqlite")
    connection.execute("PRAGMA user_version = 99")
    connection.close()
    with pytest.raises(ValueError, match="records of format 99"):
        Store(tmp_path / "r.sqlite")


def published_record(run, **values):
    options = {"status": "ok", "ac": 0.123456789012345, "nmi": 0.5, "classes": [3, 1], **values}
    return RunRecord("paper", "table3", "K=3", "MM", run, "digest", **options)


@pytest.fixture
def published(tmp_path):
    path = tmp_path / "records.csv"
    failed = published_record(1, status="failed", ac=None, nmi=None, error="=no luck")
    path.write_text(records_csv([published_record(0), failed]), encoding="utf-8")
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
    assert second.error == "=no luck"  # without the apostrophe that guards it in the file
    assert second.ac is None


def test_records_of_the_store_win(tmp_path, published):
    db = tmp_path / "store.sqlite"
    with Store(db) as store:
        store.add(published_record(0, ac=0.9))
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


def test_records_can_be_read_back():
    records = [record(0, classes=[2, 3, 7, 9]), record(1, ac=None, error="a\nb")]
    rows = list(csv.DictReader(io.StringIO(records_csv(records))))
    assert [row["run"] for row in rows] == ["0", "1"]
    assert rows[0]["classes"] == "2 3 7 9"
    assert float(rows[0]["ac"]) == 0.5
    assert rows[1]["error"] == "a b"


def test_what_tuning_has_seen_and_ari_go_through_the_csv_and_older_files_lack_them(tmp_path):
    known, unknown = record(0, extras={"seen": 0.5, "ari": -0.25}), record(1)
    path = tmp_path / "records.csv"
    path.write_text(records_csv([known, unknown]), encoding="utf-8")
    import_records(path, tmp_path / "a.sqlite")
    with Store(tmp_path / "a.sqlite", read_only=True) as store:
        assert [found.seen for found in store.records()] == [0.5, None]
        assert [found.ari for found in store.records()] == [-0.25, None]
    lines = [line.rsplit(",", 2)[0] for line in path.read_text(encoding="utf-8").splitlines()]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    import_records(path, tmp_path / "b.sqlite")
    with Store(tmp_path / "b.sqlite", read_only=True) as store:
        assert [found.seen for found in store.records()] == [None, None]
        assert [found.ari for found in store.records()] == [None, None]


def test_what_a_draw_determines_is_written_once(tmp_path):
    facts = {"dataset": "pie", "n_samples": 40, "classes": list(range(20)), "extras": {"seen": 0.5}}
    records = [record(run, method, **facts) for method in ("MM", "ALS") for run in range(2)]
    other = record(
        1, "PGM", **facts | {"classes": [3, 4]}
    )  # of another draw, before the row changed
    failed = record(0, "PGM", status="timeout", ac=None, nmi=None)  # ended before it could say
    text = records_csv([*records, other, failed])
    assert text.count("0 1 2 3") == 2  # one for each run
    path = tmp_path / "records.csv"
    path.write_text(text, encoding="utf-8")
    found = read_records(path)
    assert [one.classes for one in found[:4]] == [list(range(20))] * 4
    assert [one.seen for one in found] == [0.5] * 6
    assert found[4].classes == [3, 4]
    assert found[5].n_samples == 40
    assert records_csv(found[:5]) == records_csv([*records, other])
    assert found[0].seed == seed_of("table3", "K=4", "MM", 0)
