import json


def test_lists_what_is_known_and_whether_it_is_here(run, tmp_path):
    code, out, _ = run("datasets", "--data", tmp_path)
    assert code == 0
    lines = {line.split()[0]: line for line in out.splitlines()}
    assert "built in" in lines["digits"]
    assert "1797" in lines["digits"]
    assert "missing" in lines["mnist"]


def test_tells_what_to_get_and_where_to_put_it(run, tmp_path):
    code, out, _ = run("datasets", "mnist", "--data", tmp_path)
    assert code == 0
    assert "missing" in out
    assert str(tmp_path) in out
    code, out, _ = run("datasets", "digits")
    assert "remedy" not in out


def test_unknown_name_gets_one_line(fails):
    assert "digits" in fails("datasets", "faces")


def test_list_as_json(run, tmp_path):
    from tuckermix.datasets import list_datasets

    code, out, _ = run("datasets", "--data", tmp_path, "--json")
    assert code == 0
    names = [info["name"] for info in json.loads(out)["datasets"]]
    assert names == [info.name for info in list_datasets(tmp_path)]


def test_dataset_that_is_not_here_gets_one_line(fails, tmp_path, monkeypatch):
    monkeypatch.setenv("TUCKERMIX_DATA", str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert "orl" in fails("cluster", "orl", "-k", 3, "-o", tmp_path / "out", "-q")
