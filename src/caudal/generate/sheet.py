"""The description of one CSV file, and its bytes as a stream of chunks.

Rules:

1. Each chunk is made, passed on and dropped, so memory does not grow with the file.
2. One record in each block of FAULT_SPACING is damaged, at a random position in the block. The
   kinds of fault take turns. A fault is a pure function from good fields to bad ones.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from caudal.generate import text
from caudal.generate.dice import Dice, Ints

FAULT_SPACING = 2_000

Fault = Callable[[list[str]], list[str]]


@dataclass(frozen=True)
class Sheet:
    """A file: its name, header, number of records, and the columns for given rows.

    `columns` returns fields ready for CSV, in the order of the header.
    """

    name: str
    header: Sequence[str]
    rows: int
    chunk_rows: int
    columns: Callable[[Ints], list[pa.Array]]
    faults: Sequence[Fault]


def chunks(sheet: Sheet, dice: Dice) -> Iterator[tuple[int, memoryview]]:
    """Yield the bytes of the file after the header, each chunk with its number of records."""
    for start in range(0, sheet.rows, sheet.chunk_rows):
        index = np.arange(start, min(start + sheet.chunk_rows, sheet.rows), dtype=np.int64)
        yield len(index), text.content(_records(sheet, dice, index))


def header_line(sheet: Sheet) -> bytes:
    """Return the first line of the file."""
    return (",".join(sheet.header) + "\n").encode()


def faulty_rows(rows: int, name: str, dice: Dice) -> Ints:
    """Return the damaged rows of a file, in order. Rows after the end of the file are omitted."""
    blocks = np.arange(-(-rows // FAULT_SPACING), dtype=np.int64)
    return _faulty_in_blocks(blocks, rows, name, dice)


def set_field(position: int, value: str) -> Fault:
    """Return a fault that puts a wrong value into one field."""
    return lambda fields: [*fields[:position], value, *fields[position + 1 :]]


def keep_first(count: int) -> Fault:
    """Return a fault that keeps only the first fields of a torn record."""
    return lambda fields: fields[:count]


def keep_last(count: int) -> Fault:
    """Return a fault that keeps only the last fields of a torn record."""
    return lambda fields: fields[-count:]


def _records(sheet: Sheet, dice: Dice, index: Ints) -> pa.Array:
    columns = sheet.columns(index)
    lines = text.lines(columns)
    blocks = np.arange(index[0] // FAULT_SPACING, index[-1] // FAULT_SPACING + 1)
    spoiled = _faulty_in_blocks(blocks, sheet.rows, sheet.name, dice)
    spoiled = spoiled[(spoiled >= index[0]) & (spoiled <= index[-1])]
    if not len(spoiled):
        return lines
    replacements = [_spoil(sheet, columns, int(row), int(index[0])) for row in spoiled]
    mask = text.booleans(np.isin(index, spoiled))
    return pc.replace_with_mask(lines, mask, text.pool(replacements))


def _spoil(sheet: Sheet, columns: list[pa.Array], row: int, first_row: int) -> str:
    fault = sheet.faults[row // FAULT_SPACING % len(sheet.faults)]
    fields = [column[row - first_row].as_py() for column in columns]
    return ",".join(fault(fields)) + "\n"


def _faulty_in_blocks(blocks: Ints, rows: int, name: str, dice: Dice) -> Ints:
    spoiled = blocks * FAULT_SPACING + dice.below(f"{name}/fault", blocks, FAULT_SPACING)
    return spoiled[spoiled < rows]
