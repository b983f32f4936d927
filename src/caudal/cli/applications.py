"""Commands for application folders: `caudal apps`, `check`, `test`, `new`, `case`."""

import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

import typer

from caudal.application import find_application, load_application, shipped_applications
from caudal.application.cases import run_cases
from caudal.application.check import check_application
from caudal.application.checks import run_checks
from caudal.application.copy import copy_application
from caudal.application.new import needed_options, write_application
from caudal.application.record_case import CaseRequest, record_case
from caudal.cli.options import (
    AppArgument,
    EngineOption,
    ParamOption,
    ReadingOptions,
    SentimentOption,
    file_overrides,
    pairs,
    parameter_values,
    with_reading,
)
from caudal.cli.status import ExitStatus
from caudal.errors import ApplicationError, UsageError
from caudal.files.sources import Sources
from caudal.model import Application, ParameterValue
from caudal.run_options import Engine, RunOptions
from caudal.sql.parameters import parameter_names

_ROWS_SHOWN = 10  # of a check that failed


def apps() -> None:
    """List the shipped applications with their tables, queries and parameters."""
    for folder in shipped_applications().values():
        app = load_application(folder)
        typer.echo(f"{app.name}  {app.title}")
        for table in app.tables:
            typer.echo(f"  table {table.name:<10} {', '.join(table.files)}")
        for derived in app.derived:
            typer.echo(f"  table {derived.name:<10} from other tables")
        for query in app.queries:
            typer.echo(f"  query {query.name:<10} {query.title}")
        for one in app.checks:
            typer.echo(f"  check {one.name:<10} {one.title}")
        for name, value in app.parameters.items():
            users = [q.name for q in app.queries if name in parameter_names(q.sql, q.origin)]
            typer.echo(f"  param {name}={value} ({', '.join(users)})")


def check(
    app: AppArgument,
    param: ParamOption = None,
    data: Annotated[
        Path | None,
        typer.Option("--data", "-d", help="Run the checks over the files of this folder, too."),
    ] = None,
    engine: EngineOption = Engine.EMBEDDED,
) -> int:
    """Check the files, names and SQL of an application; with --data, also its checks.

    A check is a SELECT in checks/ of rows that must not exist. Give a value for each parameter
    without a default, of the same type as in later runs.

    Examples:

    - `caudal check ./my_app`
    - `caudal check ./my_app --param country=Chile`
    - `caudal check movies --data data`
    """
    application = find_application(app)
    values = parameter_values(application.parameters, param)
    check_application(application, values)
    if data is not None:
        return _check_data(application, data, values, engine)
    tables = len(application.tables) + len(application.derived)
    told = [_counted(tables, "table", "tables")]
    told.append(_counted(len(application.queries), "query", "queries"))
    if application.checks:
        told.append(_counted(len(application.checks), "check", "checks"))
    typer.echo(f"{application.name} is valid: {', '.join(told)}")
    return int(ExitStatus.OK)


def _check_data(
    app: Application, data: Path, values: Mapping[str, ParameterValue], engine: Engine
) -> int:
    if not data.is_dir():
        raise UsageError(f"no folder {data}: give the folder with the files as --data DIR")
    outcomes, rejects = run_checks(app, Sources(data), values, RunOptions(), engine)
    for outcome in outcomes:
        typer.echo(f"{'passed' if outcome.passed else 'FAILED'}  {outcome.name}: {outcome.title}")
        if outcome.error is not None:
            typer.echo(f"        {outcome.error}")
        elif outcome.failing:
            for line in repr(outcome.failing.head(_ROWS_SHOWN)).splitlines()[1:]:
                typer.echo(f"        {line}")
            typer.echo(f"        {_counted(len(outcome.failing), 'row', 'rows')} must not exist")
    if rejects:
        typer.echo(repr(rejects), err=True)
    failed = sum(not outcome.passed for outcome in outcomes)
    typer.echo(f"{len(outcomes) - failed} passed, {failed} failed")
    return int(ExitStatus.CASES_FAILED if failed else ExitStatus.OK)


