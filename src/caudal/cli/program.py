"""The commands of `caudal`: where each one lives and what it is for.

A command's module is imported when the command is called, not before: DuckDB and Arrow take
a while to load, and `caudal --help` needs none of them.
"""

import importlib
from typing import Any, NamedTuple

import typer
from typer.core import TyperCommand, TyperGroup
from typer.main import get_command

from caudal.cli.plain_values import take_plainly
from caudal.cli.status import ExitStatus
from caudal.errors import UsageError
from caudal.version import __version__

_CONTEXT = {"help_option_names": ["-h", "--help"]}


class Command(NamedTuple):
    """A command: its function, or for several commands together their Typer."""

    name: str
    module: str
    attribute: str
    about: str  # the first line of its help


COMMANDS = (
    Command(
        "run",
        "caudal.cli.questions",
        "run",
        "Answer an application's queries over the files of a folder.",
    ),
    Command(
        "sql",
        "caudal.cli.questions",
        "sql",
        "Answer any SELECT, over an application's cleaned tables or over files by name.",
    ),
    Command(
        "submit",
        "caudal.cli.submit",
        "submit",
        "Answer an application's queries on a cluster, over files of this machine.",
    ),
    Command(
        "jobs",
        "caudal.cli.jobs",
        "jobs",
        "List the jobs of this token on a cluster, or delete some that have ended.",
    ),
    Command(
        "results",
        "caudal.cli.jobs",
        "results",
        "Give the answers of a job on a cluster, those that are there.",
    ),
    Command("cancel", "caudal.cli.jobs", "cancel", "End a job on a cluster."),
    Command(
        "explain",
        "caudal.cli.questions",
        "explain",
        "Show what a query reads and the operators its rows pass, in order.",
    ),
    Command(
        "apps",
        "caudal.cli.applications",
        "apps",
        "List the shipped applications with their tables and queries.",
    ),
    Command(
        "check",
        "caudal.cli.applications",
        "check",
        "Check an application without data: its form, its SQL, its names.",
    ),
    Command(
        "test",
        "caudal.cli.applications",
        "run_tests",
        "Run the cases of an application and compare the answers with the expected ones.",
    ),
    Command(
        "new",
        "caudal.cli.applications",
        "new",
        "Write an application folder for some CSV files, by looking at their columns.",
    ),
    Command(
        "generate",
        "caudal.cli.generation",
        "generate",
        "Write synthetic files in the exact shape of the public originals.",
    ),
    Command(
        "gateway",
        "caudal.cli.gateway",
        "gateway",
        "Take jobs from clients and look after them. Any number of gateways run side by side.",
    ),
    Command(
        "up",
        "caudal.cli.cluster",
        "up",
        "Start a whole cluster, or what of it does not run, and wait until it is healthy.",
    ),
    Command(
        "down",
        "caudal.cli.cluster",
        "down",
        "Stop every process of this host gracefully. "
        "What was sent stays, and `up` goes on with it.",
    ),
    Command(
        "status",
        "caudal.cli.cluster",
        "status",
        "Show every process: state, incarnation, restarts, last heartbeat, memory, version.",
    ),
    Command(
        "logs",
        "caudal.cli.cluster",
        "logs",
        "Show the newest log lines of a process of this host.",
    ),
    Command(
        "scale",
        "caudal.cli.cluster",
        "scale",
        "Change how many workers or gateways a host runs, without stopping a job.",
    ),
    Command(
        "token",
        "caudal.cli.tokens",
        "token",
        "Who may ask the gateways of a cluster: new, list, revoke.",
    ),
    Command(
        "quotas",
        "caudal.cli.jobs",
        "quotas",
        "Show what this token's owner uses of a cluster, and how much it may.",
    ),
    Command(
        "doctor",
        "caudal.cli.cluster_care",
        "doctor",
        "Check broker, store, ports, disk and limits; each complaint comes with its remedy.",
    ),
    Command(
        "chaos",
        "caudal.cli.cluster_care",
        "chaos",
        "Kill processes of a running cluster at random moments, and see how it recovers.",
    ),
    Command(
        "medic",
        "caudal.cli.medic",
        "medic",
        "Watch over a cluster: hear heartbeats, elect a leader, restart what is dead.",
    ),
    Command(
        "worker",
        "caudal.cli.worker",
        "worker",
        "Do the tasks of all jobs: read batches, fold partitions, finish queries.",
    ),
    Command(
        "series",
        "caudal.cli.series",
        "series",
        "Time series in a store: an event log and monthly projections, never half updated.",
    ),
)


class _LateCommands(TyperGroup):
    """Loads a command when it is called; its help's first line is known before."""

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        for command in COMMANDS:
            if args and args[0] == command.name:
                self.add_command(load(command), command.name)
        return super().resolve_command(ctx, args)


class _StrictCommand(TyperCommand):
    """Refuses options with an empty value: a variable of a script that was not set, mostly."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        given, _, _ = self.make_parser(ctx).parse_args(args=list(args))
        for parameter in self.params:
            if parameter.param_type_name == "option" and given.get(parameter.name or "") == "":
                raise UsageError(f"{parameter.opts[0]} '' is empty: give a value, or leave it out")
        return super().parse_args(ctx, args)


def load(command: Command) -> Any:
    """The command itself, for typer to call."""
    found = getattr(importlib.import_module(command.module), command.attribute)
    if not isinstance(found, typer.Typer):
        single = _typer()
        single.command(command.name, cls=_StrictCommand)(found)
        found = single
    loaded = get_command(found)
    loaded.name = command.name
    take_plainly(loaded)
    return loaded


def _typer(**more: Any) -> typer.Typer:
    return typer.Typer(
        rich_markup_mode="markdown",
        pretty_exceptions_enable=False,
        add_completion=False,
        context_settings=_CONTEXT,
        **more,
    )


def _statuses() -> str:
    listed = "\n".join(f"- {status.value}: {status.meaning}" for status in ExitStatus)
    return f"Exit statuses:\n\n{listed}"


def _version(asked: bool) -> None:
    if asked:
        typer.echo(f"caudal {__version__}")
        raise typer.Exit


def _options(
    debug: bool = typer.Option(False, "--debug", help="Show the traceback of an error."),
    version: bool = typer.Option(
        False, "--version", help="Show the version.", is_eager=True, callback=_version
    ),
) -> None:
    del debug, version  # `main` reads --debug itself, so that every error honours it


def make_program() -> Any:
    """The whole command line, its commands not yet loaded."""
    program = _typer(
        name="caudal",
        help="SQL over datasets that arrive as CSV, with answers that are exactly right.",
        epilog=_statuses(),
        no_args_is_help=True,
        cls=_LateCommands,
    )
    program.callback()(_options)
    for command in COMMANDS:
        program.command(command.name, help=command.about)(lambda: None)
    made = get_command(program)
    take_plainly(made)
    return made
