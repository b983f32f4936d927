"""Find where CSV records begin and end, and which are valid. No other code parses CSV.

Rules:
1. A quote opens a quoted field only as the field's first byte; inside it quotes are doubled, and
   commas and line ends are text. Anywhere else a quote is an ordinary character.
2. A record ends at `\\n`, `\\r\\n` or the end of the input, outside quoted fields. Lines with
   nothing on them are skipped.
3. A closing quote must be followed by a comma or the end of the record. If not, the record is
   damaged: its first physical line is rejected, and reading continues at the next line. The reason
   is a stray quote if this shows on the first line, else an unclosed quote.
4. The same holds for a quoted field that does not close within `MAX_RECORD_BYTES` of the start of
   its record, and for a longer record. This bound limits memory, and the time one quote can cost.
5. A record with the wrong number of fields is rejected with all its physical lines. But if a valid
   record starts on a later one of these lines, the first line had an unclosed quote, and only the
   first line is rejected.

A line that starts with `MARK` and a verdict stands for a damaged record of a file in another
dialect (files/canonical.py). Rule 3 rejects it in any file; `told_verdicts` reads the reason.

If an unclosed quote joins lines to a record with the right number of fields, the record is valid:
its bytes are the same as those of a text with several lines.

The places where batches are cut do not change what is found. The bound of rule 4 counts from the
start of the record. Damage that shows on a later line rejects only the first line, with the same
reason, so a batch that ends between the two lines gives the same result.
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
    NOT_AN_OBJECT: "not a JSON object",  # for files of JSON lines (files/json_lines.py)
}

MARK = b'""\x1a'

_TAIL_BYTES = 1 << 16

ALL_FIELDS = np.int64(np.iinfo(np.int64).max)

# Typed constants: with plain integers numba compiles a called function once for each value.
_QUOTE, _COMMA, _NEWLINE, _RETURN = np.uint8(34), np.uint8(44), np.uint8(10), np.uint8(13)


class RecordSource(NamedTuple):
    """Bytes that start at a record. `final`: the file ends with them."""

    buffer: NDArray[np.uint8]
    final: bool
    max_record_bytes: int


class FieldTarget(NamedTuple):
    """Where to store the begin and end of field number k of a record: `fields[slots[k], record]`.

    There are as many slots as columns; `slots[k]` is -1 if the field is not wanted. The end is
    stored inverted (`~end`) if the field has doubled quotes.
    """

    slots: NDArray[np.int32]
    fields: NDArray[np.int32]


_SOURCE = Parts(RecordSource, (BYTES, FLAG, INT))
_TARGET = Parts(FieldTarget, (Array("i4"), filled("i4", 3)))


@compiled
def _closing_quote(buffer: Any, start: int, end: int) -> tuple[int, bool]:
    """Return the offset of the closing quote, or `end`, and whether doubled quotes came before.

    `start` is the offset after the opening quote.
    """
    doubled = False
    i = find_byte(buffer, start, end, _QUOTE)
    while i + 1 < end and buffer[i + 1] == _QUOTE:
        doubled = True
        i = find_byte(buffer, i + 2, end, _QUOTE)
    return i, doubled


@entry(_SOURCE, INT, _TARGET, INT, INT, gives=(INT, INT))
def read_record(source: Any, start: int, target: Any, row: int, max_fields: int) -> tuple[int, int]:
    """Return the verdict of the record at `start`, and where the next starts or the damage shows.

    The verdict is "too many" as soon as there are more than `max_fields` fields.
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
    """Return the offset after an empty line; `start` if the line is not, or may not be, empty."""
    buffer, final, _ = source
    after = start
    if buffer[after] == _RETURN:
        after += 1
    if after == len(buffer):
        return after if final else start
    return after + 1 if buffer[after] == _NEWLINE else start


@compiled
def _sound_line(source: Any, line: int, after: int, target: Any, row: int) -> int:
    """Return the first line from `line` to `after` on which a valid record starts.

    It is `after` if there is none, and -1 if more bytes are needed to decide.
    """
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
    """The offsets of damaged records, and their verdicts."""

    starts: NDArray[np.int64]
    verdicts: NDArray[np.int8]


_DAMAGE = Parts(Damage, (filled("i8"), filled("i1")))


@entry(_SOURCE, _TARGET, filled("i8"), _DAMAGE, gives=(INT, INT, INT))
def scan(source: Any, target: Any, starts: Any, damage: Any) -> tuple[int, int, int]:
    """Find all records. Return how many are valid, how many are damaged, and their total size.

    Bytes after the last whole record do not count, unless the source is final. `target` and
    `starts` are filled for valid records, `damage` for the others.
    """
    buffer, final, _ = source
    end = len(buffer)
    rows = int64(0)
    damaged = int64(0)
    i = int64(0)
    sound = int64(0)  # the last line that showed an unclosed quote on an earlier line
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
    """Return what `scan` returns, for bytes without quotes, where every newline ends a record.

    Commas and newlines are found 64 bytes at a time. If a record is longer than the bound, the
    first number is -1, and the caller must use `scan`.
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
            elif count > 0 or stop > start:  # else the line is empty
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
    """Return which of 64 bytes are newlines, and which are newlines or commas, as bits.

    A final buffer counts as if a newline followed it.
    """
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
    """Store the place of a field. With unsigned indexes, the compiled code checks no signs."""
    fields[uint64(slot), uint64(row), 0] = begin
    fields[uint64(slot), uint64(row), 1] = end


@dataclass(frozen=True)
class Records:
    """The records of a buffer: one row per valid record, and the damaged ones."""

    fields: NDArray[np.int32]  # [wanted column, record, (begin, end)]
    starts: NDArray[np.int64]  # byte offset of each record
    damage: Damage
    bytes_taken: int


def scan_records(buffer: NDArray[np.uint8], slots: NDArray[np.int32], *, final: bool) -> Records:
    """Return the records of a buffer that starts at a record. For `slots` see `FieldTarget`.

    Only this function calls `scan` and `scan_plain`. The compiled code checks no bounds, so the
    sizes of the arrays are computed here, from these bytes alone.
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
    """Refuse a batch whose offsets do not fit into 31 bits. One bit marks doubled quotes."""
    if buffer.dtype != np.uint8 or buffer.ndim != 1 or not buffer.flags.c_contiguous:
        raise ValueError("records are read from one row of bytes")
    if len(buffer) > MAX_BATCH_BYTES:
        raise DataError(
            f"{len(buffer)} bytes of records at once are too many: {MAX_BATCH_BYTES} are the most"
        )


def _room(buffer: NDArray[np.uint8], width: int) -> tuple[int, int]:
    """Return the most valid records that these bytes can hold, plus one, and the most damaged ones.

    Every record ends with a line and has at least its commas and its end. So the arrays stay in
    proportion to the bytes, whatever number of columns is claimed. The one more is for a record
    that proves to be damaged after its fields were stored.
    """
    lines, size = count_newlines(buffer) + 1, len(buffer) + 1
    return min(lines, size // max(width, 2) + 1), min(lines, size // 2 + 1)


def told_verdicts(buffer: NDArray[np.uint8], damage: Damage) -> NDArray[np.int8]:
    """Return the verdicts of damaged records. A marked line tells its own."""
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
    """Return the offset after the last newline; 0 if there is none."""
    end = len(buffer)
    while end:
        start = max(0, end - _TAIL_BYTES)
        found = buffer[start:end].tobytes().rfind(b"\n")
        if found >= 0:
            return start + found + 1
        end = start
    return 0
