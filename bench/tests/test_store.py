import csv
import errno
import io
import json
import os
import resource
import sys

import pytest
from tests.cases import each

from tuckermix_bench.runner import import_records
from tuckermix_bench.store import RunRecord, Store, read_records, read_store, records_csv

POSIX = pytest.mark.skipif(os.name != "posix", reason="links, pipes and locks of POSIX")


def record(run=0, method="MM", **fields):
    values = {"digest": "d", "status": "ok", "ac": 0.5, "nmi": 0.25, "seconds": 1.0} | fields
    return RunRecord("paper", "table3", "K=4", method, run, **values)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "r.jsonl"


stored = read_store


def test_what_is_written_is_read_back(path):
    full = record(
        classes=[2, 3],
        warnings=["w"],
        parameters={"ranks": [2, 2]},
        versions={"numpy": "2"},
        extras={"history": [{"cost": 1.5}], "ari": 0.5},
        method_version="2",
        commit="abc",
    )
    with Store(path) as store:
        store.add(full)
        store.add(record(1, status="failed", ac=None, nmi=None, error="It broke.\nTwice."))
    assert stored(path)[0] == full
    assert stored(path)[0].ari == 0.5
    assert stored(path)[1].error == "It broke.\nTwice."
    assert len(path.read_text().splitlines()) == 3


def test_a_later_record_of_the_same_cell_takes_its_place(path):
    with Store(path) as store:
        store.add(record())
        store.add(record(ac=0.75))
        assert [found.ac for found in store.records()] == [0.75]
    assert [found.ac for found in stored(path)] == [0.75]


def test_a_file_cut_at_any_byte_keeps_its_whole_records(path):
    with Store(path) as store:
        store.add(record(0), record(1))
    whole = path.read_bytes()
    ends = [place for place, byte in enumerate(whole, start=1) if byte == ord("\n")]
    for size in range(len(whole) + 1):
        path.write_bytes(whole[:size])
        n_whole = max(0, sum(end <= size for end in ends) - 1)
        assert len(stored(path)) == n_whole
        if size % 97 == 0 or size in ends:
            with Store(path) as store:
                store.add(record(7))
            assert [found.run for found in stored(path)] == [*range(n_whole), 7]


def test_a_second_writer_is_refused_until_the_first_is_done(path):
    pytest.importorskip("fcntl")
    with Store(path) as first:
        with pytest.raises(RuntimeError, match=r"Another run is writing to .*r\.jsonl"):
            Store(path)
        first.add(record(0))
        assert [found.run for found in stored(path)] == [0]  # readers need not wait
    with Store(path) as second:
        second.add(record(1))
    assert [found.run for found in stored(path)] == [0, 1]


def test_reading_where_nothing_is_says_what_to_do(path):
    with pytest.raises(FileNotFoundError, match="run `tuckermix reproduce` first"):
        read_store(path)
    assert not path.exists()


HEADER = '{"format": "tuckermix records", "version": 2}\n'
LINE = json.dumps(record().to_dict())


@each(
    "content, message",
    [
        ("no records\n" * 3, r"Line 1 of .*r\.jsonl' is no record"),
        ("no records", r"r\.jsonl' holds no records"),
        (HEADER.replace("2", "9"), 'Line 1 .*: it must be {"format"'),
        (HEADER + "{\n" + LINE + "\n", "Line 2 .* Delete the line, restore the file"),
        (HEADER + "[]\n", "it holds a list, not a record"),
        (HEADER + LINE.replace('"ac": 0.5', '"ac": "much"') + "\n", "its ac is 'much'"),
        (HEADER + LINE.replace('"ac": 0.5', '"ac": NaN') + "\n", "its ac is nan"),
        (HEADER + LINE.replace('"run": 0', '"run": null') + "\n", "its run is None"),
        (HEADER + LINE.replace('"ok"', '"fine"') + "\n", "its status is 'fine'"),
        (HEADER + LINE.replace('"ac"', '"accuracy"') + "\n", "an unknown field 'accuracy'"),
        (HEADER + "[" * 100_000 + "\n", "Line 2"),
    ],
)
def test_a_damaged_file_is_named_with_its_line(path, content, message):
    path.write_text(content)
    for opened in (read_store, Store):
        with pytest.raises(ValueError, match=message) as caught:
            opened(path)
        assert "r.jsonl" in str(caught.value)
    assert path.read_text() == content


