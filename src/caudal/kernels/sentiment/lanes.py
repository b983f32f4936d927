"""Sixty-four bytes at a time: which of them belong to a class; and eight lower-cased at once."""

from typing import Any

import numpy as np

from caudal.kernels.compiled import cgutils, inlined, intrinsic, ir, types, uint64

LANES = 64
ALL_LANES = np.uint64(0xFFFFFFFFFFFFFFFF)

_BYTE = ir.IntType(8)
_VECTOR = ir.VectorType(_BYTE, LANES)
_ONES = 0x0101010101010101


@intrinsic
def non_letters(_typing: Any, buffer: Any, _index: Any) -> Any:
    """Return a bit for each of the 64 bytes from `index` on that is no ASCII letter."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        vector = _load(context, builder, signature, args)
        lower = builder.or_(vector, _repeated(0x20))
        outside = builder.sub(lower, _repeated(ord("a")))
        return _bits(builder, builder.icmp_unsigned(">", outside, _repeated(25)))

    return types.uint64(buffer, types.intp), codegen


@intrinsic
def breaks(_typing: Any, buffer: Any, _index: Any) -> Any:
    """Return a bit for each of the 64 bytes from `index` on that is ASCII whitespace, a straight
    quote, or beyond ASCII."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        vector = _load(context, builder, signature, args)
        found = builder.icmp_unsigned(">", vector, _repeated(0x7F))
        for first, last in ((9, 13), (28, 32), (ord('"'), ord('"')), (ord("'"), ord("'"))):
            distance = builder.sub(vector, _repeated(first))
            inside = builder.icmp_unsigned("<=", distance, _repeated(last - first))
            found = builder.or_(found, inside)
        return _bits(builder, found)

    return types.uint64(buffer, types.intp), codegen


def _load(context: Any, builder: Any, signature: Any, args: Any) -> Any:
    array = cgutils.create_struct_proxy(signature.args[0])(context, builder, value=args[0])
    address = builder.gep(array.data, [args[1]])
    return builder.load(builder.bitcast(address, _VECTOR.as_pointer()), align=1)


def _repeated(value: int) -> Any:
    return ir.Constant(_VECTOR, [ir.Constant(_BYTE, value)] * LANES)


def _bits(builder: Any, found: Any) -> Any:
    return builder.bitcast(found, ir.IntType(LANES))


@inlined
def lower_lanes(word: int) -> Any:
    """Return the word with each byte that is an ASCII capital turned into its small letter."""
    low = word & uint64(0x7F * _ONES)
    from_a = low + uint64((0x80 - ord("A")) * _ONES)
    past_z = low + uint64((0x7F - ord("Z")) * _ONES)
    capitals = (from_a ^ past_z) & ~word & uint64(0x80 * _ONES)
    return uint64(word | (capitals >> uint64(2)))
