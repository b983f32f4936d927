"""Finds bytes in a buffer, eight or 64 at a time, for numba kernels.

Method: for a word `w` and a byte repeated in all eight lanes, `x = w ^ lanes` has a zero lane where
the byte is, and `(x - 0x0101…) & ~x & 0x8080…` sets the top bit of the lowest zero lane. Higher
bits may be wrong, the lowest is always right. Words are read unaligned, little-endian.
"""

from typing import Any

from caudal.kernels.compiled import (
    cgutils,
    entry,
    inlined,
    int64,
    intrinsic,
    ir,
    types,
    uint64,
)
from caudal.kernels.declaring import BYTE, BYTES, FLAG, INT, Array, filled

_ONES = 0x0101010101010101
_TOPS = 0x8080808080808080


@intrinsic
def load_word(_typing: Any, buffer: Any, index: Any) -> Any:
    """Return the eight bytes of a uint8 array from `index` on, as one little-endian uint64."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        array = cgutils.create_struct_proxy(signature.args[0])(context, builder, value=args[0])
        address = builder.gep(array.data, [args[1]])
        pointer = builder.bitcast(address, ir.IntType(64).as_pointer())
        return builder.load(pointer, align=1)

    return types.uint64(buffer, types.intp), codegen


@intrinsic
def lowest_bit(_typing: Any, word: Any) -> Any:
    """Return the number of zero bits below the lowest set bit of a nonzero word."""

    def codegen(_context: Any, builder: Any, _signature: Any, args: Any) -> Any:
        return builder.cttz(args[0], ir.Constant(ir.IntType(1), 1))

    return types.intp(types.uint64), codegen


@intrinsic
def equal_bits(_typing: Any, buffer: Any, index: Any, byte: Any) -> Any:
    """Return which of the 64 bytes from `index` on equal `byte`: bit k for byte index + k."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        array = cgutils.create_struct_proxy(signature.args[0])(context, builder, value=args[0])
        lanes = ir.VectorType(ir.IntType(8), 64)
        address = builder.gep(array.data, [args[1]])
        block = builder.load(builder.bitcast(address, lanes.as_pointer()), align=1)
        nothing = ir.Constant(lanes, ir.Undefined)
        first = builder.insert_element(nothing, args[2], ir.Constant(ir.IntType(32), 0))
        everywhere = ir.Constant(ir.VectorType(ir.IntType(32), 64), [0] * 64)
        wanted = builder.shuffle_vector(first, nothing, everywhere)
        equal = builder.icmp_unsigned("==", block, wanted)
        return builder.bitcast(equal, ir.IntType(64))

    return types.uint64(buffer, types.intp, types.uint8), codegen


@intrinsic
def set_bits(_typing: Any, word: Any) -> Any:
    """Return how many bits of a word are set."""

    def codegen(_context: Any, builder: Any, _signature: Any, args: Any) -> Any:
        return builder.ctpop(args[0])

    return types.intp(types.uint64), codegen


@inlined
def zero_lanes(word: int) -> int:
    lanes: int = (word - uint64(_ONES)) & ~word & uint64(_TOPS)
    return lanes


@entry(BYTES, INT, INT, BYTE, gives=INT)
def find_byte(buffer: Any, start: int, end: int, byte: int) -> int:
    """Return where `byte` first is in buffer[start:end], or `end`."""
    lanes = uint64(byte) * uint64(_ONES)
    i = start
    while i + 8 <= end:
        found = zero_lanes(load_word(buffer, i) ^ lanes)
        if found:
            place: int = i + (lowest_bit(found) >> 3)
            return place
        i += 8
    while i < end and buffer[i] != byte:
        i += 1
    return i


@entry(BYTES, BYTE, gives=FLAG)
def holds_byte(buffer: Any, byte: int) -> bool:
    """Return whether the buffer holds `byte`."""
    end = len(buffer)
    i = 0
    while i + 64 <= end:
        if equal_bits(buffer, i, byte):
            return True
        i += 64
    place: int = find_byte(buffer, i, end, byte)
    return place < end


@entry(BYTES, INT, INT, BYTE, BYTE, gives=INT)
def find_either(buffer: Any, start: int, end: int, one: int, other: int) -> int:
    """Return where `one` or `other` first is in buffer[start:end], or `end`."""
    one_lanes = uint64(one) * uint64(_ONES)
    other_lanes = uint64(other) * uint64(_ONES)
    i = start
    while i + 8 <= end:
        word = load_word(buffer, i)
        found = zero_lanes(word ^ one_lanes) | zero_lanes(word ^ other_lanes)
        if found:
            place: int = i + (lowest_bit(found) >> 3)
            return place
        i += 8
    while i < end and buffer[i] != one and buffer[i] != other:
        i += 1
    return i


@intrinsic
def store_word(_typing: Any, buffer: Any, index: Any, word: Any) -> Any:
    """Write a little-endian uint64 over the eight bytes of a uint8 array from `index` on."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        array = cgutils.create_struct_proxy(signature.args[0])(context, builder, value=args[0])
        address = builder.gep(array.data, [args[1]])
        pointer = builder.bitcast(address, ir.IntType(64).as_pointer())
        builder.store(args[2], pointer, align=1)
        return context.get_dummy_value()

    return types.none(buffer, types.intp, types.uint64), codegen


@entry(BYTES, INT, INT, filled("u1"), INT)
def copy_bytes(source: Any, start: int, end: int, target: Any, at: int) -> None:
    """Copy source[start:end] to target[at:]. The target needs eight more bytes."""
    i = start
    while i + 8 <= len(source) and i < end:
        store_word(target, at + i - start, load_word(source, i))
        i += 8
    while i < end:
        target[at + i - start] = source[i]
        i += 1


@entry(BYTES, Array("i8"), BYTE, filled("i8"))
def count_between(buffer: Any, starts: Any, byte: int, counts: Any) -> None:
    """Return how often `byte` is before each of the ascending places `starts`."""
    count = int64(0)
    i = int64(0)
    for k in range(len(starts)):
        while i + 64 <= starts[k]:
            count += set_bits(equal_bits(buffer, i, byte))
            i += 64
        while i < starts[k]:
            count += buffer[i] == byte
            i += 1
        counts[k] = count
