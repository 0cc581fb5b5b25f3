import errno
import os
import subprocess
import sys

import pytest

from tuckermix.cli import _app, main

COMMANDS = [
    *("demo", "cluster", "predict", "apply", "update", "export", "open", "datasets"),
    *("reproduce", "bench"),
]
SCREEN = (80, 24)


def test_help_fits_one_screen(run, monkeypatch):
    monkeypatch.setenv("COLUMNS", str(SCREEN[0]))
    code, out, _ = run("--help")
    lines = out.splitlines()
    assert code == 0
    assert len(lines) <= SCREEN[1]
    assert max(map(len, lines)) <= SCREEN[0]
    for command in COMMANDS:
        assert f"\n  {command} " in out
    assert "..." not in out.split("Commands:")[1]  # no description is cut


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_help(run, command):
    code, out, _ = run(command, "--help")
    assert code == 0
    assert "Usage: tuckermix" in out


def test_version_names_what_it_depends_on(run):
    import numpy
    import sklearn

    from tuckermix import __version__

    code, out, _ = run("--version")
    assert code == 0
    assert out.startswith(f"tuckermix {__version__} (python ")
    assert f"numpy {numpy.__version__}" in out
    assert f"scikit-learn {sklearn.__version__}" in out


def test_without_words_it_shows_the_help(run):
    code, _, err = run()
    assert code == 2
    assert "Commands:" in err


def test_options_stand_in_groups(run, monkeypatch):
    monkeypatch.setenv("COLUMNS", str(SCREEN[0]))
    _, out, _ = run("cluster", "--help")
    assert "\n  A run that was killed goes on when the same command is given again.\n" in out
    heads = [line for line in out.splitlines() if line.endswith(":") and not line.startswith(" ")]
    assert heads == ["Arguments:", "Options:", "Reading:", "The model:", "Computing:", "Output:"]
    assert "Usage: tuckermix cluster [OPTIONS] INPUT\n" in out
    assert "\\b" not in out
    assert "\n  report.html      the clusters, to look at\n" in out
    for group, option in [("Reading", "--key"), ("The model", "--ranks"), ("Output", "--json")]:
        assert f"  {option} " in out.split(f"\n{group}:\n")[1].split("\n\n")[0]


def test_wrong_words_get_one_line(fails):
    assert "Did you mean 'cluster'? Try" in fails("clustr")
    assert "--colour-blind" in fails("cluster", "x.npz", "--colour-blind")
    assert "klassify" in fails("klassify")
    assert "INPUT" in fails("cluster")
    said = fails("cluster", "x.npz", "-k", "ten")
    assert "-k" in said
    assert "it must be a whole number" in said


