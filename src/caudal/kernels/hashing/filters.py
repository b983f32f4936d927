"""Tests whether keys may be in a set, in a few nanoseconds each.

The set is a table of bits, one for each hash of a key. A key of the set always finds its bit.
Another key finds a bit with a probability below 1 in 50.
"""

from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from caudal.kernels.compiled import entry, uint64
from caudal.kernels.declaring import WORD, Array, filled
from caudal.kernels.hashing.values import hash_column
from caudal.kernels.spans import require_sound, values_of

_BITS_PER_KEY = 64
_LEAST_BITS = 1 << 16
_SPREAD = 0x9E3779B97F4A7C15  # neighbouring integers to distant bits (Fibonacci hashing)


class KeyFilter:
    """A set of keys, given as words. It answers "maybe" or "certainly not"."""

    def __init__(self, words: NDArray[np.uint64]) -> None:
        power = max(len(words) * _BITS_PER_KEY, _LEAST_BITS).bit_length()
        self._shift = np.uint64(64 - power)
        self._bits = np.zeros(1 << (power - 3), dtype=np.uint8)
        _enter(words, self._bits, self._shift)

    def may_hold(self, words: NDArray[np.uint64]) -> NDArray[np.bool_]:
        """Return False for each key that is certainly not among them."""
        found = np.empty(len(words), dtype=np.bool_)
        _look_up(words, self._bits, self._shift, found)
        return found


def key_words(keys: pa.ChunkedArray) -> NDArray[np.uint64]:
    """Return each key as a word: equal for equal keys of one type; undefined for null."""
    if not pa.types.is_int64(keys.type):
        return hash_column(keys)
    array = whole(keys)
    require_sound(array)
    if not len(array):
        return np.empty(0, dtype=np.uint64)
    return values_of(array.buffers()[1], np.uint64, array.offset, len(array))


def whole(column: pa.ChunkedArray) -> pa.Array:
    """Return a column as one array; `combine_chunks` would copy a single chunk, too."""
    return column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()


@entry(Array("u8"), filled("u1"), WORD)
def _enter(words: Any, bits: Any, shift: int) -> None:
    for word in words:
        place = (word * uint64(_SPREAD)) >> shift
        bits[place >> uint64(3)] |= uint64(1) << (place & uint64(7))


@entry(Array("u8"), Array("u1"), WORD, filled("?"))
def _look_up(words: Any, bits: Any, shift: int, found: Any) -> None:
    for i in range(len(words)):
        place = (words[i] * uint64(_SPREAD)) >> shift
        found[i] = (bits[place >> uint64(3)] >> (place & uint64(7))) & uint64(1)
