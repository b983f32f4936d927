"""`caudal ui`: the SQL page over an application's files or a dataset, without a cluster."""

import contextlib
import secrets
import tempfile
from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from caudal.cli.options import (
    AsOfOption,
    FromOption,
    ParamOption,
    QueryOptions,
    parameter_values,
    with_asking,
)
from caudal.cli.series_store import open_catalog
from caudal.cli.shell.command import open_tables, tables_session
from caudal.cli.shell.loop import Shell
from caudal.cli.ui.series import SeriesRoom
from caudal.cli.ui.server import ui_application
from caudal.cli.ui.session import UiSession
from caudal.cli.ui.shelf import ShelfRoom
from caudal.model import Application

_ELSEWHERE = ("engine", "partitions", "out", "profile", "form", "rejects", "quiet")


@partial(with_asking, without=_ELSEWHERE)
def ui(
    asking: QueryOptions,
    tables: Annotated[
        list[str] | None,
        typer.Argument(metavar="[APP | FILE …]", help="An application, or files as tables."),
    ] = None,
    param: ParamOption = None,
    source: FromOption = None,
    as_of: AsOfOption = None,
    series: Annotated[
        str | None,
        typer.Option("--series", metavar="STORE", help="Show the series of this store too."),
    ] = None,
    port: Annotated[
        int, typer.Option("--port", min=0, max=65_535, help="0 chooses a free port.")
    ] = 8419,
) -> None:
    """Ask SELECTs in a browser, over an application's files, files by name, or a dataset.

    Prints an address of this machine, with a key that is new at each start. Ctrl-C ends it.

    Examples:

    - `caudal ui books --data data`
    - `caudal ui books --from shelf`
    - `caudal ui orders.csv customers.csv`
    - `caudal ui --series data`
    """
    import uvicorn

    from caudal.gateway.process import listening

    application, takes_files = open_tables(tables or [], asking)
    with contextlib.ExitStack() as held:
        shelf = _shelf(application, asking, source, as_of, held)
        session = (
            shelf.session()
            if shelf
            else held.enter_context(tables_session(application, asking, None, source, as_of))
        )
        shell = Shell(
            session,
            application,
            asking.sources(application),
            takes_files,
            parameter_values(application.parameters, param),
            quiet=True,
        )
        asked = UiSession(shell, shelf, SeriesRoom(open_catalog(series)) if series else None)
        key = secrets.token_urlsafe(24)
        server = uvicorn.Server(
            uvicorn.Config(
                ui_application(asked, key),
                lifespan="off",
                log_config=None,
                access_log=False,
                server_header=False,
            )
        )
        with listening("127.0.0.1", port) as listener:
            where = listener.getsockname()[1]
            page = "series" if series and not tables else "sql"
            typer.echo(f"http://127.0.0.1:{where}/#/{page}?key={key}")
            typer.echo("press Ctrl-C to stop", err=True)
            server.run(sockets=[listener])


def _shelf(
    app: Application,
    asking: QueryOptions,
    source: str | None,
    as_of: int | None,
    held: contextlib.ExitStack,
) -> ShelfRoom | None:
    """Return the room for dropped files; None unless the newest version of a dataset is shown."""
    if source is None or as_of is not None:
        return None
    folder = Path(held.enter_context(tempfile.TemporaryDirectory(prefix="caudal-")))
    opened = partial(tables_session, app, asking, None, source, None)
    return held.enter_context(
        contextlib.closing(ShelfRoom(app, source, asking.run_options(None), folder, opened))
    )
