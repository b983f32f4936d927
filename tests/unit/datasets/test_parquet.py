"""Statistics are bounds, or they are left out."""

import io
import json
import math
from datetime import UTC, date, datetime
from decimal import Decimal

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from caudal.datasets.parquet import file_stats, read_rows, stored_file


def stats(column: pa.Array) -> tuple[object, object, object]:
    found = json.loads(file_stats(pa.table({"c": column})), parse_float=Decimal)
    low, high = found["minValues"].get("c"), found["maxValues"].get("c")
    return low, high, found["nullCount"].get("c")


def test_numbers_have_exact_bounds() -> None:
    assert stats(pa.array([3, None, -(2**62)], pa.int64())) == (-(2**62), 3, 1)
    wide = [Decimal("12345678901234567890123456789012.345678"), Decimal("-0.000001")]
    assert stats(pa.array(wide, pa.decimal128(38, 6))) == (wide[1], wide[0], 0)
    assert stats(pa.array([0.5, 1.25])) == (Decimal("0.5"), Decimal("1.25"), 0)


def test_floats_that_json_lacks_have_no_bounds() -> None:
    assert stats(pa.array([1.0, math.nan])) == (None, None, 0)
    assert stats(pa.array([1.0, -math.inf])) == (None, None, 0)


def test_zeros_are_bounded_by_both_zeros() -> None:
    low, high, _ = stats(pa.array([0.0, -0.0]))
    assert (str(low), str(high)) == ("-0.0", "0.0")


def test_long_texts_are_bounded_from_below_only() -> None:
    assert stats(pa.array(["b", "a" * 50])) == ("a" * 32, "b", 0)
    assert stats(pa.array(["a", "b" * 50])) == ("a", None, 0)


def test_moments_are_rounded_outwards() -> None:
    moments = [datetime(2020, 1, 1, 0, 0, 0, 1500, UTC), datetime(2021, 1, 1, 0, 0, 0, 1, UTC)]
    column = pa.array(moments, pa.timestamp("us", "UTC"))
    assert stats(column) == ("2020-01-01T00:00:00.001Z", "2021-01-01T00:00:00.001Z", 0)
    assert stats(pa.array([date(2020, 2, 29)])) == ("2020-02-29", "2020-02-29", 0)
    far = pa.array([2**62], pa.int64()).cast(pa.timestamp("us"))
    assert stats(far) == (None, None, 0)


def test_columns_without_values_and_nested_ones_have_no_bounds() -> None:
    assert stats(pa.nulls(2, pa.string())) == (None, None, 2)
    assert stats(pa.array([["a"], None])) == (None, None, None)


def test_rows_come_back_as_they_were() -> None:
    rows = pa.table({
        "text": pa.array(["a", None, "ñ" * 20], pa.string_view()),
        "price": pa.array([Decimal("1.50"), None, Decimal("-2.25")], pa.decimal128(9, 2)),
        "list": pa.array([["x"], [], None], pa.list_(pa.string())),
    })  # fmt: skip
    file, data = stored_file("load/00000000.parquet", rows)
    assert (file.rows, file.bytes) == (3, len(data))
    assert read_rows([data]).to_pylist() == rows.to_pylist()
    assert stored_file("load/00000000.parquet", rows) == (file, data)


@pytest.mark.parametrize("kind", [pa.string(), pa.string_view()])
def test_only_long_texts_have_neither_dictionary_nor_bounds_in_the_file(kind: pa.DataType) -> None:
    parts = pa.struct([("a", pa.string()), ("b", pa.map_(pa.string(), pa.list_(pa.string())))])
    rows = pa.table({
        "long": pa.array([None, "x" * 250, "y" * 250], kind),
        "short": pa.array([None, "x", "y"], kind),
        "a.b": pa.array([1, 2, 3]),
        "nested": pa.array([{"a": "x", "b": [("k", ["v"])]}] * 3, parts),
    })  # fmt: skip
    _, data = stored_file("load/00000000.parquet", rows)
    group = pq.read_metadata(io.BytesIO(data)).row_group(0)
    columns = [group.column(number) for number in range(group.num_columns)]
    assert {one.path_in_schema: (one.has_dictionary_page, one.is_stats_set) for one in columns} == {
        "long": (False, False),
        "short": (True, True),
        "a.b": (True, True),
        "nested.a": (True, True),
        "nested.b.key_value.key": (True, True),
        "nested.b.key_value.value.list.element": (True, True),
    }
    assert read_rows([data]).to_pylist() == rows.to_pylist()


def test_floats_have_no_bounds_in_the_file() -> None:
    """NaN would be outside of them, and a reader for which NaN is a number would skip it."""
    parts = pa.struct([("y", pa.float32()), ("n", pa.int64())])
    rows = pa.table({
        "id": pa.array([1, 2]),
        "x": pa.array([1.0, float("nan")]),
        "s": pa.array([{"y": 1.0, "n": 1}] * 2, parts),
        "l": pa.array([[1.0], []], pa.list_(pa.float64())),
        "m": pa.array([[("k", 1.0)]] * 2, pa.map_(pa.string(), pa.float64())),
    })  # fmt: skip
    _, data = stored_file("load/00000000.parquet", rows)
    group = pq.read_metadata(io.BytesIO(data)).row_group(0)
    columns = [group.column(number) for number in range(group.num_columns)]
    bounded = {one.path_in_schema for one in columns if one.is_stats_set}
    assert bounded == {"id", "s.n", "m.key_value.key"}


def test_a_slice_of_long_texts_is_measured_by_its_own_rows() -> None:
    texts = pa.chunked_array([pa.array(["x" * 500, "y", "z"]).slice(1), pa.array([], pa.string())])
    _, data = stored_file("load/00000000.parquet", pa.table({"text": texts}))
    assert pq.read_metadata(io.BytesIO(data)).row_group(0).column(0).is_stats_set
