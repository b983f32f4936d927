"""Rows out of an Arrow IPC stream that somebody else wrote. Nothing in it is believed.

Arrow takes a stream's word for where its buffers lie, how long they are unpacked, and what their
offsets say. A forged one shows other memory of the process as rows, or takes all memory there is.
So, before anyone sees a row:

1. The head of every message says how many rows it holds and how many bytes its buffers take when
   they are unpacked (`stream_heads.py`): what exceeds the terms is refused before it is unpacked.
   Arrow unpacks each buffer into exactly the bytes that were declared, and refuses other ones.
2. Only types on the list are taken.
3. Offsets, views, indices and UTF-8 of every column are checked, at every depth.

What clients send has stricter terms than what Caudal itself has stored: flat columns, as a table
file has them, and buffers that are not compressed, since a batch is compressed as a whole.
"""

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from caudal.errors import FormatError
from caudal.formats.stream_heads import heads_of

_ARROW_ERRORS = (pa.ArrowException, OSError, ValueError, TypeError, KeyError, IndexError)


@dataclass(frozen=True)
class Terms:
    """What is taken of a stream."""

    bytes: int  # of all its buffers, unpacked
    rows: int
    nested: bool  # lists, structs and their kin
    compressed: bool  # buffers may be


CLIENTS = Terms(bytes=256 << 20, rows=1 << 20, nested=False, compressed=False)
OWN = Terms(bytes=8 << 30, rows=1 << 40, nested=True, compressed=True)


def read_rows(
    stream: bytes | memoryview, key: str, terms: Terms = OWN, rows: int | None = None
) -> pa.Table:
    """The rows of a stream; FormatError if it is none, is damaged, or exceeds the terms.

    `rows` is how many there must be, if somebody else has said so.
    """
    try:
        data = pa.py_buffer(stream)
        _require_terms(data, key, terms, rows)
        reader = pa.ipc.open_stream(data)
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


def _require_terms(data: pa.Buffer, key: str, terms: Terms, rows: int | None) -> None:
    held = size = 0
    most_rows = terms.rows if rows is None else min(rows, terms.rows)
    for head in heads_of(data, key):
        if head.compressed and not terms.compressed:
            raise FormatError(f"{key} has compressed buffers: compress the batch, not its stream")
        held += head.rows
        size += head.bytes
        if held > most_rows:
            raise FormatError(f"{key} claims {held} rows: at most {most_rows} are taken")
        if size > terms.bytes:
            raise FormatError(f"{key} unpacks to {size} bytes: at most {terms.bytes} are taken")


def _require_types(schema: pa.Schema, key: str, terms: Terms) -> None:
    for field in schema:
        if not is_known(field.type, nested=terms.nested):
            raise FormatError(
                f"{key}: column {field.name!r} has type {field.type}, which is not taken here: "
                "cast it to a plain type first"
            )


def is_known(kind: pa.DataType, *, nested: bool) -> bool:
    """Is the type on the list? Texts, numbers, dates and times, and dictionaries of them; where
    `nested`, also what DuckDB makes of them."""
    types = pa.types
    if isinstance(kind, pa.BaseExtensionType):
        return nested and is_known(kind.storage_type, nested=nested)
    if types.is_dictionary(kind):
        return is_known(kind.value_type, nested=nested)
    if types.is_nested(kind):
        inner = (kind.field(i).type for i in range(kind.num_fields))
        known = _is_list(kind) or types.is_struct(kind) or types.is_union(kind)
        return nested and known and all(is_known(one, nested=True) for one in inner)
    plain = types.is_primitive(kind) or types.is_null(kind) or types.is_decimal(kind)
    return bool(plain or _is_bytes(kind) or types.is_fixed_size_binary(kind))


def check(array: pa.Array) -> None:
    """Every place that the array names lies where it may; ArrowInvalid if not.

    Arrow's own full check would also refuse values that SQL has and Arrow has not, such as the
    time 24:00:00; so columns of plain values are held to the sizes of their buffers only.
    """
    kind, types = array.type, pa.types
    if isinstance(kind, pa.BaseExtensionType):
        check(array.storage)
    elif _is_bytes(kind) or types.is_union(kind):
        array.validate(full=True)
    elif types.is_dictionary(kind):
        array.validate()
        check(array.dictionary)
        _check_indices(array)
    elif _is_list(kind):
        _check_list(array)
    elif types.is_struct(kind):
        array.validate()
        for number in range(kind.num_fields):
            check(array.field(number))
    else:
        array.validate()


def _check_indices(array: pa.DictionaryArray) -> None:
    ends = pc.min_max(array.indices)
    least, most = ends["min"].as_py(), ends["max"].as_py()
    if least is not None and not 0 <= least <= most < len(array.dictionary):
        raise pa.ArrowInvalid("an index lies outside of its dictionary")


def _check_list(array: pa.Array) -> None:
    array.validate()
    if not pa.types.is_fixed_size_list(array.type) and len(array):
        offsets = array.offsets.to_numpy()
        ends = offsets[0] < 0 or offsets[-1] > len(array.values)
        if ends or np.any(offsets[1:] < offsets[:-1]):
            raise pa.ArrowInvalid("a list lies outside of its values")
    check(array.values)


def _is_bytes(kind: pa.DataType) -> bool:
    types = pa.types
    return bool(
        types.is_string(kind)
        or types.is_large_string(kind)
        or types.is_string_view(kind)
        or types.is_binary(kind)
        or types.is_large_binary(kind)
        or types.is_binary_view(kind)
    )


def _is_list(kind: pa.DataType) -> bool:
    types = pa.types
    return bool(
        types.is_list(kind)
        or types.is_large_list(kind)
        or types.is_fixed_size_list(kind)
        or types.is_map(kind)
    )


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split())[:300]