def run_tests(
    app: AppArgument,
    sentiment: SentimentOption = None,
    engine: EngineOption = Engine.EMBEDDED,
) -> int:
    """Run the cases of an application and compare the answers with the expected ones.

    Example: `caudal test movies`
    """
    application = find_application(app)
    outcomes = run_cases(application, RunOptions(sentiment=sentiment), engine)
    if not outcomes:
        raise ApplicationError(
            f"{application.folder / 'cases'} has no cases: create a folder there with input files "
            "and expected.json"
        )
    for outcome in outcomes:
        typer.echo(f"{'FAILED' if outcome.problems else 'passed'}  {outcome.name}")
        for problem in outcome.problems:
            typer.echo(f"        {problem}")
    failed = sum(bool(outcome.problems) for outcome in outcomes)
    typer.echo(f"{len(outcomes) - failed} passed, {failed} failed")
    return int(ExitStatus.CASES_FAILED if failed else ExitStatus.OK)


@with_reading
def new(
    name: Annotated[Path, typer.Argument(help="The folder to create.")],
    reading: ReadingOptions,
    files: Annotated[
        list[str] | None,
        typer.Argument(help="Data files, or objects as s3://…; each becomes a table."),
    ] = None,
    source: Annotated[
        str | None, typer.Option("--from", metavar="APP", help="Copy this application instead.")
    ] = None,
) -> None:
    """Write an application folder for data files, with column types inferred from the data.

    Separators, encodings, decimal commas and formats of dates are found where they are certain, and
    written into app.toml. With --from, copy an application to change it.

    Examples:

    - `caudal new sales orders.csv customers.xlsx`
    - `caudal new sales orders.txt --delimiter "|" --no-header`
    - `caudal new mine --from movies`
    """
    if source is not None:
        if files:
            raise UsageError("--from copies an application: leave the files out")
        copy_application(find_application(source), name)
        typer.echo(f"now try: {shlex.join(['caudal', 'check', _shown_folder(name)])}")
        return
    if not files and name.is_file():
        raise UsageError(f"give a name first: caudal new {name.stem} {name}")
    if not files:
        raise UsageError("name data files, each becomes a table; or --from APP to copy one")
    for path in write_application(name, files, reading.reading()):
        typer.echo(str(path), err=True)
    words = ["caudal", "run", _shown_folder(name), *needed_options(files)]
    typer.echo(f"now try: {shlex.join(words)}")


def case(
    app: AppArgument,
    name: Annotated[str, typer.Argument(help="The name of the new case.")],
    source: Annotated[
        Path, typer.Option("--from", metavar="DIR", help="The folder with the live files.")
    ],
    rows: Annotated[
        int, typer.Option("--rows", min=0, max=100_000, help="At most so many rows of each table.")
    ] = 20,
    where: Annotated[
        list[str] | None,
        typer.Option("--where", help="TABLE=CONDITION over the text columns of its files."),
    ] = None,
    query: Annotated[
        list[str] | None, typer.Option("--query", "-q", help="Only this query (repeatable).")
    ] = None,
    file: Annotated[
        list[str] | None, typer.Option("--file", help="TABLE=PATH: other files for one table.")
    ] = None,
    param: ParamOption = None,
    about: Annotated[str, typer.Option("--about", help="What the case tests.")] = "",
) -> None:
    """Make a case out of live data: some rows of each table, and the answers over them.

    A condition may read the chosen rows of the tables before it by their names. Look at
    expected.json before you trust it: it holds what the queries answer now.

    Examples:

    - `caudal case ./mine first --from data`
    - `caudal case ./mine spanish --from data --rows 50 -q q1 --where "movies=title LIKE 'El %'"`
    - `caudal case ./mine rated --from data --where "ratings=movieId IN (SELECT id FROM movies)"`
    """
    if app in shipped_applications():
        raise UsageError(f"copy {app} first: caudal new mine --from {app}")
    application = find_application(app)
    if not source.is_dir():
        raise UsageError(f"no folder {source}: give the folder with the live files as --from DIR")
    written = record_case(
        application,
        Sources(source, file_overrides(application, file)),
        CaseRequest(
            name,
            rows,
            dict(pairs(where, "--where", "TABLE=CONDITION")),
            query,
            parameter_values(application.parameters, param),
            about,
        ),
    )
    typer.echo(f"{written / 'expected.json'} holds what the queries answer now: look at it")


def _shown_folder(name: Path) -> str:
    """Return a folder so that a command does not take it for a shipped application."""
    return str(name) if name.is_absolute() or name.parts[0] == ".." else f"./{name}"


def _counted(count: int, one: str, many: str) -> str:
    return f"{count:,} {one if count == 1 else many}"
