"""The commands put together, and what happens when one of them fails."""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Callable
from importlib.metadata import EntryPoint, entry_points
from typing import Annotated, Any

import typer

from tuckermix._files import FULL_DISK
from tuckermix.cli import apply, cluster, datasets, demo, export, predict
from tuckermix.cli import open as opening
from tuckermix.cli._console import Exit, UsageError, in_options, one_line, say, visible
from tuckermix.cli._options import add

NOT_THERE = (errno.ENOENT, errno.EISDIR, errno.ENOTDIR)
NOT_ALLOWED = (errno.EACCES, errno.EPERM, errno.EROFS)
"""Messages of systems about a path that cannot be opened, as it is not there or not ours."""

USAGE = (UsageError, ValueError, FileNotFoundError, IsADirectoryError, FileExistsError)
"""Errors of what the user asked for."""

TRACEBACK = "TUCKERMIX_TRACEBACK"
"""Set this variable to see where an unexpected error comes from."""

COMPLETED = ("COMP_WORDS", "_TYPER_COMPLETE_ARGS")
"""Where bash, and the other shells, put the words that Tab is to complete."""

INTERRUPTED = "Interrupted; nothing half-written is left behind."


def _version(wanted: bool) -> None:
    if not wanted:
        return
    from tuckermix.summary import versions

    found = versions()
    others = ", ".join(f"{name} {found[name]}" for name in found if name != "tuckermix")
    sys.stdout.write(f"tuckermix {found['tuckermix']} ({others})\n")
    raise typer.Exit(Exit.DONE)


VERSION = typer.Option(
    "--version", callback=_version, is_eager=True, help="Show versions and leave."
)


def _callback(version: Annotated[bool, VERSION] = False) -> None:
    """Cluster stacks of images, videos, volumes and other N-way arrays.

    Start with 'tuckermix demo', or 'tuckermix cluster FOLDER'. Exit codes: 0 done, 1 failed, 2
    wrong use or unreadable input, 3 done in part, 130 interrupted.
    """


COMMANDS: dict[str, Callable[..., int]] = {
    "demo": demo.demo,
    "cluster": cluster.cluster,
    "predict": predict.predict,
    "apply": apply.apply,
    "update": apply.update,
    "export": export.export,
    "open": opening.open_report,
    "datasets": datasets.datasets,
}
"""The commands of this distribution."""

OWN = typer.Typer()
for _name, _command in COMMANDS.items():
    add(OWN, _command, _name)

PLUGINS = "tuckermix.commands"
"""The group of entry points by which other distributions add commands."""

FROM_BENCH = {
    "reproduce": "Compute the tables and figures of the paper.",
    "bench": "Time the fit on this machine, or rank your own method.",
}
"""The commands of tuckermix-bench, which are listed whether or not it is installed."""


def plugins() -> dict[str, EntryPoint]:
    """Return the commands that other distributions add, by name."""
    return {entry.name: entry for entry in entry_points(group=PLUGINS)}


def build(wanted: str | None = "") -> typer.Typer:
    """Put the commands together.

    Parameters
    ----------
    wanted : str or None, default=""
        The command that is to run. Only that one is loaded of those that other distributions add;
        of the others the names are known. None loads all of them.

    Returns
    -------
    app : typer.Typer
        The program.
    """
    app = typer.Typer(
        no_args_is_help=True,
        rich_markup_mode=None,  # boxes take a third of the screen that the help must fit on
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    about = " ".join(str(_callback.__doc__).split())  # one paragraph, for a small screen
    app.callback(help=about)(_callback)
    app.registered_commands += OWN.registered_commands
    if wanted in COMMANDS:
        return app
    found = {name: entry for name, entry in plugins().items() if name not in COMMANDS}
    for name in dict.fromkeys((*FROM_BENCH, *found)):
        if name in found and wanted in (None, name):
            found[name].load()(app)
        elif name != wanted:
            app.command(name, help=FROM_BENCH.get(name, ""))(_listed_only)
        else:
            raise ImportError(
                f"tuckermix {name} needs tuckermix-bench: pip install tuckermix-bench."
            )
    return app


def _listed_only() -> None:
    """Fill the place of a command that is loaded when it is called."""


def run(arguments: list[str]) -> int:
    """Run the program and turn every way to fail into one line and an exit code."""
    completed = [word for name in COMPLETED for word in os.environ.get(name, "").split()]
    wanted = arguments[0] if arguments else next((w for w in completed if w in FROM_BENCH), "")
    try:
        program = typer.main.get_command(build(wanted))
        code = program.main(arguments, prog_name="tuckermix", standalone_mode=False)
        sys.stdout.flush()
        if code == Exit.INTERRUPTED and "reproduce" not in arguments[:1]:
            return _fail(INTERRUPTED, code)  # typer has caught Ctrl-C itself
        return int(code or Exit.DONE)
    except (KeyboardInterrupt, typer.Abort):
        return _fail(INTERRUPTED, Exit.INTERRUPTED)
    except SystemExit as error:  # completion scripts end the program themselves
        return int(error.code or Exit.DONE)
    except BrokenPipeError:
        # The reader of stdout has gone, which is its right; Python must not complain at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return Exit.FAILED
    except Exception as error:
        if os.environ.get(TRACEBACK):
            raise
        return _explain(error)


def _explain(error: Exception) -> int:
    """Say in one line what went wrong, and choose the exit code."""
    said, code = one_line(error), Exit.FAILED
    number, path = getattr(error, "errno", None), getattr(error, "filename", None)
    message: Any = getattr(error, "format_message", None)
    if type(error).__name__ == "NoArgsIsHelpError":
        say(message())
        return Exit.USAGE
    if message is not None:  # what typer raises for wrong options and arguments
        text = in_options(" ".join(message().split()).rstrip("."))
        end = "" if text.endswith("?") else "."
        said, code = f"{text}{end} Try 'tuckermix --help'.", Exit.USAGE
    elif path and number in NOT_ALLOWED + NOT_THERE:
        code, remedy = Exit.USAGE, "Check the path."
        if number in NOT_ALLOWED:
            code, remedy = Exit.FAILED, "Check who may use it, or name another."
        said = f"Cannot open {path}: {os.strerror(number).lower()}. {remedy}"
    elif isinstance(error, USAGE):
        said, code = in_options(said), Exit.USAGE
    elif number in FULL_DISK:
        why = getattr(error, "strerror", None)
        said = f"Cannot write {path or 'the results'}: {why}. Free some space."
    elif isinstance(error, MemoryError):
        said = "The data do not fit into memory: use fewer or smaller samples."
    elif not isinstance(error, ImportError | OSError):
        name = type(error).__name__
        said = f"Unexpected {name}: {said} (set {TRACEBACK}=1 to see where)."
    return _fail(said, code)


def _fail(message: str, code: int) -> int:
    say(f"tuckermix: {visible(message)}")
    return code
