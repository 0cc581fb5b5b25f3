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
        ("name,label\na.png,cat\n", "has no row for 'b.png'"),
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


def test_only_large_integers_lose_precision(monkeypatch):
    small = np.zeros((2, 3), dtype=np.uint8)
    assert _input.floating(small).dtype == np.float64
    monkeypatch.setattr(_input, "LARGE", 5)
    assert _input.floating(small).dtype == np.float32
    assert _input.floating(small.astype(np.float64)).dtype == np.float64


def test_videos_are_told_by_their_names():
    clips = Dataset(X=np.zeros((2, 4, 5, 6)), names=["a.avi", "b.avi"])
    scans = Dataset(X=np.zeros((2, 4, 5, 6)), names=["a.tif", "b.tif"])
    assert _input.picture_kind_of(clips) == "video"
    assert _input.picture_kind_of(scans) == "auto"
    assert _input.picture_kind_of(Dataset(X=np.zeros((2, 4, 5, 6)))) == "auto"
