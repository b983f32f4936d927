"""Finding a token's entry: two words, one multiplication each, a filter, then a hash table.

See `tables` for the layout.
"""

from typing import Any

import numpy as np

from caudal.kernels.bytescan import load_word
from caudal.kernels.compiled import compiled, inlined
from caudal.kernels.sentiment import tables
from caudal.kernels.sentiment.lanes import ALL_LANES, lower_lanes


@inlined
def find_word(text: Any, start: int, stop: int, t: Any) -> int:
    """`find_entry` for a token of ASCII letters only, which one bit turns into small letters."""
    length = stop - start
    small = np.uint64(tables.SMALL_LETTERS)
    first = (load_word(text, start) | small) & first_bytes(length)
    last = load_word(text, stop - 8) | small if length > 8 else np.uint64(0)
    return int(find_key(text, start, length, first, last, t))


@inlined
def find_entry(text: Any, start: int, stop: int, t: Any) -> int:
    """Return the number of the entry that text[start:stop] is when lower-cased, or -1."""
    length = stop - start
    first = lower_lanes(load_word(text, start)) & first_bytes(length)
    last = lower_lanes(load_word(text, stop - 8)) if length > 8 else np.uint64(0)
    return int(find_key(text, start, length, first, last, t))


@inlined
def find_key(text: Any, start: int, length: int, first: int, last: int, t: Any) -> int:
    mixed = first * np.uint64(tables.HASH_FIRST) + last * np.uint64(tables.HASH_LAST)
    if has_bit(t.filter, mixed >> np.uint64(tables.FILTER_SHIFT)):
        return int(probe(text, start, length, first, last, t))
    return -1


@compiled
def probe(text: Any, start: int, length: int, first: int, last: int, t: Any) -> int:
    if length > tables.MAX_TOKEN:
        return -1
    middle = np.uint64(0)
    if length > 16:
        middle = lower_lanes(load_word(text, start + 8))
    mixed = first * np.uint64(tables.HASH_FIRST) + last * np.uint64(tables.HASH_LAST)
    slot = np.int64(mixed >> np.uint64(tables.SLOT_SHIFT))
    while t.slots[slot] >= 0:
        entry = t.slots[slot]
        if (
            t.first[entry] == first
            and t.last[entry] == last
            and t.middle[entry] == middle
            and t.length[entry] == length
        ):
            return int(entry)
        slot = (slot + 1) & (len(t.slots) - 1)
    return -1


@inlined
def first_bytes(length: int) -> Any:
    """Return a mask for the first `length` bytes of a word, at least one and at most all eight."""
    return ALL_LANES >> np.uint64(64 - 8 * min(length, 8))


@inlined
def has_bit(words: Any, bit: int) -> bool:
    """Return whether a bit is set in an array of 64-bit words."""
    return bool((words[bit >> np.uint64(6)] >> (bit & np.uint64(63))) & np.uint64(1))
