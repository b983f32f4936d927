"""How kernels are compiled.

`compiled`, `inlined` and `entry` work without numba's reference counting: they only borrow the
arrays that their caller owns and allocate none, and counting references at each access would be
most of the running time. `allocating` is for the few that make arrays.

Only `entry` and `allocating` functions can be called from Python, and only their code is cached on
disk, with that of all they call. Numba renews it when the function's own file changes, but not
when another one does; kernels of several files put a digest of their sources into what the cache
looks at as well (the type of a table, a closure).
"""

from typing import Any

from numba import njit

_BORROWING = {"nogil": True, "_nrt": False}
_INNER = {**_BORROWING, "no_cpython_wrapper": True, "no_cfunc_wrapper": True}

entry: Any = njit(cache=True, **_BORROWING)
"""A function that Python calls."""

allocating: Any = njit(cache=True, nogil=True)
"""A function that Python calls and that makes arrays of its own."""

compiled: Any = njit(**_INNER)
"""A function that other compiled functions call."""

inlined: Any = njit(forceinline=True, **_INNER)
"""A small function that becomes part of whoever calls it."""
