"""The commands of `caudal`: their modules and their short help.

A command's module is imported only when the command is called: DuckDB and Arrow load slowly, and
`caudal --help` needs neither.
"""

import gc
import importlib
from typing import Any, NamedTuple

import typer
from typer.core import TyperCommand, TyperGroup
from typer.exceptions import TyperException
from typer.main import get_command

from caudal import extras
from caudal.cli.plain_values import take_plainly
from caudal.cli.status import ExitStatus
from caudal.errors import UsageError
from caudal.version import __version__

_CONTEXT = {"help_option_names": ["-h", "--help"]}


class Command(NamedTuple):
    """A command: a function, or a Typer for a group of commands."""

    name: str
    module: str
    attribute: str
    about: str  # the first line of its help
    extra: str = ""  # what it needs beside a plain installation


COMMANDS = (
    Command(
        "run",
        "caudal.cli.questions",
        "run",
        "Answer an application's queries over the files of a folder, or over a dataset.",
    ),
    Command(
        "sql",
        "caudal.cli.questions",
        "sql",
        "Answer any SELECT, over an application's cleaned tables or over files by name.",
    ),
    Command(
        "shell",
        "caudal.cli.shell.command",
        "shell",
        "Ask one SELECT after the other at a prompt; files are read once and kept.",
    ),
    Command(
        "ui",
        "caudal.cli.ui.command",
        "ui",
        "Ask SELECTs in a browser, over an application's files, files by name, or a dataset.",
        extra="cluster",
    ),
    Command(
        "load",
        "caudal.cli.datasets",
        "load",
        "Load files into a dataset: clean them once, ask them many times.",
    ),
    Command(
        "versions",
        "caudal.cli.datasets",
        "versions",
        "List the versions of a dataset: when, rows, files, bytes, rejected rows.",
    ),
    Command(
        "watch",
        "caudal.cli.datasets",
        "watch",
        "Answer a query again whenever a dataset has a new version; changed rows are marked.",
    ),
    Command(
        "compact",
        "caudal.cli.datasets",
        "compact",
        "Merge the small files of a dataset into large ones. Rows and answers stay the same.",
    ),
    Command(
        "vacuum",
        "caudal.cli.datasets",
        "vacuum",
        "Delete files that no kept version needs: merged ones, and those of killed loads.",
    ),
    Command(
        "datasets",
        "caudal.cli.cluster_datasets",
        "datasets",
        "List the datasets of a cluster that you may read; share, unshare or delete one of yours.",
        extra="cluster",
    ),
    Command(
        "submit",
        "caudal.cli.submit",
        "submit",
        "Answer an application's queries on a cluster, over files of this machine or a dataset.",
        extra="cluster",
    ),
    Command(
        "jobs",
        "caudal.cli.jobs",
        "jobs",
        "List the jobs of this token on a cluster, or delete some that have ended.",
        extra="cluster",
    ),
    Command(
        "results",
        "caudal.cli.jobs",
        "results",
        "Give the answers of a job on a cluster that are ready.",
        extra="cluster",
    ),
    Command(
        "report",
        "caudal.cli.report",
        "report",
        "Write a job as one HTML file: plans, timeline, answers with charts, rejected rows.",
        extra="cluster",
    ),
    Command("cancel", "caudal.cli.jobs", "cancel", "Cancel a job on a cluster.", extra="cluster"),
    Command(
        "explain",
        "caudal.cli.explaining",
        "explain",
        "Show what a query reads and its operators, in order.",
    ),
    Command(
        "apps",
        "caudal.cli.applications",
        "apps",
        "List the shipped applications with their tables, queries and parameters.",
    ),
    Command(
        "check",
        "caudal.cli.applications",
        "check",
        "Check the files, names and SQL of an application; with --data, also its checks.",
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
        "Write an application folder for data files, with column types inferred from the data.",
    ),
    Command(
        "case",
        "caudal.cli.applications",
        "case",
        "Make a case out of live data: some rows of each table, and the answers over them.",
    ),
    Command(
        "completion",
        "caudal.cli.completion",
        "completion",
        "Print the script that completes commands in bash, zsh or fish.",
    ),
    Command(
        "generate",
        "caudal.cli.generation",
        "generate",
        "Write synthetic files with the exact structure of the public originals.",
    ),
    Command(
        "gateway",
        "caudal.cli.gateway",
        "gateway",
        "Accept and manage jobs of clients. Any number of gateways can run at the same time.",
        extra="cluster",
    ),
    Command(
        "up",
        "caudal.cli.cluster",
        "up",
        "Start all processes of a cluster that do not run yet, and wait until it is healthy.",
        extra="cluster",
    ),
    Command(
        "down",
        "caudal.cli.cluster",
        "down",
        "Stop every process of this host gracefully. Jobs and their data stay; `up` continues.",
        extra="cluster",
    ),
    Command(
        "status",
        "caudal.cli.cluster",
        "status",
        "Show every process: state, incarnation, restarts, last heartbeat, memory, version.",
        extra="cluster",
    ),
    Command(
        "restart",
        "caudal.cli.restarting",
        "restart",
        "Restart processes of this host one by one; each must be healthy before the next.",
        extra="cluster",
    ),
    Command(
        "logs",
        "caudal.cli.cluster",
        "logs",
        "Show the newest log lines of a process of this host.",
        extra="cluster",
    ),
    Command(
        "scale",
        "caudal.cli.scaling",
        "scale",
        "Change how many workers or gateways a host runs, without stopping a job.",
        extra="cluster",
    ),
    Command(
        "token",
        "caudal.cli.tokens",
        "token",
        "Manage the access tokens of a cluster: new, list, revoke.",
    ),
    Command(
        "quotas",
        "caudal.cli.jobs",
        "quotas",
        "Show the usage and the quotas of this token's owner on a cluster.",
        extra="cluster",
    ),
    Command(
        "doctor",
        "caudal.cli.cluster_care",
        "doctor",
        "Check broker, store, ports, disk and limits, and print a remedy for each problem.",
        extra="cluster",
    ),
    Command(
        "chaos",
        "caudal.cli.cluster_care",
        "chaos",
        "Kill processes of a running cluster at random moments, and report how it recovers.",
        extra="cluster",
    ),
    Command(
        "init",
        "caudal.cli.member",
        "init",
        "Lay out the folder of a cluster whose processes run in containers.",
        extra="cluster",
    ),
    Command(
        "member",
        "caudal.cli.member",
        "member",
        "Run one process of a cluster by name, as cluster.toml says: the command of a container.",
        extra="cluster",
    ),
    Command(
        "medic",
        "caudal.cli.medic",
        "medic",
        "Supervise a cluster: receive heartbeats, elect a leader, restart dead processes.",
        extra="cluster",
    ),
    Command(
        "worker",
        "caudal.cli.worker",
        "worker",
        "Execute tasks of all jobs: read batches, fold partitions, finish queries.",
        extra="cluster",
    ),
    Command(
        "series",
        "caudal.cli.series",
        "series",
        "Manage time series in a store: an event log and atomically updated monthly projections.",
    ),
)


