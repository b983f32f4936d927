"""A CSV file with newlines inside quoted fields, cut at true record ends by hand.

Neither system does this by itself: their readers take such a file as one piece, on one core. Who
knows how can count the quotes of each block, and so tell which newlines end a record.
"""

from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.csv

BLOCK_BYTES = 16 << 20
_AHEAD_BYTES = 1 << 16


@dataclass(frozen=True)
class Block:
    """A part of a file. `quoted`: does it begin inside a quoted field?"""

    path: str
    start: int
    length: int
    quoted: bool
    header: bytes


def spans(path: Path) -> list[tuple[str, int, int]]:
    """The blocks of a file as path, start and length, its first line left out."""
    with path.open("rb") as file:
        first = len(file.readline())
    size = path.stat().st_size
    return [
        (str(path), start, min(BLOCK_BYTES, size - start))
        for start in range(first, size, BLOCK_BYTES)
    ]


def count_quotes(span: tuple[str, int, int]) -> int:
    path, start, length = span
    with Path(path).open("rb") as file:
        file.seek(start)
        return file.read(length).count(b'"')


def blocks(found: list[tuple[str, int, int]], quotes: list[int]) -> list[Block]:
    """The blocks, now that the quotes of each are known."""
    with Path(found[0][0]).open("rb") as file:
        header = file.readline()
    made, quoted = [], False
    for span, count in zip(found, quotes, strict=True):
        made.append(Block(*span, quoted, header))
        quoted ^= count % 2 == 1
    return made


def read(block: Block, columns: list[str]) -> pa.Table:
    """The records that begin in a block; those of the wrong width are left out."""
    return pyarrow.csv.read_csv(
        pa.BufferReader(block.header + _records(block)),
        read_options=pyarrow.csv.ReadOptions(use_threads=False, block_size=2 * BLOCK_BYTES),
        parse_options=pyarrow.csv.ParseOptions(
            newlines_in_values=True, invalid_row_handler=lambda row: "skip"
        ),
        convert_options=pyarrow.csv.ConvertOptions(
            include_columns=columns,
            column_types=dict.fromkeys(columns, pa.string()),
            strings_can_be_null=True,
            quoted_strings_can_be_null=True,
            null_values=[""],
        ),
    )


def _records(block: Block) -> bytes:
    """From the first record that begins after the block's first byte, to the end of its last.

    The byte before a block's start belongs to the block before, which reads on until the first
    record end at or after its own end: so every record is in one block.
    """
    with Path(block.path).open("rb") as file:
        file.seek(block.start)
        data = file.read(block.length)
        begin = 0 if block.start == len(block.header) else _record_end(data, block.quoted, 0)
        quoted = block.quoted ^ (data.count(b'"') % 2 == 1)
        rest = b""
        while (end := _record_end(rest, quoted, 0)) < 0:
            more = file.read(_AHEAD_BYTES)
            if not more:
                end = len(rest)
                break
            rest += more
    return data[begin:] + rest[:end] if begin >= 0 else b""


def _record_end(data: bytes, quoted: bool, at: int) -> int:
    """Where the first newline outside quotes is over; -1 without one."""
    while at < len(data):
        if quoted:
            at = data.find(b'"', at)
            if at < 0:
                return -1
            quoted, at = False, at + 1
            continue
        newline, quote = data.find(b"\n", at), data.find(b'"', at)
        if newline >= 0 and (quote < 0 or newline < quote):
            return newline + 1
        if quote < 0:
            return -1
        quoted, at = True, quote + 1
    return -1
