"""Declares the arguments and results of a kernel, so that it can be compiled before it is called.

Every argument is passed as 64-bit numbers: an array as its address and its shape, a named tuple as
its parts in order. A result is one or several such numbers.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np


@dataclass(frozen=True)
class Scalar:
    """A number of this type, or a flag (`?`)."""

    kind: str


@dataclass(frozen=True)
class Array:
    """A contiguous array. A kernel writes only to arrays that are `filled`."""

    kind: str
    dimensions: int = 1
    filled: bool = False


@dataclass(frozen=True)
class Record:
    """One record of a structured type, by its address."""

    dtype: Any


@dataclass(frozen=True)
class Parts:
    """A named tuple."""

    name: type
    kinds: tuple[Any, ...]


INT = Scalar("i8")
WORD = Scalar("u8")
BYTE = Scalar("u1")
FLAG = Scalar("?")
BYTES = Array("u1")


def filled(kind: str, dimensions: int = 1) -> Array:
    """Declare an array that the kernel writes to."""
    return Array(kind, dimensions, filled=True)


def flat(kind: Any, value: Any, kept: list[Any]) -> list[int]:
    """Return a value as numbers; raise ValueError. Objects that must outlive the call go to `kept`.

    Compiled code relies on this check: each array has the declared type and as many values as its
    shape says.
    """
    match kind:
        case Scalar():
            return [int(value)]
        case Array():
            array = _sound(kind, value)
            kept.append(array)
            return [array.__array_interface__["data"][0], *array.shape]
        case Record():
            if not isinstance(value, np.void) or value.dtype != kind.dtype:
                raise ValueError("a kernel was given another record than it was made for")
            return [value.__array_interface__["data"][0]]
        case Parts():
            if len(value) != len(kind.kinds):
                raise ValueError(f"a kernel was given another tuple than {kind.name.__name__}")
            return [
                number
                for part, one in zip(kind.kinds, value, strict=True)
                for number in flat(part, one, kept)
            ]
    raise TypeError(f"{kind!r} declares nothing that a kernel takes")


def _sound(kind: Array, value: Any) -> Any:
    """Return the array, or a contiguous copy if the kernel only reads it."""
    flags = value.flags
    if value.dtype != np.dtype(kind.kind) or value.ndim != kind.dimensions:
        raise ValueError(f"a kernel was given {value.dtype} of {value.ndim} dimensions: {kind}")
    if flags.c_contiguous and flags.aligned and (flags.writeable or not kind.filled):
        return value
    if kind.filled:
        raise ValueError("a kernel cannot fill an array that is read-only or scattered")
    return np.require(value, requirements=["C", "A"])
