"""What DuckDB says of a SELECT on empty tables, and what is refused before any row is read."""

from collections.abc import Iterator
from datetime import UTC, datetime

import duckdb
import pytest

from caudal.duck.bind import BoundQuery, bind_query
from caudal.duck.describe import (
    create_empty,
    describe,
    empty_schema,
    read_by,
)
from caudal.errors import ApplicationError
from caudal.model import Query

T = {"a": "INTEGER", "b": "INTEGER", "c": "VARCHAR", "s": "STRUCT(x INTEGER, y INTEGER)"}


@pytest.fixture
def cursor() -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect() as connection, empty_schema(connection) as made:
        create_empty(made, "t", T)
        create_empty(made, "order", T)
        yield made


@pytest.mark.parametrize(
    ("sql", "columns"),
    [
        ("SELECT count(*) FROM t", set[str]()),
        ("SELECT a FROM t WHERE b > 1", {"a", "b"}),
        ("SELECT s.x FROM t", {"s"}),
        ("FROM t", {"a", "b", "c", "s"}),
        ("SELECT t FROM t", {"a", "b", "c", "s"}),
        ("SELECT (SELECT max(a) FROM T), c FROM t", {"a", "c"}),
    ],
)
def test_the_columns_that_scans_read(
    sql: str, columns: set[str], cursor: duckdb.DuckDBPyConnection
) -> None:
    assert read_by(cursor, sql, "q").columns["t"] == columns


class ShowsNoProjections:
    """A connection whose plan shows a scan without its projections, as DuckDB may."""

    def __init__(self, cursor: duckdb.DuckDBPyConnection) -> None:
        self._cursor = cursor

    def execute(self, sql: str) -> duckdb.DuckDBPyConnection:
        if not sql.startswith("EXPLAIN"):
            return self._cursor.execute(sql)
        scan = '[{"name": "SEQ_SCAN", "children": [], "extra_info": {"Table": "memory.main.t"}}]'
        return self._cursor.execute("SELECT 'physical_plan', ?", [scan])


def test_a_scan_without_projections_reads_all_columns(cursor: duckdb.DuckDBPyConnection) -> None:
    shows_none = ShowsNoProjections(cursor)
    found = read_by(shows_none, "SELECT a FROM t", "q")  # type: ignore[arg-type]
    assert found.columns == {"t": set(T)}


@pytest.mark.parametrize(
    ("sql", "count"),
    [
        ("SELECT 1 FROM t", 1),
        ("SELECT (SELECT count(*) FROM T), count(*) FROM t", 2),
        ("SELECT (SELECT count(*) FROM query('FROM t')), count(*) FROM query_table('t')", 2),
        ("WITH x AS (FROM t) SELECT count(*) FROM x, x AS y", 1),
        ("SELECT count(*) FROM (t LEFT JOIN t AS u ON t.a = u.a)", 2),
    ],
)
def test_every_scan_of_a_table_is_counted(
    sql: str, count: int, cursor: duckdb.DuckDBPyConnection
) -> None:
    assert read_by(cursor, sql, "q").scans == {"t": count}


def test_a_table_named_like_a_keyword_is_found(cursor: duckdb.DuckDBPyConnection) -> None:
    assert read_by(cursor, 'SELECT a FROM "order"', "q").columns == {"order": {"a"}}


def bound(sql: str, cursor: duckdb.DuckDBPyConnection) -> BoundQuery:
    return bind_query(
        cursor, Query("q", "", sql, "q"), {}, {"t": T}, datetime(2026, 1, 2, tzinfo=UTC)
    )


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT count(*) FROM information_schema.tables",
        "SELECT (SELECT count(*) FROM duckdb_columns()) FROM t",
        "FROM pg_catalog.pg_class",
        "FROM pragma_table_info('t')",
    ],
)
def test_the_catalog_of_duckdb_is_refused(sql: str, cursor: duckdb.DuckDBPyConnection) -> None:
    with pytest.raises(ApplicationError, match=r"^q: it reads DuckDB's own catalog"):
        bound(sql, cursor)


def test_numbers_of_rows_are_refused(cursor: duckdb.DuckDBPyConnection) -> None:
    with pytest.raises(ApplicationError, match=r"^q: rowid: .* use row_number\(\) OVER \(\)"):
        bound("SELECT rowid FROM t", cursor)


@pytest.mark.parametrize("sql", ["FROM range(3)", "FROM t", "SELECT 1 AS rowid FROM t"])
def test_other_table_functions_are_not(sql: str, cursor: duckdb.DuckDBPyConnection) -> None:
    assert bound(sql, cursor).sql == sql


def test_the_clock_stands_still_for_a_query(cursor: duckdb.DuckDBPyConnection) -> None:
    assert bound("SELECT current_date, a FROM t", cursor).sql == (
        "SELECT CAST('2026-01-02' AS DATE), a FROM t"
    )


def test_a_column_called_like_the_clock_stays_a_column(cursor: duckdb.DuckDBPyConnection) -> None:
    create_empty(cursor, "t", {"current_date": "DATE"})
    sql = "SELECT current_date FROM t"
    query = Query("q", "", sql, "q")
    moment = datetime(2026, 1, 2, tzinfo=UTC)
    assert bind_query(cursor, query, {}, {"t": {"current_date": "DATE"}}, moment).sql == sql


@pytest.mark.parametrize(
    "sql", ["PIVOT t ON c USING count(*)", "FROM (PIVOT t ON c USING sum(a)) AS p"]
)
def test_a_pivot_without_values_names_the_form_with_values(
    sql: str, cursor: duckdb.DuckDBPyConnection
) -> None:
    with pytest.raises(ApplicationError, match=r"^q: a PIVOT must list .* IN \('a', 'b'\)"):
        describe(cursor, sql, "q")


def test_a_constant_that_cannot_be_converted_names_the_query(
    cursor: duckdb.DuckDBPyConnection,
) -> None:
    with pytest.raises(ApplicationError, match=r"^q: Could not convert string 'a'"):
        read_by(cursor, "SELECT * FROM (VALUES (1), ('a')) v(x)", "q")
