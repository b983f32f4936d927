"""Reads rows from an Arrow IPC stream of another process, which is not trusted.

Arrow trusts what a stream says about the positions, unpacked lengths and offsets of its buffers. A
forged stream could show other memory of the process as rows, or use up all memory. So, before a
row is returned:

1. The head of every message says how many rows it holds and how many bytes its buffers take when
   they are unpacked (`stream_heads.py`). A stream beyond its terms is refused before it is
   unpacked. Arrow unpacks each buffer into exactly the declared bytes, and refuses other buffers.
2. Only types on the list are accepted.
3. Offsets, views, indices, nulls and UTF-8 of all columns are checked, at any depth (`arrays.py`).

The terms for streams of clients are stricter than those for streams that Caudal itself stored:
only flat columns, as table files have them, and no compressed buffers, because a batch is
compressed as a whole.
"""

from dataclasses import dataclass

import pyarrow as pa

from caudal.errors import FormatError
from caudal.formats.arrays import check, is_bytes, is_list
from caudal.formats.frame import Read
from caudal.formats.stream_heads import heads_of

_SCHEMA_MOST = 1 << 20  # bytes of a schema
_ARROW_ERRORS = (pa.ArrowException, OSError, ValueError, TypeError, KeyError, IndexError)


class TooLargeError(FormatError):
    """The stream is larger than allowed here, but not necessarily damaged."""


@dataclass(frozen=True)
class Terms:
    """The limits for a stream."""

    bytes: int  # of all its buffers, unpacked
    rows: int
    nested: bool  # whether lists, structs and other nested types are allowed
    compressed: bool  # whether buffers may be compressed


CLIENTS = Terms(bytes=256 << 20, rows=1 << 20, nested=False, compressed=False)
PARTS = Terms(bytes=32 << 20, rows=1 << 24, nested=True, compressed=True)
"""For each record batch of a result: `outputs.encode_result` makes far smaller ones."""
OWN = Terms(bytes=8 << 30, rows=1 << 40, nested=True, compressed=True)

# Streams are small: handing them to other threads takes longer than reading them.
_OPTIONS = pa.ipc.IpcReadOptions(use_threads=False)


def read_rows(
    stream: bytes | memoryview, key: str, terms: Terms = OWN, rows: int | None = None
) -> pa.Table:
    """Return the rows of a stream. Raise FormatError if it is damaged or exceeds the terms.

    `rows` is the required number of rows, if it is known from elsewhere.
    """
    try:
        data = pa.py_buffer(stream)
        _require_terms(data, key, terms, rows)
        reader = pa.ipc.open_stream(data, options=_OPTIONS)
        _require_types(reader.schema, key, terms)
        table = reader.read_all()
        for column in table.columns:
            for chunk in column.chunks:
                check(chunk)
    except MemoryError:
        raise
    except _ARROW_ERRORS as error:
        raise FormatError(f"{key} is damaged: {_one_line(error)}") from error
    if rows is not None and table.num_rows != rows:
        raise FormatError(f"{key} is damaged: it has {table.num_rows} rows instead of {rows}")
    return table


def read_schema(read: Read, offset: int, length: int, key: str) -> pa.Schema:
    """Return the schema of a stream that begins at `offset`, without reading its rows."""
    try:
        found = pa.ipc.read_schema(pa.py_buffer(read(offset, min(length, _SCHEMA_MOST))))
        _require_types(found, key, OWN)
    except _ARROW_ERRORS as error:
        raise FormatError(f"{key} is damaged: {_one_line(error)}") from error
    return found


def claims(stream: bytes, key: str, terms: Terms) -> tuple[int, int]:
    """Return how many rows and unpacked bytes a stream declares, without unpacking it."""
    try:
        return _require_terms(pa.py_buffer(stream), key, terms, None)
    except _ARROW_ERRORS as error:
        raise FormatError(f"{key} is damaged: {_one_line(error)}") from error


def _require_terms(data: pa.Buffer, key: str, terms: Terms, rows: int | None) -> tuple[int, int]:
    """Return the total rows and unpacked bytes. Raise FormatError if they exceed the terms."""
    held = size = 0
    most_rows = terms.rows if rows is None else min(rows, terms.rows)
    for head in heads_of(data, key):
        if head.compressed and not terms.compressed:
            raise FormatError(f"{key} has compressed buffers: compress the batch, not its stream")
        held += head.rows
        size += head.bytes
        if held > most_rows:
            raise TooLargeError(f"{key} claims {held} rows: at most {most_rows} are taken")
        if size > terms.bytes:
            raise TooLargeError(f"{key} unpacks to {size} bytes: at most {terms.bytes} are taken")
    return held, size


def _require_types(schema: pa.Schema, key: str, terms: Terms) -> None:
    for field in schema:
        if not is_known(field.type, nested=terms.nested):
            raise FormatError(
                f"{key}: column {field.name!r} has type {field.type}, which is not taken here: "
                "cast it to a plain type first"
            )


def is_known(kind: pa.DataType, *, nested: bool) -> bool:
    """Return whether the type is on the list.

    The list has texts, numbers, dates and times, and dictionaries of them; if `nested`, also the
    nested types that DuckDB makes of them.
    """
    types = pa.types
    if isinstance(kind, pa.BaseExtensionType):
        return nested and is_known(kind.storage_type, nested=nested)
    if types.is_dictionary(kind):
        return is_known(kind.value_type, nested=nested)
    if types.is_nested(kind):
        inner = (kind.field(i).type for i in range(kind.num_fields))
        known = is_list(kind) or types.is_struct(kind) or types.is_union(kind)
        return nested and known and all(is_known(one, nested=True) for one in inner)
    plain = types.is_primitive(kind) or types.is_null(kind) or types.is_decimal(kind)
    return bool(plain or is_bytes(kind) or types.is_fixed_size_binary(kind))


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split())[:300]
