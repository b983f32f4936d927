"""Conversion of typed columns to the texts that a CSV file would hold.

A small typed column can become a large text column: a dictionary or a string view stores a repeated
value once, and a column of nulls takes no bytes. So the size of the text is bounded before it is
created, and the total of all columns is limited.
"""

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from caudal.errors import DataError

DAMAGE = "\x1adamage"  # a column of rows: null for a sound one, 0 for none, else the verdict
MOST_BYTES = 256 << 20  # for all texts of one piece, including offsets

_OFFSET_BYTES = 4
_LONGEST = 100  # characters of a number, date or time: a decimal has 76 digits, sign and point


def texts_of(rows: pa.Table, file: str) -> dict[str, pa.ChunkedArray]:
    """Return every column as text, by name; raise DataError for a bad type or too many bytes."""
    texts: dict[str, pa.ChunkedArray] = {}
    held = 0
    for name in rows.column_names:
        column = rows[name]
        if held + _most_bytes(column) > MOST_BYTES:
            raise DataError(
                f"{file}: {rows.num_rows} rows take more than {MOST_BYTES} bytes as text: "
                "send fewer rows at once"
            )
        texts[name] = _as_text(column, name, file)
        held += texts[name].nbytes
    return texts


def _as_text(column: pa.ChunkedArray, name: str, file: str) -> pa.ChunkedArray:
    """Convert a typed column to the text that a CSV file would hold; an empty text is null."""
    import pyarrow.compute as pc

    try:
        text = column.cast(pa.string())
    except (pa.ArrowException, UnicodeDecodeError) as error:
        if isinstance(error, MemoryError):
            raise
        raise DataError(
            f"{file}: column {name!r} has type {column.type}, which cannot be read as text"
        ) from error
    return pc.if_else(pc.equal(text, ""), None, text)


def _most_bytes(column: pa.ChunkedArray) -> int:
    """Return an upper bound of the column's size as text."""
    return sum(_most_bytes_of(chunk) for chunk in column.chunks)


def _most_bytes_of(array: pa.Array) -> int:
    kind, types = array.type, pa.types
    offsets = _OFFSET_BYTES * (len(array) + 1)
    if types.is_null(kind) or not len(array):
        return offsets
    if types.is_dictionary(kind):
        return offsets + _named_bytes(array)
    lengths = _lengths(array)
    return offsets + (_LONGEST * len(array) if lengths is None else int(lengths.sum()))


def _named_bytes(array: pa.DictionaryArray) -> int:
    """Return the bytes of a dictionary's values, each counted as often as it is referenced."""
    import pyarrow.compute as pc

    lengths = _lengths(array.dictionary)
    if lengths is None:
        return _LONGEST * len(array)
    times = np.zeros(len(array.dictionary), np.int64)
    named = pc.value_counts(array.indices.drop_null())
    times[named.field("values").to_numpy(zero_copy_only=False)] = named.field("counts").to_numpy()
    return int((times * lengths).sum())


def _lengths(array: pa.Array) -> NDArray[np.int64] | None:
    """Return the length of each text or binary value; None for other types."""
    kind, types = array.type, pa.types
    if types.is_fixed_size_binary(kind):
        return np.full(len(array), kind.byte_width, np.int64)
    if types.is_string_view(kind) or types.is_binary_view(kind):
        words = np.frombuffer(array.buffers()[1], "<u4", 4 * len(array), 16 * array.offset)
        valid = array.is_valid().to_numpy(zero_copy_only=False)
        return np.where(valid, words[::4], 0).astype(np.int64)
    is_small = types.is_string(kind) or types.is_binary(kind)
    if is_small or types.is_large_string(kind) or types.is_large_binary(kind):
        width = np.dtype(np.int32 if is_small else np.int64)
        offsets = array.buffers()[1]
        places = np.frombuffer(offsets, width, len(array) + 1, array.offset * width.itemsize)
        return (places[1:] - places[:-1]).astype(np.int64)
    return None
