import json
import sys

import pytest

pytest.importorskip("matplotlib")


@pytest.mark.slow
def test_demo_shows_what_it_promises(run, tmp_path, summary):
    out = tmp_path / "demo"
    code, stdout, stderr = run("demo", "-o", out)
    assert code == 0
    for word in ("300 of shape 64 × 64 × 3", "AC", "NMI", "time", str(out)):
        assert word in stdout
    assert "report.html" in stderr
    names = {path.name for path in out.iterdir()}
    assert names == {"labels.csv", "model.tuckermix", "report.html", "summary.json", "clusters.png"}
    assert (out / "clusters.png").read_bytes().startswith(b"\x89PNG")
    values = summary(out)
    assert values["accuracy"] > 0.9
    assert values["n_clusters"] == 10


@pytest.fixture
def small(monkeypatch):
    """Let the demo have few pictures: what it finds in them is another test."""
    monkeypatch.setattr("tuckermix.cli.demo.PICTURES", 2)


@pytest.mark.slow
def test_demo_replaces_a_demo_and_nothing_else(run, fails, tmp_path, small):
    out = tmp_path / "demo"
    for _ in range(2):
        assert run("demo", "-o", out, "-q")[0] == 0
    (out / "summary.json").write_text('{"command": "tuckermix cluster photos"}')
    assert "holds results already" in fails("demo", "-o", out, "-q")
    assert run("demo", "-o", out, "-q", "--force")[0] == 0
    for name in ("labels.csv", "model.tuckermix", "report.html", "summary.json"):
        (out / name).unlink()
    (out / "clusters.png").write_bytes(b"mine")
    assert "holds results already (clusters.png)" in fails("demo", "-o", out, "-q")
    (out / "clusters.png").unlink()
    (out / "clusters.png").symlink_to(tmp_path / "elsewhere")
    assert "it is a link to" in fails("demo", "-o", out, "-q", "--force")
    assert not (tmp_path / "elsewhere").exists()


@pytest.mark.slow
def test_demo_as_json(run, tmp_path, small):
    code, stdout, stderr = run("demo", "-o", tmp_path / "demo", "--json", "-q")
    assert code == 0
    assert stderr == ""
    assert json.loads(stdout)["n_samples"] == 20


@pytest.mark.parametrize(
    ("module", "words"),
    [
        ("jinja2", "The report needs jinja2: install tuckermix[report]."),
        ("matplotlib.pyplot", "The demo needs matplotlib: install tuckermix[plot]."),
    ],
)
def test_missing_extra_is_told_before_anything_is_done(fails, tmp_path, monkeypatch, module, words):
    monkeypatch.setitem(sys.modules, module, None)
    assert words in fails("demo", "-o", tmp_path / "demo", code=1)
    assert not (tmp_path / "demo").exists()
