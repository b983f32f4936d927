"""Where records begin and end, and whether each is sound: the one state machine for CSV.

Rules:
1. A quote opens a quoted field only as the field's first byte; inside it quotes are doubled, and
   commas and line ends are text. Anywhere else a quote is an ordinary character.
2. A record ends at `\\n`, `\\r\\n` or the end of the input, outside quoted fields. Lines with
   nothing on them are skipped.
3. A closing quote must be followed by a comma or the record's end. If not, the record is damaged:
   it costs its first physical line, and reading goes on at the next line. On one line that is a
   stray quote, across lines an unclosed one.
4. So it is for a quoted field that never closes, or not within `MAX_RECORD_BYTES` of its
   record's start (the bound keeps memory flat and one stray quote cheap), and for a record that
   is longer than that.
5. A record with the wrong number of fields costs its physical lines; but if a sound record begins
   on one of the later ones, then the first line was an unclosed quote, and costs only itself.

A line that begins with `MARK` and a verdict stands for a damaged record of a file in another
dialect (files/canonical.py). It is damaged by rule 3 in any file; `told_verdicts` only tells why.

An unclosed quote that swallows lines into a record of the right width is a sound record: nothing
in the bytes tells it from a text of several lines.

Where a batch is cut never changes what is found. Rule 4's bound counts from the record's own
start, and damage that shows on a later line costs only the first one with one reason, so a
batch that ends between the two says the same without having seen it.
"""

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from caudal.errors import DataError
from caudal.kernels.bytescan import (
    count_between,
    equal_bits,
    find_byte,
    find_either,
    holds_byte,
    lowest_bit,
)
from caudal.kernels.compiled import compiled, entry, inlined, int64, uint64
from caudal.kernels.declaring import BYTES, FLAG, INT, Array, Parts, filled

MAX_RECORD_BYTES = 8 << 20
MAX_BATCH_BYTES = (1 << 31) - 1 - 64  # a place in a batch, and the end of a block, fit 32 bits

SOUND, TOO_FEW, TOO_MANY, STRAY_QUOTE, UNCLOSED_QUOTE, TOO_LONG, NOT_AN_OBJECT, UNFINISHED = range(
    8
)

REASONS = {
    TOO_FEW: "too few fields",
    TOO_MANY: "too many fields",
    STRAY_QUOTE: "stray quote",
    UNCLOSED_QUOTE: "unclosed quote",
    TOO_LONG: f"longer than {MAX_RECORD_BYTES >> 20} MiB",
    NOT_AN_OBJECT: "not a JSON object",  # said of a line that never was CSV (files/json_lines.py)
}

MARK = b'""\x1a'

_TAIL_BYTES = 1 << 16

ALL_FIELDS = np.int64(np.iinfo(np.int64).max)

# Typed constants: with plain ones numba would compile a callee once for each value.
_QUOTE, _COMMA, _NEWLINE, _RETURN = np.uint8(34), np.uint8(44), np.uint8(10), np.uint8(13)


class RecordSource(NamedTuple):
    """Bytes that begin at a record's start. `final`: the file ends where they end."""

    buffer: NDArray[np.uint8]
    final: bool
    max_record_bytes: int


class FieldTarget(NamedTuple):
    """Where the begin and end of field number k of a record go: `fields[slots[k], record]`.

    `slots[k]` is -1 when nobody wants the field; there are as many slots as columns. The end is
    stored inverted (`~end`) when the field holds doubled quotes.
    """

    slots: NDArray[np.int32]
    fields: NDArray[np.int32]


_SOURCE = Parts(RecordSource, (BYTES, FLAG, INT))
_TARGET = Parts(FieldTarget, (Array("i4"), filled("i4", 3)))


