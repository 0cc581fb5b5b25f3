"""One call for everything: targets, settings, and where the records go."""

import os

import pytest

from tuckermix.experiments import Store, reproduce
from tuckermix.experiments.reproducing import default_jobs


def test_as_many_jobs_as_processors(monkeypatch):
    assert 1 <= default_jobs() <= os.cpu_count()
    monkeypatch.delattr(os, "sched_getaffinity", raising=False)
    assert default_jobs() == os.cpu_count()


def test_methods_and_runs_narrow_a_table(fakes, tmp_path):
    db = tmp_path / "records.sqlite"
    table = fakes.table("random", "collapsing", runs=5)
    report = reproduce(table, methods=["random"], runs=2, jobs=0, db=db, progress=None)
    assert report.computed == 4  # two rows, two runs
    assert report.db == db
    with Store(db) as store:
        assert {record.method for record in store.records()} == {"random"}


@pytest.mark.parametrize("runs", [0, -1, 1.5])
def test_no_number_of_runs(fakes, tmp_path, runs):
    with pytest.raises(ValueError, match="'runs' parameter of reproduce must be an integer >= 1"):
        reproduce(fakes.table("random"), runs=runs, db=tmp_path / "db.sqlite")
    assert not (tmp_path / "db.sqlite").exists()


def test_an_unknown_dataset_is_refused_before_anything_runs(fakes, tmp_path):
    with pytest.raises(ValueError, match="no-such-data"):
        reproduce(fakes.table("random", dataset="no-such-data"), db=tmp_path / "db.sqlite")
    assert not (tmp_path / "db.sqlite").exists()
