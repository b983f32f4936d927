"""`$name` in queries."""

import math
import random
import struct
from datetime import date, datetime, timedelta, timezone
from decimal import Decimal
from typing import Any

import duckdb
import numpy as np
import pytest

from caudal.errors import ApplicationError, UsageError
from caudal.sql.adhoc import bind_values
from caudal.sql.literals import checked_value, literal
from caudal.sql.parameters import bind_parameters, parameter_names


def test_only_real_parameters_are_replaced() -> None:
    sql = "SELECT $a, '$a', $$text $a$$, x -- $a\n FROM t WHERE y > $b::INT"
    assert parameter_names(sql, "q") == ["a", "b"]
    bound = bind_parameters(sql, {"a": "it's", "b": 3}, "q")
    assert bound == "SELECT 'it''s', '$a', $$text $a$$, x -- $a\n FROM t WHERE y > 3::INT"


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT [$a,$b] AS x, {'k':$a}.k AS y, $a||$b AS z",
        "SELECT [$a,$b,$a]",
        "SELECT $a||$$b $a$$||$a AS x, $b",
        "SELECT $b || $a$ $b $a$ || $b, $a",
        "SELECT 1 /* $b /* $b */ $b */ + length($a) AS x, $b",
        "SELECT $a || '-- $b' || $b -- $b",
        "SELECT E'a\\'$b', e'\\\\' || $a, 'a\\' || $b",
        "SELECT $b AS a$b, $a AS _$a, a$b.x$b FROM (SELECT 1 AS x$b) AS a$b",
        "SELECT $a AS \"it\"\"s $b\", 'it''s $b' || $b",
        "SELECT 1 AS x --$a\n, $b AS y --$a\r, $a AS z",
        "SELECT x'41' || CAST($a AS BLOB) AS x, $b",
    ],
)
def test_parameters_are_where_duckdb_finds_them(sql: str) -> None:
    values = {"a": "one", "b": "two"}
    with duckdb.connect() as connection:
        expected = connection.execute(sql, values)
        names, rows = [one[0] for one in expected.description], expected.fetchall()
        found = connection.execute(bind_parameters(sql, values, "q"))
        assert found.fetchall() == rows
        if " AS " in sql:
            assert [one[0] for one in found.description][:1] == names[:1]


@pytest.mark.parametrize(
    "sql",
    ["SELECT 'x'$a", "SELECT $a'x'", "SELECT 1$n", "SELECT $n.5", "SELECT 1.$n", "SELECT .5$n",
     "SELECT 1e$n", "SELECT 'x'$n", 'SELECT "x"$a FROM (SELECT 1 AS x)', "SELECT $\"n\"7"],
)  # fmt: skip
def test_what_stands_beside_a_parameter_is_no_part_of_it(sql: str) -> None:
    with duckdb.connect() as connection:
        for text in (sql, bind_parameters(sql, {"a": "one", "n": 2}, "q")):
            with pytest.raises(duckdb.Error):
                connection.execute(text, {"a": "one", "n": 2} if text == sql else None)


def test_a_comment_without_an_end_is_told() -> None:
    with pytest.raises(ApplicationError, match=r"q: a comment has no end"):
        bind_parameters("SELECT $a /* /* */", {"a": 1}, "q")


def test_a_value_can_not_escape_its_quotes() -> None:
    assert literal("'; DROP TABLE x; --") == "'''; DROP TABLE x; --'"


def test_a_missing_value_says_where_to_put_it() -> None:
    with pytest.raises(ApplicationError, match=r"q.sql: no value for \$country: give --param"):
        bind_parameters("SELECT $country", {}, "q.sql")


