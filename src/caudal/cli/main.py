"""The entry of the command line: `main` handles errors, the commands are the happy path."""

import os
import sys
import traceback

import click
import typer
from typer.main import get_command

from caudal.cli import applications, generation, questions
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
    command = get_command(program)
    try:
        outcome = command.main(
            [argument for argument in given if argument != "--debug"],
            prog_name="caudal",
            standalone_mode=False,
        )
        status = int(outcome) if isinstance(outcome, int) else int(ExitStatus.OK)
        sys.stdout.flush()
    except CaudalError as error:
        status = _report(str(error), status_of(error), debug=debug)
    except click.exceptions.Abort:
        status = _report("interrupted", ExitStatus.INTERRUPTED, debug=debug)
    except KeyboardInterrupt:
        status = _report("interrupted", ExitStatus.INTERRUPTED, debug=debug)
    except click.ClickException as error:
        status = _report(error.format_message(), ExitStatus.USAGE, debug=debug)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        status = int(ExitStatus.OK)
    except Exception as error:
        line = f"this is a bug in Caudal: {type(error).__name__}: {error}"
        status = _report(f"{line} (--debug shows where)", ExitStatus.BUG, debug=debug)
    if arguments is None:
        sys.exit(status)
    return status


def _report(line: str, status: ExitStatus, *, debug: bool) -> int:
    if debug:
        traceback.print_exc()
    print(f"caudal: {line}", file=sys.stderr)
    return int(status)
