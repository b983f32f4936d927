"""Bind an application's tables for a dataset: all their columns, with types that Delta has."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import duckdb
import pyarrow as pa

from caudal.datasets.documents import DatasetTable
from caudal.datasets.tables import REJECTS_TABLE, described_table
from caudal.datasets.types import check_columns
from caudal.duck.table_sql import bind_table, make_cleaning, without_reject
from caudal.files.cleaning import Cleaning
from caudal.model import Table
from caudal.sql.quoting import quote


@dataclass(frozen=True)
class AppTables:
    """An application's tables, bound: for the dataset, and for the reader of files."""

    tables: tuple[DatasetTable, ...]
    cleanings: Mapping[str, Cleaning]
    made_by: str  # versions of what decides the bytes of files


def bind_app_tables(
    cursor: duckdb.DuckDBPyConnection, tables: Iterable[Table], model: str
) -> AppTables:
    """Bind all tables; raise ApplicationError for a column that a dataset cannot hold.

    `model` is the sentiment model.
    """
    described, cleanings = [], {}
    for table in tables:
        cleaned = bind_table(cursor, table)
        columns = without_reject(cleaned)
        check_columns(table.origin, table.name, dict(columns))
        outputs = [quote(name) for name in columns]
        cleanings[table.name] = make_cleaning(cursor, table, cleaned, outputs)
        described.append(described_table(table, columns.items(), model))
    described.append(REJECTS_TABLE)
    return AppTables(tuple(described), cleanings, _made_by(cursor))


def _made_by(cursor: duckdb.DuckDBPyConnection) -> str:
    (version,) = cursor.execute("SELECT version()").fetchone() or ("",)
    return f"duckdb {version} pyarrow {pa.__version__}"
