"""Results as Python, Arrow, pandas and Polars take them."""

from datetime import date, datetime
from decimal import Decimal
from pathlib import Path

import numpy as np
import pandas
import polars
import pyarrow as pa
import pytest

import caudal
from caudal.errors import UsageError
from caudal.results.answers import Result

KIND = pa.struct([("a", pa.decimal128(9, 1))])
ROWS = pa.table(
    {
        "id": pa.array([1, None, 2**60 + 1], pa.int64()),
        "price": pa.array([Decimal("1.10"), Decimal("2.25"), None], pa.decimal128(38, 9)),
        "total": pa.array([Decimal(3), Decimal(4), Decimal(5)], pa.decimal128(38, 0)),
        "day": pa.array([date(1, 1, 1), None, date(9999, 12, 31)]),
        "at": pa.array([datetime(2020, 1, 2, 3), None, None], pa.timestamp("us", "UTC")),
        "name": ["x", "y", None],
        "parts": pa.array([[Decimal("0.5")], [], None], pa.list_(pa.decimal128(9, 1))),
        "kind": pa.array([{"a": Decimal("0.5")}, None, None], KIND),
    }
)  # fmt: skip


@pytest.fixture
def result() -> Result:
    return Result("q1", "a title", ROWS)


def test_pandas_gets_the_types_with_which_it_computes(result: Result) -> None:
    frame = result.to_pandas()
    assert [str(kind) for kind in frame.dtypes] == [
        "Int64", "float64", "int64", "datetime64[ms]", "datetime64[us, UTC]", "str", "object",
        "object",
    ]  # fmt: skip
    assert frame["id"][2] == 2**60 + 1
    assert frame["price"].sum() == pytest.approx(3.35)
    assert frame["day"].dt.year.tolist()[0::2] == [1, 9999]
    assert frame["parts"][0].dtype == np.float64
    assert frame["kind"][0] == {"a": 0.5}
    assert len(frame) == 3


def test_pandas_gets_every_digit_on_request(result: Result) -> None:
    frame = result.to_pandas(exact=True)
    assert frame["price"][0] == Decimal("1.10")
    assert frame["day"][0] == date(1, 1, 1)
    assert pa.Table.from_pandas(frame).column("price").equals(ROWS.column("price"))


def test_whole_decimals_beyond_64_bits_are_floats() -> None:
    huge = pa.table({"n": pa.array([Decimal(10) ** 30, Decimal(1)], pa.decimal128(38, 0))})
    assert Result("q", "", huge).to_pandas()["n"].tolist() == [1e30, 1.0]


def test_a_frame_keeps_no_rows_and_repeated_names() -> None:
    twice = pa.Table.from_arrays([pa.array([], pa.int64()), pa.array([], pa.date32())], ["x", "x"])
    frame = Result("q", "", twice).to_pandas()
    assert list(frame.columns) == ["x", "x"]
    assert [str(kind) for kind in frame.dtypes] == ["int64", "datetime64[ms]"]


def test_a_sniffed_column_computes_at_once(tmp_path: Path) -> None:
    (tmp_path / "sales.csv").write_text("day,price\n2024-02-29,1.5\n2024-03-01,2.25\n")
    frame = caudal.sql("SELECT * FROM 'sales.csv'", data=tmp_path).to_pandas()
    assert frame["price"].dtype == np.float64
    assert frame["day"].dt.month.tolist() == [2, 3]


def test_rows_columns_and_slices(result: Result) -> None:
    assert result.columns[:2] == ["id", "price"]
    assert result["name"] == ["x", "y", None]
    assert result[0]["total"] == 3
    assert result[-1]["name"] is None
    assert result[np.int64(1)]["name"] == "y"
    assert len(result[1:]) == 2
    assert result[::-1]["total"] == [5, 4, 3]
    assert len(result.head(2)) == 2
    assert len(result.head()) == 3
    assert len(result.head(-1)) == 0
    with pytest.raises(IndexError):
        result[3]
    with pytest.raises(UsageError, match="q1 has no column 'nope'; its columns are:"):
        result["nope"]


def test_the_second_column_of_a_name_has_a_number() -> None:
    twice = pa.Table.from_arrays([pa.array([1]), pa.array([2])], ["x", "x"])
    assert Result("q", "", twice)["x_1"] == [2]


def test_describe_says_what_each_column_holds(result: Result) -> None:
    told = {row["column"]: row for row in result.describe()}
    assert told["price"] == {
        "column": "price", "type": "decimal128(38, 9)", "count": 2, "nulls": 1, "distinct": 2,
        "min": "1.1", "max": "2.25", "mean": 1.675,
    }  # fmt: skip
    assert (told["day"]["min"], told["day"]["max"]) == ("0001-01-01", "9999-12-31")
    assert told["name"]["mean"] is None
    assert told["parts"]["min"] is None
    assert told["parts"]["count"] == 2


def test_describe_of_no_rows() -> None:
    [told] = Result("q", "", pa.table({"x": pa.array([], pa.int64())})).describe()
    assert (told["count"], told["min"], told["mean"]) == (0, None, None)


def test_any_library_takes_a_result_by_the_arrow_protocol(result: Result) -> None:
    assert pa.table(result).equals(ROWS)
    assert polars.DataFrame(result).height == 3
    assert pandas.DataFrame.from_arrow(result)["name"].tolist()[0] == "x"