@POSIX
@pytest.mark.parametrize("kind", ["link", "pipe", "folder"])
def test_only_regular_files_are_opened(path, tmp_path, kind):
    if kind == "link":
        (tmp_path / "other").write_text("mine")
        path.symlink_to(tmp_path / "other")
    elif kind == "pipe":
        os.mkfifo(path)
    else:
        path.mkdir()
    for opened in (read_store, Store):
        with pytest.raises(ValueError, match=r"r\.jsonl"):
            opened(path)
    if kind == "link":
        assert (tmp_path / "other").read_text() == "mine"


@pytest.mark.skipif(sys.platform != "linux", reason="a limit on the size of files")
def test_a_full_disk_is_named_and_what_fitted_is_there(path):
    with Store(path) as store:
        store.add(record(0))
        before = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (path.stat().st_size + 50, before[1]))
        try:
            with pytest.raises(OSError, match=r"r\.jsonl") as caught:
                store.add(record(1, error="long " * 5000))
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, before)
        assert caught.value.errno in (errno.ENOSPC, errno.EFBIG)
        store.add(record(2))
    assert [found.run for found in stored(path)] == [0, 2]


@pytest.fixture
def published(tmp_path):
    path = tmp_path / "records.csv"
    values = {"ac": 0.123456789012345, "classes": [3, 1], "method_version": "1"}
    failed = record(1, status="failed", ac=None, nmi=None, error="=no\nluck")
    known = record(2, extras={"seen": 0.5, "ari": -0.25})
    path.write_text(records_csv([record(0, **values), failed, known]), encoding="utf-8")
    return path


def test_records_come_back_from_csv_and_are_not_added_twice(path, published):
    with Store(path) as store:
        store.add(record(2, ac=0.9))  # records of the store win
    assert import_records(published, path) == 2
    assert import_records(published, path) == 0
    first, second, third = stored(path)
    assert (first.ac, first.classes, first.method_version) == (0.123456789012345, [3, 1], "1")
    assert (second.status, second.ac) == ("failed", None)
    assert second.error == "=no luck"  # without the apostrophe that guards it in the file
    assert third.ac == 0.9
    known = read_records(published)[2]
    assert (known.seen, known.ari) == (0.5, -0.25)


def test_records_of_another_store_fill_gaps_only(path, tmp_path):
    there = tmp_path / "other.jsonl"
    with Store(path) as store, Store(there) as other:
        store.add(record(0, ac=0.9), record(1, status="failed", ac=None, nmi=None, error="no"))
        other.add(record(0, ac=0.1), record(1, ac=0.2), record(2, ac=0.3))
    assert import_records(there, path) == 2
    assert [one.ac for one in stored(path)] == [0.9, 0.2, 0.3]


def test_other_files_are_refused(tmp_path, published):
    other = tmp_path / "other.csv"
    other.write_text("a,b\n1,2\n", encoding="utf-8")
    with pytest.raises(ValueError, match=r"other\.csv must be a records\.csv .* no column"):
        read_records(other)
    text = published.read_text(encoding="utf-8")
    published.write_text(text.replace("0.123456789012345", "much"), encoding="utf-8")
    with pytest.raises(ValueError, match=r"Line 2 of .*records\.csv is no record"):
        read_records(published)


@POSIX
def test_a_pipe_of_records_is_refused_at_once(tmp_path):
    os.mkfifo(tmp_path / "pipe.csv")
    with pytest.raises(ValueError, match=r"pipe\.csv"):
        read_records(tmp_path / "pipe.csv")


def test_what_a_draw_determines_is_written_once(tmp_path):
    facts = {"dataset": "pie", "n_samples": 40, "classes": list(range(20)), "extras": {"seen": 0.5}}
    records = [record(run, method, **facts) for method in ("MM", "ALS") for run in range(2)]
    other = record(1, "PGM", **facts | {"classes": [3, 4]})  # of another draw
    failed = record(0, "PGM", status="timeout", ac=None, nmi=None)  # ended before it could say
    text = records_csv([*records, other, failed])
    assert text.count("0 1 2 3") == 2  # one for each run
    path = tmp_path / "records.csv"
    path.write_text(text, encoding="utf-8")
    found = read_records(path)
    assert [one.classes for one in found[:5]] == [*[list(range(20))] * 4, [3, 4]]
    assert [one.seen for one in found[:5]] == [0.5] * 5
    assert len(list(csv.DictReader(io.StringIO(text)))) == 6
