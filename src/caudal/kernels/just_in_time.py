"""Compiles kernels by numba: for the build, and if no code fits this processor.

Numba caches the code on disk. The folder belongs to exactly these sources, because numba notices
only changes in the file of the cached function. If no such folder can be made, every process
compiles again. A line on standard error says what is being compiled and how long it took: it may
take minutes.
"""

import os
import sys
import tempfile
import time
from functools import cache
from pathlib import Path
from typing import Any

from llvmlite import ir
from numba import int64, njit, types, uint64
from numba.core import cgutils, config, event
from numba.extending import intrinsic

from caudal.kernels.sources import digest_of_sources
from caudal.user_cache import cache_folder

__all__ = ["cgutils", "int64", "intrinsic", "ir", "types", "uint64"]

_BORROWING = {"nogil": True, "_nrt": False}
_INNER = {**_BORROWING, "no_cpython_wrapper": True, "no_cfunc_wrapper": True}

compiled: Any = njit(**_INNER)
"""A function that other compiled functions call."""

inlined: Any = njit(forceinline=True, **_INNER)
"""A small function that becomes part of whoever calls it."""


def kept(function: Any) -> Any:
    """Return a function for Python; its code is cached on disk if possible."""
    return njit(cache=_has_folder(), **_BORROWING)(function)


@cache
def _has_folder() -> bool:
    """Set numba's folder to that of these sources; return whether it can be written."""
    chosen = os.environ.get("NUMBA_CACHE_DIR")
    folder = Path(chosen) if chosen else cache_folder()
    if folder is None:
        return False
    folder /= f"kernels-{digest_of_sources()[:16]}"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            config.CACHE_DIR = str(folder)
    except OSError:
        return False
    return True


class Listed:
    """The kernels for Python with their arguments and results, for the build."""

    def __init__(self) -> None:
        self.kernels: dict[str, tuple[Any, tuple[Any, ...], Any]] = {}

    def add(self, name: str, function: Any, kinds: tuple[Any, ...], gives: Any) -> Any:
        compiled = njit(**_INNER)(function)
        self.kernels[name] = (compiled, kinds, gives)
        return compiled


class Telling(event.Listener):  # type: ignore[misc]
    """Reports what is being compiled."""

    def __init__(self) -> None:
        self._began: list[float] = []

    def on_start(self, event: Any) -> None:
        self._began.append(time.monotonic())
        if len(self._began) == 1:
            name = event.data["dispatcher"].py_func.__qualname__
            print(f"caudal: compiling {name} for this processor ...", file=sys.stderr, flush=True)

    def on_end(self, event: Any) -> None:
        seconds = time.monotonic() - self._began.pop()
        if not self._began:
            name = event.data["dispatcher"].py_func.__qualname__
            print(f"caudal: compiled {name}: {seconds:.1f} s", file=sys.stderr, flush=True)


def tell() -> None:
    """Report every compilation of this process from now on."""
    event.register("numba:compile", Telling())
