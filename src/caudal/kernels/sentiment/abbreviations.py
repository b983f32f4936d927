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
    """Whether the letters text[start:stop] and a period may be a listed abbreviation."""
    if stop - start >= tables.MAX_ABBREVIATION:
        return False
    key = load_word(text, start) & first_bytes(stop - start)
    bit = key * np.uint64(tables.HASH_FIRST) >> np.uint64(tables.ABBREVIATION_SHIFT)
    return bool(has_bit(t.abbreviation_filter, bit))


@inlined
def is_abbreviation(text: Any, start: int, stop: int, t: Any) -> bool:
    """Whether text[start:stop], which ends with a period, is listed or like T., U.S. or Mr."""
    size = stop - start
    if size <= tables.MAX_ABBREVIATION:
        key = load_word(text, start) & first_bytes(size)
        for index in range(tables.ABBREVIATION_COUNT):
            if t.abbreviations[index] == key:
                return True
    if is_capital_and_consonants(text, start, stop - 1, t):
        return True
    return bool(is_dotted(text, start, stop))


@inlined
def is_capital_and_consonants(text: Any, start: int, stop: int, t: Any) -> bool:
    if stop - start < 2 or not ord("A") <= text[start] <= ord("Z"):
        return False
    position = start + 1
    while position < stop and t.kind[text[position]] & tables.CONSONANT:
        position += 1
    return position == stop


@inlined
def is_dotted(text: Any, start: int, stop: int) -> bool:
    """Whether letters and periods alternate, from a letter to a period."""
    if (stop - start) & 1:
        return False
    for position in range(start, stop, 2):
        if not is_letter(text[position]) or text[position + 1] != _PERIOD:
            return False
    return True


@inlined
def is_letter(byte: int) -> bool:
    return ord("a") <= (byte | 0x20) <= ord("z")
