"""What an application's tables are in a dataset: their columns, and how their rows are cleaned."""

import contextlib
from collections.abc import Iterator

from caudal.datasets import tables
from caudal.duck.database import Connection, open_database
from caudal.duck.dataset_tables import AppTables, bind_app_tables
from caudal.duck.describe import empty_schema
from caudal.duck.kept_bindings import cleans_on_its_own, make_or_recall
from caudal.kernels.sentiment import load_model
from caudal.model import Application
from caudal.run_options import RunOptions


@contextlib.contextmanager
def app_database(app: Application, options: RunOptions) -> Iterator[Connection]:
    """Open a database with the functions that the application's SQL may call."""
    model = load_model(sentiment_model(app, options))
    with open_database(model, memory_limit=options.memory_limit) as connection:
        yield connection


def bind_tables(app: Application, connection: Connection, options: RunOptions) -> AppTables:
    """Bind all tables, or recall what an earlier load has bound.

    Raise ApplicationError for a column that a dataset cannot hold.
    """
    model = sentiment_model(app, options)

    def make() -> AppTables:
        with empty_schema(connection) as cursor:
            return bind_app_tables(cursor, app.tables, model, copying=True)

    if options.kept_bindings is None:
        return make()
    return make_or_recall(
        options.kept_bindings,
        AppTables,
        (app.tables, model),
        make,
        lambda _: cleans_on_its_own(connection, app.tables),
    )


def cleaning_digests(app: Application, options: RunOptions) -> dict[str, str]:
    """Return for each table the digest of everything that decides what becomes of its rows."""
    return tables.cleaning_digests(app.tables, sentiment_model(app, options))


def sentiment_model(app: Application, options: RunOptions) -> str:
    """Return the name of the model that `sentiment` calls."""
    return options.sentiment or app.sentiment
