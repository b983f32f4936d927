"""Where records begin and end, and whether each is sound: the one state machine for CSV.

Rules:
1. A quote opens a quoted field only as the field's first byte; inside it quotes are doubled, and
   commas and line ends are text. Anywhere else a quote is an ordinary character.
2. A record ends at `\\n`, `\\r\\n` or the end of the input, outside quoted fields. Lines with
   nothing on them are skipped.
3. A closing quote must be followed by a comma or the record's end. If not, the record is damaged:
   it costs its first physical line, and reading goes on at the next line.
4. So it is for a quoted field that never closes, or not within `MAX_RECORD_BYTES` of its
   record's start (the bound keeps memory flat and one stray quote cheap), and for a record that
   is longer than that.
5. A record with the wrong number of fields costs its physical lines, except that a sound record
   that begins on one of its later lines is kept: then the earlier lines were an unclosed quote.

Rule 4's bound is counted from the record's own start, so where a batch was cut never changes
what is found: scanning a file whole or batch by batch gives the same records.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

from caudal.kernels.bytescan import find_byte, find_either

MAX_RECORD_BYTES = 8 << 20

SOUND, TOO_FEW, TOO_MANY, STRAY_QUOTE, UNCLOSED_QUOTE, TOO_LONG, UNFINISHED = range(7)

REASONS = {
    TOO_FEW: "too few fields",
    TOO_MANY: "too many fields",
    STRAY_QUOTE: "stray quote",
    UNCLOSED_QUOTE: "unclosed quote",
    TOO_LONG: f"longer than {MAX_RECORD_BYTES >> 20} MiB",
}

_QUOTE, _COMMA, _NEWLINE, _RETURN = 34, 44, 10, 13


@njit(cache=True, nogil=True)
def _closing_quote(buffer: Any, start: int, end: int) -> tuple[int, bool]:
    """From just after an opening quote: where the closing one stands (or `end`), and whether
    doubled quotes were seen on the way."""
    doubled = False
    i = find_byte(buffer, start, end, _QUOTE)
    while i + 1 < end and buffer[i + 1] == _QUOTE:
        doubled = True
        i = find_byte(buffer, i + 2, end, _QUOTE)
    return i, doubled


@njit(cache=True, nogil=True)
def read_record(
    buffer: Any, start: int, final: bool, slots: Any, fields: Any, row: int
) -> tuple[int, int]:
    """The record at `start`: (its verdict, where the next one begins).

    `slots[k]` is the place in `fields[row]` for the begin and end of field number k, or -1 when
    nobody wants it. The end is stored inverted (`~end`) when the field holds doubled quotes.
    """
    end = len(buffer)
    limit = start + MAX_RECORD_BYTES
    reach = min(end, limit)
    i = start
    count = 0
    while True:
        begin = i
        doubled = False
        if i < end and buffer[i] == _QUOTE:
            begin = i + 1
            stop, doubled = _closing_quote(buffer, begin, reach)
            if stop >= reach:
                return (UNCLOSED_QUOTE if final or end > limit else UNFINISHED), start
            i = stop + 1
            if i < end and buffer[i] == _RETURN and (i + 1 == end or buffer[i + 1] == _NEWLINE):
                i += 1
            if i == end and not final:
                return UNFINISHED, start
            if i < end and buffer[i] != _NEWLINE and buffer[i] != _COMMA:
                same_line = find_byte(buffer, begin, stop, _NEWLINE) == stop
                return (STRAY_QUOTE if same_line else UNCLOSED_QUOTE), start
        else:
            i = find_either(buffer, i, end, _COMMA, _NEWLINE)
            stop = i
            if i == end and not final:
                return (TOO_LONG if end > limit else UNFINISHED), start
            line_ends = i == end or buffer[i] == _NEWLINE
            if line_ends and stop > begin and buffer[stop - 1] == _RETURN:
                stop -= 1
        if i > limit:
            return TOO_LONG, start
        if count < len(slots) and slots[count] >= 0:
            fields[row, slots[count], 0] = begin
            fields[row, slots[count], 1] = ~stop if doubled else stop
        count += 1
        if i == end or buffer[i] == _NEWLINE:
            break
        i += 1
    after = min(i + 1, end)
    if count == len(slots):
        return SOUND, after
    return (TOO_FEW if count < len(slots) else TOO_MANY), after


@njit(cache=True, nogil=True)
def _skip_blank(buffer: Any, start: int) -> int:
    """Past a line with nothing on it, or `start` when there is something."""
    if buffer[start] == _NEWLINE:
        return start + 1
    if buffer[start] == _RETURN and (start + 1 == len(buffer) or buffer[start + 1] == _NEWLINE):
        return min(start + 2, len(buffer))
    return start


@njit(cache=True, nogil=True)
def _resume(
    buffer: Any, start: int, after: int, final: bool, slots: Any, fields: Any, row: int
) -> tuple[int, int]:
    """Rule 5 for a record of the wrong width: (SOUND, the later line where a sound record
    begins), (UNFINISHED, _) when more bytes must decide, else (TOO_FEW, `after`)."""
    line = find_byte(buffer, start, after, _NEWLINE) + 1
    while line < after:
        if _skip_blank(buffer, line) == line:
            verdict, _ = read_record(buffer, line, final, slots, fields, row)
            if verdict == SOUND or verdict == UNFINISHED:
                return verdict, line
        line = find_byte(buffer, line, after, _NEWLINE) + 1
    return TOO_FEW, after


@njit(cache=True, nogil=True)
def scan(
    buffer: Any, final: bool, slots: Any, fields: Any, starts: Any, verdicts: Any
) -> tuple[int, int]:
    """All records of `buffer`: (how many, how many bytes they take).

    The buffer begins at a record's start. What follows the last whole record is not counted as
    taken, unless `final`: then the end of the buffer is the end of the file. `fields`, `starts`
    and `verdicts` are filled per record, damaged ones included.
    """
    end = len(buffer)
    rows = 0
    i = 0
    while i < end:
        begin = _skip_blank(buffer, i)
        if begin != i:
            i = begin
            continue
        verdict, after = read_record(buffer, i, final, slots, fields, rows)
        if verdict == TOO_FEW or verdict == TOO_MANY:
            found, line = _resume(buffer, i, after, final, slots, fields, rows)
            if found == SOUND:
                verdict, after = UNCLOSED_QUOTE, line
            elif found == UNFINISHED:
                verdict = UNFINISHED
        elif verdict != SOUND and verdict != UNFINISHED:
            newline = find_byte(buffer, i, end, _NEWLINE)
            if newline == end and not final:
                verdict = UNFINISHED
            after = min(newline + 1, end)
        if verdict == UNFINISHED:
            break
        starts[rows] = i
        verdicts[rows] = verdict
        rows += 1
        i = after
    return rows, i


@dataclass(frozen=True)
class Records:
    """What `scan` found in a buffer: one row per record, damaged ones included."""

    fields: NDArray[np.int32]  # [record, wanted column, (begin, end)]
    starts: NDArray[np.int64]  # byte offset of each record
    verdicts: NDArray[np.int8]
    bytes_taken: int


def scan_records(buffer: NDArray[np.uint8], slots: NDArray[np.int32], *, final: bool) -> Records:
    """The records of a buffer that begins at a record's start; `slots` as in `read_record`."""
    capacity = int(np.count_nonzero(buffer == _NEWLINE)) + 1
    fields = np.empty((capacity, max(int(slots.max(initial=-1)) + 1, 1), 2), dtype=np.int32)
    starts = np.empty(capacity, dtype=np.int64)
    verdicts = np.empty(capacity, dtype=np.int8)
    count, taken = scan(buffer, final, slots, fields, starts, verdicts)
    return Records(fields[:count], starts[:count], verdicts[:count], taken)
