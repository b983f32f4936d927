"""Calls kernels that were compiled ahead of time, if their code fits this processor.

Nothing is compiled here, so numba is not loaded. A kernel's name stands for a place in a file of
code. The file is mapped at the first call and stays mapped. ctypes lets other threads run during a
call.
"""

import ctypes
import mmap
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from caudal.kernels.declaring import FLAG, Scalar, flat
from caudal.kernels.objects import Code


class Absent:
    """A placeholder for names of numba in the sources of kernels. It is never used."""

    def __getattr__(self, name: str) -> "Absent":
        return self

    def __call__(self, *_: Any, **__: Any) -> "Absent":
        return self


def inner(function: Any) -> Any:
    """Return a function that only kernels call: its code is part of theirs."""
    return function


class Kernel:
    """A kernel as Python calls it."""

    def __init__(self, code: Code, name: str, kinds: tuple[Any, ...], gives: Any) -> None:
        self._code, self._name, self._kinds, self._gives = code, name, kinds, gives
        self._many = gives if isinstance(gives, tuple) else (gives,) if gives else ()
        self._results = ctypes.c_int64 * max(len(self._many), 1)
        self._function: Callable[..., int] | None = None

    def __call__(self, *arguments: Any) -> Any:
        kept: list[Any] = []
        numbers = [
            number
            for kind, value in zip(self._kinds, arguments, strict=True)
            for number in flat(kind, value, kept)
        ]
        results = self._results()
        function = self._function or self._load(len(numbers))
        if function(*numbers, ctypes.addressof(results)):
            raise RuntimeError(f"the kernel {self._name} failed")
        given = [_given(kind, value) for kind, value in zip(self._many, results, strict=False)]
        return tuple(given) if isinstance(self._gives, tuple) else given[0] if given else None

    def _load(self, count: int) -> Callable[..., int]:
        address = mapped(self._code.path).ctypes.data + self._code.kernels[self._name]
        prototype = ctypes.CFUNCTYPE(ctypes.c_int32, *[ctypes.c_int64] * (count + 1))
        self._function = prototype(address)
        return self._function


def _given(kind: Scalar, value: int) -> int | bool:
    return bool(value) if kind == FLAG else value


def runnable(code: Code | None) -> Code | None:
    """Return the code; None if the system does not allow to run code from there."""
    try:
        if code is not None:
            mapped(code.path)
    except OSError:
        return None
    return code


@cache
def mapped(path: Path) -> NDArray[np.uint8]:
    """Map a file as code that may be run. It stays mapped: kernels point to it."""
    with path.open("rb") as file:
        return np.frombuffer(
            mmap.mmap(
                file.fileno(), 0, flags=mmap.MAP_PRIVATE, prot=mmap.PROT_READ | mmap.PROT_EXEC
            ),
            np.uint8,
        )
