"""How kernels are compiled: like `njit`, but a compiled function keeps its type.

Only an `entry` is cached on disk. The functions it calls are compiled into it: cached by
themselves, each could be stale, since numba looks for changes in a function's own file only.
"""

from collections.abc import Callable
from typing import Any, TypeVar

from numba import njit

Function = TypeVar("Function", bound=Callable[..., Any])


def compiled(function: Function) -> Function:
    """A function that other compiled functions call."""
    inner: Function = njit(nogil=True)(function)
    return inner


def entry(function: Function) -> Function:
    """A function that Python calls, too."""
    outer: Function = njit(cache=True, nogil=True)(function)
    return outer
