"""Reads and writes bytes at an address, for kernels with many small functions.

If numba passes an array from function to function, each call counts references. This costs more
than the work itself (measured: two thirds of the time). An address is only a number. The caller
that takes the address of a buffer keeps the buffer alive and stays inside its bounds.

Addresses are int64 and need not be aligned; of several bytes the first is the lowest.
"""

from typing import Any

from caudal.kernels.compiled import cgutils, intrinsic, types


def _load(kind: Any) -> Any:
    """Return the function that reads an unsigned integer of this kind at an address."""

    @intrinsic
    def load_at(context: Any, address: Any) -> Any:
        def load(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            pointer = builder.inttoptr(arguments[0], context.get_value_type(kind).as_pointer())
            return builder.load(pointer, align=1)

        return kind(types.int64), load

    return load_at


byte_at = _load(types.uint8)
quad_at = _load(types.uint32)
word_at = _load(types.uint64)


@intrinsic
def put_byte(context: Any, address: Any, byte: Any) -> Any:
    """Write the lowest byte of an integer to an address."""

    def store(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        byte_type = context.get_value_type(types.uint8)
        pointer = builder.inttoptr(arguments[0], byte_type.as_pointer())
        builder.store(builder.trunc(arguments[1], byte_type), pointer)
        return context.get_dummy_value()

    return types.void(types.int64, types.int64), store


@intrinsic
def lowest_bit(context: Any, word: Any) -> Any:
    """Return the number of the lowest bit that is set in a word other than zero."""

    def count(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.cttz(arguments[0], cgutils.true_bit)

    return types.int64(types.uint64), count
