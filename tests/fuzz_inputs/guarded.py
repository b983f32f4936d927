"""Bytes that end, or begin, at a page that nobody may touch: reading past them is a crash."""

import ctypes
import mmap

import numpy as np
from numpy.typing import NDArray

_PROTECTED = 0  # PROT_NONE
_ROOM = 1 << 20


class Guarded:
    """One piece of memory between two pages that are out of bounds, used again for every case."""

    def __init__(self) -> None:
        page = mmap.PAGESIZE
        self._memory = mmap.mmap(-1, _ROOM + 2 * page)
        whole = np.frombuffer(self._memory, np.uint8)
        libc = ctypes.CDLL(None, use_errno=True)
        for place in (0, _ROOM + page):
            address = ctypes.c_void_p(whole.ctypes.data + place)
            if libc.mprotect(address, ctypes.c_size_t(page), _PROTECTED):
                raise OSError(ctypes.get_errno(), "mprotect failed")
        self._room = whole[page : page + _ROOM]

    def at_end(self, data: bytes) -> NDArray[np.uint8]:
        """A copy whose last byte is the last one that may be read."""
        part = self._room[_ROOM - len(data) :]
        part[:] = np.frombuffer(data, np.uint8)
        return part

    def at_start(self, data: bytes) -> NDArray[np.uint8]:
        """A copy whose first byte is the first one that may be read."""
        part = self._room[: len(data)]
        part[:] = np.frombuffer(data, np.uint8)
        return part
