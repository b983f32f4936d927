"""Cut a stream of CSV bytes into batches of whole records.

A batch ends at the end of a record and has about `batch_bytes`. It can be read without the other
batches: it carries the header, the number of its first physical line and its offset in the file.
Reading a whole file and reading its batches find the same records (records.py).
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
    newlines: int  # to number the next batch; the reader trusts none of these numbers
    data: NDArray[np.uint8] = field(repr=False)
    found: "Found | None" = field(default=None, repr=False)

    def lines(self, starts: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the number of the physical line, from 1, at each of these ascending offsets."""
        counts = np.empty(len(starts), dtype=np.int64)
        count_between(self.data, starts, _NEWLINE, counts)
        return self.first_line + counts

    def records(self, slots: NDArray[np.int32]) -> records.Records:
        """Return the batch's records. They are scanned unless the cut has already found them."""
        if self.found is not None and np.array_equal(self.found.slots, slots):
            return self.found.records
        return records.scan_records(self.data, slots, final=True)


@dataclass(frozen=True)
class Found:
    """The records of a batch that was scanned to find its end."""

    slots: NDArray[np.int32]
    records: records.Records


class Stream(Protocol):
    """A source of bytes: a binary file, or anything with its `readinto`."""

    def readinto(self, buffer: Any, /) -> int | None: ...


def cut_batches(
    stream: Stream,
    file: str,
    *,
    batch_bytes: int = DEFAULT_BATCH_BYTES,
    wanted: Sequence[str] = (),
    first_line: int = 1,
    passing: bool = False,
) -> Iterator[Batch]:
    """Yield the batches of the CSV in a stream. `file` is its name in messages.

    A file with only a header gives one batch without records, so that its header can be checked.
    `wanted` names the columns that will be read. A batch that is scanned to find its end is then
    not scanned again. `first_line` is the number of the first line. With `passing`, the data of a
    batch is gone when the next one is asked for: all are read into the same memory.
    """
    reader = _Reader(stream, batch_bytes, passing=passing)
    header, offset, data, final = _read_to_header(reader, file)
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
        rest, final = reader.more(rest[taken:])


def whole_bytes(data: NDArray[np.uint8], header: Header) -> int:
    """Return how many of these bytes are whole records. They start at a record; more may follow."""
    return _whole_records(data, header.slots(()), final=False)[0]


def _read_to_header(reader: "_Reader", file: str) -> tuple[Header, int, NDArray[np.uint8], bool]:
    """Return the header, its size, the bytes read so far, and whether the stream has ended."""
    data, final = reader.more(np.empty(0, dtype=np.uint8))
    while (found := read_header(data, file, final=final)) is None:
        if len(data) > _longest_line_bytes():
            raise DataError(f"{file} is not CSV text: it begins with nothing but blank lines")
        data, final = reader.more(data)
    return *found, data, final


def _longest_line_bytes() -> int:
    """Return the limit of a line. It is above that of a record, so that only the record is lost."""
    return 8 * records.MAX_RECORD_BYTES


def _whole_records(
    data: NDArray[np.uint8], slots: NDArray[np.int32], *, final: bool
) -> tuple[int, Found | None]:
    """Return how many of these bytes are whole records, and the records if a scan was needed.

    Without quotes no scan is needed: every newline ends a record.
    """
    if final:
        return len(data), None
    if not records.has_quote(data):
        return records.after_last_newline(data), None
    found = records.scan_records(data, slots, final=False)
    return found.bytes_taken, Found(slots, found)


class _Reader:
    """Reads a stream, `size` bytes at a time, each time into new memory unless it is `passing`."""

    def __init__(self, stream: Stream, size: int, *, passing: bool) -> None:
        self._stream, self._size, self._passing = stream, size, passing
        self._room = np.empty(0, dtype=np.uint8)

    def more(self, rest: NDArray[np.uint8]) -> tuple[NDArray[np.uint8], bool]:
        """Return `rest` followed by up to `size` more bytes, and whether the stream has ended."""
        data = self._memory(len(rest) + self._size)
        data[: len(rest)] = rest  # which may be in the same memory: numpy allows that
        filled = len(rest)
        while filled < len(data):
            count = self._stream.readinto(data[filled:].data)
            if not count:
                return data[:filled], True
            filled += count
        return data, False

    def _memory(self, size: int) -> NDArray[np.uint8]:
        if not self._passing:
            return np.empty(size, dtype=np.uint8)
        if len(self._room) < size:
            self._room = np.empty(size + size // 8, dtype=np.uint8)
        return self._room[:size]
