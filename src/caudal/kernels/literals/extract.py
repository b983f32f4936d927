"""The one compiled function that reads a whole column: spans found, decoded and laid out.

Numba caches it on disk, and notices changes of this file and of the function's closure, but not
of the other files whose functions it calls. So their digest is put into the closure, and they are
not cached by themselves: stale machine code after an edit or an upgrade would give answers that
no reading of the source explains.
"""

import functools
import hashlib
from collections.abc import Callable
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from caudal.kernels.compiled import allocating
from caudal.kernels.literals.escapes import UNSURE, write_decoded
from caudal.kernels.literals.scan import find_spans

Ends = NDArray[np.int32]
Extracted = tuple[Ends, Ends, NDArray[np.uint8], NDArray[np.bool_]]
Extract = Callable[[NDArray[np.int64], NDArray[np.bool_], int], Extracted]


def extract(addresses: NDArray[np.int64], valid: NDArray[np.bool_], wanted: int) -> Extracted:
    """The ends of the lists, the ends of their strings, the strings' bytes, and the unsure rows.

    Text `i` lies in memory from `addresses[i]` to `addresses[i + 1]` and is read only if valid.
    """
    return _compiled()(addresses, valid, wanted)


@functools.cache
def _compiled() -> Extract:
    sources = _digest_of_sources()

    @allocating
    def extract_all(
        addresses: NDArray[np.int64], valid: NDArray[np.bool_], wanted: int
    ) -> Extracted:
        _ = sources  # named only to be in the closure
        rows = len(valid)
        total, longest = addresses[rows] - addresses[0], 0
        for row in range(rows):
            longest = max(longest, addresses[row + 1] - addresses[row])
        # A string takes at least two bytes of text, its quotes: there are no more than these.
        spans = np.empty((longest // 2 + 1, 2), np.int64)
        string_ends = np.empty(total // 2 + 1, np.int32)
        list_ends = np.empty(rows + 1, np.int32)
        unsure = np.zeros(rows, np.bool_)
        out = np.empty(total, np.uint8)
        string_ends[0] = list_ends[0] = 0
        base = out.ctypes.data
        strings, to = 0, base
        for row in range(rows):
            if valid[row]:
                found = find_spans(addresses[row], addresses[row + 1], wanted, spans)
                unsure[row] = found == UNSURE
                for i in range(found):
                    to = write_decoded(spans[i, 0], spans[i, 1], to)
                    strings += 1
                    string_ends[strings] = to - base
            list_ends[row + 1] = strings
        # Copies, so that the room that was not needed is not held as long as the result.
        return list_ends, string_ends[: strings + 1].copy(), out[: to - base].copy(), unsure

    return extract_all


def _digest_of_sources() -> str:
    here = Path(__file__).parent
    paths = [here.parent / "compiled.py", here.parent / "memory.py", *sorted(here.glob("*.py"))]
    return hashlib.sha256(b"".join(path.read_bytes() for path in paths)).hexdigest()
