"""Commands for application folders: `caudal apps`, `check`, `test`, `new`."""

import shlex
from pathlib import Path
from typing import Annotated

import typer

from caudal.application import find_application, load_application, shipped_applications
from caudal.application.cases import run_cases
from caudal.application.check import check_application
from caudal.application.new import data_folder, write_application
from caudal.cli.options import (
    AppArgument,
    EngineOption,
    ParamOption,
    SentimentOption,
    parameter_values,
)
from caudal.cli.status import ExitStatus
from caudal.errors import ApplicationError
from caudal.run_options import Engine, RunOptions
from caudal.sql.parameters import parameter_names


def apps() -> None:
    """List the shipped applications with their tables, queries and parameters."""
    for folder in shipped_applications().values():
        app = load_application(folder)
        typer.echo(f"{app.name}  {app.title}")
        for table in app.tables:
            typer.echo(f"  table {table.name:<10} {', '.join(table.files)}")
        for query in app.queries:
            typer.echo(f"  query {query.name:<10} {query.title}")
        for name, value in app.parameters.items():
            users = [q.name for q in app.queries if name in parameter_names(q.sql, q.origin)]
            typer.echo(f"  param {name}={value} ({', '.join(users)})")


def check(app: AppArgument, param: ParamOption = None) -> None:
    """Check the files, names and SQL of an application, without data.

    Give a value for each parameter without a default, of the same type as in later runs.

    Examples:

    - `caudal check ./my_app`
    - `caudal check ./my_app --param country=Chile`
    """
    application = find_application(app)
    check_application(application, parameter_values(application.parameters, param))
    typer.echo(
        f"{application.name} is valid: {_counted(len(application.tables), 'table', 'tables')}, "
        f"{_counted(len(application.queries), 'query', 'queries')}"
    )


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


def new(
    name: Annotated[Path, typer.Argument(help="The folder to create.")],
    files: Annotated[list[Path], typer.Argument(help="CSV files; each becomes a table.")],
) -> None:
    """Write an application folder for CSV files, with column types inferred from the data.

    Example: `caudal new sales orders.csv customers.csv`
    """
    for path in write_application(name, files):
        typer.echo(str(path), err=True)
    folder = str(name) if name.is_absolute() or name.parts[0] == ".." else f"./{name}"
    words = ["caudal", "run", folder, "--data", str(data_folder(files))]
    typer.echo(f"now try: {shlex.join(words)}")


def _counted(count: int, one: str, many: str) -> str:
    return f"{count} {one if count == 1 else many}"