@compiled
def _closing_quote(buffer: Any, start: int, end: int) -> tuple[int, bool]:
    """From just after an opening quote: where the closing one stands (or `end`), and whether
    doubled quotes were seen on the way."""
    doubled = False
    i = find_byte(buffer, start, end, _QUOTE)
    while i + 1 < end and buffer[i + 1] == _QUOTE:
        doubled = True
        i = find_byte(buffer, i + 2, end, _QUOTE)
    return i, doubled


@entry(_SOURCE, INT, _TARGET, INT, INT, gives=(INT, INT))
def read_record(source: Any, start: int, target: Any, row: int, max_fields: int) -> tuple[int, int]:
    """The record at `start`: its verdict, and where the next one begins or the damage shows.

    Reading stops as too many at the first field beyond `max_fields`.
    """
    buffer, final, max_record_bytes = source
    slots, fields = target
    end = len(buffer)
    limit = start + max_record_bytes
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
                return (UNCLOSED_QUOTE if final or end > limit else UNFINISHED), reach
            i = stop + 1
            if i < end and buffer[i] == _RETURN and (i + 1 == end or buffer[i + 1] == _NEWLINE):
                i += 1
            if i == end and not final:
                return UNFINISHED, start
            if i < end and buffer[i] != _NEWLINE and buffer[i] != _COMMA:
                return STRAY_QUOTE, i
        else:
            i = find_either(buffer, i, end, _COMMA, _NEWLINE)
            stop = i
            if i == end and not final:
                return (TOO_LONG if end > limit else UNFINISHED), end
            line_ends = i == end or buffer[i] == _NEWLINE
            if line_ends and stop > begin and buffer[stop - 1] == _RETURN:
                stop -= 1
        if i > limit:
            return TOO_LONG, i
        if count < len(slots) and slots[count] >= 0:
            fields[slots[count], row, 0] = begin
            fields[slots[count], row, 1] = ~stop if doubled else stop
        count += 1
        if i == end or buffer[i] == _NEWLINE:
            break
        if count > max_fields:
            return TOO_MANY, i
        i += 1
    after = min(i + 1, end)
    if count == len(slots):
        return SOUND, after
    return (TOO_FEW if count < len(slots) else TOO_MANY), after


@compiled
def _skip_blank(source: Any, start: int) -> int:
    """Past a line with nothing on it, or `start` when there is something (or may be)."""
    buffer, final, _ = source
    after = start
    if buffer[after] == _RETURN:
        after += 1
    if after == len(buffer):
        return after if final else start
    return after + 1 if buffer[after] == _NEWLINE else start


@compiled
def _sound_line(source: Any, line: int, after: int, target: Any, row: int) -> int:
    """The first of the lines from `line` to `after` on which a sound record begins; `after` when
    there is none, -1 when more bytes must decide."""
    missing = after
    while line < after:
        if _skip_blank(source, line) == line:
            verdict, _ = read_record(source, line, target, row, len(target.slots))
            if verdict == SOUND:
                return line
            if verdict == UNFINISHED:
                missing = int64(-1)
        line = find_byte(source.buffer, line, after, _NEWLINE) + 1
    return missing


class Damage(NamedTuple):
    """Where damaged records begin, and what is wrong with them."""

    starts: NDArray[np.int64]
    verdicts: NDArray[np.int8]


_DAMAGE = Parts(Damage, (filled("i8"), filled("i1")))


