"""The entry of the command line: `main` handles errors, the commands are the happy path."""

import os
import signal
import sys
import traceback
from types import FrameType

import typer
from typer.exceptions import TyperException
from typer.main import get_command

from caudal.cli import applications, generation, questions, series
from caudal.cli.status import ExitStatus, status_of
from caudal.errors import CaudalError
from caudal.version import __version__

program = typer.Typer(
    name="caudal",
    help="SQL over datasets that arrive as CSV, with answers that are exactly right.",
    no_args_is_help=True,
    rich_markup_mode="markdown",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
program.command("run")(questions.run)
program.command("sql")(questions.sql)
program.command("explain")(questions.explain)
program.command("apps")(applications.apps)
program.command("check")(applications.check)
program.command("test")(applications.run_tests)
program.command("new")(applications.new)
program.command("generate")(generation.generate)
program.add_typer(series.series, name="series")


_INTERRUPTS: list[int] = []  # Ctrl-C seen; libraries may turn it into errors of their own


def _note_interrupt(number: int, frame: FrameType | None) -> None:
    _INTERRUPTS.append(number)
    signal.default_int_handler(number, frame)


def _version(asked: bool) -> None:
    if asked:
        typer.echo(f"caudal {__version__}")
        raise typer.Exit


@program.callback()
def _options(
    debug: bool = typer.Option(False, "--debug", help="Show the traceback of an error."),
    version: bool = typer.Option(
        False, "--version", help="Show the version.", is_eager=True, callback=_version
    ),
) -> None:
    del debug, version  # `main` reads --debug itself, so that every error honours it


def main(arguments: list[str] | None = None) -> int:
    """Run a command; every error becomes one line and an exit status."""
    given = sys.argv[1:] if arguments is None else arguments
    debug = "--debug" in given
    given = [argument for argument in given if argument != "--debug"] or ["--help"]
    command = get_command(program)
    if arguments is None:
        signal.signal(signal.SIGINT, _note_interrupt)
    try:
        outcome = command.main(given, prog_name="caudal", standalone_mode=False)
        status = int(outcome) if isinstance(outcome, int) else int(ExitStatus.OK)
        sys.stdout.flush()
        if status == ExitStatus.INTERRUPTED:  # typer's word for Ctrl-C
            raise KeyboardInterrupt
    except CaudalError as error:
        status = _report(str(error), status_of(error), debug=debug)
    except (KeyboardInterrupt, typer.Abort):
        status = _report("interrupted", ExitStatus.INTERRUPTED, debug=debug)
    except TyperException as error:
        status = _report(_usage_line(error), ExitStatus.USAGE, debug=debug)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        status = int(ExitStatus.OK)
    except Exception as error:
        if _INTERRUPTS or "Query interrupted" in str(error):  # a library's own word for Ctrl-C
            status = _report("interrupted", ExitStatus.INTERRUPTED, debug=debug)
        else:
            line = f"this is a bug in Caudal: {type(error).__name__}: {error}"
            status = _report(f"{line} (--debug shows where)", ExitStatus.BUG, debug=debug)
    if arguments is None:
        sys.exit(status)
    return status


def _usage_line(error: TyperException) -> str:
    """Typer's complaint about the command, as one line."""
    text = error.format_message() if hasattr(error, "format_message") else str(error)
    line = " ".join(text.replace("Value error, ", "").split()).rstrip(".")
    return f"{line} (caudal --help shows how)"


def _report(line: str, status: ExitStatus, *, debug: bool) -> int:
    if debug:
        traceback.print_exc()
    print(f"caudal: {line}", file=sys.stderr)
    return int(status)
