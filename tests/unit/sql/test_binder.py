"""What DuckDB tells the planner."""

from collections.abc import Iterator

import pytest

from caudal.engine.binder import DuckDBBinder
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
    ],
)
def test_texts_are_the_same_if_duckdb_reads_them_alike(
    binder: DuckDBBinder, one: str, other: str, same: bool
) -> None:
    assert binder.same(one, other) is same
