"""A table's SQL that is not row by row is refused before any row is read."""

from collections.abc import Iterator
from pathlib import Path

import duckdb
import pytest

from caudal.application import find_application, shipped_applications
from caudal.application.check import check_application
from caudal.duck.database import open_database
from caudal.duck.describe import empty_schema
from caudal.duck.row_wise import HARMLESS
from caudal.duck.table_sql import bind_table
from caudal.errors import ApplicationError
from caudal.kernels.sentiment import load_model
from caudal.model import Table
from caudal.sql.volatile import CHANGING, UNTOLD, WORDS, may_vary


@pytest.fixture(scope="module")
def cursor() -> Iterator[duckdb.DuckDBPyConnection]:
    with (
        open_database(load_model("lexicon")) as connection,
        empty_schema(connection) as cursor,
    ):
        yield cursor


def bound(cursor: duckdb.DuckDBPyConnection, sql: str) -> dict[str, str]:
    table = Table("t", ("t.csv",), ("a", "b", "today"), sql, "tables/t.sql")
    return dict(bind_table(cursor, table))


REFUSED = {
    "SELECT row_number() OVER () AS n FROM raw": "a window function",
    "SELECT first(a) OVER (PARTITION BY b) AS n FROM raw": "a window function",
    "SELECT a FROM raw ORDER BY a": "ORDER BY",
    "SELECT a FROM (SELECT a FROM raw ORDER BY a)": "ORDER BY",
    "SELECT a FROM raw LIMIT 1000000": "LIMIT",
    "SELECT a FROM raw ORDER BY a LIMIT 3": "LIMIT",
    "SELECT DISTINCT a FROM raw": "an aggregate or DISTINCT",
    "SELECT a, count(*) AS n FROM raw GROUP BY ALL": "an aggregate",
    "SELECT max(a) AS a FROM raw": "an aggregate",
    "SELECT unnest([a]) AS a FROM raw": "unnest",
    "SELECT a FROM raw WHERE a IS NOT NULL": "leave rows out with a `reject` column",
    "SELECT a FROM raw USING SAMPLE 50%": "a sample",
    "SELECT a FROM raw UNION ALL SELECT b FROM raw": "UNION",
    "SELECT raw.a FROM raw, raw AS other": "a join or a subquery",
    "SELECT a, (SELECT max(b) FROM raw) AS m FROM raw": "a join or a subquery",
    "SELECT a IN (SELECT b FROM raw) AS m FROM raw": "a join or a subquery",
    "SELECT r.a FROM raw AS r POSITIONAL JOIN raw AS s": "a join or a subquery",
    "SELECT 1 AS a": "does not read `raw`",
    "WITH x AS (SELECT * FROM raw) SELECT 1 AS a": "does not read `raw`",
    "WITH x AS (SELECT * FROM raw LIMIT 5) SELECT a FROM x": "LIMIT",
    "FROM range(3)": "range",
    "SELECT a, random() AS r FROM raw": "random()",
    "SELECT a, uuid() AS r FROM raw": "uuid()",
    "SELECT a, now() AS r FROM raw": "now()",
    "SELECT a, current_date AS r FROM raw": "current_date",
    "SELECT a, current_timestamp AS r FROM raw": "current_timestamp",
    "SELECT a, ago(INTERVAL 1 DAY) AS r FROM raw": "ago()",
    "SELECT a, age(CAST(b AS TIMESTAMP)) AS r FROM raw": "age()",
    "SELECT a, current_localtimestamp() AS r FROM raw": "current_localtimestamp()",
    "SELECT a, current_localtime() AS r FROM raw": "current_localtime()",
    "SELECT a, getvariable('x') AS r FROM raw": "getvariable()",
    "SELECT list_transform([a], lambda x: x || random()) AS r FROM raw": "random()",
    "SELECT a, rowid AS r FROM raw": "rowid",
}


@pytest.mark.parametrize("sql", REFUSED, ids=lambda sql: str(sql)[:50])
def test_what_is_not_row_by_row_is_refused(cursor: duckdb.DuckDBPyConnection, sql: str) -> None:
    with pytest.raises(ApplicationError) as caught:
        bound(cursor, sql)
    message = str(caught.value)
    assert message.startswith("tables/t.sql: ")
    assert REFUSED[sql] in message
    assert "\n" not in message


