import csv

import pytest

from tuckermix._reading import ReadError
from tuckermix._tables import rows_of_text

ROWS = [["name", "kind, of"], ["a b", "é"], ["c", ""]]


@pytest.mark.parametrize("delimiter", [",", ";", "\t"])
@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_any_sign_and_encoding_gives_the_same_rows(tmp_path, delimiter, encoding, end):
    path = tmp_path / "a.csv"
    with open(path, "w", encoding=encoding, newline="") as stream:
        stream.write(end)  # an empty line before the first
        csv.writer(stream, delimiter=delimiter, lineterminator=end).writerows(ROWS)
    if delimiter != ",":  # the comma in a heading must not win over one sign in each row
        assert [len(row) for row in rows_of_text(path)] in ([2, 2, 2], [2, 1, 1])
        return
    assert list(rows_of_text(path)) == ROWS


def test_bytes_that_are_no_text_are_kept(tmp_path):
    (tmp_path / "a.csv").write_bytes(b"name,x\n\xff.png,1\n")
    assert list(rows_of_text(tmp_path / "a.csv"))[1] == ["\udcff.png", "1"]


def test_nothing_and_quotes(tmp_path):
    (tmp_path / "a.csv").write_bytes(b"\n \n")
    assert list(rows_of_text(tmp_path / "a.csv")) == []
    (tmp_path / "a.csv").write_bytes(b'a,b\n"1\n2",3\n')
    assert list(rows_of_text(tmp_path / "a.csv")) == [["a", "b"], ["1\n2", "3"]]


def test_a_cell_without_end_is_refused(tmp_path):
    before = csv.field_size_limit()
    (tmp_path / "a.csv").write_text('a,b\n"' + 9999 * "x")
    with pytest.raises(ReadError, match="a row of it would take"):
        list(rows_of_text(tmp_path / "a.csv", 2000))
    assert csv.field_size_limit() == before


def test_a_folder_is_no_table(tmp_path):
    with pytest.raises((ReadError, IsADirectoryError)):
        list(rows_of_text(tmp_path))
