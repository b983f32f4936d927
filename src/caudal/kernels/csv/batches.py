"""Cutting a stream of CSV bytes into batches of whole records.

A batch is cut at a record's true end, about `batch_bytes` long, and carries what anyone needs to
read it alone: the header, the number of its first physical line, its offset in the file.
Whether a file is read whole or batch by batch, the same records are found (records.py).
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from caudal.errors import DataError
from caudal.kernels.bytescan import find_byte
from caudal.kernels.csv import records
from caudal.kernels.csv.header import Header, read_header

DEFAULT_BATCH_BYTES = 8 << 20
_QUOTE, _NEWLINE = np.uint8(34), np.uint8(10)


@dataclass(frozen=True)
class Batch:
    """Whole records of one file."""

    file: str
    header: Header
    number: int
    first_line: int
    offset: int
    data: NDArray[np.uint8] = field(repr=False)

    def lines(self, starts: NDArray[np.int64]) -> NDArray[np.int64]:
        """The physical line, counted from 1, at each byte offset of this batch."""
        newlines = np.flatnonzero(self.data == _NEWLINE)
        return self.first_line + np.searchsorted(newlines, starts)


def cut_batches(
    read: Callable[[int], bytes], file: str, *, batch_bytes: int = DEFAULT_BATCH_BYTES
) -> Iterator[Batch]:
    """Batches of the CSV that `read(n)` delivers (at most n bytes a call, empty at the end).

    A file that holds only a header gives one batch without records, so that its header can
    still be checked.
    """
    header, offset, data, final = _read_to_header(read, file, batch_bytes)
    line = 1 + data[:offset].count(b"\n")
    number = 0
    rest = data[offset:]
    while True:
        taken = _whole_records(rest, header, final=final)
        if taken or (final and number == 0):
            batch = np.frombuffer(rest, dtype=np.uint8, count=taken)
            yield Batch(file, header, number, line, offset, batch)
            number += 1
            offset += taken
            line += int(np.count_nonzero(batch == _NEWLINE))
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


def _whole_records(data: bytes, header: Header, *, final: bool) -> int:
    """How many of these bytes are whole records. Without any quote every newline ends one."""
    if final:
        return len(data)
    buffer = np.frombuffer(data, dtype=np.uint8)
    if find_byte(buffer, 0, len(buffer), _QUOTE) == len(buffer):
        return data.rfind(b"\n") + 1
    return records.scan_records(buffer, header.slots(()), final=False).bytes_taken


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
