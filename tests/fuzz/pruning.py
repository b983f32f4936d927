"""The embedded engine's pruning against none: the same rows without what a query cannot see.

What `duck/bind.py` says of a query is applied to whole tables: columns that nothing reads
become nulls, rows that no scan can see are left out, extracted calls become columns. The
rewritten query over these tables must give the rows of the given query over the whole ones.
"""

from collections.abc import Mapping
from contextlib import ExitStack

import duckdb
import pyarrow as pa

from caudal.duck.arrow_casts import presented, readable
from caudal.duck.bind import BoundQuery, bind_query
from caudal.duck.describe import create_empty, empty_schema
from caudal.model import Query
from caudal.sql.quoting import quote
from caudal.sql.table_needs import ALL_ROWS, ComputedColumn, Schemas
from tests.harness.oracle import ORACLE


class Pruning:
    """Connections that hold the pruned tables of one query after the other."""

    def __init__(self, schemas: Schemas, functions: str = "SELECT 1") -> None:
        """`functions` is SQL that makes what queries call beside DuckDB's own functions."""
        self._schemas = schemas
        self._open = ExitStack()
        self.connection, binding = (self._connected(functions) for _ in range(2))
        self._cursor = self._open.enter_context(empty_schema(binding))
        for table, schema in schemas.items():
            create_empty(self._cursor, table, schema)

    def _connected(self, functions: str) -> duckdb.DuckDBPyConnection:
        made = self._open.enter_context(duckdb.connect(config=ORACLE))
        made.execute("SET GLOBAL TimeZone = 'UTC'")
        made.execute(functions).fetchall()
        return made

    def close(self) -> None:
        self._open.close()

    def bound(self, sql: str) -> BoundQuery:
        """What the embedded engine says of a query."""
        query = Query(name="query", title="", sql=sql, origin="query")
        return bind_query(self._cursor, query, {}, self._schemas)

    def rows(self, bound: BoundQuery, tables: Mapping[str, pa.Table]) -> pa.Table:
        """The rows of a query over pruned tables."""
        for table in (one for one in self._schemas if one in tables):
            self._prune(table, bound, tables[table])
        return presented(self.connection.sql(bound.sql)).rename_columns(list(bound.names))

    def _prune(self, table: str, bound: BoundQuery, rows: pa.Table) -> None:
        visible_rows = bound.seen.visible_rows.get(table, (ALL_ROWS,))
        computed_columns = [one for one in bound.seen.computed_columns if one.table == table]
        for seen in (*visible_rows, *(one.visible_rows for one in computed_columns)):
            for name, select in seen.key_sets:
                self.connection.execute(f"CREATE OR REPLACE TABLE {name} AS {select}")
        visible = " OR ".join(one.condition or "TRUE" for one in visible_rows)
        columns = [*self._kept(table, bound), *_computed(computed_columns)]
        with readable(self.connection, "whole", rows):
            self.connection.execute(
                f"CREATE OR REPLACE TABLE {quote(table)} AS SELECT {', '.join(columns)} FROM whole "
                f"WHERE coalesce({visible}, FALSE)"
            )

    def _kept(self, table: str, bound: BoundQuery) -> list[str]:
        read = bound.reads.get(table, frozenset())
        return [
            f"{f'CAST({quote(column)} AS {kind})' if column in read else f'CAST(NULL AS {kind})'} "
            f"AS {quote(column)}"
            for column, kind in self._schemas[table].items()
        ]


def _computed(columns: list[ComputedColumn]) -> list[str]:
    by_name = {one.name: [two for two in columns if two.name == one.name] for one in columns}
    return [
        f"CASE WHEN {' OR '.join(one.visible_rows.condition or 'TRUE' for one in same)} "
        f"THEN {same[0].function}({quote(same[0].column)}) END AS {quote(name)}"
        for name, same in by_name.items()
    ]
