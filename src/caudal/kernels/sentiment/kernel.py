"""The compiled kernel: texts as raw UTF-8 bytes in, polarities out, no Python object per row.

A row is copied into a scratch buffer between sentinels and read twice at most:

1. `read_events` walks its tokens. Most are unknown words, and all that the analyzer keeps of them
   is how long the longest was since the last entry: past one character it forgets a negation,
   past two an adverb. So the walk writes one event per entry: its number, and that length.
2. `assess` runs the analyzer's state machine over the events.

A row with a construct that is too rare to be worth compiled code is declined (NaN), and the
caller scores it with the exact port. Declining costs time, never a result.
"""

from typing import Any

import numpy as np
import numpy.typing as npt

from caudal.kernels.bytescan import lowest_bit
from caudal.kernels.compiled import compiled, entry
from caudal.kernels.declaring import BYTES, Array, Record, filled
from caudal.kernels.sentiment import tables
from caudal.kernels.sentiment.assess import assess
from caudal.kernels.sentiment.faces import DECLINED
from caudal.kernels.sentiment.lanes import ALL_LANES, LANES, non_letters
from caudal.kernels.sentiment.tokens import ends_word, is_contraction, read_chunk, read_word

Bytes = npt.NDArray[np.uint8]
Positions = npt.NDArray[np.int64]
Scores = npt.NDArray[np.float64]

FRONT = 64
"""Bytes before a row in the scratch buffer, so that looking back needs no bounds."""
BACK = 128
"""Bytes after a row, so that whole vectors may be loaded at its end."""


def score_rows(data: Bytes, starts: Positions, ends: Positions, t: tables.Tables) -> Scores:
    """Return the polarity of each row data[starts[i]:ends[i]]; NaN where a row is declined."""
    longest = int(np.max(ends - starts, initial=0))
    text = np.zeros(FRONT + longest + BACK, np.uint8)
    events = np.empty(longest + 1, np.int32)
    scores = np.zeros(len(starts))
    fill_scores(data, starts, ends, text, events, scores, t)
    return scores


@entry(
    BYTES,
    Array("i8"),
    Array("i8"),
    filled("u1"),
    filled("i4"),
    filled("f8"),
    Record(tables.TABLES),
)
def fill_scores(
    data: Any, starts: Any, ends: Any, text: Any, events: Any, scores: Any, t: Any
) -> None:
    for row in range(len(starts)):
        size = ends[row] - starts[row]
        if size > 0:
            for index in range(size):
                text[FRONT + index] = data[starts[row] + index]
            text[FRONT + size] = 32
            text[FRONT + size + 1] = 0
            count = read_events(text, FRONT + size, events, t)
            scores[row] = np.nan if count == DECLINED else assess(events, count, t)


@compiled
def read_events(text: Any, end: int, events: Any, t: Any) -> int:
    """Write the events of text[FRONT:end], which a space follows; their count, or DECLINED.

    Runs of ASCII letters between separators are the fast path; any other byte sends its whole
    chunk, up to the next separator, to `read_chunk`.
    """
    count, gap = np.int64(0), np.int64(0)
    start = floor = block = np.int64(FRONT)
    bits = non_letters(text, block)
    while True:
        while bits == 0:
            block += LANES
            bits = non_letters(text, block)
        stop = block + lowest_bit(bits)
        if ends_word(text, start, stop, t):
            bits &= bits - np.uint64(1)
            if stop > start:
                last = stop - 1 if is_contraction(text, stop) else stop
                count, gap, floor = read_word(text, start, last, events, count, gap, floor, t)
            start = stop + 1
        else:
            count, gap, floor, start = read_chunk(text, start, stop, events, count, gap, floor, t)
            while start >= block + LANES:
                block += LANES
                bits = non_letters(text, block)
            bits &= ALL_LANES << np.uint64(start - block)
        if count == DECLINED or start > end:
            return int(count)