ACCEPTED = [
    "SELECT a, b FROM raw",
    "FROM raw",
    "SELECT 1 AS one FROM raw",
    "SELECT CASE WHEN a = b THEN upper(a) END AS c, TRY_CAST(b AS DOUBLE) AS d FROM raw",
    "SELECT a AS x, x || '!' AS y FROM raw",
    "SELECT list_transform(string_split(a, ','), lambda x: trim(x)) AS c FROM raw",
    "SELECT [upper(x) FOR x IN string_split(a, ',') IF x <> ''] AS c FROM raw",
    "SELECT list_sum([1, 2]) AS c, list_sort(string_split(a, '|')) AS d FROM raw",
    "WITH x AS (SELECT upper(a) AS a FROM raw), y AS (SELECT 1) SELECT lower(a) AS a FROM x",
    "SELECT COLUMNS(*) FROM raw",
    "SELECT names(a) AS n, items(b) AS i, sentiment(a) AS s, to_integer(b) AS t FROM raw",
    "SELECT today, CASE WHEN a = '' THEN error('no') END AS c FROM raw",
    "SELECT age(CAST(a AS TIMESTAMP), CAST(b AS TIMESTAMP)) AS c FROM raw",
    "SELECT {'a': a, 'b': [b]} AS s, strptime(a, '%d/%m/%Y') AS d FROM raw",
]


@pytest.mark.parametrize("sql", ACCEPTED, ids=lambda sql: str(sql)[:50])
def test_what_is_row_by_row_is_accepted(cursor: duckdb.DuckDBPyConnection, sql: str) -> None:
    assert bound(cursor, sql)


def test_the_shipped_applications_are_row_by_row() -> None:
    for name in shipped_applications():
        check_application(find_application(name))


def test_the_changing_functions_are_those_that_duckdb_knows() -> None:
    """A new DuckDB may know new ones: then this names them."""
    with duckdb.connect() as connection:
        rows = connection.execute(
            "SELECT function_name, macro_definition FROM duckdb_functions() "
            "WHERE stability <> 'CONSISTENT' OR macro_definition IS NOT NULL"
        ).fetchall()
    volatile = {name for name, definition in rows if definition is None}
    clock = {"current_timestamp"}
    macros = {
        name
        for name, definition in rows
        if definition is not None
        and any(f"{one}(" in definition for one in volatile - HARMLESS)
        | any(one in definition for one in clock)
    }
    assert volatile | macros == CHANGING | HARMLESS


@pytest.mark.parametrize("name", sorted(WORDS))
def test_a_query_with_a_changing_word_may_vary(name: str) -> None:
    assert may_vary([f"SELECT a FROM t WHERE b > {name.upper()}(INTERVAL 1 DAY)"])
    assert not may_vary([f"SELECT a{name}, {name}_1 FROM t"])


def test_what_asks_the_clock_unseen_by_duckdb_is_known() -> None:
    """DuckDB calls these functions consistent. Two statements tell that they are not."""
    with duckdb.connect() as connection:
        for name in sorted(UNTOLD - {"reservoir_quantile"}):
            asked = [connection.sql(f"SELECT {name}()::VARCHAR").fetchall() for _ in range(1000)]
            assert len(set(map(str, asked))) > 1


def test_check_names_the_file(tmp_path: Path) -> None:
    folder = tmp_path / "app"
    (folder / "tables").mkdir(parents=True)
    (folder / "queries").mkdir()
    (folder / "app.toml").write_text('tables = [{name = "t", files = ["t.csv"], columns = ["a"]}]')
    (folder / "tables" / "t.sql").write_text("SELECT lag(a) OVER () AS a FROM raw")
    (folder / "queries" / "q.sql").write_text("SELECT a FROM t")
    with pytest.raises(ApplicationError, match=r"tables/t\.sql: a window function"):
        check_application(find_application(str(folder)))
