"""Computed columns over a dataset: a table for the queries that call an expensive function.

Such a query is bound to a table that has the values of `sentiment(text)` as a column
(sql/footprint.py, rule 4). Over a dataset that table is made like this:

1. Its rows are those that such queries see, in the order of the files, with the columns that they
   read. So a query runs over the same table as after reading CSV files.
2. Values that the dataset keeps are not computed again (dataset_values.py).
3. Only such queries see the table, by a view of their own cursor. All others read the files.
"""

from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

from caudal.datasets.computed import KEPT
from caudal.datasets.documents import DatasetTable
from caudal.datasets.shelf import Shelf
from caudal.duck.arrow_casts import readable, without_loss
from caudal.duck.bind import BoundQuery, shown_columns
from caudal.duck.database import Connection
from caudal.duck.table_sql import comparable, visible_condition
from caudal.embedded.dataset_values import FileValues, Sight, file_batches
from caudal.embedded.dataset_views import PLACE
from caudal.files.ordered import in_order
from caudal.sql.quoting import quote
from caudal.sql.table_needs import ALL_ROWS, ComputedColumn, VisibleRows


@dataclass(frozen=True)
class ComputedTables:
    """The tables with computed columns: for each a SELECT of all its columns."""

    selects: Mapping[str, str]

    def cursor(self, connection: Connection, bound: BoundQuery) -> Connection:
        """Return a cursor for a query, on which it finds the tables that it was bound to."""
        cursor = connection.cursor()
        if bound.seen.computed_columns:
            for table, select in self.selects.items():
                cursor.execute(f"CREATE TEMP VIEW {quote(table)} AS {select}")
        return cursor


def can_compute(bound: BoundQuery, tables: Iterable[DatasetTable]) -> bool:
    """Return whether the computed columns of a query can be made: of texts, with their places."""
    columns = {table.name: dict(table.columns) for table in tables}
    return all(
        one.function in KEPT
        and columns[one.table][one.column] == "VARCHAR"
        and PLACE not in map(str.lower, columns[one.table])
        for one in bound.seen.computed_columns
    )


def compute_columns(
    connection: Connection,
    pool: ThreadPoolExecutor,
    shelf: Shelf,
    files: Mapping[str, Sequence[Path]],
    queries: Sequence[BoundQuery],
    threads: int,
) -> ComputedTables:
    """Make the tables of all queries that have computed columns."""
    early = [one for one in queries if one.seen.computed_columns]
    named = {column.table for query in early for column in query.seen.computed_columns}
    selects = {}
    for table in shelf.contents.head.tables:
        if table.name not in named:
            continue
        made = _planned(connection, table, [one for one in early if table.name in one.reads])
        selects[table.name] = made.create(connection)
        values = FileValues(connection, shelf.store, made.sight)
        batches = file_batches(shelf.contents.tables[table.name], files[table.name])
        with (
            without_loss(connection),
            closing(in_order(pool, values.read, batches, ahead=threads)) as parts,
        ):
            for rows in parts:
                made.insert(connection, rows)
    return ComputedTables(selects)


@dataclass(frozen=True)
class _TableWithValues:
    """A table to be made, and what its queries see of the files."""

    table: DatasetTable
    sight: Sight

    @property
    def stored(self) -> str:
        return f"computed.{quote(self.table.name)}"

    def create(self, connection: Connection) -> str:
        """Create the table without rows; return the SELECT of its view."""
        extra = {one.name: one.type for one in self.sight.computed}
        held = {**self.sight.kept, **extra}
        columns = ", ".join(f"{quote(name)} {kind}" for name, kind in held.items())
        connection.execute("CREATE SCHEMA IF NOT EXISTS computed")
        connection.execute(f"CREATE OR REPLACE TABLE {self.stored} ({columns})")
        shown = shown_columns(dict(self.table.columns), held)
        return f"SELECT {shown} FROM {self.stored}"

    def insert(self, connection: Connection, rows: pa.Table) -> None:
        names = ", ".join([*self.sight.kept_names, *self.sight.value_names])
        with readable(connection, "computed_rows", rows):
            connection.execute(
                f"INSERT INTO {self.stored} SELECT {names} FROM computed_rows WHERE seen"
            )


def _planned(
    connection: Connection, table: DatasetTable, readers: Sequence[BoundQuery]
) -> _TableWithValues:
    """Decide what a table holds for all of its readers. Creates the key sets that decide."""
    columns = dict(table.columns)
    read = {name for query in readers for name in query.reads[table.name]}
    calls: dict[str, list[ComputedColumn]] = {}
    for one in (one for query in readers for one in query.seen.computed_columns):
        if one.table == table.name:
            calls.setdefault(one.name, []).append(one)

    def condition(every: Iterable[VisibleRows]) -> str:
        found = tuple(every)
        for name, select in (keys for rows in found for keys in rows.key_sets):
            connection.execute(f"CREATE TABLE IF NOT EXISTS {name} AS {select}")
        return visible_condition([comparable(connection, columns, rows) for rows in found])

    sight = Sight(
        kept={name: kind for name, kind in columns.items() if name in read},
        computed=tuple(same[0] for same in calls.values()),
        needed=tuple(condition(one.visible_rows for one in same) for same in calls.values()),
        seen=condition(
            rows
            for query in readers
            for rows in query.seen.visible_rows.get(table.name, (ALL_ROWS,))
        ),
    )
    return _TableWithValues(table, sight)
