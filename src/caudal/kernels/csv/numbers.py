"""Numbers from the bytes of fields: the common forms exactly, everything else declined.

An integer is up to 18 digits, a decimal up to 18 digits with at most one point, each with an
optional minus sign and nothing around it. An empty field is null. Whatever looks otherwise (a plus
sign, spaces, an exponent, too many digits, quotes) is *odd*: the caller converts its text.
"""

from typing import Any

import numpy as np
import pyarrow as pa
from numba import int64
from numpy.typing import NDArray

from caudal.kernels.compiled import entry

_MOST_DIGITS = 18
_MINUS, _POINT, _ZERO = np.uint8(45), np.uint8(46), np.uint8(48)


def read_integers(
    buffer: NDArray[np.uint8], fields: NDArray[np.int32], slot: int
) -> tuple[pa.Array, NDArray[np.bool_]]:
    """A column of int64, and which rows are odd (null in the column)."""
    values, valid, odd = _numbers(buffer, fields, slot, 0, _MOST_DIGITS)
    return pa.Array.from_buffers(pa.int64(), len(values), [_bits(valid), pa.py_buffer(values)]), odd


def read_decimals(
    buffer: NDArray[np.uint8], fields: NDArray[np.int32], slot: int, precision: int, scale: int
) -> tuple[pa.Array, NDArray[np.bool_]]:
    """A column of decimal128, and which rows are odd (null in the column)."""
    values, valid, odd = _numbers(buffer, fields, slot, scale, precision - scale)
    wide = np.empty((len(values), 2), dtype=np.int64)
    _widen(values, wide)
    kind = pa.decimal128(precision, scale)
    return pa.Array.from_buffers(kind, len(values), [_bits(valid), pa.py_buffer(wide)]), odd


def _numbers(
    buffer: NDArray[np.uint8], fields: NDArray[np.int32], slot: int, scale: int, whole_digits: int
) -> tuple[NDArray[np.int64], NDArray[np.bool_], NDArray[np.bool_]]:
    rows = len(fields)
    values = np.empty(rows, dtype=np.int64)
    valid = np.empty(rows, dtype=np.bool_)
    odd = np.empty(rows, dtype=np.bool_)
    _parse(buffer, fields, slot, scale, whole_digits, values, valid, odd)
    return values, valid, odd


def _bits(valid: NDArray[np.bool_]) -> pa.Buffer | None:
    return None if valid.all() else pa.py_buffer(np.packbits(valid, bitorder="little"))


@entry
def _parse(
    buffer: Any,
    fields: Any,
    slot: int,
    scale: int,
    whole_digits: int,
    values: Any,
    valid: Any,
    odd: Any,
) -> None:
    """Digits to a number scaled by 10 to the power `scale`."""
    for row in range(len(fields)):
        i = int64(fields[row, slot, 0])
        end = int64(fields[row, slot, 1])
        values[row] = 0
        valid[row] = False
        odd[row] = end < 0
        if end < 0 or i == end:
            continue
        negative = buffer[i] == _MINUS
        if negative:
            i += 1
        start = i
        point = int64(-1)
        number = int64(0)
        sound = end - i <= _MOST_DIGITS + 1
        while i < end and sound:
            byte = buffer[i]
            digit = int64(byte) - int64(48)
            if digit >= 0 and digit <= 9:
                number = number * 10 + digit
            elif byte == _POINT and point < 0 and scale > 0:
                point = i
            else:
                sound = False
            i += 1
        digits = end - start - (1 if point >= 0 else 0)
        decimals = end - point - 1 if point >= 0 else int64(0)
        if not sound or digits == 0 or decimals > scale or digits - decimals > whole_digits:
            odd[row] = True
            continue
        for _ in range(scale - decimals):
            number *= 10
        values[row] = -number if negative else number
        valid[row] = True


@entry
def _widen(values: Any, wide: Any) -> None:
    """64 bits to 128: the sign fills the upper half."""
    for row in range(len(values)):
        wide[row, 0] = values[row]
        wide[row, 1] = values[row] >> 63
