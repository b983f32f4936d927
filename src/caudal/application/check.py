"""Checking a whole application without any data."""

from collections.abc import Mapping

from caudal.duck.bind import bind
from caudal.duck.database import open_database
from caudal.kernels.sentiment import load_model
from caudal.model import Application, ParameterValue


def check_application(
    app: Application, parameters: Mapping[str, ParameterValue] | None = None
) -> None:
    """Every table and query binds; an ApplicationError names the file that does not."""
    with open_database(load_model(app.sentiment)) as connection:
        bind(app, app.queries, parameters or {}, connection)