def test_importing_the_command_line_is_light():
    code = (
        "import sys, tuckermix.cli; heavy = {'matplotlib', 'torch', 'typer', 'jinja2', 'dask'};"
        "print(sorted(heavy & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_help_and_completion_load_no_numerical_library():
    code = (
        "import os, sys; from tuckermix.cli import main; main(['--help']);"
        "main(['cluster', '--help']); main(['predict', '--help']);"
        "os.environ.update(_TUCKERMIX_COMPLETE='complete_bash', COMP_CWORD='4',"
        " COMP_WORDS='tuckermix cluster x --solver '); main([]);"
        "heavy = {'numpy', 'scipy', 'sklearn', 'torch', 'matplotlib', 'jinja2', 'dask'};"
        "print(sorted(heavy & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    *_, first, second, third, loaded = done.stdout.splitlines()
    assert {first, second, third} == {"exact", "trust-region", "joint"}
    assert loaded == "[]"


def test_missing_extra_is_named(capsys, monkeypatch):
    monkeypatch.setitem(sys.modules, "typer", None)
    assert main(["--help"]) == 1
    said = "The tuckermix command needs typer: install tuckermix[cli].\n"
    assert capsys.readouterr().err == said


@pytest.mark.parametrize(
    ("error", "code", "text"),
    [
        (ValueError("n_samples=5 must be\n >= 8."), 2, "n_samples=5 must be >= 8."),
        (OSError(errno.ENOSPC, "No space left on device", "a/labels.csv"), 1, "a/labels.csv: No"),
        (OSError(errno.EDQUOT, "Quota exceeded"), 1, "Cannot write the results: Quota"),
        (PermissionError(errno.EACCES, "Permission denied", "out"), 1, "Cannot open out: permi"),
        (ImportError("The report needs jinja2: install tuckermix[report]."), 1, "needs jinja2"),
        (MemoryError(), 1, "do not fit into memory"),
        (KeyError("x"), 1, "Unexpected KeyError: 'x' (set TUCKERMIX_TRACEBACK=1"),
        (KeyboardInterrupt(), 130, "Interrupted"),
    ],
)
def test_every_failure_is_one_line(capsys, monkeypatch, error, code, text):
    def broken(wanted):
        raise error

    monkeypatch.setattr(_app, "build", broken)
    assert main(["demo"]) == code
    err = capsys.readouterr().err
    assert text in err
    assert err.count("\n") == 1


def test_traceback_on_demand(monkeypatch):
    def broken(wanted):
        raise KeyError("x")

    monkeypatch.setattr(_app, "build", broken)
    monkeypatch.setenv("TUCKERMIX_TRACEBACK", "1")
    with pytest.raises(KeyError):
        main(["demo"])


def test_shell_completion_knows_the_commands(shell):
    environment = {
        "_TUCKERMIX_COMPLETE": "complete_bash",
        "COMP_WORDS": "tuckermix clu",
        "COMP_CWORD": "1",
        "_TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION": "1",
    }
    done = shell(env=environment)
    assert done.stdout.split() == ["cluster"]


@pytest.mark.parametrize(
    ("words", "completed"),
    [
        ("cluster x --solver ", ["exact", "trust-region", "joint"]),
        ("cluster x --on-error ", ["stop", "skip"]),
        ("datasets mod", ["modelnet10"]),
        ("reproduce fig", ["figure3", "figure4"]),
    ],
)
def test_shell_completion_knows_values(monkeypatch, capsys, words, completed):
    monkeypatch.setenv("_TUCKERMIX_COMPLETE", "complete_bash")
    monkeypatch.setenv("COMP_WORDS", f"tuckermix {words}")
    monkeypatch.setenv("COMP_CWORD", str(len(words.split(" "))))
    monkeypatch.setenv("_TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION", "1")
    assert main([]) == 0
    assert capsys.readouterr().out.split() == completed


def test_paths_that_cannot_be_opened_are_told(fails, tmp_path):
    told = fails("reproduce", "table1", "--quick", "--records", tmp_path / "none.csv")
    assert f"Cannot open {tmp_path / 'none.csv'}: no such file or directory. Check the path" in told


def test_messages_of_other_commands_speak_of_words(fails, tmp_path):
    assert "tuckermix: NAME must be one of 'cbcl'" in fails("datasets", "nope")
    words = ("table2", "--methods", "xx", "--db", tmp_path / "none.jsonl")
    assert "tuckermix: --methods must be one of 'MM'" in fails("reproduce", *words)


def test_commands_of_the_other_distribution_say_what_to_install(fails, run, monkeypatch):
    monkeypatch.setattr(_app, "plugins", dict)
    for name in ("reproduce", "bench"):
        told = fails(name, "--quick", code=1)
        assert f"tuckermix {name} needs tuckermix-bench: pip install tuckermix-bench." in told
    assert "reproduce  Compute the tables" in run("--help")[1]


def test_a_command_of_another_distribution_is_listed_and_runs(run, monkeypatch):
    class Entry:
        def load(self):
            return lambda app: app.command("greet")(lambda: print("Hello."))

    monkeypatch.setattr(_app, "plugins", lambda: {"greet": Entry()})
    assert "greet" in run("--help")[1]
    assert run("greet")[:2] == (0, "Hello.\n")


def test_reader_of_the_output_may_leave_early(archive, tmp_path):
    words = f"{sys.executable} -m tuckermix"
    command = f"set -o pipefail; {words} datasets | true"
    done = subprocess.run(
        ["bash", "-c", command], capture_output=True, text=True, cwd=tmp_path, env=dict(os.environ)
    )
    assert "Traceback" not in done.stderr
    assert "BrokenPipe" not in done.stderr


def test_the_package_runs_as_a_module():
    command = [sys.executable, "-m", "tuckermix", "klassify"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "klassify" in done.stderr
