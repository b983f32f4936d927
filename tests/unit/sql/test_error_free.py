"""What may be evaluated early: over the widest values of every type it gives no error in DuckDB."""

from collections.abc import Iterator

import duckdb
import pytest
from sqlglot import exp, parse_one

from caudal.sql.error_free import cannot_raise, comparable, of_columns
from caudal.sql.planner import dialect

KINDS = {
    "i": "INTEGER", "b": "BIGINT", "t": "TINYINT", "h": "HUGEINT", "u": "UBIGINT",
    "w": "UHUGEINT", "x": "DOUBLE", "f": "FLOAT", "d": "DECIMAL(12,2)", "e": "DECIMAL(38,30)",
    "s": "VARCHAR", "p": "VARCHAR", "k": "BOOLEAN", "day": "DATE", "ts": "TIMESTAMP",
}  # fmt: skip
WIDEST = {
    "INTEGER": "(-2147483648)", "BIGINT": "(-9223372036854775808)", "TINYINT": "(-128)",
    "HUGEINT": "(-170141183460469231731687303715884105728)", "UBIGINT": "18446744073709551615",
    "UHUGEINT": "340282366920938463463374607431768211455", "DOUBLE": "'-1.7e308'",
    "FLOAT": "'3e38'", "DECIMAL(12,2)": "9999999999.99", "DECIMAL(38,30)": "'-99999999.9'",
    "VARCHAR": "'\\x(%_é'", "BOOLEAN": "true", "DATE": "'5881580-07-10'",
    "TIMESTAMP": "'294247-01-10 04:00:54'",
}  # fmt: skip

SAFE = [
    "i BETWEEN 1990 AND 1990 + 9", "i > 1 - 999999999", "x >= 2.5e0", "d >= (-2.5e0)", "x < 1e+300",
    "s = '1' AND i > 5", "i = 99999999999", "i = b OR t = u", "i BETWEEN t AND b", "i = -1",
    "i IN (1, 2, 3)", "s IN ('a', 'b')", "s LIKE p", "s NOT LIKE 'a%'", "s ILIKE '%a'",
    "regexp_matches(s, 'a.c')", "k", "NOT k", "k IS TRUE", "s IS NOT NULL", "s IS NULL", "x > 1.5",
    "x * x > x + 1", "x / 0 > 1", "i / t > 2", "d / i > 1", "e / d > 1", "h / u > 1",
    "i // 3 = 2", "b % 3 = 0", "d = i", "d > 1.555",
    "d < x", "TRY_CAST(s AS INTEGER) > 5", "CAST(i AS VARCHAR) = s", "CAST(t AS BIGINT) = 3",
    "CAST(i AS DOUBLE) > 2", "CAST(ts AS DATE) = day", "day >= DATE '2020-01-01'",
    "day < '2020-01-31'", "ts < '2020-01-31 10:00:00'", "year(day) = 2020", "month(ts) < 3",
    "extract(year FROM day) = 2020", "lower(s) = upper(p)", "length(s) > 3", "trim(s) = 'a'",
    "contains(s, p)", "starts_with(s, 'a')", "s || p = 'ab'", "coalesce(s, p) = 'a'",
    "nullif(i, i) = 3", "CASE WHEN k THEN s ELSE p END = 'a'", "CASE WHEN i > 2 THEN 1 END = 1",
    "s IS DISTINCT FROM p", "sqrt(x) > 2", "isnan(x)", "(i = 1 OR s = 'x') AND NOT k", "i = NULL",
    "CAST(k AS INTEGER) = 1", "abs(x) > 3", "h = u", "t = i", "TRY_CAST(s AS DECIMAL(9, 2)) > 1",
]  # fmt: skip
UNSAFE = [
    "i > 1999999999 + 1999999999", "i > i + 9", "i > 999999999 * 9",
    "CAST(s AS INTEGER) > 5", "s::DATE = day", "i + 1 > 2", "i * t > 3", "-i = 3", "abs(i) = 3",
    "i // t = 2", "i % 0 = 1", "b = s", "s = 1", "w = b", "e = b", "e = d", "ts = day",
    "day + 1 = day", "day < 'tomorrow'", "day = '2020-02-31'", "s", "k AND s", "NOT s",
    "regexp_matches(s, p)", "s SIMILAR TO p", "substr(s, b) = 'a'", "CAST(day AS TIMESTAMP) = ts",
    "CAST(b AS INTEGER) = 1", "CAST(x AS INTEGER) = 1", "error('x') = 1", "unknown = 1",
    "i IN (1, 's')", "i BETWEEN 1 AND s", "CASE WHEN i + 1 > 2 THEN 1 END = 1",
    "CASE i WHEN 1 THEN 2 END = 2", "coalesce(i, s) = 1", "i = (SELECT 1)", "i IN (SELECT 1)",
    "EXISTS (SELECT 1)", "s LIKE p ESCAPE 'ab'", "s IS TRUE", "TRY_CAST(i + 1 AS VARCHAR) = 'a'",
    "strptime(s, '%Y') = ts", "round(e) = 1", "sum(i) > 2", "random() > 0.5",
    "CAST(u AS BIGINT) = 1", "CAST(x AS DECIMAL(9, 2)) > 1", "CAST(i AS DECIMAL(9, 2)) > 1",
]  # fmt: skip


