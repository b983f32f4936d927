"""Conversion of rows to CSV records that are read back exactly: dictionaries, tuples, Arrow.

Rules
1. Null and empty text are both an empty field: CSV files cannot tell them apart either.
2. A field with a comma, a quote or a line break is quoted; quotes inside are doubled.
3. A record of one empty field is written as `""`, because an empty line is not a record.
4. Lists and dictionaries are written as Python literals, as `items` and `names` read them.
   Booleans, dates and numbers are written as DuckDB reads them.
"""

import contextlib
import datetime
import decimal
import io
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.csv
import pyarrow.types

from caudal.errors import DataError

_SPECIAL = re.compile(r'[",\r\n]')
_ARROW_ROWS = 65_536
_SOME_ROWS = 1_024  # dictionaries or tuples written at a time

Row = Mapping[str, Any] | Sequence[Any]
Rows = Iterable[Row] | Any  # Any: an object that holds Arrow data, such as a Polars frame


def pieces_of(
    rows: Rows, columns: Sequence[str] | None, of_tuples: Sequence[str] | None = None
) -> Iterator[tuple[tuple[str, ...], bytes]]:
    """Yield the records of some rows, piece by piece, each with the names of its columns.

    `columns` names the fields of dictionaries and tuples. Without it, dictionaries have the
    columns of the first one, tuples those of `of_tuples`. Arrow data names its own.
    """
    if _is_arrow(rows):
        yield from _arrow_pieces(rows)
        return
    waiting: list[Row] = []
    for row in rows:
        if _is_arrow(row):
            yield from _arrow_pieces(row)
            continue
        if columns is None:
            columns = tuple(row) if isinstance(row, Mapping) else of_tuples
        waiting.append(row)
        if len(waiting) == _SOME_ROWS:
            yield _python_piece(waiting, columns)
            waiting = []
    if waiting:
        yield _python_piece(waiting, columns)


def _is_arrow(rows: Any) -> bool:
    return hasattr(rows, "__arrow_c_stream__") or hasattr(rows, "__arrow_c_array__")


def _python_piece(
    rows: Sequence[Row], columns: Sequence[str] | None
) -> tuple[tuple[str, ...], bytes]:
    if columns is None:
        raise DataError("rows that are not dictionaries need column names: give columns=[...]")
    names = tuple(columns)
    text = "".join(_record(row, names) for row in rows)
    try:
        return names, text.encode()
    except UnicodeEncodeError as error:
        raise DataError(f"a row holds text that is not valid Unicode: {error.reason}") from None


def _record(row: Row, names: tuple[str, ...]) -> str:
    if isinstance(row, Mapping):
        if row.keys() - set(names):
            raise DataError(f"a row has a column {min(row.keys() - set(names))!r}, others have not")
        values: Iterable[Any] = (row.get(name) for name in names)
    elif isinstance(row, str | bytes) or not isinstance(row, Sequence):
        raise DataError(f"a row is a {type(row).__name__}: give dictionaries, tuples or Arrow")
    elif len(row) != len(names):
        raise DataError(f"a row has {len(row)} fields, but {len(names)} columns")
    else:
        values = row
    return (",".join(_field(value) for value in values) or '""') + "\n"


def _field(value: Any) -> str:
    """Return one value as a CSV field.

    >>> [_field(one) for one in (None, "so", "a, b", True, 2.5)]
    ['', 'so', '"a, b"', 'true', '2.5']
    """
    text = value if isinstance(value, str) else _text(value)
    if _SPECIAL.search(text):
        return '"' + text.replace('"', '""') + '"'
    return text


def _text(value: Any) -> str:
    match value:
        case None:
            return ""
        case bool():
            return "true" if value else "false"
        case int() | float():
            return repr(value)
        case decimal.Decimal():
            return f"{value:f}"
        case datetime.datetime():
            return value.isoformat(" ")
        case datetime.date() | datetime.time():
            return value.isoformat()
        case list() | tuple() | dict():
            return repr(value)
    if hasattr(value, "item"):  # a numpy scalar
        return _text(value.item())
    raise DataError(f"a row holds a {type(value).__name__}, which a CSV field cannot hold")


def _arrow_pieces(rows: Any) -> Iterator[tuple[tuple[str, ...], bytes]]:
    table = pa.table(rows)
    for batch in table.to_batches(max_chunksize=_ARROW_ROWS):
        texts = [
            _column(column, name)
            for column, name in zip(batch.columns, batch.schema.names, strict=True)
        ]
        yield tuple(table.schema.names), _written(texts)


def _written(columns: list[pa.Array]) -> bytes:
    """Write columns as CSV. Arrow quotes all texts or none; none is smaller, so it comes first."""
    if len(columns) == 1:  # rule 3
        columns, styles = [columns[0].cast(pa.string()).fill_null("")], ["needed"]
    else:
        styles = ["none", "needed"]
    numbered = pa.table(columns, names=[str(number) for number in range(len(columns))])
    for style in styles:
        sink = io.BytesIO()
        options = pyarrow.csv.WriteOptions(include_header=False, quoting_style=style)
        with contextlib.suppress(pa.ArrowInvalid):
            pyarrow.csv.write_csv(numbered, sink, options)
            return sink.getvalue()
    raise DataError("these rows cannot be written as CSV")


def _column(column: pa.Array, name: str) -> pa.Array:
    kind, types = column.type, pyarrow.types
    if types.is_nested(kind) or types.is_binary(kind) or types.is_large_binary(kind):
        texts = [None if one is None else _text(one) for one in column.to_pylist()]
        return pa.array(texts, pa.string())
    if types.is_integer(kind) or types.is_floating(kind) or types.is_boolean(kind):
        return column
    try:
        return column.cast(pa.string())
    except pa.ArrowException as error:
        raise DataError(f"column {name!r} of type {kind} cannot become text: {error}") from None
