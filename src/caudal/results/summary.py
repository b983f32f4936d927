"""The summary of a result: one row for each column, with counts, extremes and the mean."""

from typing import TYPE_CHECKING, Any

from caudal.results.values import python_values, text

if TYPE_CHECKING:
    import pyarrow as pa


def summarize(table: "pa.Table") -> "pa.Table":
    """Return a table with a row for each column of `table`.

    `min` and `max` are texts, since columns have different types. They are null where a type has no
    order (lists, structs), and `mean` is null for what is no number.
    """
    import pyarrow as pa

    rows = [
        {"column": name, "type": str(column.type), **_figures(column)}
        for name, column in zip(table.column_names, table.columns, strict=True)
    ]
    schema = pa.schema(
        [("column", pa.string()), ("type", pa.string()), ("count", pa.int64()),
         ("nulls", pa.int64()), ("distinct", pa.int64()), ("min", pa.string()),
         ("max", pa.string()), ("mean", pa.float64())]
    )  # fmt: skip
    return pa.Table.from_pylist(rows, schema=schema)


def _figures(column: "pa.ChunkedArray") -> dict[str, Any]:
    least, most = _extremes(column)
    return {
        "count": len(column) - column.null_count,
        "nulls": column.null_count,
        "distinct": _distinct(column),
        "min": least,
        "max": most,
        "mean": _mean(column),
    }


def _distinct(column: "pa.ChunkedArray") -> int | None:
    import pyarrow as pa
    import pyarrow.compute as pc

    try:
        return int(pc.count_distinct(column, mode="only_valid").as_py())
    except pa.ArrowNotImplementedError:
        return None


def _extremes(column: "pa.ChunkedArray") -> tuple[str | None, str | None]:
    import pyarrow as pa
    import pyarrow.compute as pc

    try:
        found = pc.min_max(column)
    except pa.ArrowNotImplementedError:
        return None, None
    ends = pa.chunked_array([pa.array([found["min"], found["max"]], column.type)])
    least, most = (None if value is None else text(value) for value in python_values(ends))
    return least, most


def _mean(column: "pa.ChunkedArray") -> float | None:
    import pyarrow as pa
    import pyarrow.compute as pc
    from pyarrow import types

    kind = column.type
    if not (types.is_integer(kind) or types.is_floating(kind) or types.is_decimal(kind)):
        return None
    mean: float | None = pc.mean(column.cast(pa.float64(), safe=False)).as_py()
    return mean
