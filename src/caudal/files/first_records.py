"""The first records of a text in any dialect, with all their fields, however many each has.

The kernel decides what a record is. It is called once for many records where that is certain: a
line without quotes is a record, and one scan finds all records that are as wide as the first. A
call for each record would take a tenth of the time of a short command.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from caudal.kernels.csv import records as kernel
from caudal.kernels.csv.header import read_fields

SAMPLE_BYTES = 1 << 18
_RECORDS = 200


@dataclass(frozen=True)
class FirstRecord:
    """One of the first records: its fields (none if it is damaged) and where it ends."""

    fields: tuple[str, ...]
    after: int

    @property
    def width(self) -> int:
        return len(self.fields)


def first_records(text: bytes, delimiter: str, quote: str, *, final: bool) -> Iterator[FirstRecord]:
    """Yield the first records of a text in a dialect; the last one only if it is complete."""
    back = swap_table(delimiter, quote)
    swapped = text.translate(back)
    source = kernel.RecordSource(
        np.frombuffer(swapped, dtype=np.uint8), final, kernel.MAX_RECORD_BYTES
    )
    known: dict[int, _PlacedFields] | None = None
    place = width = 0
    for _ in range(_RECORDS):
        while place < len(text) and text[place] in b"\r\n":
            place += 1
        if place >= len(text):
            return
        found = _unquoted_record(swapped, place, final=final)
        if found is None and width:
            known = _sound_records(source, place, width) if known is None else known
            found = known.get(place)
        found = found or _any_record(source, place)
        if found is None:
            return
        width = width or len(found.fields)
        yield FirstRecord(
            tuple(one.translate(back).decode("utf-8", "replace").strip() for one in found.fields),
            found.after,
        )
        place = found.after


class _PlacedFields(NamedTuple):
    """The fields of a record, none if it is damaged, and where it ends."""

    fields: list[bytes]
    after: int


def _unquoted_record(data: bytes, place: int, *, final: bool) -> _PlacedFields | None:
    """Return the record on a line without quotes; None if the kernel must decide."""
    end = data.find(b"\n", place)
    line = data[place:end] if end >= 0 else data[place:]
    if (end < 0 and not final) or b'"' in line or len(line) >= kernel.MAX_RECORD_BYTES:
        return None
    return _PlacedFields(line.split(b","), end + 1 if end >= 0 else len(data))


def _sound_records(source: kernel.RecordSource, place: int, width: int) -> dict[int, _PlacedFields]:
    """Return records that have as many fields, by their places; one call of the kernel finds many.

    Where it finds none, `_any_record` decides, which takes one call for each record.
    """
    part = source.buffer[place : place + SAMPLE_BYTES]
    final = source.final and place + len(part) == len(source.buffer)
    found = kernel.scan_records(part, np.arange(width, dtype=np.int32), final=final)
    data = part.tobytes()
    spans = found.fields[:, :_RECORDS].transpose(1, 0, 2).tolist()
    return {
        place + start: _PlacedFields(
            [_unescaped(data[begin : max(end, ~end)], doubled=end < 0) for begin, end in fields],
            place + ((data.find(b"\n", max(fields[-1][1], ~fields[-1][1])) + 1) or len(data)),
        )
        for start, fields in zip(found.starts.tolist(), spans, strict=False)
    }


def _unescaped(field: bytes, *, doubled: bool) -> bytes:
    return field.replace(b'""', b'"') if doubled else field


def _any_record(source: kernel.RecordSource, place: int) -> _PlacedFields | None:
    """Return the record at a place; None if it is not complete."""
    verdict, after, fields = read_fields(source, place)
    if verdict == kernel.UNFINISHED:
        return None
    if verdict in (kernel.TOO_FEW, kernel.TOO_MANY):
        return _PlacedFields(fields, after)
    line_end = source.buffer[place:].tobytes().find(b"\n") + 1
    return _PlacedFields([], place + line_end if line_end else len(source.buffer))


def swap_table(delimiter: str, quote: str) -> bytes:
    """Return a table that swaps the delimiter with the comma and the quote with `"`.

    So the one state machine reads every dialect. The same table swaps back. Without a quote (an
    empty text), `"` is swapped with a byte that no UTF-8 text holds.
    """
    table = bytearray(range(256))
    for one, other in ((delimiter.encode(), b","), (quote.encode() or b"\xff", b'"')):
        table[one[0]], table[other[0]] = table[other[0]], table[one[0]]
    return bytes(table)
