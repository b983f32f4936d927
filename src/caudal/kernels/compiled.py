"""Chooses how kernels are compiled: ahead of time if that fits this processor, else by numba.

`compiled`, `inlined` and `entry` disable numba's reference counting. Kernels use the arrays of
their caller and allocate none, and counting references at each access would take most of the time.

Only `entry` functions can be called from Python. Each declares its arguments and results, because
it is compiled before it is called (`building.py`). `objects.py` finds its code, `ahead.py` calls
it. This module chooses one form for all kernels of a process:

1. numba, if `CAUDAL_KERNELS=numba` or a setting of numba that changes compiled code is set;
2. ahead of time, if there is code for this processor and exactly these sources;
3. else numba.
"""

import os
from typing import Any

from caudal.errors import MissingPackageError
from caudal.kernels import ahead
from caudal.kernels.objects import fitting_code

BUILD, NUMBA = "build", "numba"
SWITCH = "CAUDAL_KERNELS"
_NUMBAS_SWITCHES = ("NUMBA_BOUNDSCHECK", "NUMBA_DISABLE_JIT", "NUMBA_OPT", "NUMBA_DEBUG")


def _wants_numba() -> bool:
    return SWITCH in os.environ or any(name in os.environ for name in _NUMBAS_SWITCHES)


CODE = None if _wants_numba() else ahead.runnable(fitting_code())
listed: Any = None
compiled: Any
inlined: Any
intrinsic: Any
int64: Any
uint64: Any
types: Any
cgutils: Any
ir: Any

if CODE is not None:
    compiled = inlined = intrinsic = ahead.inner
    int64 = uint64 = types = cgutils = ir = ahead.Absent()
else:
    try:
        from caudal.kernels import just_in_time
    except ModuleNotFoundError as error:
        raise MissingPackageError(
            "no compiled kernels fit this processor: install what compiles them (pip install numba)"
        ) from error

    compiled, inlined = just_in_time.compiled, just_in_time.inlined
    cgutils, intrinsic, ir = just_in_time.cgutils, just_in_time.intrinsic, just_in_time.ir
    int64, types, uint64 = just_in_time.int64, just_in_time.types, just_in_time.uint64
    if os.environ.get(SWITCH) == BUILD:
        listed = just_in_time.Listed()
    else:
        just_in_time.tell()


def entry(*kinds: Any, gives: Any = None) -> Any:
    """Return a function for Python, with declared arguments and results (`declaring.py`)."""

    def decorate(function: Any) -> Any:
        name = f"{function.__module__}.{function.__qualname__}"
        if CODE is not None:
            return ahead.Kernel(CODE, name, kinds, gives)
        if listed is not None:
            return listed.add(name, function, kinds, gives)
        return just_in_time.kept(function)

    return decorate