@entry(_SOURCE, _TARGET, filled("i8"), _DAMAGE, gives=(INT, INT, INT))
def scan(source: Any, target: Any, starts: Any, damage: Any) -> tuple[int, int, int]:
    """All records of the source: how many are sound, how many damaged, how many bytes they take.

    What follows the last whole record is not counted as taken, unless the source is final.
    `target` and `starts` are filled for sound records, `damage` for the others.
    """
    buffer, final, _ = source
    end = len(buffer)
    rows = int64(0)
    damaged = int64(0)
    i = int64(0)
    sound = int64(0)  # the line that last proved an earlier one to be an unclosed quote
    while i < end:
        after = _skip_blank(source, i)
        if after > i:
            i = after
            continue
        verdict, after = read_record(source, i, target, rows, ALL_FIELDS)
        if verdict == UNFINISHED:
            break
        if verdict != SOUND:
            line_end = find_byte(buffer, i, end, _NEWLINE)
            if line_end == end and not final:
                break
            next_line = min(line_end + 1, end)
            if verdict in (TOO_FEW, TOO_MANY):
                if not i < sound < after:
                    sound = _sound_line(source, next_line, after, target, rows)
                if sound < 0:
                    break
                if sound < after:
                    verdict, after = UNCLOSED_QUOTE, next_line
            else:
                if line_end < after:
                    verdict = UNCLOSED_QUOTE
                after = next_line
        if verdict == SOUND:
            starts[rows] = i
            rows += 1
        else:
            damage.starts[damaged] = i
            damage.verdicts[damaged] = verdict
            damaged += 1
        i = after
    return rows, damaged, i


@entry(_SOURCE, _TARGET, filled("i8"), _DAMAGE, gives=(INT, INT, INT))
def scan_plain(source: Any, target: Any, starts: Any, damage: Any) -> tuple[int, int, int]:
    """What `scan` gives for bytes without any quote, where every newline ends a record.

    Commas and newlines are found 64 bytes at a time. A record that is longer than the bound is
    the one thing that is left to `scan`: then -1 are sound.
    """
    buffer, final, max_record_bytes = source
    slots, fields = target
    end = len(buffer)
    last = int64(len(slots) - 1)
    rows = int64(0)
    damaged = int64(0)
    count = int64(0)
    start = int64(0)
    begin = int64(0)
    block = int64(0)
    while block <= end:
        newlines, bits = _marks(buffer, block, end, final)
        while bits:
            mark = bits & (~bits + uint64(1))
            at = block + lowest_bit(bits)
            bits ^= mark
            if not newlines & mark:
                if count < last and slots[count] >= 0:
                    _put(fields, rows, slots[count], begin, at)
                count += 1
                begin = at + 1
                continue
            if at - start > max_record_bytes:
                return int64(-1), int64(0), int64(0)
            stop = at - 1 if at > begin and buffer[at - 1] == _RETURN else at
            if count == last and (count > 0 or stop > start):
                if slots[count] >= 0:
                    _put(fields, rows, slots[count], begin, stop)
                starts[rows] = start
                rows += 1
            elif count > 0 or stop > start:  # else nothing stands on the line
                damage.starts[damaged] = start
                damage.verdicts[damaged] = TOO_FEW if count < last else TOO_MANY
                damaged += 1
            count = int64(0)
            begin = start = at + 1
        block += 64
    if end - start > max_record_bytes:
        return int64(-1), int64(0), int64(0)
    return rows, damaged, min(start, end)


@inlined
def _marks(buffer: Any, block: int, end: int, final: bool) -> Any:
    """Which of 64 bytes are newlines, and which are newlines or commas. A final buffer ends with
    a newline, there or not."""
    if block + 64 <= end:
        newlines = equal_bits(buffer, block, _NEWLINE)
        return newlines, equal_bits(buffer, block, _COMMA) | newlines
    newlines = bits = uint64(0)
    for k in range(end - block):
        bit = uint64(1) << uint64(k)
        if buffer[block + k] == _NEWLINE:
            newlines |= bit
        if buffer[block + k] in (_COMMA, _NEWLINE):
            bits |= bit
    if final:
        bit = uint64(1) << uint64(end - block)
        newlines |= bit
        bits |= bit
    return newlines, bits


@inlined
def _put(fields: Any, row: int, slot: int, begin: int, end: int) -> None:
    """Unsigned places spare the compiled code a look at each one's sign."""
    fields[uint64(slot), uint64(row), 0] = begin
    fields[uint64(slot), uint64(row), 1] = end


