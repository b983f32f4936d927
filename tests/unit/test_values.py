"""Every kind of value in every format: one rule each, nothing lost, and JSON that is JSON."""

import csv
import io
import json
from decimal import Decimal
from typing import Any

import duckdb
import hypothesis
import pytest
from hypothesis import strategies as st

import caudal
from caudal.answers import show
from caudal.representing import csv_pieces, json_pieces
from caudal.values import decimal_text, interval_text, json_bytes, plain_decimal, text

# SQL, its value in Python, in JSON, and as text
KINDS: list[tuple[str, Any, Any, str]] = [
    ("1::HUGEINT", 1, 1, "1"),
    (
        "CAST(12345678901234567890123 AS HUGEINT)",
        12345678901234567890123,
        None,
        "12345678901234567890123",
    ),
    ("4.500::DECIMAL(18, 9)", 4.5, 4.5, "4.5"),
    ("1200::DECIMAL(18, 2)", 1200, 1200, "1200"),
    (
        "'12345678901234567.89'::DECIMAL(38, 2)",
        Decimal("12345678901234567.89"),
        None,
        "12345678901234567.89",
    ),
    (
        "'1234567890123456789012345678901234.5'::DECIMAL(38, 2)",
        Decimal("1234567890123456789012345678901234.5"),
        None,
        "1234567890123456789012345678901234.5",
    ),
    ("'0.000000000000000012345'::DECIMAL(38, 30)", 1.2345e-17, 1.2345e-17, "1.2345e-17"),
    ("'\\x00\\xABz'::BLOB", b"\x00\xabz", "00AB7A", "00AB7A"),
    (
        "INTERVAL '14 months 3 days 4 hours'",
        "1 year 2 months 3 days 04:00:00",
        "1 year 2 months 3 days 04:00:00",
        "1 year 2 months 3 days 04:00:00",
    ),
    ("'inf'::DOUBLE", float("inf"), "Infinity", "Infinity"),
    ("'-inf'::FLOAT", float("-inf"), "-Infinity", "-Infinity"),
    ("'nan'::DOUBLE", None, "NaN", "NaN"),
    ("true", True, True, "true"),
    ("NULL", None, None, ""),
    ("DATE '2026-01-31'", None, "2026-01-31", "2026-01-31"),
    ("DATE '20000-01-01'", "20000-01-01", "20000-01-01", "20000-01-01"),
    (
        "TIMESTAMP '2026-01-31 10:00:00.5'",
        None,
        "2026-01-31 10:00:00.500000",
        "2026-01-31 10:00:00.500000",
    ),
    (
        "TIMESTAMPTZ '2026-01-31 10:00:00+00'",
        None,
        "2026-01-31 10:00:00+00:00",
        "2026-01-31 10:00:00+00:00",
    ),
    (
        "TIMESTAMP_NS '2026-01-31 10:00:00.123456789'",
        "2026-01-31 10:00:00.123456789",
        "2026-01-31 10:00:00.123456789",
        "2026-01-31 10:00:00.123456789",
    ),
    ("MAP {1: 'a'}", {1: "a"}, {"1": "a"}, '{"1":"a"}'),
    ("MAP {}", {}, {}, "{}"),
    ("[INTERVAL 1 DAY, NULL]", ["1 day", None], ["1 day", None], '["1 day",null]'),
    (
        "{'a': [1.25::DECIMAL(4, 2), NULL], 'b': 'nan'::DOUBLE}",
        None,
        {"a": [1.25, None], "b": "NaN"},
        '{"a":[1.25,null],"b":"NaN"}',
    ),
    ("'x'::ENUM ('x', 'y')", "x", "x", "x"),
]


def refuse(word: str) -> None:
    raise AssertionError(f"{word} is no JSON")


@pytest.mark.parametrize(("sql", "python", "in_json", "in_text"), KINDS, ids=lambda x: str(x)[:40])
def test_every_kind(sql: str, python: Any, in_json: Any, in_text: str) -> None:
    result = caudal.sql(f"SELECT {sql} AS v")
    if python is not None:
        assert result.rows() == [{"v": python}]
    written = b"".join(json_pieces(result))
    assert written == json_bytes(result.rows())
    if in_json is not None:
        assert json.loads(written, parse_constant=refuse) == [{"v": in_json}]
    elif isinstance(python, int | Decimal):
        exact = json.loads(written, parse_float=Decimal, parse_constant=refuse)
        assert exact == [{"v": python}]
    rows = list(csv.reader(io.StringIO(b"".join(csv_pieces(result)).decode())))
    assert rows == [["v"], [in_text]]


@pytest.mark.parametrize(
    "interval",
    ["14 months", "-14 months -1 day", "0 s", "-3 hours 5 us", "1.5 s", "1 month", "100 hours",
     "1 year 1 day 1 us", "-1 day 2 hours"],
)  # fmt: skip
def test_intervals_are_written_as_duckdb_writes_them(interval: str) -> None:
    with duckdb.connect() as connection:
        [(expected,)] = connection.execute(
            f"SELECT CAST(INTERVAL '{interval}' AS VARCHAR)"
        ).fetchall()
        column = connection.sql(f"SELECT INTERVAL '{interval}' AS v").to_arrow_table()["v"]
    assert interval_text(*column[0].as_py()) == expected


@hypothesis.given(st.decimals(allow_nan=False, allow_infinity=False, places=9, max_value=10**28))
def test_a_decimal_keeps_every_digit(value: Decimal) -> None:
    assert Decimal(decimal_text(value)) == value
    assert Decimal(str(plain_decimal(value))) == value
    assert Decimal(json_bytes(plain_decimal(value)).decode()) == value


def test_what_a_person_reads() -> None:
    assert show(["a", 1.0, None]) == "a, 1, "
    assert show(Decimal("1E+30")) == "1" + "0" * 30
    assert show({"a": [1]}) == '{"a":[1]}'
    assert text(b"\x01") == "01"
