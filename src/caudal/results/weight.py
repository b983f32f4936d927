"""Estimated memory of rows as Python values, and division of rows into parts that take little.

Arrow holds a list of a million booleans in 128 kB, and a repeated text once. In Python each value
is an object. So values are counted at every nesting depth, and texts as often as they occur.
"""

from collections.abc import Iterator

import numpy as np
import pyarrow as pa

from caudal.errors import UsageError

_VALUE_BYTES = 64  # of a small Python object and its slot in a list
_LIGHT_BYTES = 1 << 20
_ROWS = 16_384


def weight(array: pa.Array) -> int:
    """Return the approximate bytes of an array's values as Python objects."""
    kind, types = array.type, pa.types
    own = _VALUE_BYTES * len(array)
    if isinstance(kind, pa.BaseExtensionType):
        return weight(array.storage)
    if types.is_dictionary(kind):
        return own + _repeated(array)
    if types.is_struct(kind) or types.is_union(kind):  # flatten() aborts where a field is a union
        return own + sum(weight(array.field(place)) for place in range(kind.num_fields))
    if types.is_nested(kind):
        return own + _inner(array)
    lengths = _lengths(array)
    return own + (array.nbytes if lengths is None else _total(lengths))


def light_parts(
    table: pa.Table, most_row: int | None = None, light: int = _LIGHT_BYTES
) -> Iterator[pa.Table]:
    """Yield the rows, a few at a time; raise UsageError for a row larger than `most_row`."""
    for batch in table.to_batches(max_chunksize=_ROWS):
        for part in _light(batch, light, most_row):
            yield pa.Table.from_batches([part])


def _light(batch: pa.RecordBatch, light: int, most_row: int | None) -> Iterator[pa.RecordBatch]:
    weighs = sum(map(weight, batch.columns))
    if weighs <= light or batch.num_rows < 2:
        if most_row is not None and batch.num_rows == 1 and weighs > most_row:
            raise UsageError(
                f"one row takes more than {most_row >> 20} MiB: request an Arrow stream instead"
            )
        yield batch
        return
    half = batch.num_rows // 2
    for part in (batch.slice(0, half), batch.slice(half)):
        yield from _light(part, light, most_row)


def _inner(array: pa.Array) -> int:
    """Of the values in lists and maps."""
    kind, types = array.type, pa.types
    if types.is_fixed_size_list(kind):
        size = kind.list_size
        return weight(array.values.slice(array.offset * size, len(array) * size))
    if not (types.is_map(kind) or types.is_list(kind) or types.is_large_list(kind)):
        return weight(array.flatten())
    start, stop = array.offsets[0].as_py(), array.offsets[len(array)].as_py()
    parts = (array.keys, array.items) if types.is_map(kind) else (array.values,)
    return sum(weight(one.slice(start, stop - start)) for one in parts)


def _lengths(array: pa.Array) -> pa.Array | None:
    """Return the lengths of texts and blobs; None for other types."""
    import pyarrow.compute as pc

    kind, types = array.type, pa.types
    if types.is_string_view(kind) or types.is_binary_view(kind):
        words = np.frombuffer(array.buffers()[1], "<u4", 4 * len(array), 16 * array.offset)
        return pa.array(words[::4])
    is_text = types.is_string(kind) or types.is_large_string(kind)
    is_blob = types.is_binary(kind) or types.is_large_binary(kind)
    return pc.binary_length(array) if is_text or is_blob else None


def _repeated(array: pa.DictionaryArray) -> int:
    """Return the weight of dictionary values, counted as often as they occur."""
    lengths = _lengths(array.dictionary)
    if lengths is None:
        return int(array.dictionary.nbytes)
    return _total(lengths.cast(pa.int64()).take(array.indices))


def _total(lengths: pa.Array) -> int:
    import pyarrow.compute as pc

    return int(pc.sum(lengths.cast(pa.int64())).as_py() or 0)