@pytest.fixture(scope="module")
def widest() -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect() as made:
        values = ", ".join(f"CAST({WIDEST[kind]} AS {kind}) AS {c}" for c, kind in KINDS.items())
        nulls = ", ".join("NULL" for _ in KINDS)
        made.execute(f"CREATE TABLE t AS SELECT {values} UNION ALL SELECT {nulls}")
        yield made


def both_trees(text: str) -> list[exp.Expr]:
    """The condition as both dialects read it: functions as nodes of their own, and as written."""
    return [
        parse_one(text, dialect="duckdb"),
        dialect.parse(f"SELECT 1 FROM t WHERE {text}").args["where"].this,
    ]


@pytest.mark.parametrize("text", SAFE)
def test_what_is_called_safe_gives_no_error(text: str, widest: duckdb.DuckDBPyConnection) -> None:
    for tree in both_trees(text):
        assert cannot_raise(tree, of_columns(KINDS)), repr(tree)
    widest.execute(f"SELECT ({text}) FROM t").fetchall()


@pytest.mark.parametrize("text", UNSAFE)
def test_everything_else_is_not(text: str) -> None:
    assert not any(cannot_raise(tree, of_columns(KINDS)) for tree in both_trees(text))


def test_comparable_types_compare(widest: duckdb.DuckDBPyConnection) -> None:
    for one, kind in KINDS.items():
        for two, other in KINDS.items():
            if comparable(kind, other):
                widest.execute(f"SELECT {one} = {two}, {one} < {two} FROM t").fetchall()


def test_thousands_of_conditions_are_judged() -> None:
    many = " OR ".join(f"i = {number}" for number in range(5000))
    assert cannot_raise(parse_one(many, dialect="duckdb"), of_columns(KINDS))


def test_own_functions_are_as_safe_as_the_caller_says() -> None:
    tree = parse_one("sentiment(s) > 0.5", dialect="duckdb")
    assert cannot_raise(tree, of_columns(KINDS), {"sentiment": "DOUBLE"})
    assert not cannot_raise(tree, of_columns(KINDS))
    share = parse_one("CAST(sentiment(s) AS DECIMAL(18, 17)) > 0.5", dialect="duckdb")
    assert cannot_raise(share, of_columns(KINDS), {"sentiment": "DOUBLE"})
    narrow = parse_one("CAST(sentiment(s) AS DECIMAL(17, 17)) > 0.5", dialect="duckdb")
    assert not cannot_raise(narrow, of_columns(KINDS), {"sentiment": "DOUBLE"})
