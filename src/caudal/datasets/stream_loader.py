"""Load a stream while it comes: a version every few seconds, or whenever enough bytes are there.

Rows are loaded once, also if the stream comes again from its start (stream_parts.py). A version
holds whole records only. What was not reported as loaded is in memory, and comes again with the
stream.
"""

import os
import select
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np

from caudal.datasets.contents import HeldSource
from caudal.datasets.documents import StreamPart
from caudal.datasets.reports import LoadReport
from caudal.datasets.sources import Offered
from caudal.datasets.stream_parts import HEAD_BYTES, Beginning, StreamStep, next_step
from caudal.errors import DataError
from caudal.kernels.csv import Header, read_header, whole_bytes

MOST_BYTES = 64 << 20
NAME = "standard input"

_READ_BYTES = 1 << 20


class Bytes(Protocol):
    """Where a stream comes from."""

    def read(self, timeout: float | None) -> bytes | None:
        """Return some bytes, b"" at the end, None if none came within `timeout` seconds."""


@dataclass(frozen=True)
class Descriptor:
    """A stream that is read from a file descriptor."""

    number: int

    def read(self, timeout: float | None) -> bytes | None:
        ready, _, _ = select.select([self.number], [], [], timeout)
        return os.read(self.number, _READ_BYTES) if ready else None


@dataclass(frozen=True)
class StreamRows:
    """A part of a stream that is to be loaded: the header, and whole records."""

    offered: Offered
    part: StreamPart
    header: bytes
    records: bytes
    lines_before: int  # lines of the stream before these records, without the header


class StreamTarget(Protocol):
    """A dataset that a stream is loaded into."""

    def parts(self, table: str) -> Sequence[HeldSource]:
        """Return the parts of streams that versions have brought."""

    def settle(self) -> None:
        """Make the newest version durable, before something in it is reported."""

    def load(self, rows: StreamRows) -> LoadReport:
        """Load a part, as one version."""


@dataclass(frozen=True)
class SkippedPart:
    """A part of a stream that a version had brought before."""

    bytes: int
    version: int


Report = Callable[[LoadReport | SkippedPart], None]


@dataclass
class StreamLoader:
    """Loads one stream into one table."""

    target: StreamTarget
    table: str
    every: float  # seconds
    report: Report
    most_bytes: int = MOST_BYTES
    clock: Callable[[], float] = time.monotonic
    _data: bytearray = field(default_factory=bytearray)
    _lines: int = 0  # line ends in the records that are settled

    def load(self, stream: Bytes) -> None:
        """Load the stream until it ends; report every version when it is committed."""
        header, raw = self._header(stream)
        beginning = Beginning(raw)
        for is_end in self._moments(stream):
            self._settle(header, raw, beginning, is_end=is_end)

    def _header(self, stream: Bytes) -> tuple[Header, bytes]:
        is_end = False
        while True:
            found = read_header(np.frombuffer(self._data, np.uint8).copy(), NAME, final=is_end)
            if found is not None:
                header, size = found
                raw = bytes(self._data[:size])
                del self._data[:size]
                return header, raw
            if len(self._data) > self.most_bytes:
                raise DataError(f"{NAME} is not CSV text: its first line does not end")
            more = stream.read(None)
            is_end = more == b""
            self._data += more or b""

    def _moments(self, stream: Bytes) -> Iterator[bool]:
        """Yield whenever records should become a version; True at the end of the stream."""
        due = self.clock() + self.every
        while True:
            more = stream.read(max(0.0, due - self.clock()))
            if more == b"":
                yield True
                return
            self._data += more or b""
            if len(self._data) >= self.most_bytes or self.clock() >= due:
                yield False
                due = self.clock() + self.every

    def _settle(self, header: Header, raw: bytes, beginning: Beginning, *, is_end: bool) -> None:
        """Skip parts that were loaded, then load the whole records that remain."""
        while self._data:
            parts = self.target.parts(self.table)
            with memoryview(bytes(self._data)) as data:
                step = next_step(parts, beginning, data, is_end=is_end)
            if step.kind == "wait" and len(self._data) < 2 * self.most_bytes:
                return
            if step.kind == "torn":
                raise _torn(step)
            if step.kind == "skip":
                self._take(step.bytes, beginning)
                self.target.settle()
                self.report(SkippedPart(step.bytes, step.version))
                continue
            size = self._whole(header, is_end=is_end)
            if not size:
                return
            self.report(self.target.load(self._rows(raw, beginning, size)))
            self._take(size, beginning)

    def _whole(self, header: Header, *, is_end: bool) -> int:
        if is_end:
            return len(self._data)
        size = whole_bytes(np.frombuffer(self._data, np.uint8).copy(), header)
        if not size and len(self._data) > 2 * self.most_bytes:
            raise DataError(f"{NAME}: a record does not end within {len(self._data):,} bytes")
        return size

    def _rows(self, raw: bytes, beginning: Beginning, size: int) -> StreamRows:
        records = bytes(self._data[:size])
        part = StreamPart(beginning.bytes, beginning.digest, records[:HEAD_BYTES])
        offered = Offered(self.table, NAME, size, beginning.extended(records))
        return StreamRows(offered, part, raw, records, self._lines)

    def _take(self, size: int, beginning: Beginning) -> None:
        taken = bytes(self._data[:size])
        beginning.add(taken)
        self._lines += taken.count(b"\n")
        del self._data[:size]


def _torn(step: StreamStep) -> DataError:
    return DataError(
        f"{NAME} ends within a part of {step.bytes:,} bytes that version {step.version} loaded, "
        "so it is not sure that its rows are there: send the stream to the end of that part"
    )
