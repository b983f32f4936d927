"""The fast reader of Python literals. It answers UNSURE for texts that it does not know.

It reads the texts of `grammar`; `exact` decides about all others. So it never rejects a text, and
need not know all of Python. It reports strings as spans of the text, so only wanted strings are
copied.
"""

import numpy as np
from numpy.typing import NDArray

from caudal.kernels.compiled import compiled
from caudal.kernels.literals import grammar
from caudal.kernels.literals.escapes import BACKSLASH, UNSURE, escape_length
from caudal.kernels.memory import byte_at, lowest_bit, quad_at, word_at

ITEMS = 0  # the strings of the list
NAMES = 1  # the `name` strings of the dicts of the list

MAX_DIGITS = 64  # Python refuses integers of thousands of digits; these are far below

_KINDS = grammar.KINDS
_NEXT_STATES = grammar.NEXT_STATES

# One byte eight times, for tests on eight bytes at once.
_EACH = np.uint64(0x0101010101010101)
_HIGH_BITS = np.uint64(0x8080808080808080)
_BACKSLASHES = np.uint64(0x5C5C5C5C5C5C5C5C)
_BLANKS = np.uint64(0x2020202020202020)

_NAME, _NONE, _TRUE, _FALS = (
    int.from_bytes(word, "little") for word in (b"name", b"None", b"True", b"Fals")
)


@compiled
def find_spans(start: int, end: int, wanted: int, spans: NDArray[np.int64]) -> int:
    """Put the (start, stop) of each wanted string body into `spans`; their number, or UNSURE.

    `nesting` has one bit per open container, 1 for a dict, the innermost lowest. A `name` is
    written to `spans` when it is read but counted only when its dict closes, so the last of
    several wins, as in Python.
    """
    at, end = _trimmed(start, end)
    if at == end or byte_at(at) != 0x5B:
        return UNSURE
    state, depth, nesting = grammar.LIST_OPENED, 1, 0
    found, is_name, has_name = 0, False, False
    at += 1
    while at < end:
        kind = _KINDS[byte_at(at)]
        if kind == grammar.BLANK:
            at += 1
            continue
        state = _NEXT_STATES[state, kind]
        stop, escaped = _end_of_token(at, end, kind)
        if state == grammar.REFUSED or stop == UNSURE:
            return UNSURE
        if wanted == ITEMS:
            if depth == 1 and kind == grammar.STRING:
                spans[found, 0], spans[found, 1] = at + 1, stop - 1
                found += 1
        elif depth == 2:
            if state == grammar.DICT_KEY:
                if escaped:
                    return UNSURE
                is_name = stop - at == 6 and _spells(at + 1, stop, _NAME)
            elif state == grammar.DICT_VALUE and is_name:
                has_name = kind == grammar.STRING
                if has_name:
                    spans[found, 0], spans[found, 1] = at + 1, stop - 1
            elif kind == grammar.CLOSE_DICT and has_name:
                found += 1
                has_name = False
        at = stop
        if kind == grammar.OPEN_LIST or kind == grammar.OPEN_DICT:
            depth += 1
            nesting = nesting << 1 | (kind == grammar.OPEN_DICT)
            state = grammar.DICT_OPENED if nesting & 1 else grammar.LIST_OPENED
            if depth > grammar.MAX_DEPTH:
                return UNSURE
        elif kind == grammar.CLOSE_LIST or kind == grammar.CLOSE_DICT:
            depth -= 1
            nesting >>= 1
            state = grammar.DICT_VALUE if nesting & 1 else grammar.LIST_VALUE
            if depth == 0:
                return found if at == end else UNSURE
    return UNSURE


@compiled
def _trimmed(start: int, end: int) -> tuple[int, int]:
    """Return the text without spaces and tabs around it; newlines stay, since they may matter."""
    while start < end and (byte_at(start) == 0x20 or byte_at(start) == 0x09):
        start += 1
    while start < end and (byte_at(end - 1) == 0x20 or byte_at(end - 1) == 0x09):
        end -= 1
    return start, end


@compiled
def _end_of_token(at: int, end: int, kind: int) -> tuple[int, bool]:
    """Return the position after the token at `at` (or UNSURE), and whether it has escapes."""
    if kind == grammar.STRING:
        return _after_string(at, end)
    if kind == grammar.SCALAR:
        return _after_scalar(at, end), False
    return at + 1, False


@compiled
def _after_string(at: int, end: int) -> tuple[int, bool]:
    quote = byte_at(at)
    escaped = False
    at = _next_stop(at + 1, end, quote)
    while at < end and byte_at(at) != quote:
        length = escape_length(at, end) if byte_at(at) == BACKSLASH else UNSURE
        if length == UNSURE:
            return UNSURE, True
        escaped = True
        at = _next_stop(at + length, end, quote)
    return at + 1 if at < end else UNSURE, escaped


@compiled
def _next_stop(at: int, end: int, quote: int) -> int:
    """Return the first backslash, control character or such quote; `end` if there is none.

    Eight bytes at a time: the high bit of a byte is set in `stops` where the byte is wanted. A
    borrow can set others, but only above one that is rightly set, and the lowest is taken.
    """
    quotes = _EACH * np.uint64(quote)
    while at + 8 <= end:
        word = word_at(at)
        stops = (word ^ quotes) - _EACH & ~(word ^ quotes)
        stops |= (word ^ _BACKSLASHES) - _EACH & ~(word ^ _BACKSLASHES)
        stops |= word - _BLANKS & ~word
        if stops & _HIGH_BITS:
            at += lowest_bit(stops & _HIGH_BITS) >> 3
            return at
        at += 8
    while at < end and byte_at(at) != quote and byte_at(at) != BACKSLASH and byte_at(at) >= 0x20:
        at += 1
    return at


@compiled
def _after_scalar(at: int, end: int) -> int:
    if byte_at(at) == 0x2D or byte_at(at) <= 0x39:
        return _after_number(at, end)
    if _spells(at, end, _NONE) or _spells(at, end, _TRUE):
        return at + 4
    if _spells(at, end - 1, _FALS) and byte_at(at + 4) == 0x65:
        return at + 5
    return UNSURE


@compiled
def _after_number(at: int, end: int) -> int:
    start = at + 1 if byte_at(at) == 0x2D else at
    i = _after_digits(start, end)
    if i == start or i - start > MAX_DIGITS or (byte_at(start) == 0x30 and i - start > 1):
        return UNSURE
    if i < end and byte_at(i) == 0x2E:  # the fraction may be empty
        i = _after_digits(i + 1, end)
    if i < end and byte_at(i) | 0x20 == 0x65:  # e, E
        i += 1
        if i < end and (byte_at(i) == 0x2B or byte_at(i) == 0x2D):
            i += 1
        exponent = i
        i = _after_digits(i, end)
        if i == exponent:
            return UNSURE
    return i


@compiled
def _after_digits(at: int, end: int) -> int:
    while at < end and 0x30 <= byte_at(at) <= 0x39:
        at += 1
    return at


@compiled
def _spells(at: int, end: int, word: int) -> bool:
    """Return whether the four bytes of `word` stand at `at`."""
    return at + 4 <= end and quad_at(at) == word
