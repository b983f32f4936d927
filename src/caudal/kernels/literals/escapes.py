"""Backslash escapes of Python string literals, byte by byte.

An escape is first measured, which also validates it, and only then decoded: a string that nobody
asked for is validated all the same, because one bad escape makes the whole text no literal.
"""

import numpy as np
from numpy.typing import NDArray

from caudal.kernels.compiled import compiled
from caudal.kernels.memory import byte_at, put_byte

BACKSLASH = 0x5C
UNSURE = -1
REPLACEMENT = 0xFFFD


def _one_byte_escapes() -> NDArray[np.uint8]:
    """Return the byte that each `\\c` stands for; 0 where `\\c` is not such an escape."""
    meaning = np.zeros(256, np.uint8)
    for letter, value in zip(b"\\'\"abfnrtv", b"\\'\"\a\b\f\n\r\t\v", strict=True):
        meaning[letter] = value
    return meaning


def _hex_digits() -> NDArray[np.int8]:
    """Return the value of each hexadecimal digit; -1 for every other byte."""
    values = np.full(256, -1, np.int8)
    for digit in b"0123456789abcdefABCDEF":
        values[digit] = int(chr(digit), 16)
    return values


_ONE_BYTE = _one_byte_escapes()
_HEX = _hex_digits()


@compiled
def escape_length(at: int, end: int) -> int:
    """Return how many bytes the escape takes whose backslash is at `at`, or UNSURE.

    A backslash before a letter that means nothing stands for itself and is one byte long, as in
    Python. `\\N{...}`, a line continuation and anything malformed are UNSURE.
    """
    if at + 1 >= end:
        return UNSURE
    letter = byte_at(at + 1)
    if _ONE_BYTE[letter] != 0:
        return 2
    if 0x30 <= letter <= 0x37:
        return _octal_length(at, end)
    if letter == 0x78:  # x
        return _hex_length(at, end, 2)
    if letter == 0x75:  # u
        return _hex_length(at, end, 4)
    if letter == 0x4E or letter == 0x55 or letter < 0x20:  # N, U, newline and its kin
        return UNSURE
    return 1


@compiled
def _octal_length(at: int, end: int) -> int:
    length = 2
    while length < 4 and at + length < end and 0x30 <= byte_at(at + length) <= 0x37:
        length += 1
    return length


@compiled
def _hex_length(at: int, end: int, digits: int) -> int:
    if at + 2 + digits > end:
        return UNSURE
    for i in range(at + 2, at + 2 + digits):
        if _HEX[byte_at(i)] < 0:
            return UNSURE
    return 2 + digits


@compiled
def _escape_code(at: int, length: int) -> int:
    """Return the code point of a measured escape; a lone surrogate becomes U+FFFD."""
    if length == 1:
        return BACKSLASH
    letter = byte_at(at + 1)
    if _ONE_BYTE[letter] != 0:
        return int(_ONE_BYTE[letter])
    base, first = (16, at + 2) if letter >= 0x40 else (8, at + 1)
    code = 0
    for i in range(first, at + length):
        code = code * base + _HEX[byte_at(i)]
    return REPLACEMENT if 0xD800 <= code <= 0xDFFF else code


@compiled
def _write_utf8(code: int, to: int) -> int:
    """Write a code point below U+10000 to an address; returns the address after it."""
    if code < 0x80:
        put_byte(to, code)
        return to + 1
    if code < 0x800:
        put_byte(to, 0xC0 | code >> 6)
        put_byte(to + 1, 0x80 | code & 0x3F)
        return to + 2
    put_byte(to, 0xE0 | code >> 12)
    put_byte(to + 1, 0x80 | code >> 6 & 0x3F)
    put_byte(to + 2, 0x80 | code & 0x3F)
    return to + 3


@compiled
def write_decoded(start: int, stop: int, to: int) -> int:
    """Copy a validated string body to an address, escapes decoded; returns the address after it.

    The copy is never longer than the body.
    """
    at = start
    while at < stop:
        if byte_at(at) != BACKSLASH:
            put_byte(to, byte_at(at))
            at += 1
            to += 1
        else:
            length = escape_length(at, stop)
            to = _write_utf8(_escape_code(at, length), to)
            at += length
    return to
