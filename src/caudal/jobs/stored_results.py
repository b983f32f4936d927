"""Results where they lie in the store, given only after all of their bytes were checked."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import pyarrow as pa

from caudal.errors import FormatError, QueryError
from caudal.formats import frame, mapped, outputs
from caudal.formats.digest import Digesting

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
        """The stream of rows, piece by piece; FormatError before the first one if it is damaged.

        What is larger than a piece is read twice: once to see that all of it is sound, and again
        to be given away. The second reading is checked too, and its last piece is held back until
        then: what is damaged on the way the second time never arrives whole.
        """
        if self.index.rows.length <= size:
            yield self._held()
            return
        for _ in self._checked(size):
            pass
        yield from self._checked(size)

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
