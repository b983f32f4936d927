"""Batches of a text that arrives in parts, cut by whoever receives them: nothing is kept between.

A browser has a file but no cutter. It sends the file's header and the bytes behind it from some
place on. The receiver cuts whole records from them with the same code as every client, and says how
many bytes it took. The next part begins there. So the same file gives the same batches, at any
receiver, and a part that is sent again gives the same batch again.
"""

from dataclasses import dataclass

import numpy as np
from msgspec import UNSET, UnsetType

from caudal.errors import DataError, UsageError
from caudal.files.inputs import find_form
from caudal.files.reading import USUAL
from caudal.formats import batch as batch_format
from caudal.kernels.csv import Header, read_header, records, whole_bytes


@dataclass(frozen=True)
class PartPlace:
    """Where the records of a part begin in the file: their offset and physical line."""

    offset: int
    line: int


@dataclass(frozen=True)
class TextPart:
    """The header of a file and some bytes of its records; `place` is None for the first part."""

    table: str
    number: int
    file: str
    data: bytes
    last: bool
    place: PartPlace | None = None
    source: int | UnsetType = UNSET


@dataclass(frozen=True)
class CutPart:
    """A batch, the size of the header, and where the next part begins."""

    batch: bytes
    header: int
    next: PartPlace


def cut_part(part: TextPart) -> CutPart:
    """Cut the whole records of a part. Raise DataError if it is no CSV."""
    if part.place is None:
        _require_usual(part)
    data = np.frombuffer(part.data, dtype=np.uint8)
    header, size = _header(part, data)
    rest = data[size:]
    taken = len(rest) if part.last else whole_bytes(rest, header)
    if not taken and not part.last:
        raise UsageError(f"no record ends within {len(rest):,} bytes: send more at once")
    place = part.place or PartPlace(size, 1 + records.count_newlines(data[:size]))
    newlines = records.count_newlines(rest[:taken])
    batch = batch_format.encode(
        table=part.table,
        number=part.number,
        file=part.file,
        columns=header.names,
        first_line=place.line,
        offset=place.offset,
        newlines=newlines,
        data=rest[:taken].data,
        compress=False,
        source=part.source,
    )
    return CutPart(batch, size, PartPlace(place.offset + taken, place.line + newlines))


def _header(
    part: TextPart, data: "np.ndarray[tuple[int], np.dtype[np.uint8]]"
) -> tuple[Header, int]:
    found = read_header(data, part.file, final=part.last)
    if found is None:
        raise UsageError(f"the header does not end within {len(data):,} bytes: send more at once")
    return found


def _require_usual(part: TextPart) -> None:
    """Raise DataError unless the bytes are records as they stand."""
    text, _ = find_form(iter([part.data]), USUAL, part.file)
    if text.encoding != "utf-8" or not text.form.is_usual:
        found = "; ".join(dict.fromkeys([f"read as {text.encoding}", *text.notes]))
        raise DataError(
            f"{part.file} is not CSV in UTF-8 with commas and a header ({found}): "
            "`caudal load` reads it"
        )
