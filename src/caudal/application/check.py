"""Check of a whole application without data."""

from collections.abc import Mapping

from caudal.duck.bind import bind
from caudal.duck.database import open_database
from caudal.kernels.sentiment import load_model
from caudal.model import Application, ParameterValue


def check_application(
    app: Application, parameters: Mapping[str, ParameterValue] | None = None
) -> None:
    """Raise an ApplicationError that names the file if a table or query does not bind."""
    with open_database(load_model(app.sentiment)) as connection:
        bind(app, app.queries, parameters or {}, connection)
