"""Wraps each kernel in a function with C's calling convention. Only the build imports this.

The function takes 64-bit numbers (`declaring.py`) and the address for its results. It returns 0, or
the status with which the kernel failed. Strides are computed from shapes, because arrays are
contiguous.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np
from llvmlite import binding, ir
from numba import from_dtype, types
from numba.core import cgutils
from numba.np.arrayobj import populate_array

from caudal.kernels.declaring import FLAG, Array, Parts, Record, Scalar

_WORD = ir.IntType(64)


def with_c_function(name: str, kernel: Any, kinds: tuple[Any, ...], gives: Any) -> str:
    """Return the intermediate code of a kernel and of the C function that calls it."""
    signature = tuple(numba_type(kind) for kind in kinds)
    kernel.compile(signature)
    made = kernel.overloads[signature]
    results = gives if isinstance(gives, tuple) else (gives,) if gives else ()
    code = binding.parse_assembly(made.library.get_llvm_str())
    c_function = binding.parse_assembly(str(_c_function(name, made, kinds, results)))
    c_function.triple, c_function.data_layout = code.triple, code.data_layout
    code.link_in(c_function)
    return str(code)


def numba_type(kind: Any) -> Any:
    match kind:
        case Scalar():
            return types.boolean if kind == FLAG else from_dtype(np.dtype(kind.kind))
        case Array():
            values = from_dtype(np.dtype(kind.kind))
            return types.Array(values, kind.dimensions, "C", readonly=not kind.filled)
        case Record():
            return from_dtype(kind.dtype)
        case Parts():
            return types.NamedTuple([numba_type(one) for one in kind.kinds], kind.name)
    raise TypeError(f"{kind!r} declares nothing that a kernel takes")


def _c_function(name: str, made: Any, kinds: tuple[Any, ...], gives: tuple[Any, ...]) -> ir.Module:
    context, result = made.target_context, made.signature.return_type
    module = ir.Module(name)
    takes = made.signature.args
    native = ir.Function(
        module, context.call_conv.get_function_type(result, takes), made.fndesc.llvm_func_name
    )
    words = [_WORD] * (sum(map(_count_words, kinds)) + 1)
    function = ir.Function(module, ir.FunctionType(ir.IntType(32), words), name)
    builder = ir.IRBuilder(function.append_basic_block())
    given = iter(function.args)
    values = [_value(context, builder, kind, given) for kind in kinds]
    status, returned = context.call_conv.call_function(builder, native, result, takes, values)
    parts = cgutils.unpack_tuple(builder, returned) if len(gives) > 1 else [returned][: len(gives)]
    results = builder.inttoptr(next(given), _WORD.as_pointer())
    for place, part in enumerate(parts):
        wide = part if part.type == _WORD else builder.zext(part, _WORD)
        builder.store(wide, builder.gep(results, [ir.Constant(_WORD, place)]))
    builder.ret(status.code)
    return module


def _count_words(kind: Any) -> int:
    match kind:
        case Array():
            return 1 + kind.dimensions
        case Parts():
            return sum(map(_count_words, kind.kinds))
    return 1


def _value(context: Any, builder: Any, kind: Any, given: Iterator[Any]) -> Any:
    """Return numba's value of this kind, from the next given numbers."""
    type_ = numba_type(kind)
    match kind:
        case Scalar():
            word = next(given)
            kept = context.get_value_type(type_)
            return word if kept == _WORD else builder.trunc(word, kept)
        case Record():
            return builder.inttoptr(next(given), context.get_value_type(type_))
        case Parts():
            parts = [_value(context, builder, one, given) for one in kind.kinds]
            return context.make_tuple(builder, type_, parts)
    return _array(context, builder, type_, given)


def _array(context: Any, builder: Any, type_: Any, given: Iterator[Any]) -> Any:
    array = context.make_array(type_)(context, builder)
    values = context.get_data_type(type_.dtype)
    data = builder.inttoptr(next(given), values.as_pointer())
    shape = [next(given) for _ in range(type_.ndim)]
    step = context.get_constant(types.intp, context.get_abi_sizeof(values))
    strides = [step]
    for length in reversed(shape[1:]):
        strides.insert(0, builder.mul(strides[0], length))
    populate_array(array, data, shape, strides, step, meminfo=None)
    return array._getvalue()
