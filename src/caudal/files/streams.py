"""Pieces of bytes as a stream, and what is changed in its fields."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class FieldChanges:
    """What is changed in the fields, and what is added to every row."""

    decimal: str | dict[str, str] | None = None
    date_format: str | dict[str, str] | None = None
    added: dict[str, str] = field(default_factory=dict)

    def __bool__(self) -> bool:
        return self.decimal == "," or bool(
            isinstance(self.decimal, dict) or self.date_format or self.added
        )


class ByteStream:
    """Pieces of bytes as something that fills buffers."""

    def __init__(self, pieces: Iterator[bytes]) -> None:
        self._pieces = pieces
        self._rest = memoryview(b"")

    def readinto(self, buffer: Any, /) -> int:
        """Fill the beginning of a buffer; return the number of bytes, 0 at the end."""
        while not self._rest:
            piece = next(self._pieces, None)
            if piece is None:
                return 0
            self._rest = memoryview(piece)
        count = min(len(self._rest), len(buffer))
        buffer[:count] = self._rest[:count]
        self._rest = self._rest[count:]
        return count
