"""Check of a whole application without data."""

from collections.abc import Mapping
from dataclasses import replace

from caudal.duck.bind import bind
from caudal.duck.database import open_database
from caudal.kernels.sentiment import load_model
from caudal.model import Application, ParameterValue, Query
from caudal.sql.derived import expand


def check_application(
    app: Application, parameters: Mapping[str, ParameterValue] | None = None
) -> None:
    """Raise an ApplicationError that names the file if a table or query does not bind."""
    derived = [
        Query(table.name, "", expand(table.sql, app.derived, table.origin), table.origin)
        for table in app.derived
    ]
    everything = replace(app, queries=(*derived, *app.queries, *app.checks))
    with open_database(load_model(app.sentiment)) as connection:
        bind(everything, everything.queries, parameters or {}, connection)
