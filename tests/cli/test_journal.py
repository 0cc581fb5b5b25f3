import os

import pytest

from tuckermix.cli._journal import Journal, JournalError

posix = pytest.mark.skipif(os.name != "posix", reason="owners and locks as on POSIX systems")


@pytest.fixture(autouse=True)
def state(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))


def dropped_journal(path, head=("choice", "k"), values=b"1"):
    journal = Journal(path)
    journal.append(list(head), values)
    journal.close()


def test_what_was_added_is_found_again(tmp_path, rng):
    kept = {str(index): rng.bytes(index * 100) for index in range(20)}
    for name, values in kept.items():  # each time opened, as by runs that are killed
        dropped_journal(tmp_path / "journal", ("sample", name), values)
    journal = Journal(tmp_path / "journal")
    for name, values in kept.items():
        assert journal.read(["sample", name]) == values
    assert journal.read(["sample", "other"]) is None
    assert journal.size == (tmp_path / "journal").stat().st_size
    journal.close()


@posix
def test_a_journal_that_others_may_write_to_is_ignored(tmp_path):
    dropped_journal(tmp_path / "journal")
    (tmp_path / "journal").chmod(0o660)
    with pytest.raises(JournalError, match="other users can write to it"):
        Journal(tmp_path / "journal")


@posix
def test_a_changed_record_is_not_believed(tmp_path):
    dropped_journal(tmp_path / "journal", values=b"the truth")
    content = (tmp_path / "journal").read_bytes()
    for place in range(len(content)):
        forged = bytearray(content)
        forged[place] ^= 1
        (tmp_path / "journal").write_bytes(forged)
        try:
            journal = Journal(tmp_path / "journal")
        except JournalError:
            continue
        assert journal.read(["choice", "k"]) is None
        journal.close()


@posix
def test_two_runs_do_not_share_a_journal(tmp_path):
    journal = Journal(tmp_path / "journal")
    journal.append(["a"], b"1")
    with pytest.raises(JournalError, match="another run is using it"):
        Journal(tmp_path / "journal")
    journal.remove()
    assert not (tmp_path / "journal").exists()


def test_a_journal_that_was_replaced_is_not_deleted(tmp_path):
    journal = Journal(tmp_path / "journal")
    journal.append(["a"], b"1")
    (tmp_path / "journal").unlink()
    (tmp_path / "journal").write_text("mine")
    journal.remove()
    assert (tmp_path / "journal").read_text() == "mine"


@posix
def test_the_key_is_private(tmp_path):
    dropped_journal(tmp_path / "journal")
    key = tmp_path / "state" / "tuckermix" / "journal.key"
    assert key.stat().st_mode & 0o077 == 0
    key.chmod(0o644)
    with pytest.raises(JournalError, match="is not a private file of yours"):
        Journal(tmp_path / "journal")
