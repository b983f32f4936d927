"""Arrow values to hashes: what of each type is hashed, and as which kind.

A value is a kind and some bytes; its hash is XXH64 of the bytes with the kind as seed. Types that
SQL compares by value share a kind: all integers and decimals, all floats, all encodings of text.
Lists and structs hash the hashes of their parts.
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from numpy import typing as npt
from numpy.typing import NDArray

from caudal.errors import DataError, UsageError
from caudal.kernels.hashing.xxh64 import NULL, hash_numbers, hash_spans, hash_words
from caudal.kernels.spans import Spans, as_offsets, indices_of, require_sound, spans_of, values_of

BOOLEAN, NUMBER, FLOAT, STRING, BINARY, DATE, TIME, TIMESTAMP, INTERVAL, LIST, STRUCT = range(1, 12)

MILLISECONDS_PER_DAY = 86_400_000
MICROSECONDS_PER_DAY = 86_400_000_000

Hashes = NDArray[np.uint64]
Valid = NDArray[np.bool_]


def hash_column(column: pa.Array | pa.ChunkedArray) -> Hashes:
    if not isinstance(column, pa.ChunkedArray):
        return _hash_array(column)
    parts = [_hash_array(chunk) for chunk in column.chunks]
    return np.concatenate(parts) if parts else np.empty(0, np.uint64)


def _hash_array(array: pa.Array) -> Hashes:
    """Return the hash of each value, by the first rule for the type of the array.

    It is called for a column and for every column inside it, and checks their buffers.
    """
    require_sound(array)
    for includes, hash_values in _RULES:
        if includes(array.type):
            return hash_values(array)
    raise UsageError(f"values of type {array.type} cannot be hashed: cast the key to another type")


def _hash_nulls(array: pa.Array) -> Hashes:
    return hash_words(np.zeros(len(array), np.uint64), np.zeros(len(array), np.bool_), NULL)


def _hash_booleans(array: pa.Array) -> Hashes:
    values = array.fill_null(False).to_numpy(zero_copy_only=False)
    return hash_words(values.astype(np.uint64), _valid(array), BOOLEAN)


def _hash_integers(array: pa.Array) -> Hashes:
    values = _fixed_width(array, array.type.to_pandas_dtype())
    low = values.astype(np.int64 if values.dtype.kind == "i" else np.uint64).view(np.uint64)
    high = np.where(values < 0, np.uint64(2**64 - 1), np.uint64(0))
    return hash_numbers(low, high, _valid(array), 0, NUMBER)


def _hash_decimals(array: pa.Array) -> Hashes:
    if array.type.scale < 0:
        raise UsageError(f"values of type {array.type} cannot be hashed: cast them to scale 0")
    if not pa.types.is_decimal128(array.type):
        array = array.cast(pa.decimal128(array.type.precision, array.type.scale))
    words = _fixed_width(array, np.dtype("2u8"))
    low, high = np.ascontiguousarray(words.T)
    return hash_numbers(low, high, _valid(array), array.type.scale, NUMBER)


def _hash_floats(array: pa.Array) -> Hashes:
    with np.errstate(invalid="ignore"):
        # Adding zero turns -0.0 into 0.0.
        values = _fixed_width(array, array.type.to_pandas_dtype()).astype(np.float64) + 0.0
    values[np.isnan(values)] = np.nan
    return hash_words(values.view(np.uint64), _valid(array), FLOAT)


def _hash_texts(array: pa.Array) -> Hashes:
    return _hash_variable_width(array, STRING)


def _hash_binaries(array: pa.Array) -> Hashes:
    return _hash_variable_width(array, BINARY)


def _hash_fixed_size_binaries(array: pa.Array) -> Hashes:
    width = array.type.byte_width
    values = values_of(array.buffers()[1], np.uint8, array.offset * width, len(array) * width)
    places = np.arange(len(array) + 1) * width
    return hash_spans(Spans(places, values).addresses, _valid(array), BINARY)


def _hash_dates(array: pa.Array) -> Hashes:
    if pa.types.is_date64(array.type):
        days = _fixed_width(array, np.int64) // MILLISECONDS_PER_DAY
    else:
        days = _fixed_width(array, np.int32).astype(np.int64)
    return hash_words(days.view(np.uint64), _valid(array), DATE)


def _hash_times(array: pa.Array) -> Hashes:
    return hash_words(_microseconds(array).view(np.uint64), _valid(array), TIME)


def _hash_timestamps(array: pa.Array) -> Hashes:
    return hash_words(_microseconds(array).view(np.uint64), _valid(array), TIMESTAMP)


def _hash_durations(array: pa.Array) -> Hashes:
    return hash_words(_microseconds(array).view(np.uint64), _valid(array), INTERVAL)


def _hash_intervals(array: pa.Array) -> Hashes:
    """Hash intervals. A month has 30 days and a day 24 hours, as in SQL comparisons."""
    parts = _fixed_width(array, np.dtype([("months", "i4"), ("days", "i4"), ("nanos", "i8")]))
    days = parts["months"].astype(np.int64) * 30 + parts["days"]
    total = days * MICROSECONDS_PER_DAY + parts["nanos"] // 1000
    return hash_words(total.view(np.uint64), _valid(array), INTERVAL)


def _hash_lists(array: pa.Array) -> Hashes:
    offsets = array.offsets.to_numpy().astype(np.int64)
    if offsets[0] < 0 or offsets[-1] > len(array.values) or np.any(offsets[1:] < offsets[:-1]):
        raise DataError("a column is damaged: its lists lie outside of its values")
    return _hash_elements(array.values, offsets, _valid(array))


def _hash_fixed_size_lists(array: pa.Array) -> Hashes:
    places = np.arange(array.offset, array.offset + len(array) + 1) * array.type.list_size
    if places[-1] > len(array.values):
        raise DataError("a column is damaged: its lists lie outside of its values")
    return _hash_elements(array.values, places, _valid(array))


def _hash_elements(elements: pa.Array, offsets: NDArray[np.int64], valid: Valid) -> Hashes:
    hashes = _hash_array(elements[offsets[0] : offsets[-1]])
    addresses = hashes.ctypes.data + 8 * (offsets - offsets[0])
    return hash_spans(addresses, valid, LIST)


def _hash_structs(array: pa.Array) -> Hashes:
    fields = [_hash_array(array.field(i)) for i in range(array.type.num_fields)]
    return hash_structs_of(fields, _valid(array))


def hash_structs_of(fields: Sequence[Hashes], valid: Valid) -> Hashes:
    """Hash structs whose fields are hashed already."""
    rows = np.empty((len(valid), len(fields)), np.uint64)
    for i, hashes in enumerate(fields):
        rows[:, i] = hashes
    addresses = rows.ctypes.data + 8 * len(fields) * np.arange(len(valid) + 1)
    return hash_spans(addresses, valid, STRUCT)


def _hash_dictionaries(array: pa.Array) -> Hashes:
    """Hash each distinct value once; an absent one hashes as NULL."""
    values = np.append(_hash_array(array.dictionary), _hash_nulls(pa.nulls(1)))
    return values[indices_of(array)]


def _hash_uuids(array: pa.Array) -> Hashes:
    return _hash_fixed_size_binaries(array.storage)


def _valid(array: pa.Array) -> Valid:
    valid: Valid = array.is_valid().to_numpy(zero_copy_only=False)
    return valid


def _fixed_width(array: pa.Array, kind: npt.DTypeLike) -> NDArray[Any]:
    """Return the values as they lie in memory, those of NULLs included."""
    if len(array) == 0:
        return np.empty(0, kind)
    return values_of(array.buffers()[1], kind, array.offset, len(array))


def _microseconds(array: pa.Array) -> NDArray[np.int64]:
    """Return microseconds, rounded down, modulo 2**64, of times, timestamps and durations."""
    width = np.int32 if pa.types.is_time32(array.type) else np.int64
    values = _fixed_width(array, width).astype(np.int64)
    if array.type.unit == "ns":
        return values // 1000
    return values * {"s": 1_000_000, "ms": 1000, "us": 1}[array.type.unit]


def _hash_variable_width(array: pa.Array, kind: int) -> Hashes:
    if pa.types.is_string_view(array.type) or pa.types.is_binary_view(array.type):
        array = as_offsets(array)
    spans = spans_of(array)
    return hash_spans(spans.addresses, _valid(array), kind)


def _is_text(kind: pa.DataType) -> bool:
    types = pa.types
    return bool(types.is_string(kind) or types.is_large_string(kind) or types.is_string_view(kind))


def _is_binary(kind: pa.DataType) -> bool:
    types = pa.types
    return bool(types.is_binary(kind) or types.is_large_binary(kind) or types.is_binary_view(kind))


def _is_decimal(kind: pa.DataType) -> bool:
    return bool(pa.types.is_decimal(kind) and not pa.types.is_decimal256(kind))


def _is_list(kind: pa.DataType) -> bool:
    return bool(pa.types.is_list(kind) or pa.types.is_large_list(kind))


def _is_uuid(kind: pa.DataType) -> bool:
    return isinstance(kind, pa.UuidType)


_RULES: list[tuple[Callable[[pa.DataType], bool], Callable[[pa.Array], Hashes]]] = [
    (pa.types.is_integer, _hash_integers),
    (_is_text, _hash_texts),
    (_is_decimal, _hash_decimals),
    (pa.types.is_floating, _hash_floats),
    (pa.types.is_date, _hash_dates),
    (pa.types.is_timestamp, _hash_timestamps),
    (pa.types.is_time, _hash_times),
    (pa.types.is_boolean, _hash_booleans),
    (pa.types.is_null, _hash_nulls),
    (pa.types.is_duration, _hash_durations),
    (pa.types.is_interval, _hash_intervals),
    (pa.types.is_dictionary, _hash_dictionaries),
    (_is_binary, _hash_binaries),
    (pa.types.is_fixed_size_binary, _hash_fixed_size_binaries),
    (_is_list, _hash_lists),
    (pa.types.is_fixed_size_list, _hash_fixed_size_lists),
    (pa.types.is_struct, _hash_structs),
    (_is_uuid, _hash_uuids),
]
