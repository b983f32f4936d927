"""Conversion of rows to CSV records that are read back exactly: dictionaries, tuples, Arrow.

Rules
1. Null and empty text are both an empty field: CSV files cannot tell them apart either.
2. A field with a comma, a quote or a line break is quoted; quotes inside are doubled.
3. A record of one empty field is written as `""`, because an empty line is not a record.
4. Lists and dictionaries are written as Python literals, as `items` and `names` read them; dates
   in them are texts. Booleans, dates and numbers are written as DuckDB reads them.
5. A value of numpy or pandas, or a text or number of an enum, is written as the plain Python value
   that it stands for (plain_values.py). What none of this covers is refused, with row and column.
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

from caudal.client.plain_values import NotPlainError, plain
from caudal.errors import DataError

_SPECIAL = re.compile(r'[",\r\n]')
_ARROW_ROWS = 65_536
_SOME_ROWS = 1_024  # dictionaries or tuples written at a time
_AS_SHOWN = frozenset([int, float])  # exactly these: `repr` of a kind of them may be anything

Row = Mapping[str, Any] | Sequence[Any]
Rows = Iterable[Row] | Any  # Any: an object that holds Arrow data, such as a Polars frame


def pieces_of(
    rows: Rows, columns: Sequence[str] | None, of_tuples: Sequence[str] | None = None
) -> Iterator[tuple[tuple[str, ...], bytes]]:
    """Yield the records of some rows, piece by piece, each with the names of its columns.

    `columns` names the fields of dictionaries and tuples. Without it, dictionaries have the
    columns of the first one, tuples those of `of_tuples`. Arrow data names its own.
    """
    if is_arrow(rows):
        yield from _arrow_pieces(pa.table(rows), 1)
        return
    waiting: list[Row] = []
    first = number = 1  # of the rows that wait, and of the next one
    for row in rows:
        if is_arrow(row):
            if waiting:
                yield _python_piece(waiting, columns, first)
            waiting, table = [], pa.table(row)
            yield from _arrow_pieces(table, number)
            first = number = number + len(table)
            continue
        if columns is None:
            columns = tuple(row) if isinstance(row, Mapping) else of_tuples
        waiting.append(row)
        number += 1
        if len(waiting) == _SOME_ROWS:
            yield _python_piece(waiting, columns, first)
            waiting, first = [], number
    if waiting:
        yield _python_piece(waiting, columns, first)


def is_arrow(rows: Any) -> bool:
    """Return whether an object holds Arrow data, so that it is many rows."""
    return hasattr(rows, "__arrow_c_stream__") or hasattr(rows, "__arrow_c_array__")


def _python_piece(
    rows: Sequence[Row], columns: Sequence[str] | None, first: int
) -> tuple[tuple[str, ...], bytes]:
    if columns is None:
        raise DataError("rows that are not dictionaries need column names: give columns=[...]")
    names = tuple(map(_name, columns))
    text = "".join(_record(number, row, names) for number, row in enumerate(rows, first))
    try:
        return names, text.encode()
    except UnicodeEncodeError as error:
        number = first + _bad_text(_record(0, row, names) for row in rows)
        row = rows[number - first]
        name = names[_bad_text(_field(value) for value in _values(number, row, names))]
        raise DataError(
            f"row {number}, column {name!r} holds text that is not valid Unicode: {error.reason}"
        ) from None


def _name(column: Any) -> str:
    if not isinstance(column, str):
        raise DataError(f"the name of column {column!r} is a {type(column).__name__}: give a text")
    return str.__str__(column)


def _bad_text(texts: Iterable[str]) -> int:
    """Return the place of the first text that is not valid Unicode; there is one."""
    for place, text in enumerate(texts):
        try:
            text.encode()
        except UnicodeEncodeError:
            return place
    raise AssertionError("no text is wrong")


def _record(number: int, row: Row, names: tuple[str, ...]) -> str:
    fields = list[str]()
    for name, value in zip(names, _values(number, row, names), strict=True):
        try:
            fields.append(_field(value))
        except (NotPlainError, RecursionError) as error:
            raise _no_field(error, number, name) from None
    return (",".join(fields) or '""') + "\n"


def _values(number: int, row: Row, names: tuple[str, ...]) -> Iterable[Any]:
    if isinstance(row, Mapping):
        if strange := row.keys() - set(names):
            raise DataError(f"row {number} has a column {min(map(repr, strange))}, others have not")
        return (row.get(name) for name in names)
    if isinstance(row, str | bytes) or not isinstance(row, Sequence):
        raise DataError(
            f"row {number} is a {type(row).__name__}: give dictionaries, tuples or Arrow"
        )
    if len(row) != len(names):
        raise DataError(f"row {number} has {len(row)} fields, but {len(names)} columns")
    return row


def _no_field(error: Exception, number: int, name: str) -> DataError:
    if isinstance(error, RecursionError):
        return DataError(f"row {number}, column {name!r} holds lists in lists without end")
    return DataError(
        f"row {number}, column {name!r} holds a {error}, which a CSV field cannot hold"
    )


def _field(value: Any) -> str:
    """Return one value as a CSV field.

    >>> [_field(one) for one in (None, "so", "a, b", True, 2.5)]
    ['', 'so', '"a, b"', 'true', '2.5']
    """
    text = value if type(value) is str else _text(value)
    if _SPECIAL.search(text):
        return '"' + text.replace('"', '""') + '"'
    return text


def _text(value: Any) -> str:
    if type(value) in _AS_SHOWN:
        return repr(value)
    match found := plain(value):
        case None:
            return ""
        case str():
            return found
        case bool():
            return "true" if found else "false"
        case datetime.datetime():
            return found.isoformat(" ")
        case datetime.date() | datetime.time():
            return found.isoformat()
    return _literal(found)


def _literal(value: Any) -> str:
    """Return a value as a Python literal (rule 4).

    >>> _literal(["a", (1,), {"b": None}, decimal.Decimal("1.50"), datetime.date(2001, 2, 3)])
    "['a', (1,), {'b': None}, 1.50, '2001-02-03']"
    """
    if type(value) is str or type(value) in _AS_SHOWN:
        return repr(value)
    match found := plain(value):
        case list():
            return f"[{', '.join(map(_literal, found))}]"
        case tuple():
            return f"({', '.join(map(_literal, found))}{',' if len(found) == 1 else ''})"
        case dict():
            pairs = (f"{_literal(key)}: {_literal(one)}" for key, one in found.items())
            return f"{{{', '.join(pairs)}}}"
        case decimal.Decimal():
            return f"{found:f}"
        case datetime.date() | datetime.time():
            return repr(_text(found))
    return repr(found)


def _arrow_pieces(table: pa.Table, first: int) -> Iterator[tuple[tuple[str, ...], bytes]]:
    for batch in table.to_batches(max_chunksize=_ARROW_ROWS):
        texts = [
            _column(column, name, first)
            for column, name in zip(batch.columns, batch.schema.names, strict=True)
        ]
        yield tuple(table.schema.names), _written(texts)
        first += len(batch)


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


def _column(column: pa.Array, name: str, first: int) -> pa.Array:
    kind, types = column.type, pyarrow.types
    if types.is_nested(kind) or types.is_binary(kind) or types.is_large_binary(kind):
        return pa.array(_texts(column, name, first), pa.string())
    if types.is_integer(kind) or types.is_floating(kind) or types.is_boolean(kind):
        return column
    try:
        return column.cast(pa.string())
    except pa.ArrowException as error:
        raise DataError(f"column {name!r} of type {kind} cannot become text: {error}") from None


def _texts(column: pa.Array, name: str, first: int) -> Iterator[str | None]:
    for number, one in enumerate(column, first):
        try:
            yield _text(one.as_py()) if one.is_valid else None
        except (NotPlainError, ValueError, RecursionError) as error:
            raise _no_field(error, number, name) from None
