"""Results where they lie in the store, given only after all of their bytes were checked.

What is larger than a piece is read twice: once to see that all of it is sound, and again to be
given away. The second reading is checked too, and its end is held back until then: what is damaged
on the way the second time never arrives whole.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import pyarrow as pa

from caudal.errors import FormatError, QueryError
from caudal.formats import frame, mapped, outputs, streams
from caudal.formats.digest import Digesting
from caudal.formats.stream_cuts import cut
from caudal.formats.streams import PARTS

PIECE_BYTES = 4 << 20


@dataclass(frozen=True)
class StoredResult:
    """A result where it lies: small to hold, and read piece by piece."""

    key: str
    head: bytes  # as it lies, checked
    read: frame.Read

    @cached_property
    def index(self) -> outputs.ResultHeader:
        return outputs.describe_result(self.head, self.key)

    def rows(self) -> pa.Table:
        """The rows, all at once; QueryError if there are none."""
        if self.index.error:
            raise QueryError(self.index.error)
        return mapped.checked_rows(self.read, len(self.head), self.index.rows, self.key)

    def whole(self) -> bytes:
        """The object as it lies, all at once."""
        return self.head if self.index.error else self.head + self._held()

    def pieces(self, size: int = PIECE_BYTES) -> Iterator[bytes]:
        """The stream of rows, piece by piece; FormatError before the first one if it is damaged."""
        if self.index.rows.length <= size:
            yield self._held()
            return
        for _ in self._checked(size):
            pass
        yield from self._checked(size)

    def largest(self, size: int = PIECE_BYTES) -> int:
        """The bytes of its largest record batch, unpacked; all of its stream is checked, and
        nothing of it unpacked. TooLargeError if one is larger than those that `parts` gives."""
        found = [streams.claims(one, self.key, PARTS) for one in self._cut(size)]
        if sum(rows for rows, _ in found) != self.index.rows.rows:
            raise FormatError(f"{self.key} is damaged: it has not {self.index.rows.rows} rows")
        return max(unpacked for _, unpacked in found)

    def parts(self, size: int = PIECE_BYTES) -> Iterator[pa.Table]:
        """The rows, a record batch at a time; one without rows if there are none. To be asked for
        after `largest`."""
        last: pa.Table | None = None
        for one in self._cut(size):
            if last is not None:
                yield last
            last = streams.read_rows(one, self.key, PARTS)
        if last is not None:
            yield last

    def _cut(self, size: int) -> Iterator[bytes]:
        """Its stream as small ones of one record batch each; checked when the last one is there."""
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
    """Pieces that are taken by other lengths than they come in."""

    def __init__(self, pieces: Iterator[bytes]) -> None:
        self._pieces = pieces
        self._rest = bytearray()

    def take(self, size: int) -> bytes:
        """The next so many bytes; fewer at the end."""
        while len(self._rest) < size and (piece := next(self._pieces, None)) is not None:
            self._rest += piece
        taken = bytes(self._rest[:size])
        del self._rest[:size]
        return taken

    def drain(self) -> None:
        """Go on to the end, where the whole is checked."""
        for _ in self._pieces:
            pass
