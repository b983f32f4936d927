"""`caudal shell`."""

import sys
from collections.abc import Callable
from contextlib import AbstractContextManager
from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from caudal.application import find_application, shipped_applications
from caudal.application.adhoc import files_application
from caudal.cli.dataset_choice import chosen_dataset
from caudal.cli.options import (
    AsOfOption,
    FromOption,
    ParamOption,
    QueryOptions,
    parameter_values,
    with_asking,
)
from caudal.cli.output import reject_file
from caudal.cli.shell.loop import Shell, run_prompt, run_script
from caudal.cli.shell.statements import statements
from caudal.embedded.session import TableSession, open_session
from caudal.errors import UsageError
from caudal.model import ADHOC, Application, RejectedRow, Table
from caudal.version import __version__

_ELSEWHERE = ("engine", "partitions", "out", "profile")


@partial(with_asking, without=_ELSEWHERE)
def shell(
    asking: QueryOptions,
    tables: Annotated[
        list[str] | None,
        typer.Argument(metavar="[APP | FILE …]", help="An application, or files as tables."),
    ] = None,
    param: ParamOption = None,
    source: FromOption = None,
    as_of: AsOfOption = None,
) -> None:
    """Ask one SELECT after the other at a prompt; files are read once and kept.

    The prompt completes tables, columns and functions with Tab and remembers what was typed. A
    SELECT ends with a semicolon; `.help` lists the commands of the prompt. Statements from a pipe
    are executed without a prompt, until the first mistake.

    Examples:

    - `caudal shell books --data data`
    - `caudal shell orders.csv customers.csv`
    - `caudal shell books --data data --format csv < statements.sql`
    - `caudal shell books --from shelf`
    """
    application, takes_files = open_tables(tables or [], asking)
    with (
        reject_file(asking.rejects) as sink,
        tables_session(application, asking, sink, source, as_of) as session,
    ):
        prompt = Shell(
            session,
            application,
            asking.sources(application),
            takes_files,
            parameter_values(application.parameters, param),
            quiet=asking.quiet,
        )
        prompt.mode = asking.form or prompt.mode
        if sys.stdin.isatty():
            from caudal.cli.shell.prompt import typed_statements

            typer.echo(f"Caudal {__version__}. SELECT …; or .help or .quit", err=True)
            run_prompt(prompt, typed_statements(prompt.catalog()))
        else:
            run_script(prompt, statements(_script()))


def tables_session(
    app: Application,
    asking: QueryOptions,
    sink: Callable[[RejectedRow], None] | None,
    source: str | None,
    as_of: int | None,
) -> AbstractContextManager[TableSession]:
    """Open a session over files, or over a dataset."""
    options = asking.run_options(sink)
    if source is None and as_of is None:
        return open_session(asking.sentiment or app.sentiment, options)
    if app.name == ADHOC:
        raise UsageError("--from asks a dataset: caudal shell APP --from DATASET")
    from caudal.embedded.dataset_session import open_dataset_session

    return open_dataset_session(app, chosen_dataset(source, as_of, asking), options)


def _script() -> str:
    try:
        return sys.stdin.buffer.read().decode()
    except UnicodeDecodeError as error:
        raise UsageError(f"standard input is not UTF-8 text: {error}") from None


def open_tables(names: list[str], asking: QueryOptions) -> tuple[Application, bool]:
    """Return the application with the tables of the prompt, and whether a SELECT may name files."""
    if len(names) == 1 and (names[0] in shipped_applications() or Path(names[0]).is_dir()):
        return find_application(names[0]), False
    tables: dict[str, Table] = {}
    for name in names:
        quoted = name.replace("'", "''")
        reading = asking.reading.reading()
        asked = files_application(f"FROM '{quoted}'", asking.data, reading=reading)
        (table,) = asked.tables or [None]
        if table is None:
            raise UsageError(f"{name} is neither an application nor a CSV file")
        if table.name in tables:
            raise UsageError(f"two files would be called {table.name}: give one, or rename one")
        tables[table.name] = table
    return Application(ADHOC, "", asking.data or Path(), tuple(tables.values()), ()), True
