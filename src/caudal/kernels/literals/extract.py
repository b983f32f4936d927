"""The kernel that reads a whole column: it finds strings, decodes them and writes them."""

import numpy as np
from numpy.typing import NDArray

from caudal.kernels.compiled import entry
from caudal.kernels.declaring import INT, Array, filled
from caudal.kernels.literals.escapes import UNSURE, write_decoded
from caudal.kernels.literals.scan import find_spans

Ends = NDArray[np.int32]
Extracted = tuple[Ends, Ends, NDArray[np.uint8], NDArray[np.bool_]]


def extract(addresses: NDArray[np.int64], valid: NDArray[np.bool_], wanted: int) -> Extracted:
    """Return the ends of lists, the ends of strings, the bytes of strings, and the unsure rows.

    Text `i` lies in memory from `addresses[i]` to `addresses[i + 1]` and is read only if valid.
    """
    rows = len(valid)
    total, longest = int(addresses[-1] - addresses[0]), int(np.diff(addresses).max(initial=0))
    # A string takes at least two bytes of text, its quotes: there are no more than these.
    spans = np.empty((longest // 2 + 1, 2), np.int64)
    string_ends = np.empty(total // 2 + 1, np.int32)
    list_ends = np.empty(rows + 1, np.int32)
    unsure = np.zeros(rows, np.bool_)
    out = np.empty(total, np.uint8)
    string_ends[0] = list_ends[0] = 0
    strings, size = _extract(
        addresses, valid, wanted, spans, list_ends, string_ends, out.ctypes.data, unsure
    )
    # Copies, so that the room that was not needed is not held as long as the result.
    return list_ends, string_ends[: strings + 1].copy(), out[:size].copy(), unsure


@entry(
    Array("i8"),
    Array("?"),
    INT,
    filled("i8", 2),
    filled("i4"),
    filled("i4"),
    INT,
    filled("?"),
    gives=(INT, INT),
)
def _extract(
    addresses: NDArray[np.int64],
    valid: NDArray[np.bool_],
    wanted: int,
    spans: NDArray[np.int64],
    list_ends: Ends,
    string_ends: Ends,
    base: int,
    unsure: NDArray[np.bool_],
) -> tuple[int, int]:
    """Fill the arrays of `extract`, bytes from address `base` on; return their counts."""
    strings, to = 0, base
    for row in range(len(valid)):
        if valid[row]:
            found = find_spans(addresses[row], addresses[row + 1], wanted, spans)
            unsure[row] = found == UNSURE
            for i in range(found):
                to = write_decoded(spans[i, 0], spans[i, 1], to)
                strings += 1
                string_ends[strings] = to - base
        list_ends[row + 1] = strings
    return strings, to - base
