"""Cleaners: a pool of DuckDB cursors that turn pieces of a table's files into typed rows."""

import contextlib
from collections.abc import Callable, Iterator
from queue import SimpleQueue

import pyarrow as pa

from caudal.duck.arrow_casts import carrying_list, marked
from caudal.duck.clean import clean_piece
from caudal.duck.database import Connection, DuckDBError, one_line
from caudal.duck.empty_database import disable_rules
from caudal.duck.prefilter import KeyFilters
from caudal.errors import ApplicationError, QueryError
from caudal.files.cleaning import Cleaning
from caudal.files.pieces import Cleaned, FilePiece
from caudal.kernels.hashing import KeyFilter, key_words
from caudal.sql.quoting import quote

_MANY_COLUMNS = 1_000  # from here on, planning takes longer than the common expressions cost


class _Cleaner:
    """A cleaner of one table's pieces, one after the other. Its SQL is planned once, over a
    relation `raw` whose rows are replaced for each piece."""

    def __init__(self, cursor: Connection, cleaning: Cleaning, filters: KeyFilters) -> None:
        self._cursor = cursor
        self._cleaning = cleaning
        self._filters = filters
        self._rows = pa.table({})
        self._types: list[str] = []  # of the columns of the SQL's result

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """Return the rows of `raw`. DuckDB calls this each time that the SQL runs."""
        return self._rows.__arrow_c_stream__(requested_schema)

    def clean(self, piece: FilePiece) -> Cleaned:
        try:
            return clean_piece(piece, self._cleaning, self._select, self._filters)
        except (DuckDBError, QueryError) as error:
            raise ApplicationError(f"{self._cleaning.table.origin}: {one_line(error)}") from None

    def _select(self, sql: str, relation: str, rows: pa.Table) -> pa.Table:
        planned, self._rows = self._rows.schema, rows
        if rows.schema != planned:
            self._cursor.register(relation, self)
            self._cursor.execute(f"PREPARE clean AS {sql}")
            given = self._cursor.sql("EXECUTE clean")
            columns = list(zip(given.columns, map(str, given.types), strict=True))
            self._types = [kind for _, kind in columns]
            listed = carrying_list(columns)
            if listed == ", ".join(f"{quote(name)} AS {quote(name)}" for name, _ in columns):
                return given.to_arrow_table()  # as nearly always: the SQL is planned only once
            self._cursor.execute(f"PREPARE clean AS SELECT {listed} FROM (\n{sql}\n) AS given")
        return marked(self._cursor.sql("EXECUTE clean").to_arrow_table(), self._types)


@contextlib.contextmanager
def cleaners(
    connection: Connection, cleaning: Cleaning, threads: int
) -> Iterator[Callable[[FilePiece], Cleaned]]:
    """Provide a function that cleans pieces of a table in a pool of `threads` cleaners.

    On exit this waits for running calls; no call may be queued.
    """
    filters = {
        flag.keys: KeyFilter(key_words(connection.table(flag.keys).to_arrow_table().column(0)))
        for flag in cleaning.prefilter.flags
    }
    cursors = [connection.cursor() for _ in range(threads)]
    if len(cleaning.table.columns) > _MANY_COLUMNS:
        disable_rules(connection, "common_subexpressions")
    idle: SimpleQueue[_Cleaner] = SimpleQueue()
    for cursor in cursors:
        idle.put(_Cleaner(cursor, cleaning, filters))

    def clean(piece: FilePiece) -> Cleaned:
        cleaner = idle.get()
        try:
            return cleaner.clean(piece)
        finally:
            idle.put(cleaner)

    try:
        yield clean
    finally:
        for _ in cursors:
            idle.get()
        for cursor in cursors:
            cursor.close()
        if len(cleaning.table.columns) > _MANY_COLUMNS:
            disable_rules(connection)
