"""How the kernel's functions are compiled.

Without numba's reference counting: the functions only borrow the arrays that the caller owns and
allocate none, and counting references at each table access would be most of the running time.

Only an `entry` can be called from Python, and only its code is cached on disk, with that of all
it calls. Numba renews it when the entry's own file changes, but not when another one does; so
the digest of all the sources is part of the tables' type, which the cache looks at as well.
"""

from numba import njit

entry = njit(cache=True, nogil=True, _nrt=False)
compiled = njit(nogil=True, _nrt=False, no_cpython_wrapper=True, no_cfunc_wrapper=True)
inlined = njit(
    nogil=True, _nrt=False, no_cpython_wrapper=True, no_cfunc_wrapper=True, forceinline=True
)
