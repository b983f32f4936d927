"""Columns of texts as views of the bytes of a file, so that long texts are not copied.

Arrow can neither filter such columns nor find their ends. A view is two words: the length and the
first four bytes are in the first one.
"""

import sys

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

_LENGTH_BITS = np.uint64(32)

assert sys.byteorder == "little", "the layout of views depends on it"


def chosen_views(column: pa.ChunkedArray, chosen: NDArray[np.bool_] | None) -> pa.Array:
    """Return the chosen texts, or all of them, as views of the same bytes."""
    views = column.cast(pa.string_view())
    array = views.chunk(0) if views.num_chunks == 1 else views.combine_chunks()
    return array if chosen is None else _chosen(array, chosen)


def outermost_texts(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return some of the texts that are not null, among them the first and the last by order."""
    found = [_outermost(chunk) for chunk in column.chunks if len(chunk) > chunk.null_count]
    return pa.chunked_array(found, pa.string())


def mean_bytes(column: pa.ChunkedArray) -> float:
    """Return how many bytes a text has on average."""
    total = sum(int(_lengths(chunk).sum(dtype=np.int64)) for chunk in column.chunks)
    return total / max(1, len(column))


def _lengths(array: pa.Array) -> NDArray[np.integer]:
    if pa.types.is_string_view(array.type):
        return _words(array)[:, 0].astype(np.uint32)  # the lower half
    ends = np.frombuffer(array.buffers()[1] or bytes(4), np.int32)
    return np.diff(ends[array.offset : array.offset + len(array) + 1])


def _outermost(array: pa.Array) -> pa.Array:
    """Return the texts that begin with the least or the greatest four bytes."""
    begins = (_words(array)[:, 0] >> _LENGTH_BITS).astype(np.uint32).byteswap()
    is_there = _present(array)
    given = begins if is_there is None else begins[is_there]
    ends = (begins == given.min()) | (begins == given.max())
    return _chosen(array, ends if is_there is None else ends & is_there).cast(pa.string())


def _chosen(array: pa.Array, chosen: NDArray[np.bool_]) -> pa.Array:
    is_there, kept = _present(array), _words(array)[chosen]
    bits = None
    if is_there is not None:
        bits = pa.py_buffer(np.packbits(is_there[chosen], bitorder="little"))
    buffers = [bits, pa.py_buffer(kept), *array.buffers()[2:]]
    return pa.Array.from_buffers(pa.string_view(), len(kept), buffers)


def _words(array: pa.Array) -> NDArray[np.uint64]:
    """Return the two words of each view."""
    words = np.frombuffer(array.buffers()[1] or b"", np.uint64).reshape(-1, 2)
    return words[array.offset : array.offset + len(array)]


def _present(array: pa.Array) -> NDArray[np.bool_] | None:
    """Return which texts are not null; None if all of them are there."""
    bits = array.buffers()[0]
    if bits is None or not array.null_count:
        return None
    flags = np.unpackbits(np.frombuffer(bits, np.uint8), bitorder="little")
    return flags[array.offset : array.offset + len(array)].astype(np.bool_)
