"""Cutting a stream of CSV bytes into batches of whole records.

A batch is cut at a record's true end, about `batch_bytes` long, and carries what anyone needs to
read it alone: the header, the number of its first physical line, its offset in the file.
Whether a file is read whole or batch by batch, the same records are found (records.py).
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from caudal.errors import DataError
from caudal.kernels.bytescan import count_between
from caudal.kernels.csv import records
from caudal.kernels.csv.header import Header, read_header

DEFAULT_BATCH_BYTES = 8 << 20
_NEWLINE = np.uint8(10)


@dataclass(frozen=True)
class Batch:
    """Whole records of one file."""

    file: str
    header: Header
    number: int
    first_line: int
    offset: int
    newlines: int
    data: NDArray[np.uint8] = field(repr=False)
    found: "Found | None" = field(default=None, repr=False)

    def lines(self, starts: NDArray[np.int64]) -> NDArray[np.int64]:
        """The physical line, counted from 1, at each of these ascending offsets."""
        counts = np.empty(len(starts), dtype=np.int64)
        count_between(self.data, starts, _NEWLINE, counts)
        return self.first_line + counts

    def records(self, slots: NDArray[np.int32]) -> records.Records:
        """The batch's records, as cutting found them or as they are found now."""
        if self.found is not None and np.array_equal(self.found.slots, slots):
            return self.found.records
        return records.scan_records(self.data, slots, final=True, newlines=self.newlines)


@dataclass(frozen=True)
class Found:
    """The records of a batch that had to be scanned in order to be cut."""

    slots: NDArray[np.int32]
    records: records.Records


def cut_batches(
    read: Callable[[int], bytes],
    file: str,
    *,
    batch_bytes: int = DEFAULT_BATCH_BYTES,
    wanted: Sequence[str] = (),
) -> Iterator[Batch]:
    """Batches of the CSV that `read(n)` delivers (at most n bytes a call, empty at the end).

    A file that holds only a header gives one batch without records, so that its header can
    still be checked. `wanted` names the columns that will be read: a batch that must be scanned
    to be cut then need not be scanned again.
    """
    header, offset, data, final = _read_to_header(read, file, batch_bytes)
    slots = header.slots([name for name in wanted if name in header.names])
    line = 1 + data[:offset].count(b"\n")
    number = 0
    rest = data[offset:]
    while True:
        buffer = np.frombuffer(rest, dtype=np.uint8)
        newlines = records.count_newlines(buffer)
        taken, found = _whole_records(rest, buffer, slots, newlines, final=final)
        if taken or (final and number == 0):
            newlines -= records.count_newlines(buffer[taken:])
            yield Batch(file, header, number, line, offset, newlines, buffer[:taken], found)
            number += 1
            offset += taken
            line += newlines
        elif len(rest) > _longest_line_bytes():
            raise DataError(
                f"{file}: line {line} does not end within {_longest_line_bytes() >> 20} MiB: "
                "is this a CSV file?"
            )
        if final:
            return
        more, final = _read_full(read, batch_bytes)
        rest = rest[taken:] + more


def _read_to_header(
    read: Callable[[int], bytes], file: str, batch_bytes: int
) -> tuple[Header, int, bytes, bool]:
    """The header, the bytes it takes, the bytes read so far, and whether those are all."""
    data, final = _read_full(read, batch_bytes)
    while (found := read_header(data, file, final=final)) is None:
        if len(data) > _longest_line_bytes():
            raise DataError(f"{file} is not CSV text: it begins with nothing but blank lines")
        more, final = _read_full(read, batch_bytes)
        data += more
    return *found, data, final


def _longest_line_bytes() -> int:
    """A line may be longer than a record, so that it is lost alone; but not without bound."""
    return 8 * records.MAX_RECORD_BYTES


def _whole_records(
    data: bytes,
    buffer: NDArray[np.uint8],
    slots: NDArray[np.int32],
    newlines: int,
    *,
    final: bool,
) -> tuple[int, Found | None]:
    """How many of these bytes are whole records, and those records if it took a scan to know.
    Without any quote every newline ends one."""
    if final:
        return len(data), None
    if not records.has_quote(buffer):
        return data.rfind(b"\n") + 1, None
    found = records.scan_records(buffer, slots, final=False, newlines=newlines)
    return found.bytes_taken, Found(slots, found)


def _read_full(read: Callable[[int], bytes], size: int) -> tuple[bytes, bool]:
    """`size` bytes, or fewer at the end of the stream; and whether that was the end."""
    parts: list[bytes] = []
    missing = size
    while missing:
        part = read(missing)
        if not part:
            return b"".join(parts), True
        parts.append(part)
        missing -= len(part)
    return parts[0] if len(parts) == 1 else b"".join(parts), False
