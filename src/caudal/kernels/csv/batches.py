"""Cutting a stream of CSV bytes into batches of whole records.

A batch is cut at a record's true end, about `batch_bytes` long, and carries what anyone needs to
read it alone: the header, the number of its first physical line, its offset in the file.
Whether a file is read whole or batch by batch, the same records are found (records.py).
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

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
    newlines: int  # for whoever follows the file; reading relies on none of these numbers
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
        return records.scan_records(self.data, slots, final=True)


@dataclass(frozen=True)
class Found:
    """The records of a batch that had to be scanned in order to be cut."""

    slots: NDArray[np.int32]
    records: records.Records


class Stream(Protocol):
    """Where bytes come from: a binary file, or anything that fills a buffer like one."""

    def readinto(self, buffer: Any, /) -> int | None: ...


def cut_batches(
    stream: Stream,
    file: str,
    *,
    batch_bytes: int = DEFAULT_BATCH_BYTES,
    wanted: Sequence[str] = (),
    first_line: int = 1,
) -> Iterator[Batch]:
    """Batches of the CSV in a stream; `file` is its name in messages.

    A file that holds only a header gives one batch without records, so that its header can
    still be checked. `wanted` names the columns that will be read: a batch that must be scanned
    to be cut then need not be scanned again. `first_line` is the number of the first line.
    """
    header, offset, data, final = _read_to_header(stream, file, batch_bytes)
    slots = header.slots([name for name in wanted if name in header.names])
    line = first_line + records.count_newlines(data[:offset])
    number = 0
    rest = data[offset:]
    while True:
        newlines = records.count_newlines(rest)
        taken, found = _whole_records(rest, slots, final=final)
        if taken or (final and number == 0):
            newlines -= records.count_newlines(rest[taken:])
            yield Batch(file, header, number, line, offset, newlines, rest[:taken], found)
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
        rest, final = _read_more(stream, rest[taken:], batch_bytes)


def whole_bytes(data: NDArray[np.uint8], header: Header) -> int:
    """How many of these bytes, which begin at a record, are whole records; more may follow them."""
    return _whole_records(data, header.slots(()), final=False)[0]


def _read_to_header(
    stream: Stream, file: str, batch_bytes: int
) -> tuple[Header, int, NDArray[np.uint8], bool]:
    """The header, the bytes it takes, the bytes read so far, and whether those are all."""
    data, final = _read_more(stream, np.empty(0, dtype=np.uint8), batch_bytes)
    while (found := read_header(data, file, final=final)) is None:
        if len(data) > _longest_line_bytes():
            raise DataError(f"{file} is not CSV text: it begins with nothing but blank lines")
        data, final = _read_more(stream, data, batch_bytes)
    return *found, data, final


def _longest_line_bytes() -> int:
    """A line may be longer than a record, so that it is lost alone; but not without bound."""
    return 8 * records.MAX_RECORD_BYTES


def _whole_records(
    data: NDArray[np.uint8], slots: NDArray[np.int32], *, final: bool
) -> tuple[int, Found | None]:
    """How many of these bytes are whole records, and those records if it took a scan to know.
    Without any quote every newline ends one."""
    if final:
        return len(data), None
    if not records.has_quote(data):
        return records.after_last_newline(data), None
    found = records.scan_records(data, slots, final=False)
    return found.bytes_taken, Found(slots, found)


def _read_more(
    stream: Stream, rest: NDArray[np.uint8], size: int
) -> tuple[NDArray[np.uint8], bool]:
    """What is left, and `size` more bytes behind it (fewer at the end of the stream); and
    whether that was the end."""
    data = np.empty(len(rest) + size, dtype=np.uint8)
    data[: len(rest)] = rest
    filled = len(rest)
    while filled < len(data):
        count = stream.readinto(data[filled:].data)
        if not count:
            return data[:filled], True
        filled += count
    return data, False
