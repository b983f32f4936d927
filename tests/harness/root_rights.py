"""Take from this thread what root may do with files of others, and give it back.

Another user id would not do: that user may not read the project if it lies below /root.
"""

import ctypes
import os
from collections.abc import Iterator
from contextlib import contextmanager

_VERSION = 0x20080522  # of the structures, with two words for the capabilities
_READ_ANYTHING = 1 << 1 | 1 << 2  # CAP_DAC_OVERRIDE, CAP_DAC_READ_SEARCH


class _Header(ctypes.Structure):
    _fields_ = (("version", ctypes.c_uint32), ("pid", ctypes.c_int))


class _Word(ctypes.Structure):
    _fields_ = (
        ("effective", ctypes.c_uint32),
        ("permitted", ctypes.c_uint32),
        ("inheritable", ctypes.c_uint32),
    )


@contextmanager
def reading_like_others() -> Iterator[None]:
    """Let the modes of files count for this thread and those it starts, even if it is root."""
    words = (_Word * 2)()
    _call("capget", words)
    before = words[0].effective
    words[0].effective = before & ~_READ_ANYTHING
    _call("capset", words)
    try:
        yield
    finally:
        words[0].effective = before
        _call("capset", words)


def _call(name: str, words: "ctypes.Array[_Word]") -> None:
    header = _Header(_VERSION, 0)
    if getattr(ctypes.CDLL(None, use_errno=True), name)(ctypes.byref(header), words):
        raise OSError(ctypes.get_errno(), f"{name}: {os.strerror(ctypes.get_errno())}")
