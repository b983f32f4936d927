"""`caudal ui`: the SQL page over an application's files or a dataset, without a cluster."""

import secrets
from functools import partial
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
from caudal.cli.shell.command import open_tables, tables_session
from caudal.cli.shell.loop import Shell
from caudal.cli.ui.server import ui_application
from caudal.cli.ui.session import UiSession

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
    """
    import uvicorn

    from caudal.gateway.process import listening

    application, takes_files = open_tables(tables or [], asking)
    with tables_session(application, asking, None, source, as_of) as session:
        shell = Shell(
            session,
            application,
            asking.sources(application),
            takes_files,
            parameter_values(application.parameters, param),
            quiet=True,
        )
        key = secrets.token_urlsafe(24)
        server = uvicorn.Server(
            uvicorn.Config(
                ui_application(UiSession(shell), key),
                lifespan="off",
                log_config=None,
                access_log=False,
                server_header=False,
            )
        )
        with listening("127.0.0.1", port) as listener:
            where = listener.getsockname()[1]
            typer.echo(f"http://127.0.0.1:{where}/#/sql?key={key}")
            typer.echo("press Ctrl-C to stop", err=True)
            server.run(sockets=[listener])
