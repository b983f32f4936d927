"""Bind an application's tables for a dataset: all their columns, with types that Delta has."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import duckdb
import pyarrow as pa

from caudal.datasets.documents import DatasetTable
from caudal.datasets.tables import REJECTS_TABLE, described_table
from caudal.datasets.types import check_columns
from caudal.duck.table_sql import MOST_COLUMNS, bind_table, make_cleaning, without_reject
from caudal.files.cleaning import Cleaning, Copied
from caudal.model import Table
from caudal.sql.quoting import quote
from caudal.sql.table_needs import Schema


@dataclass(frozen=True)
class AppTables:
    """An application's tables, bound: for the dataset, and for the reader of files."""

    tables: tuple[DatasetTable, ...]
    cleanings: Mapping[str, Cleaning]
    made_by: str  # versions of what decides the bytes of files


def bind_app_tables(
    cursor: duckdb.DuckDBPyConnection,
    tables: Iterable[Table],
    model: str,
    *,
    copying: bool = False,
) -> AppTables:
    """Bind all tables; raise ApplicationError for a column that a dataset cannot hold.

    `model` is the sentiment model. With `copying`, texts that the SQL leaves unchanged are taken
    from the files. Workers of older versions do not know of that, so it is for this process only.
    """
    described, cleanings = [], {}
    for table in tables:
        cleaned = bind_table(cursor, table)
        columns = without_reject(cleaned)
        check_columns(table.origin, table.name, dict(columns))
        copied = _copied(table, columns) if copying else ()
        others = [name for name in columns if name not in {one.output for one in copied}]
        outputs = [quote(name) for name in others]
        cleanings[table.name] = make_cleaning(cursor, table, cleaned, outputs, copied=copied)
        described.append(described_table(table, columns.items(), model))
    described.append(REJECTS_TABLE)
    return AppTables(tuple(described), cleanings, _made_by(cursor))


def _copied(table: Table, columns: Schema) -> tuple[Copied, ...]:
    """Return the texts that are positively known to be columns of the files, unchanged."""
    from caudal.sql.prefilters import project

    projection = project(table.sql, table.columns) if len(table.columns) <= MOST_COLUMNS else None
    if projection is None:
        return ()
    found = [
        (place, name, projection.copied(name))
        for place, (name, kind) in enumerate(columns.items())
        if kind == "VARCHAR"
    ]
    return tuple(Copied(place, name, origin) for place, name, origin in found if origin)


def _made_by(cursor: duckdb.DuckDBPyConnection) -> str:
    (version,) = cursor.execute("SELECT version()").fetchone() or ("",)
    return f"duckdb {version} pyarrow {pa.__version__}"
