"""Columns written many values at a time have the bytes that results/values.py gives each value."""

import csv
import io
import json
import random
import struct
from collections.abc import Iterable
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from caudal.results.answers import Result
from caudal.results.text_formats import csv_of, json_lines_of, json_of, markdown_of
from caudal.results.values import json_bytes, json_text, python_values, text

ODD_TEXTS = [
    "", " ", "a,b", 'say "hi"', "line\nbreak", "\r", "\t", "\0", "\x1f", "\x7f", "\\", "/", "ñ",
    "\u2028", "😀", "null", "NULL", "|", "\\|", "a" * 70_000, "'", "\ufeff", "\x85",
]  # fmt: skip


def floats(dice: random.Random) -> list[float]:
    """Any bits, every size, halves between two shortest texts, and the edges of each rule."""
    found = [0.0, -0.0, 1e-4, 9.999999999999999e-5, 1e10, 9999999999.999998, 1e15, 1e16, 1e22]
    found += [5e-324, 1.7976931348623157e308, float("inf"), float("-inf"), float("nan"), 1e-5]
    found += [struct.unpack("<d", dice.randbytes(8))[0] for _ in range(3000)]
    found += [dice.choice((1, -1)) * 10 ** dice.uniform(-6, 18) for _ in range(3000)]
    found += [dice.randrange(10**7) / 100 for _ in range(1000)]
    for power in range(20, 54):
        whole = dice.randrange(2**power, 2 ** (power + 1))
        found += [whole + part for part in (0.5, 0.25, 0.125, 0.375, 0.0625)]
    return found


def decimals(dice: random.Random, digits: int, scale: int) -> list[Decimal]:
    whole = [dice.randrange(10 ** dice.randrange(1, digits + 1)) for _ in range(500)]
    whole += [number * 10**zeros for number in (1, 12, 345) for zeros in range(digits - 3)]
    return [Decimal((dice.randrange(2), tuple(map(int, str(one))), -scale)) for one in whole]


