"""Values of numpy, of pandas and of enums are sent as the plain values that they stand for."""

import datetime
import decimal
from collections import OrderedDict, defaultdict, namedtuple
from collections.abc import Iterator
from enum import Enum, IntEnum, IntFlag, StrEnum
from typing import Any

import numpy as np
import pandas as pd
import polars
import pyarrow as pa
import pytest

from caudal.client.rows import pieces_of
from caudal.errors import DataError

DAY, MOMENT = datetime.date(2020, 1, 2), datetime.datetime(2020, 1, 2, 3, 4, 5, 678901)
Point = namedtuple("Point", ["x", "y"])


class Number(IntEnum):
    TWO = 2


class Flag(IntFlag):
    FOUR = 4


class Word(StrEnum):
    RED = "red"


class OldWord(str, Enum):  # noqa: UP042, its `str` is not its value
    RED = "red"


class Share(float, Enum):
    HALF = 0.5


class Colour(Enum):
    RED = 1


SAME: list[tuple[Any, Any]] = [
    (np.float64(2.5), 2.5),
    (np.float64(0.1), 0.1),
    (np.float64("nan"), float("nan")),
    (np.float32(2.5), 2.5),
    (np.float16(2.5), 2.5),
    (np.int64(-3), -3),
    (np.uint8(3), 3),
    (np.bool_(True), True),
    (np.str_("a, b"), "a, b"),
    (np.datetime64("2020-01-02"), DAY),
    (np.datetime64("2020-01", "M"), datetime.date(2020, 1, 1)),
    (np.datetime64("2020-01-02T03:04:05.678901", "us"), MOMENT),
    (np.datetime64("2020-01-02T03:04:05.678901", "ns"), MOMENT),
    (np.datetime64("2020-01-02T03:04:05.678901999", "ns"), MOMENT),
    (np.datetime64("2020-01-02T03:04:05", "s"), MOMENT.replace(microsecond=0)),
    (np.datetime64("NaT"), None),
    (np.datetime64("NaT", "ns"), None),
    (np.timedelta64("NaT"), None),
    (np.array(2.5), 2.5),
    (np.array("2020-01-02", "datetime64[ns]"), datetime.datetime(2020, 1, 2)),
    (np.array([1.5]), [1.5]),
    (np.array(["a", "b"]), ["a", "b"]),
    (np.array([["a"], [None]], dtype=object), [["a"], [None]]),
    (np.array(["2020-01-02"], "datetime64[ns]"), [datetime.datetime(2020, 1, 2)]),
    (np.ma.masked, None),
    (np.ma.array(2.5, mask=True), None),
    (np.ma.array(2.5), 2.5),
    (np.ma.array([1, 2], mask=[True, False]), [None, 2]),
    (np.ma.array([[1, 2]], mask=[[True, False]]), [[None, 2]]),
    (np.ma.array("2020-01-02", "datetime64[ns]", mask=True), None),
    (np.ma.array("2020-01-02", "datetime64[ns]"), datetime.datetime(2020, 1, 2)),
    (np.ma.array([(1, 2)], [("x", int), ("y", int)], mask=[(True, False)])[0], (None, 2)),
    (pd.NaT, None),
    (pd.NA, None),
    (pd.Timestamp(MOMENT), MOMENT),
    (pd.Timestamp("2020-01-02 03:04:05.678901999"), MOMENT),
    (pd.Timestamp(MOMENT, tz="UTC"), MOMENT.replace(tzinfo=datetime.UTC)),
    (pd.Series([1, 2]), [1, 2]),
    (polars.Series([1, 2]), [1, 2]),
    (Number.TWO, 2),
    (Flag.FOUR, 4),
    (Word.RED, "red"),
    (OldWord.RED, "red"),
    (Share.HALF, 0.5),
    (Point(1, "a"), (1, "a")),
    (OrderedDict(a=1), {"a": 1}),
    (defaultdict(list, a=[1]), {"a": [1]}),
]


def field_of(value: object) -> str:
    [(_, data)] = pieces_of([{"a": value, "b": 0}], None)
    return data.decode()


