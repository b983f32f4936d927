"""Read the header of a CSV file. Columns are found by name, in any order, among any others.

A byte order mark and blank lines before the header are skipped, as are spaces around a name.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from caudal.errors import DataError
from caudal.kernels.csv import records

_BOM = b"\xef\xbb\xbf"
_UTF16 = (b"\xff\xfe", b"\xfe\xff")  # the first bytes of such a file


@dataclass(frozen=True)
class Header:
    """The column names of one file, in the file's order."""

    names: tuple[str, ...]

    @property
    def width(self) -> int:
        return len(self.names)

    def position(self, name: str) -> int:
        return self.names.index(name)

    def slots(self, wanted: Sequence[str]) -> NDArray[np.int32]:
        """Return for each field of a record its index among the wanted columns, or -1."""
        slots = np.full(self.width, -1, dtype=np.int32)
        for place, name in enumerate(wanted):
            slots[self.position(name)] = place
        return slots


def read_header(buffer: NDArray[np.uint8], file: str, *, final: bool) -> tuple[Header, int] | None:
    """Return the header at the start of a buffer and its size; None if it needs more bytes."""
    data = buffer.tobytes()
    source = records.RecordSource(buffer, final, records.MAX_RECORD_BYTES)
    if data.startswith(_UTF16) and b"\0" in data:
        raise DataError(f"{file} is UTF-16: convert it to UTF-8")
    start = len(data) - len(data.removeprefix(_BOM).lstrip(b"\r\n"))
    if final and not data[start:].strip():
        raise DataError(f"{file} is empty: a CSV file begins with a line of column names")
    verdict, after = records.read_record(source, start, _target(0), 0, records.ALL_FIELDS)
    if verdict == records.UNFINISHED:
        return None
    if verdict not in (records.TOO_FEW, records.TOO_MANY):
        raise DataError(f"{file} is not CSV text (its first line: {records.REASONS[verdict]})")
    if b"\0" in data[start:after]:
        raise DataError(f"{file} is not CSV text: its first line is no list of column names")
    names = tuple(one.decode("utf-8", "replace").strip() for one in read_fields(source, start)[2])
    if any("\r" in name.replace("\r\n", "") for name in names):
        raise DataError(f"{file} ends its lines with \\r alone: convert them to \\n")
    return Header(names), after


def read_fields(source: records.RecordSource, start: int) -> tuple[int, int, list[bytes]]:
    """Return the verdict of the record at `start` (too many if it is valid), its end and fields."""
    verdict, after = records.read_record(source, start, _target(0), 0, records.ALL_FIELDS)
    if verdict not in (records.TOO_FEW, records.TOO_MANY):
        return verdict, after, []
    target = _target(source.buffer[start:after].tobytes().count(b",") + 1)
    records.read_record(source, start, target, 0, records.ALL_FIELDS)
    spans = target.fields[:, 0]
    fields = [_field(source.buffer, int(begin), int(end)) for begin, end in spans if begin >= 0]
    return verdict, after, fields


def _field(buffer: NDArray[np.uint8], begin: int, end: int) -> bytes:
    data = buffer[begin : max(end, ~end)].tobytes()
    return data.replace(b'""', b'"') if end < 0 else data


def _target(columns: int) -> records.FieldTarget:
    """Return arrays for one record of which this many first fields are wanted."""
    return records.FieldTarget(
        np.arange(columns, dtype=np.int32), np.full((max(columns, 1), 1, 2), -1, dtype=np.int32)
    )