@dataclass(frozen=True)
class Records:
    """What `scan` found in a buffer: one row per sound record, and the damaged ones."""

    fields: NDArray[np.int32]  # [wanted column, record, (begin, end)]
    starts: NDArray[np.int64]  # byte offset of each record
    damage: Damage
    bytes_taken: int


def scan_records(buffer: NDArray[np.uint8], slots: NDArray[np.int32], *, final: bool) -> Records:
    """The records of a buffer that begins at a record's start; `slots` as in `FieldTarget`.

    The one entrance to `scan` and `scan_plain`: the compiled code checks no bounds, so the room
    that it fills is counted here, from these bytes, and from nothing that came with them.
    """
    _require_places(buffer)
    sound_room, room = _room(buffer, len(slots))
    columns = max(int(slots.max(initial=-1)) + 1, 1)
    if columns > max(len(slots), 1):
        raise ValueError(f"{len(slots)} fields of a record cannot fill {columns} columns")
    fields = np.empty((columns, sound_room, 2), dtype=np.int32)
    starts = np.empty(sound_room, dtype=np.int64)
    damage = Damage(np.empty(room, dtype=np.int64), np.empty(room, dtype=np.int8))
    source = RecordSource(buffer, final, MAX_RECORD_BYTES)
    target = FieldTarget(slots, fields)
    sound = -1
    if not has_quote(buffer):
        sound, damaged, taken = scan_plain(source, target, starts, damage)
    if sound < 0:
        sound, damaged, taken = scan(source, target, starts, damage)
    damage = Damage(damage.starts[:damaged].copy(), damage.verdicts[:damaged].copy())
    return Records(fields[:, :sound], starts[:sound], damage, taken)


def _require_places(buffer: NDArray[np.uint8]) -> None:
    """Places in a batch are stored in 32 bits, of which one marks doubled quotes."""
    if buffer.dtype != np.uint8 or buffer.ndim != 1 or not buffer.flags.c_contiguous:
        raise ValueError("records are read from one row of bytes")
    if len(buffer) > MAX_BATCH_BYTES:
        raise DataError(
            f"{len(buffer)} bytes of records at once are too many: {MAX_BATCH_BYTES} are the most"
        )


def _room(buffer: NDArray[np.uint8], width: int) -> tuple[int, int]:
    """How many sound records there can be, with one more that turns out not to be, and how many
    damaged ones.

    Each ends with a line, and none is shorter than its commas and its end: so what is made of some
    bytes stays in proportion to them, however many columns somebody names.
    """
    lines, size = count_newlines(buffer) + 1, len(buffer) + 1
    return min(lines, size // max(width, 2) + 1), min(lines, size // 2 + 1)


def told_verdicts(buffer: NDArray[np.uint8], damage: Damage) -> NDArray[np.int8]:
    """The verdicts of damaged records; of a marked line the one that it tells."""
    verdicts = damage.verdicts.copy()
    after = len(MARK)
    for place in np.flatnonzero(verdicts == STRAY_QUOTE):
        start = int(damage.starts[place])
        line = buffer[start : start + after + 1].tobytes()
        if len(line) > after and line.startswith(MARK) and line[after] - 48 in REASONS:
            verdicts[place] = line[after] - 48
    return verdicts


def has_quote(buffer: NDArray[np.uint8]) -> bool:
    return bool(holds_byte(buffer, _QUOTE))


def count_newlines(buffer: NDArray[np.uint8]) -> int:
    count = np.empty(1, dtype=np.int64)
    count_between(buffer, np.array([len(buffer)]), _NEWLINE, count)
    return int(count[0])


def after_last_newline(buffer: NDArray[np.uint8]) -> int:
    """Where the line begins that is not ended yet; 0 when no line is."""
    end = len(buffer)
    while end:
        start = max(0, end - _TAIL_BYTES)
        found = buffer[start:end].tobytes().rfind(b"\n")
        if found >= 0:
            return start + found + 1
        end = start
    return 0
