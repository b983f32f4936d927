"""Which tokens keep their last period: listed ones, and those like T., U.S. and Mr."""

from typing import Any

import numpy as np

from caudal.kernels.bytescan import load_word
from caudal.kernels.compiled import inlined
from caudal.kernels.sentiment import tables
from caudal.kernels.sentiment.lookup import first_bytes, has_bit

_PERIOD = ord(".")


@inlined
def may_be_listed(text: Any, start: int, stop: int, t: Any) -> bool:
    """Return whether the letters text[start:stop] and a period may be a listed abbreviation."""
    if stop - start >= tables.MAX_ABBREVIATION:
        return False
    key = load_word(text, start) & first_bytes(stop - start)
    bit = key * np.uint64(tables.HASH_FIRST) >> np.uint64(tables.ABBREVIATION_SHIFT)
    return bool(has_bit(t.abbreviation_filter, bit))


@inlined
def is_abbreviation(text: Any, start: int, stop: int, consonants: int, dotted: int, t: Any) -> bool:
    """Return whether text[start:stop], which ends with a period, is listed or like T., U.S. or Mr.

    `consonants` and `dotted` are the ends that the functions below give, of this token or of a
    longer one that began there: looking them up again for each period would take quadratic time.
    """
    size = stop - start
    if size <= tables.MAX_ABBREVIATION:
        key = load_word(text, start) & first_bytes(size)
        for index in range(tables.ABBREVIATION_COUNT):
            if t.abbreviations[index] == key:
                return True
    if size > 2 and stop - 1 <= consonants:
        return True
    return size & 1 == 0 and stop <= dotted


@inlined
def consonants_end(text: Any, start: int, stop: int, t: Any) -> int:
    """Return how far a capital and consonants behind it reach; `start` without a capital."""
    if not ord("A") <= text[start] <= ord("Z"):
        return start
    position = start + 1
    while position < stop and t.kind[text[position]] & tables.CONSONANT:
        position += 1
    return position


@inlined
def dotted_end(text: Any, start: int, stop: int) -> int:
    """Return how far letters and periods alternate, from a letter to a period."""
    position = start
    while position + 1 < stop and is_letter(text[position]) and text[position + 1] == _PERIOD:
        position += 2
    return position


@inlined
def is_letter(byte: int) -> bool:
    return ord("a") <= (byte | 0x20) <= ord("z")
