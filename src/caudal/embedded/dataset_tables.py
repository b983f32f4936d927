"""What an application's tables are in a dataset: their columns, and how their rows are cleaned."""

import contextlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import msgspec

from caudal.datasets.documents import DatasetTable
from caudal.datasets.keys import REJECTS
from caudal.datasets.types import check_columns
from caudal.duck.database import Connection, open_database
from caudal.duck.describe import empty_schema
from caudal.duck.table_sql import bind_table, make_cleaning, without_reject
from caudal.files.cleaning import Cleaning
from caudal.formats.digest import digest
from caudal.kernels.sentiment import load_model
from caudal.model import Application, Table
from caudal.run_options import RunOptions
from caudal.sql.quoting import quote

REJECTS_COLUMNS = (
    ("table", "VARCHAR"),
    ("file", "VARCHAR"),
    ("line", "BIGINT"),
    ("reason", "VARCHAR"),
    ("record", "VARCHAR"),
)


@dataclass(frozen=True)
class AppTables:
    """An application's tables, bound: for the dataset, and for the reader of files."""

    tables: tuple[DatasetTable, ...]
    cleanings: Mapping[str, Cleaning]
    made_by: str  # versions of what decides the bytes of files


@contextlib.contextmanager
def app_database(app: Application, options: RunOptions) -> Iterator[Connection]:
    """Open a database with the functions that the application's SQL may call."""
    model = load_model(options.sentiment or app.sentiment)
    with open_database(model, memory_limit=options.memory_limit) as connection:
        yield connection


def bind_tables(app: Application, connection: Connection, options: RunOptions) -> AppTables:
    """Bind all tables; raise ApplicationError for a column that a dataset cannot hold."""
    digests = cleaning_digests(app, options)
    tables, cleanings = [], {}
    with empty_schema(connection) as cursor:
        for table in app.tables:
            cleaned = bind_table(cursor, table)
            columns = without_reject(cleaned)
            check_columns(table.origin, table.name, dict(columns))
            outputs = [quote(name) for name in columns]
            cleanings[table.name] = make_cleaning(cursor, table, cleaned, outputs)
            described = tuple(columns.items())
            tables.append(DatasetTable(table.name, described, digests[table.name]))
    tables.append(DatasetTable(REJECTS, REJECTS_COLUMNS))
    return AppTables(tuple(tables), cleanings, _made_by(connection))


def cleaning_digests(app: Application, options: RunOptions) -> dict[str, str]:
    """Return for each table the digest of everything that decides what becomes of its rows."""
    model = options.sentiment or app.sentiment
    return {table.name: _cleaning_digest(table, model) for table in app.tables}


def _cleaning_digest(table: Table, model: str) -> str:
    scored = model if "sentiment" in table.sql.lower() else ""
    return digest(msgspec.json.encode([table.sql, table.columns, scored]))


def _made_by(connection: Connection) -> str:
    import pyarrow as pa

    (version,) = connection.execute("SELECT version()").fetchone() or ("",)
    return f"duckdb {version} pyarrow {pa.__version__}"