@pytest.mark.parametrize(("value", "same"), SAME, ids=lambda value: repr(value)[:60])
def test_the_field_of_the_plain_value(value: object, same: object) -> None:
    assert field_of(value) == field_of(same)
    assert field_of([value, 1]) == field_of([same, 1])
    assert field_of({"k": [(value,)]}) == field_of({"k": [(same,)]})


def test_what_lists_hold_is_a_literal() -> None:
    """As `items` and `names` read it; a decimal is a number there, a time a text."""
    value = [decimal.Decimal("1.50"), DAY, MOMENT, "it's", None, True, (), {"a": datetime.time(1)}]
    assert field_of(value) == (
        "\"[1.50, '2020-01-02', '2020-01-02 03:04:05.678901', \"\"it's\"\", None, True, (), "
        "{'a': '01:00:00'}]\",0\n"
    )
    [(_, of_arrow)] = pieces_of(pa.table({"a": [[decimal.Decimal("1.50")]], "b": [0]}), None)
    assert of_arrow.decode() == "[1.50],0\n"


@pytest.mark.parametrize(
    ("value", "kind"),
    [
        (np.timedelta64(5, "ns"), "timedelta64"),
        (np.timedelta64(5, "s"), "timedelta64"),
        (np.datetime64("20000-01-01", "us"), "datetime64"),
        (np.longdouble(1.5), "longdouble"),
        (np.complex128(1j), "complex"),
        (np.bytes_(b"x"), "bytes"),
        (pd.Timedelta("1s"), "Timedelta"),
        (datetime.timedelta(1), "timedelta"),
        (Colour.RED, "Colour"),
        (1j, "complex"),
        (b"bytes", "bytes"),
        ({1}, "set"),
        (polars.DataFrame({"a": [1, 2]}), "DataFrame"),
    ],
    ids=repr,
)
@pytest.mark.parametrize("inside", [False, True])
def test_what_is_not_understood_is_refused_with_its_place(
    value: object, kind: str, *, inside: bool
) -> None:
    rows = [{"a": 1}] * 1400 + [{"a": [{"k": value}] if inside else value}]
    with pytest.raises(DataError, match=rf"^row 1401, column 'a' holds a {kind}, which a CSV"):
        list(pieces_of(rows, None))


def test_the_place_of_a_row_counts_arrow_rows_too() -> None:
    table = pa.table({"a": [1, 2, 3]})

    def rows() -> Iterator[Any]:
        yield {"a": 0}
        yield table
        yield pa.RecordBatchReader.from_batches(table.schema, table.to_batches())
        yield {"a": b"bytes"}

    found = list[bytes]()
    with pytest.raises(DataError, match=r"^row 8, column 'a'"):
        found.extend(data for _, data in pieces_of(rows(), None))
    numbers = [int(one.strip(b'"')) for one in b"".join(found).split()]
    assert numbers == [0, 1, 2, 3, 1, 2, 3], "in the order in which they were given"
    with pytest.raises(DataError, match=r"^row 2, column 'b' holds a bytes"):
        list(pieces_of(pa.table({"a": [1, 2], "b": [None, [b"x"]]}), None))


def test_the_place_of_a_text_that_is_none() -> None:
    rows = [("a", "b"), ("a", ["\ud800"]), ("a", "\ud800")]
    assert list(pieces_of(rows[:2], ["x", "y"])), "in a list it is escaped"
    with pytest.raises(DataError, match=r"^row 3, column 'y' holds text that is not valid Unicode"):
        list(pieces_of(rows, ["x", "y"]))


def test_lists_without_end_are_refused() -> None:
    endless: list[object] = []
    endless.append(endless)
    with pytest.raises(DataError, match=r"^row 1, column 'a' holds lists in lists without end"):
        field_of(endless)


def test_names_of_columns_are_texts() -> None:
    with pytest.raises(DataError, match="the name of column 0 is a int: give a text"):
        list(pieces_of([{0: "a"}], None))
    [(names, _)] = pieces_of([{np.str_("a"): 1}], None)
    assert [type(name) for name in names] == [str]
