"""Convert the bytes of fields to numbers, exactly, if they have a common form.

An integer has up to 18 digits, a decimal up to 18 digits with at most one point. Both may have a
minus sign and nothing else. An empty field is null. Every other form (a plus sign, spaces, an
exponent, more digits, leading zeros as in `007`, quotes) is *odd*: the caller converts its text.

Up to eight bytes are read as one word, with the last byte of the field in the highest byte and
zeros before the first. Then three multiplications add all digits (a method by Lemire).
"""

from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from caudal.errors import DataError
from caudal.kernels.bytescan import load_word, lowest_bit, zero_lanes
from caudal.kernels.compiled import entry, inlined, int64, uint64
from caudal.kernels.declaring import BYTES, INT, Array, filled

_MOST_DIGITS = 18
_MINUS, _POINT, _ZERO = np.uint8(45), np.uint8(46), np.uint8(48)
_ZEROS = 0x3030303030303030  # eight characters 0
_POINTS = 0x1E1E1E1E1E1E1E1E  # eight points, after the exclusive or with _ZEROS
_TOPS = 0x8080808080808080
_BEYOND_NINE = 0x7676767676767676  # added to a byte above nine, this sets its top bit
_POWERS = np.array([10**power for power in range(_MOST_DIGITS + 1)], dtype=np.int64)


class NumberColumn(NamedTuple):
    """A column that is wanted as numbers: integers if `precision` is 0, else decimals."""

    column: str
    precision: int
    scale: int

    @property
    def type(self) -> pa.DataType:
        return pa.decimal64(self.precision, self.scale) if self.precision else pa.int64()


def read_numbers(
    buffer: NDArray[np.uint8], spans: NDArray[np.int32], wanted: NumberColumn
) -> tuple[pa.Array, NDArray[np.int64]]:
    """Return a column of numbers, and the odd rows, which are null in the column."""
    if not 0 <= wanted.scale <= (wanted.precision or _MOST_DIGITS) <= _MOST_DIGITS:
        raise DataError(f"column {wanted.column!r}: numbers of {_MOST_DIGITS} digits are the most")
    rows = len(spans)
    values = np.empty(rows, dtype=np.int64)
    valid = np.empty(rows, dtype=np.bool_)
    odd = np.empty(rows, dtype=np.int64)
    whole_digits = (wanted.precision or _MOST_DIGITS) - wanted.scale
    missing, declined = _parse(buffer, spans, wanted.scale, whole_digits, values, valid, odd)
    bits = pa.py_buffer(np.packbits(valid, bitorder="little")) if missing else None
    array = pa.Array.from_buffers(wanted.type, rows, [bits, pa.py_buffer(values)])
    return array, odd[:declined]


@entry(
    BYTES,
    Array("i4", 2),
    INT,
    INT,
    filled("i8"),
    filled("?"),
    filled("i8"),
    gives=(INT, INT),
)
def _parse(
    buffer: Any,
    spans: Any,
    scale: int,
    whole_digits: int,
    values: Any,
    valid: Any,
    odd: Any,
) -> tuple[int, int]:
    """Convert to numbers times 10 to the power `scale`. Return two counts: null or odd, and odd."""
    missing = int64(0)
    declined = int64(0)
    for row in range(len(spans)):
        begin = int64(spans[row, 0])
        end = int64(spans[row, 1])
        if begin < end and end - begin <= 8 and end >= 8:
            sound, number = _short(buffer, begin, end, scale, whole_digits)
        else:
            sound, number = False, int64(0)
        if not sound and begin < end:
            sound, number = _long(buffer, begin, end, scale, whole_digits)
        values[row] = number
        valid[row] = sound
        if not sound:
            missing += 1
            if begin != end:
                odd[declined] = row
                declined += 1
    return missing, declined


@inlined
def _short(buffer: Any, begin: int, end: int, scale: int, whole_digits: int) -> Any:
    """Return whether up to eight bytes are a number, perhaps with a point, and its value."""
    digits = end - begin
    decimals = int64(0)
    word = load_word(buffer, end - 8) ^ uint64(_ZEROS)
    word &= ~uint64(0) << uint64(64 - 8 * digits)
    if scale > 0:
        point = zero_lanes(word ^ uint64(_POINTS))
        if point:
            lane = uint64(lowest_bit(point) - 7)
            before = (uint64(1) << lane) - uint64(1)
            behind = ~(before | (uint64(0xFF) << lane))
            word = ((word & before) << uint64(8)) | (word & behind)
            decimals = int64(7) - int64(lane >> uint64(3))
            digits -= 1
    if ((word + uint64(_BEYOND_NINE)) | word) & uint64(_TOPS):
        return False, int64(0)
    if digits == 0 or decimals > scale or digits - decimals > whole_digits:
        return False, int64(0)
    if digits - decimals > 1 and not (word >> uint64(64 - 8 * digits)) & uint64(0xFF):
        return False, int64(0)
    pairs = word * uint64(10) + (word >> uint64(8))
    low = uint64(0x000000FF000000FF)
    first = (pairs & low) * uint64(0x000F424000000064)
    second = ((pairs >> uint64(16)) & low) * uint64(0x0000271000000001)
    return True, int64((first + second) >> uint64(32)) * _POWERS[scale - decimals]


@inlined
def _long(buffer: Any, begin: int, end: int, scale: int, whole_digits: int) -> Any:
    """Return the same for a number with a sign or more digits, byte by byte."""
    negative = buffer[begin] == _MINUS
    start = begin + 1 if negative else begin
    if end - start > _MOST_DIGITS + 1:
        return False, int64(0)
    point = int64(-1)
    number = int64(0)
    for i in range(start, end):
        byte = buffer[i]
        digit = int64(byte) - int64(48)
        if digit >= 0 and digit <= 9:
            number = number * 10 + digit
        elif byte == _POINT and point < 0 and scale > 0:
            point = i
        else:
            return False, int64(0)
    digits = end - start - (1 if point >= 0 else 0)
    decimals = end - point - 1 if point >= 0 else int64(0)
    if digits == 0 or decimals > scale or digits - decimals > whole_digits:
        return False, int64(0)
    if digits - decimals > 1 and buffer[start] == _ZERO:
        return False, int64(0)
    number *= _POWERS[scale - decimals]
    return True, -number if negative else number
