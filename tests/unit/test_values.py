"""Every kind of value in every format: one rule each, nothing lost, and JSON that is JSON."""

import csv
import io
import json
from datetime import time
from decimal import Decimal
from typing import Any

import duckdb
import hypothesis
import pytest
from hypothesis import strategies as st

import caudal
from caudal.results.answers import show
from caudal.results.text_formats import csv_of, json_of
from caudal.results.values import decimal_text, interval_text, json_bytes, plain_decimal, text

# SQL, its value in Python, in JSON, and as text
KINDS: list[tuple[str, Any, Any, str | None]] = [
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
    ("['x'::ENUM ('x', 'y')]", ["x"], ["x"], '["x"]'),
    ("'0101'::BIT", "0101", "0101", "0101"),
    ("'10:00:00+05:30'::TIMETZ", "10:00:00+05:30", "10:00:00+05:30", "10:00:00+05:30"),
    ("(2::UHUGEINT ^ 3)::UHUGEINT", 8, 8, "8"),
    (f"{2**128 - 1}::UHUGEINT", 2**128 - 1, None, str(2**128 - 1)),
    (f"[{2**128 - 1}::UHUGEINT, NULL]", [2**128 - 1, None], None, f"[{2**128 - 1},null]"),
    (f"{2**127 - 1}::HUGEINT", 2**127 - 1, None, str(2**127 - 1)),
    (f"'{10**60}'::BIGNUM", str(10**60), str(10**60), str(10**60)),
    ("'2562047788:00:54.775807'::INTERVAL", "2562047788:00:54.775807", None, None),
    ("'POINT (1 2)'::GEOMETRY", "POINT (1 2)", "POINT (1 2)", "POINT (1 2)"),
    ("7::VARIANT", "7", "7", "7"),
    ("union_value(a := '101'::BIT)", "101", "101", "101"),
    ("row(1, 'a')", {"element1": 1, "element2": "a"}, None, '{"element1":1,"element2":"a"}'),
    ("UUID '6f6d2b5a-3c0f-4f9e-8d55-0a1b2c3d4e5f'", None, "6f6d2b5a-3c0f-4f9e-8d55-0a1b2c3d4e5f",
     "6f6d2b5a-3c0f-4f9e-8d55-0a1b2c3d4e5f"),
    ("'infinity'::DATE", "infinity", "infinity", "infinity"),
    ("'-infinity'::TIMESTAMP", "-infinity", "-infinity", "-infinity"),
    ("'infinity'::TIMESTAMPTZ", "infinity", "infinity", "infinity"),
    ("'infinity'::TIMESTAMP_NS", "infinity", "infinity", "infinity"),
    ("['infinity'::DATE, '2026-01-31'::DATE]", None, ["infinity", "2026-01-31"],
     '["infinity","2026-01-31"]'),
    ("'0044-03-15 (BC)'::DATE", "0044-03-15 (BC)", "0044-03-15 (BC)", "0044-03-15 (BC)"),
    ("'294247-01-10 04:00:54.775806'::TIMESTAMP", "294247-01-10 04:00:54.775806", None, None),
    ("'290309-12-22 (BC) 00:00:00'::TIMESTAMP", "290309-12-22 (BC) 00:00:00", None, None),
    ("TIME '24:00:00'", "24:00:00", "24:00:00", "24:00:00"),
    ("TIME '10:11:12.5'", time(10, 11, 12, 500_000), "10:11:12.500000", "10:11:12.500000"),
    ("'10:11:12.123456789'::TIME_NS", "10:11:12.123456789", None, "10:11:12.123456789"),
]  # fmt: skip


def refuse(word: str) -> None:
    raise AssertionError(f"{word} is no JSON")


@pytest.mark.parametrize(("sql", "python", "in_json", "in_text"), KINDS, ids=lambda x: str(x)[:40])
def test_every_kind(sql: str, python: Any, in_json: Any, in_text: str | None) -> None:
    result = caudal.sql(f"SELECT {sql} AS v")
    if python is not None:
        assert result.rows() == [{"v": python}]
    written = b"".join(json_of([result.table]))
    assert written == json_bytes(result.rows())
    if in_json is not None:
        assert json.loads(written, parse_constant=refuse) == [{"v": in_json}]
    elif isinstance(python, int | Decimal):
        exact = json.loads(written, parse_float=Decimal, parse_constant=refuse)
        assert exact == [{"v": python}]
    rows = list(csv.reader(io.StringIO(b"".join(csv_of([result.table])).decode())))
    assert rows == [["v"], [in_text if in_text is not None else python]]


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
    assert show(["a", 1.0, None]) == "a, 1, NULL"
    assert show(Decimal("1E+30")) == "1" + "0" * 30
    assert show({"a": [1]}) == '{"a":[1]}'
    assert text(b"\x01") == "01"
