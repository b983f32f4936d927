"""Conversion of a result to a pandas frame.

By default each column gets the type with which pandas computes: no objects where numpy has a type.
1. A decimal becomes float64; a decimal without a fraction, such as a sum of integers, int64 if all
   values fit.
2. A date becomes datetime64[ms], which holds every date.
3. Integers with nulls become Int64 (and so on), since float64 would round large ones.
4. The same holds inside lists and structs. Everything else is what Arrow makes of it.

The exact form has Arrow's own types: every digit, every null, and dates that stay dates.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pandas
    import pyarrow as pa


def exact_frame(table: "pa.Table") -> "pandas.DataFrame":
    """Return a frame whose columns keep the types of the result."""
    import pandas

    return table.to_pandas(types_mapper=pandas.ArrowDtype)


def computing_frame(table: "pa.Table") -> "pandas.DataFrame":
    """Return a frame whose columns have the types with which pandas computes."""
    import pandas

    series = {place: _computing_series(column) for place, column in enumerate(table.columns)}
    frame = pandas.DataFrame(series, index=pandas.RangeIndex(table.num_rows))
    frame.columns = pandas.Index(table.column_names)
    return frame


def _computing_series(column: "pa.ChunkedArray") -> Any:
    from pyarrow import types

    kind = _computing_type(column)
    if not column.type.equals(kind):
        column = column.cast(kind, safe=False)
    is_nullable = types.is_integer(kind) and column.null_count
    mapper = _nullable_integer if is_nullable else None
    return column.to_pandas(date_as_object=False, types_mapper=mapper)


def _nullable_integer(kind: "pa.DataType") -> Any:
    """Return the pandas type of integers with nulls: Int64 for int64."""
    import pandas

    sign = "UInt" if str(kind).startswith("u") else "Int"
    return getattr(pandas, f"{sign}{kind.bit_width}Dtype")()


def _computing_type(column: "pa.ChunkedArray") -> "pa.DataType":
    from pyarrow import types

    kind = column.type
    if types.is_decimal(kind) and kind.scale == 0 and _fits_int64(column):
        import pyarrow as pa

        return pa.int64()
    return _without_decimals(kind)


def _fits_int64(column: "pa.ChunkedArray") -> bool:
    import pyarrow as pa

    try:
        column.cast(pa.int64())
    except pa.ArrowInvalid:
        return False
    return True


def _without_decimals(kind: "pa.DataType") -> "pa.DataType":
    """Return the type with float64 in place of decimals, also inside lists and structs."""
    import pyarrow as pa
    from pyarrow import types

    if types.is_decimal(kind):
        return pa.float64()
    if types.is_struct(kind):
        return pa.struct([field.with_type(_without_decimals(field.type)) for field in kind])
    if types.is_list(kind):
        return pa.list_(kind.value_field.with_type(_without_decimals(kind.value_type)))
    if types.is_fixed_size_list(kind):
        inner = kind.value_field.with_type(_without_decimals(kind.value_type))
        return pa.list_(inner, kind.list_size)
    return kind