class _LateCommands(TyperGroup):
    """A command group that loads a command when it is called. Short help needs no loading."""

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        for command in COMMANDS:
            if args and args[0] == command.name:
                self.add_command(load(command), command.name)
        return super().resolve_command(ctx, args)


class _StrictCommand(TyperCommand):
    """A command that refuses empty option values: mostly an unset variable of a script."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        args = [_plain_statement(word) for word in args]
        try:
            given, _, _ = self.make_parser(ctx).parse_args(args=list(args))
        except TyperException as error:
            error.__dict__["ctx"] = error.__dict__.get("ctx") or ctx  # the message names it
            raise
        for parameter in self.params:
            if parameter.param_type_name == "option" and given.get(parameter.name or "") == "":
                raise UsageError(f"{parameter.opts[0]} '' is empty: give a value, or leave it out")
        return super().parse_args(ctx, args)


def _plain_statement(word: str) -> str:
    """Return the word; a statement that begins with a comment must not look like an option."""
    name = word.partition("=")[0]
    return f" {word}" if word.startswith("--") and any(map(str.isspace, name)) else word


def load(command: Command) -> Any:
    """Import the command and return it as a typer command."""
    if command.extra:
        extras.require(command.extra, f"caudal {command.name}")
    found = getattr(importlib.import_module(command.module), command.attribute)
    if not isinstance(found, typer.Typer):
        single = _typer()
        single.command(command.name, cls=_StrictCommand)(found)
        found = single
    loaded = get_command(found)
    loaded.name = command.name
    take_plainly(loaded)
    _collect_from_here()
    return loaded


def _collect_from_here() -> None:
    """Begin to collect garbage. What was loaded is none, and is never looked at again.

    To look at it again and again took 5% of a short command.
    """
    if not gc.isenabled():
        gc.freeze()
        gc.enable()


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
    del debug, version  # `main` reads --debug itself, so that it applies to every error


def make_program() -> Any:
    """Create the whole command line without loading its commands."""
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
