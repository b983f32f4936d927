"""Checking a whole application without any data."""

from caudal.engine.catalog import bind
from caudal.engine.database import open_database
from caudal.kernels.sentiment import load_model
from caudal.model import Application


def check_application(app: Application) -> None:
    """Every table and query binds; an ApplicationError names the file that does not."""
    with open_database(load_model(app.sentiment)) as connection:
        bind(app, app.queries, {}, connection)
