"""Stored results, which are given out only after all their bytes were checked.

A result larger than a piece is read twice: first to check all of it, then to give it out. The
second reading is checked too, and its last piece is held back until then. So a result that is
damaged during the second reading never arrives complete.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import pyarrow as pa

from caudal.errors import FormatError, QueryError
from caudal.formats import frame, mapped, outputs, streams
from caudal.formats.digest import Digesting
from caudal.formats.replies import ResultAbout, ResultColumn
from caudal.formats.stream_cuts import cut
from caudal.formats.streams import PARTS

PIECE_BYTES = 4 << 20


@dataclass(frozen=True)
class Window:
    """Some of the rows: at most `limit` from `offset` on.

    >>> Window(5, 10).within(0, 8), Window(5, 10).within(8, 100), Window(5, 10).meets(15, 1)
    ((5, 3), (0, 7), False)
    """

    offset: int
    limit: int

    def meets(self, first: int, count: int) -> bool:
        """Return whether any of these rows is wanted."""
        return self.within(first, count)[1] > 0

    def within(self, first: int, count: int) -> tuple[int, int]:
        """Return which of `count` rows from `first` on are wanted: the first one, how many."""
        begin = min(max(self.offset - first, 0), count)
        end = min(max(self.offset + self.limit - first, begin), count)
        return begin, end - begin


@dataclass(frozen=True)
class StoredResult:
    """A result in the store. It holds only the head in memory and reads the rest by pieces."""

    key: str
    head: bytes  # as stored, checked
    read: frame.Read

    @cached_property
    def index(self) -> outputs.ResultHeader:
        return outputs.describe_result(self.head, self.key)

    def rows(self) -> pa.Table:
        """Return all rows. Raise QueryError if the query failed."""
        if self.index.error:
            raise QueryError(self.index.error)
        return mapped.checked_rows(self.read, len(self.head), self.index.rows, self.key)

    def whole(self) -> bytes:
        """Return the whole object as it is stored."""
        return self.head if self.index.error else self.head + self._held()

    def pieces(self, size: int = PIECE_BYTES) -> Iterator[bytes]:
        """Yield the stream of rows in pieces. Raise FormatError before the first if damaged."""
        if self.index.rows.length <= size:
            yield self._held()
            return
        for _ in self._checked(size):
            pass
        yield from self._checked(size)

    def largest(self, size: int = PIECE_BYTES) -> int:
        """Return the unpacked size of the largest record batch.

        The whole stream is checked, and nothing is unpacked. Raise TooLargeError if a record batch
        is larger than `parts` accepts.
        """
        found = [streams.claims(one, self.key, PARTS) for one in self._cut(size)]
        if sum(rows for rows, _ in found) != self.index.rows.rows:
            raise FormatError(
                f"{self.key} is damaged: it does not have {self.index.rows.rows} rows"
            )
        return max(unpacked for _, unpacked in found)

    def parts(self, size: int = PIECE_BYTES, window: Window | None = None) -> Iterator[pa.Table]:
        """Yield the rows, one record batch at a time; one empty batch if there are no rows.

        Call `largest` first. With a window, yield only its rows, and unpack only the record
        batches that hold any of them; the last yield still comes after the whole was checked.
        """
        last: pa.Table | None = None
        passed = 0
        for one in self._cut(size):
            wanted, rows = True, 0
            if window is not None:
                rows, _ = streams.claims(one, self.key, PARTS)
                wanted = last is None or window.meets(passed, rows)
            if wanted:
                if last is not None:
                    yield last
                last = streams.read_rows(one, self.key, PARTS)
                if window is not None:
                    last = last.slice(*window.within(passed, rows))
            passed += rows
        if last is not None:
            yield last

    def about(self) -> ResultAbout:
        """Return what the result holds, from its head and its schema."""
        schema = streams.read_schema(self.read, len(self.head), self.index.rows.length, self.key)
        columns = tuple(ResultColumn(field.name, str(field.type)) for field in schema)
        index = self.index
        return ResultAbout(index.query, index.title, index.rows.rows, index.rows.length, columns)

    def _cut(self, size: int) -> Iterator[bytes]:
        """Yield the stream as small streams of one record batch each; check it at the last one."""
        flow = _Flow(self._checked(size))
        yield from cut(flow.take, self.key, PARTS.bytes)
        flow.drain()

    def _held(self) -> bytes:
        return mapped.read_stream(self.read, len(self.head), self.index.rows, self.key)

    def _checked(self, size: int) -> Iterator[bytes]:
        span, found = self.index.rows, Digesting()
        for offset in range(0, span.length, size):
            piece = self.read(len(self.head) + offset, min(size, span.length - offset))
            found.update(piece)
            if offset + size >= span.length and found.value != span.digest:
                raise FormatError(f"{self.key} is damaged: its rows do not match their digest")
            yield piece


class _Flow:
    """A reader that takes any number of bytes from a sequence of pieces."""

    def __init__(self, pieces: Iterator[bytes]) -> None:
        self._pieces = pieces
        self._rest = bytearray()

    def take(self, size: int) -> bytes:
        """Return the next `size` bytes; fewer at the end."""
        while len(self._rest) < size and (piece := next(self._pieces, None)) is not None:
            self._rest += piece
        taken = bytes(self._rest[:size])
        del self._rest[:size]
        return taken

    def drain(self) -> None:
        """Read to the end, where the whole stream is checked."""
        for _ in self._pieces:
            pass