def columns(dice: random.Random) -> dict[str, pa.Array]:
    """A column of each type that is written fast, and of some that are not."""
    moments = [dice.randrange(-(10**17), 4 * 10**17) for _ in range(300)]
    moments += [0, 1, -1, 10**6, -62135596800000000, -62135596800000001, 253402300799999999]
    moments += [253402300800000000, 2**63 - 1, -(2**63) + 1, 1_000_500]
    days = [dice.randrange(-800_000, 3_100_000) for _ in range(300)]
    days += [0, -719162, -719163, 2932896, 2932897, 2**31 - 1, -(2**31) + 1]
    clocks = [dice.randrange(86_400_000_001) for _ in range(300)]
    clocks += [0, 1, 10**6, 86_400_000_000, 86_399_999_999]
    texts = ODD_TEXTS + ["".join(dice.choices('ab,"\\\n é|', k=5)) for _ in range(500)]
    nested = [[dice.choice([None, "a", 'b"\n', ""]) for _ in range(dice.randrange(4))]
              for _ in range(200)]  # fmt: skip
    found = {
        "int64": pa.array([0, -1, 2**63 - 1, -(2**63)]),
        "uint64": pa.array([0, 2**64 - 1], pa.uint64()),
        "int8": pa.array([-128, 127], pa.int8()),
        "bool": pa.array([True, False]),
        "float64": pa.array(floats(dice)),
        "float32": pa.array([x for x in floats(dice) if abs(x) < 3e38], pa.float32()),
        "date": pa.array(days, pa.int32()).cast(pa.date32()),
        "us": pa.array(moments, pa.timestamp("us")),
        "zoned": pa.array(moments, pa.timestamp("us", "UTC")),
        "elsewhere": pa.array([0, 1_500_000], pa.timestamp("us", "Asia/Tokyo")),
        "s": pa.array([moment // 10**6 for moment in moments], pa.timestamp("s")),
        "ms": pa.array([moment // 10**3 for moment in moments], pa.timestamp("ms")),
        "ns": pa.array([moment // 10**3 for moment in moments], pa.timestamp("ns")),
        "time": pa.array(clocks, pa.time64("us")),
        "time_ns": pa.array(clocks, pa.time64("ns")),
        "time_s": pa.array([0, 1, 86_399], pa.time32("s")),
        "text": pa.array(texts),
        "large": pa.array(texts, pa.large_string()),
        "view": pa.array(texts, pa.string_view()),
        "enum": pa.array(texts).dictionary_encode(),
        "blob": pa.array([b"", b"\0\xff", b"abc"]),
        "null": pa.nulls(3),
        "list": pa.array(nested),
        "struct": pa.array([{"a": 1, "b": [1.5]}, None, {"a": None, "b": []}]),
        "map": pa.array([[("k", 1)], []], pa.map_(pa.string(), pa.int64())),
        "hugeint": pa.array([Decimal(10**37), Decimal(-5), Decimal(0)], pa.decimal128(38, 0)),
        "uhugeint": pa.array([Decimal(2**128 - 1), Decimal(1)], pa.decimal256(39, 0)),
    }
    for digits, scale in ((4, 2), (9, 3), (18, 9), (38, 2), (38, 30), (15, 5)):
        kind = pa.decimal128(digits, scale)
        found[f"decimal{digits},{scale}"] = pa.array(decimals(dice, digits, scale), kind)
    return found


COLUMNS = columns(random.Random(1))


def with_nulls(array: pa.Array) -> pa.Array:
    """The array with some nulls, and with an offset: neither may change a value."""
    nothing = pa.nulls(1, array.type)
    return pa.concat_arrays([nothing, array, nothing]).slice(1)


def csv_by_value(table: pa.Table) -> bytes:
    found = [[text(value) for value in python_values(column)] for column in table.columns]
    return b"".join(map(csv_line, [table.column_names, *zip(*found, strict=True)]))


def csv_line(fields: Iterable[str]) -> bytes:
    """One line, with quotes around \\r too: Python writes them only before its own line ends."""
    line = io.StringIO(newline="")
    csv.writer(line, lineterminator="\r\n").writerow(fields)
    return line.getvalue().removesuffix("\r\n").encode() + b"\n"


def result(**columns: pa.Array) -> Result:
    return Result("x", "", pa.table(columns))


@pytest.mark.parametrize("name", COLUMNS)
def test_each_value_has_the_bytes_of_the_rules(name: str) -> None:
    array = with_nulls(COLUMNS[name])
    for given in (result(v=array), result(v=array, w=array)):
        assert b"".join(csv_of([given.table])) == csv_by_value(given.table)
        assert b"".join(json_of([given.table])) == json_bytes(given.rows())
        lines = b"".join(json_lines_of([given.table])).decode().removesuffix("\n").split("\n")
        assert lines == [json_text(row, None) for row in given.rows()]


def test_rows_of_all_types_in_several_parts() -> None:
    rows = 40_000
    dice = random.Random(2)
    given = {
        name: array.take(pa.array([dice.randrange(len(array)) for _ in range(rows)]))
        for name, array in COLUMNS.items()
        if name in ("int64", "float64", "us", "list", "decimal18,9")
    }
    table = pa.table(given)
    assert b"".join(csv_of([table])) == csv_by_value(table)
    assert b"".join(json_of([table])) == json_bytes(Result("", "", table).rows())


def test_an_array_inside_an_object_is_indented() -> None:
    one = pa.table({"a": [1, 2], "b": [["x"], []]})
    none = one.slice(0, 0)
    assert b'{\n "q": ' + b"".join(json_of([one], depth=1)) + b"}\n" == json_bytes(
        {"q": Result("", "", one).rows()}
    )
    assert b"".join(json_of([none], depth=1)) == b"[]\n"


def test_keys_are_unique_and_escaped() -> None:
    table = pa.table([pa.array([1]), pa.array([2])], names=['a"\n', 'a"\n'])
    assert json.loads(b"".join(json_of([table]))) == [{'a"\n': 1, 'a"\n_1': 2}]


def test_markdown_keeps_its_columns() -> None:
    given = result(**{"a|b": pa.array(["x|y", "two\nlines", None, "\\|"]),
                      "n": pa.array([1.5, None, 2, 3])})  # fmt: skip
    assert b"".join(markdown_of([given.table])).decode() == (
        "| a\\|b | n |\n| --- | ---: |\n| x\\|y | 1.5 |\n| two<br>lines |  |\n|  | 2.0 |\n"
        "| \\\\\\| | 3.0 |\n"
    )
    assert b"".join(markdown_of([result(a=pa.array([], pa.string())).table])) == b"| a |\n| --- |\n"


def test_moments_are_python_s() -> None:
    dice = random.Random(3)
    first = datetime(1, 1, 1, tzinfo=UTC)
    moments: list[Any] = [
        first + timedelta(days=dice.randrange(3_000_000), microseconds=dice.randrange(10**12))
        for _ in range(200)
    ]
    given = result(v=pa.array(moments, pa.timestamp("us", "UTC")), d=pa.array([date.min] * 200))
    lines = b"".join(csv_of([given.table])).decode().splitlines()[1:]
    assert lines == [f"{moment},0001-01-01" for moment in moments]
