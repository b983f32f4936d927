"""The first record of a CSV file: names decide columns, order and extra columns do not matter."""

import csv
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from caudal.errors import DataError
from caudal.kernels.csv.records import UNFINISHED, read_record

_BOM = b"\xef\xbb\xbf"
_NO_FIELDS = np.empty((1, 1, 2), dtype=np.int32)


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
        """For each field of a record its place among the wanted columns, or -1."""
        slots = np.full(self.width, -1, dtype=np.int32)
        for place, name in enumerate(wanted):
            slots[self.position(name)] = place
        return slots


def read_header(data: bytes, file: str, *, final: bool) -> tuple[Header, int] | None:
    """The header at the start of `data` and the bytes it takes; None when it needs more bytes."""
    start = len(_BOM) if data.startswith(_BOM) else 0
    if final and not data[start:].strip():
        raise DataError(f"{file} is empty: a CSV file begins with a line of column names")
    buffer = np.frombuffer(data, dtype=np.uint8)
    verdict, after = read_record(buffer, start, final, np.full(0, -1, np.int32), _NO_FIELDS, 0)
    if verdict == UNFINISHED:
        return None
    text = data[start:after]
    if b"\0" in text or after == start:
        raise DataError(f"{file} is not CSV text: its first line is no list of column names")
    names = next(csv.reader([text.decode("utf-8", "replace")]), [])
    return Header(tuple(name.strip() for name in names)), after
