import numpy as np
import pytest

from tuckermix.cli import _input
from tuckermix.cli._console import UsageError
from tuckermix.datasets import Dataset

CLASSES = ["cat", "dog", "cat"]


@pytest.fixture
def data():
    return Dataset(X=np.zeros((3, 2, 2)), names=["a.png", "b.png", "c.png"])


def write(path, text):
    path.write_text(text)
    return path


@pytest.mark.parametrize(
    ("name", "text", "suffix"),
    [
        ("one.txt", "cat\ndog\ncat\n", ""),
        ("head.csv", "animal\ncat\ndog\ncat\n", ""),
        ("two.csv", "id,label\n1,cat\n2,dog\n3,cat\n", ""),
        ("tab.tsv", "id\tclass\n1\tcat\n2\tdog\n3\tcat\n", ""),
        ("asked.csv", "id,animal\n1,cat\n2,dog\n3,cat\n", ":animal"),
        ("names.csv", "name,label\nc.png,cat\nb.png,dog\na.png,cat\nd.png,cow\n", ""),
        ("semicolons.csv", "name;cell type\na.png;cat\nb.png;dog\nc.png;cat\n", ":cell type"),
        ("quoted.csv", 'id,label\n"1\n1",cat\n2,dog\n3,cat\n', ""),
        ("bom.csv", "\ufefflabel,x\ncat,1\ndog,1\ncat,1\n", ""),
    ],
)
def test_classes_from_text(tmp_path, data, name, text, suffix):
    path = write(tmp_path / name, text)
    truth = f"{path}{suffix}"
    assert _input.label_key_of(truth) is None
    assert _input.known_classes(truth, data).tolist() == CLASSES


def test_classes_from_a_spreadsheet_that_writes_utf_16(tmp_path, data):
    (tmp_path / "y.csv").write_text("id\tlabel\n1\tcat\n2\tdog\n3\tcat\n", encoding="utf-16")
    assert _input.known_classes(str(tmp_path / "y.csv"), data).tolist() == CLASSES


@pytest.mark.parametrize("truth", ["nofile.csv", "folder/classes", "nofile.csv:kind", "y.npy"])
def test_a_file_of_classes_that_is_not_there_is_told(truth):
    with pytest.raises(UsageError, match=r"there is no such file\. Check the path\."):
        _input.label_key_of(truth)


def test_classes_from_an_array(tmp_path, data):
    np.save(tmp_path / "y.npy", np.array([[1], [0], [1]]))
    assert _input.known_classes(str(tmp_path / "y.npy"), data).tolist() == [1, 0, 1]


def test_classes_of_the_input_have_their_names():
    data = Dataset(X=np.zeros((3, 2, 2)), labels=np.array([0, 1, 0]), class_names=["cat", "dog"])
    assert _input.known_classes("labels", data).tolist() == CLASSES
    assert _input.known_classes(None, data) is None


def test_array_of_the_input_is_asked_for_by_name():
    assert _input.label_key_of("gnd") == "gnd"
    assert _input.label_key_of("labels") is None
    assert _input.label_key_of(None) is None


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "it is empty"),
        ("a,b\n1,2\n3,4\n5,6\n", "say which one holds the classes"),
        ("name,label\nx.png,cat\n", "has no row for 'a.png', nor for any other sample"),
        ("id,label\n1,cat\n2\n3,dog\n", "rows with too few columns"),
        ("cat\ndog\n", "holds 2 classes, but the input has 3 samples"),
    ],
)
def test_wrong_files_of_classes_are_told(tmp_path, data, text, message):
    path = write(tmp_path / "y.csv", text)
    with pytest.raises(UsageError, match=message):
        _input.known_classes(str(path), data)


def test_classes_that_are_nowhere(data):
    with pytest.raises(UsageError, match="neither a file nor labels in the input"):
        _input.known_classes("labels", data)


def test_readers_know_how_samples_are_drawn():
    clips = Dataset(X=np.zeros((2, 4, 5, 6)), extra={"kind": "video"})
    assert _input.picture_kind_of(clips) == "video"
    assert _input.picture_kind_of(Dataset(X=np.zeros((2, 4, 5, 6)))) == "auto"


def test_rows_may_be_missing_and_names_short(tmp_path, data):
    path = write(tmp_path / "y.csv", "name,label\na,cat\nfolder/c.PNG,dog\n")
    assert _input.known_classes(str(path), data).tolist() == ["cat", "", "dog"]
    # Two rows of different classes for one short name say nothing.
    path = write(tmp_path / "y.csv", "name,label\nx/a,cat\ny/a,dog\nb.png,dog\n")
    assert _input.known_classes(str(path), data).tolist() == ["", "dog", ""]


def test_a_file_of_classes_that_is_no_text(tmp_path, data):
    (tmp_path / "y.csv").write_bytes(b"\xff\xfea")
    with pytest.raises(UsageError, match="it is no table of text"):
        _input.known_classes(str(tmp_path / "y.csv"), data)


def test_what_was_skipped_is_told_up_to_a_number(data, capsys):
    from tuckermix.cli._console import Console

    skipped = [(f"{index}.png", "it is empty. Get it again.") for index in range(12)]
    _input.tell(Console(), Dataset(X=data.X, extra={"skipped": skipped, "notes": ["Set axes."]}))
    told = capsys.readouterr().err.splitlines()
    assert told[0] == "12 files were skipped, as they could not be read:"
    assert told[1] == "  0.png: it is empty"
    assert told[-2:] == ["  and 2 more; all are in summary.json", "note: Set --axes."]


def test_errors_call_samples_by_their_files(data):
    told = r"^INPUT contains NaN: b\.png is the first of 2\.$"
    with pytest.raises(UsageError, match=told), _input.naming(data):
        raise ValueError("Input X contains NaN: sample 1 is the first of 2.")