@pytest.mark.parametrize(
    "value",
    [
        None, True, 0, -7, 2**63 - 1, 2.5, -1e-7, 1e300, "it's", "", "; --", date(2000, 2, 29),
        datetime(1999, 12, 31, 23, 59, 58, 7), Decimal("-1.10"), Decimal("12E+3"), Decimal("0.001"),
        ["a", None], [], (1, 2), np.int64(3), np.float64(0.1), np.bool_(True),
    ],
)  # fmt: skip
def test_duckdb_reads_the_literal_as_the_value(value: Any) -> None:
    with duckdb.connect() as connection:
        [(read,)] = connection.execute(f"SELECT {literal(value)}").fetchall()
    assert read == (list(value) if isinstance(value, tuple) else value)


def test_a_time_with_a_zone_is_that_moment() -> None:
    later = datetime(2020, 1, 1, 5, tzinfo=timezone(timedelta(hours=2)))
    with duckdb.connect() as connection:
        same = f"SELECT {literal(later)} = TIMESTAMPTZ '2020-01-01 03:00:00+00'"
        assert connection.execute(same).fetchall() == [(True,)]


def test_a_float_is_the_same_double_to_the_last_bit() -> None:
    chance = random.Random(7)
    drawn = [struct.unpack("d", chance.randbytes(8))[0] for _ in range(2000)]
    floats = [one for one in drawn if math.isfinite(one)]
    with duckdb.connect() as connection:
        listed = ", ".join(map(literal, floats))
        [(read, kind)] = connection.execute(f"SELECT [{listed}] AS x, typeof(x)").fetchall()
    assert kind == "DOUBLE[]"
    assert read == floats


def test_a_negative_value_is_one_operand() -> None:
    with duckdb.connect() as connection:
        for sql, answer in [("SELECT 5 -$n", 7), ("SELECT 5-$n AS x", 7), ("SELECT -$n", 2)]:
            assert connection.execute(bind_parameters(sql, {"n": -2}, "q")).fetchall() == [
                (answer,)
            ]
            assert (
                connection.execute(bind_parameters(sql, {"n": -2.0}, "q")).fetchall()[0][0]
                == answer
            )


@pytest.mark.parametrize(
    ("value", "default", "told"),
    [
        ("7", 1, "n must be a whole number"),
        (7.0, 1, "n must be a whole number"),
        (True, 1, "n must be a whole number"),
        (None, 1, "n must be a whole number"),
        (1, True, "n must be true or false"),
        (1, "text", "n must be a text"),
        ("1.5", 1.0, "n must be a number"),
        (math.nan, 1.0, "n must be a number, and finite"),
        (2**63, 1, "beyond 64 bits"),
        ("a\0b", "x", "zero byte"),
        ("\ud800", "x", "not UTF-8 text"),
        ([1], None, "a text, a number, or true or false"),
    ],
)
def test_a_value_of_another_type_is_refused(value: object, default: Any, told: str) -> None:
    with pytest.raises(UsageError, match=told):
        checked_value("n", value, default)


def test_a_whole_number_is_a_number_and_numpy_is_plain() -> None:
    assert type(checked_value("n", 3, 0.5)) is float
    assert type(checked_value("n", np.int32(3), 1)) is int
    assert checked_value("n", "x") == "x"


def test_an_adhoc_select_gets_values_defaults_and_clear_refusals() -> None:
    assert bind_values("SELECT $a, $b", {"a": 1}, {"b": "x"}) == "SELECT 1, 'x'"
    with pytest.raises(UsageError, match=r"^the query: no value for \$a: give --param a=VALUE"):
        bind_values("SELECT $a", {})
    with pytest.raises(UsageError, match="the query has no parameter 'c'; its parameters are: a"):
        bind_values("SELECT $a", {"c": 1})
    with pytest.raises(UsageError, match="a must be a whole number"):
        bind_values("SELECT $a", {"a": "x"}, {"a": 1})
    with pytest.raises(UsageError, match="cannot be a dict"):
        bind_values("SELECT $a", {"a": {}})  # type: ignore[dict-item]
    with pytest.raises(UsageError, match="more than 38 digits"):
        bind_values("SELECT $a", {"a": Decimal(10) ** 40})
