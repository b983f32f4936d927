"""What DuckDB tells the planner."""

from collections.abc import Iterator

import pytest

from caudal.duck.binder import DuckDBBinder
from caudal.errors import UsageError


@pytest.fixture(scope="module")
def binder() -> Iterator[DuckDBBinder]:
    made = DuckDBBinder({"t": {"a": "INTEGER", "s": "VARCHAR"}, "T 2": {"b": "DATE"}})
    yield made
    made.close()


def test_tables_are_named_by_duckdb(binder: DuckDBBinder) -> None:
    sql = 'WITH c AS (FROM t) SELECT * FROM c, "T 2" WHERE a IN (SELECT 1 FROM t)'
    assert binder.table_names(sql) == {"t", "T 2"}


def test_columns_have_duckdb_s_names_and_types(binder: DuckDBBinder) -> None:
    found = binder.columns("SELECT a, count(*), sum(a) AS s FROM t GROUP BY a")
    assert [(c.name, c.type) for c in found] == [
        ("a", "INTEGER"),
        ("count_star()", "BIGINT"),
        ("s", "HUGEINT"),
    ]


def test_an_invalid_query_is_the_user_s_mistake(binder: DuckDBBinder) -> None:
    with pytest.raises(UsageError, match="nothing"):
        binder.columns("SELECT nothing FROM t")


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("SELECT a FROM t", "select  a from t -- comment", True),
        ("SELECT a FROM t WHERE s IS NOT NULL", "SELECT a FROM t WHERE NOT s IS NULL", True),
        ("SELECT a FROM t WHERE a NOT IN (1)", "SELECT a FROM t WHERE (NOT a IN (1))", True),
        ("SELECT a FROM t WHERE s NOT LIKE 'x'", "SELECT a FROM t WHERE NOT s LIKE 'x'", True),
        ("SELECT a FROM t ORDER BY a", "SELECT a FROM t ORDER BY a NULLS LAST", True),
        ("SELECT CAST(a AS VARCHAR) FROM t", "SELECT CAST(a AS TEXT) FROM t", True),
        ("SELECT a FROM t WHERE s ILIKE 'x'", "SELECT a FROM t WHERE s LIKE 'x'", False),
        ("SELECT a FROM t ORDER BY a", "SELECT a FROM t ORDER BY a DESC", False),
        ("SELECT a + 1 * 2 FROM t", "SELECT (a + 1) * 2 FROM t", False),
        ("SELECT a FROM t", "SELECT a FRM t WHERE", False),
        ("SELECT a FRM t WHERE", "SELECT a FRM t WHERE", False),  # no tree is like no tree
        ("SELECT a + INTERVAL 1 DAY", "SELECT a + INTERVAL '1' DAY", True),
        ("SELECT CAST('08' AS VARCHAR)", "SELECT CAST(08 AS VARCHAR)", False),
        ("SELECT CAST('1' AS BIT)", "SELECT CAST(1 AS BIT)", False),
        ("FROM t JOIN t u ON TRUE", "FROM t CROSS JOIN t u", True),
        ("FROM t JOIN t u ON 'true'", "FROM t CROSS JOIN t u", False),
        ("FROM t LEFT JOIN t u ON TRUE", "FROM t CROSS JOIN t u", False),
        ("FROM t JOIN t u NEAREST BY DISTANCE t.a - u.a", "FROM t CROSS JOIN t u", False),
    ],
)
def test_texts_are_the_same_if_duckdb_reads_them_alike(
    binder: DuckDBBinder, one: str, other: str, same: bool
) -> None:
    assert binder.same(one, other) is same


def test_a_plan_tells_what_is_read(binder: DuckDBBinder) -> None:
    found = binder.reads("SELECT (SELECT count(*) FROM T), a FROM query('FROM t') WHERE s > 'a'")
    assert found is not None
    assert found.scans == {"t": 2}
    assert found.columns == {"t": {"a", "s"}}


def test_names_in_quotes_are_told_as_they_are(binder: DuckDBBinder) -> None:
    found = binder.reads('SELECT b FROM "t 2", duckdb_tables()')
    assert found is not None
    assert found.scans == {"T 2": 1}
    assert found.functions == {"duckdb_tables"}


def test_nothing_is_told_of_what_does_not_bind(binder: DuckDBBinder) -> None:
    assert binder.reads("SELECT nothing FROM t") is None


@pytest.mark.parametrize(
    ("sql", "columns", "same"),
    [
        ("SELECT a FROM t", {"t": ["a"]}, True),
        ("SELECT #2 FROM t", {"t": ["s"]}, False),
        ("SELECT t.a FROM t NATURAL JOIN (SELECT a, s FROM t) AS u", {"t": ["a"]}, False),
        ("SELECT count(COLUMNS(*)) FROM t", {"t": ["a"]}, False),
        ("SELECT count(*) FROM t", {"t": ["s"]}, True),
    ],
)
def test_a_plan_over_fewer_columns_shows_whether_they_matter(
    binder: DuckDBBinder, sql: str, columns: dict[str, list[str]], same: bool
) -> None:
    whole, narrowed = binder.reads(sql), binder.reads_over(sql, columns)
    assert whole is not None
    assert (narrowed is not None and narrowed.plan == whole.plan) is same
