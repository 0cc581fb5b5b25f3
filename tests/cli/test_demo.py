import json
import sys

import pytest

pytest.importorskip("matplotlib")


def test_demo_shows_what_it_promises(run, tmp_path, summary):
    out = tmp_path / "demo"
    code, stdout, stderr = run("demo", "-o", out)
    assert code == 0
    for word in ("AC", "NMI", "time", "optimality gap", str(out)):
        assert word in stdout
    assert "report.html" in stderr
    names = {path.name for path in out.iterdir()}
    assert names == {"labels.csv", "model.tuckermix", "report.html", "summary.json", "clusters.png"}
    assert (out / "clusters.png").read_bytes().startswith(b"\x89PNG")
    values = summary(out)
    assert values["accuracy"] > 0.8
    assert values["gap"] < 1e-12


def test_demo_as_json(run, tmp_path):
    code, stdout, stderr = run("demo", "-o", tmp_path / "demo", "--json", "-q")
    assert code == 0
    assert stderr == ""
    assert json.loads(stdout)["n_samples"] == 1797


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
