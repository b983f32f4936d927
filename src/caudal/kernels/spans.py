"""Finds the texts of an Arrow column and checks their bounds, for every kernel that reads texts.

Compiled code checks no bounds. The offsets of an Arrow array may be forged, and would then read any
memory of the process. So kernels never read offsets or views from a buffer themselves. They use
this module, which compares each place with the size of its buffer. This takes about a hundredth of
the time that any kernel needs for the same rows.
"""

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from numpy.typing import NDArray

from caudal.errors import DataError
from caudal.formats.arrays import INLINE_BYTES, check_sizes
from caudal.kernels.compiled import entry
from caudal.kernels.declaring import FLAG, Array


class Spans(NamedTuple):
    """Row i is data[offsets[i]:offsets[i + 1]]; offsets ascend and stay within the data."""

    offsets: NDArray[np.int64]
    data: NDArray[np.uint8]

    def text(self, row: int) -> str:
        """One row as text; bytes that are not UTF-8 become U+FFFD."""
        part = self.data[self.offsets[row] : self.offsets[row + 1]]
        return part.tobytes().decode("utf-8", "replace")

    @property
    def addresses(self) -> NDArray[np.int64]:
        """Return the addresses of the rows, for kernels that use them while `data` lives."""
        return self.offsets + self.data.ctypes.data


def require_sound(array: pa.Array) -> None:
    """Raise DataError if a buffer is shorter than the array's length says. Values are not read."""
    try:
        check_sizes(array)
    except pa.ArrowInvalid as error:
        raise DataError(f"a column is damaged: {error}") from error


def spans_of(array: pa.Array) -> Spans:
    """Return the spans of a column of string, large_string, binary or large_binary."""
    require_sound(array)
    if len(array) == 0:
        return Spans(np.zeros(1, np.int64), np.empty(0, np.uint8))
    kind, types = array.type, pa.types
    large = types.is_large_string(kind) or types.is_large_binary(kind)
    if not (large or types.is_string(kind) or types.is_binary(kind)):
        raise TypeError(f"a column of {kind} has no offsets")
    _, offsets, data = array.buffers()
    places = values_of(offsets, np.int64 if large else np.int32, array.offset, len(array) + 1)
    held = np.frombuffer(data if data is not None else b"", np.uint8)
    if places[0] < 0 or places[-1] > len(held) or np.any(places[1:] < places[:-1]):
        raise DataError("a column is damaged: its texts lie outside of its data")
    return Spans(places.astype(np.int64), held)


def indices_of(array: pa.DictionaryArray) -> NDArray[np.int64]:
    """Return which value of its dictionary each row names; the number of values stands for null."""
    require_sound(array)
    count = len(array.dictionary)
    places: NDArray[np.int64] = array.indices.cast(pa.int64()).fill_null(count).to_numpy()
    if len(places) and not 0 <= places.min() <= places.max() <= count:
        raise DataError("a column is damaged: it names values that its dictionary lacks")
    return places


def values_of(
    buffer: pa.Buffer | None, kind: npt.DTypeLike, offset: int, count: int
) -> NDArray[Any]:
    """Return values of a buffer of fixed width; raise DataError if it is too short."""
    width = np.dtype(kind).itemsize
    if buffer is None or buffer.size < (offset + count) * width:
        raise DataError("a column is damaged: one of its buffers is too short")
    return np.frombuffer(buffer, kind, count, offset * width)


def as_offsets(array: pa.Array) -> pa.Array:
    """Return a column of views as one with 64-bit offsets, after a check of the views."""
    require_sound(array)
    if len(array):
        _, views, *buffers = array.buffers()
        sizes = np.array([0 if one is None else one.size for one in buffers], np.int64)
        words = values_of(views, "<u4", 4 * array.offset, 4 * len(array)).reshape(-1, 4)
        if not _views_fit(words, sizes):
            raise DataError("a column is damaged: its texts lie outside of its data")
    text = pa.types.is_string_view(array.type)
    return array.cast(pa.large_string() if text else pa.large_binary())


@entry(Array("u4", 2), Array("i8"), gives=FLAG)
def _views_fit(views: Any, sizes: Any) -> bool:
    """Return whether views fit, as `formats.arrays.check_views` does, but faster."""
    for row in range(len(views)):
        length = np.int64(views[row, 0])
        if length > INLINE_BYTES:
            number = np.int64(views[row, 2])
            if number >= len(sizes) or np.int64(views[row, 3]) + length > sizes[number]:
                return False
    return True
