"""From the records of a batch to columns of text, as Arrow arrays.

Rules:
1. Every field is text. An empty field, quoted or not, is null.
2. Doubled quotes become one. Bytes that are not UTF-8 become U+FFFD; their row is kept.
3. Only the wanted columns are copied out of the batch.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
from numba import int64, njit
from numpy.typing import NDArray

from caudal.kernels.bytescan import copy_bytes
from caudal.kernels.csv.batches import Batch
from caudal.kernels.csv.records import REASONS, SOUND, scan_records

_QUOTE = np.uint8(34)
_SLACK = 8


@dataclass(frozen=True)
class TextColumns:
    """The sound records of a batch as columns of text, and the damaged ones by line."""

    table: pa.Table
    starts: NDArray[np.int64] = field(repr=False)
    damaged: tuple[tuple[int, str], ...]  # (line, reason)
    repaired: int  # rows that held bytes which are not UTF-8


def read_batch(batch: Batch, columns: Sequence[str]) -> TextColumns:
    """The wanted columns of a batch, in the order asked for."""
    header = batch.header
    slots = header.slots(columns)
    records = scan_records(batch.data, slots, final=True)
    sound = records.verdicts == SOUND
    fields, starts = records.fields, records.starts
    damaged: tuple[tuple[int, str], ...] = ()
    if not sound.all():
        bad = np.flatnonzero(~sound)
        lines = batch.lines(starts[bad])
        damaged = tuple(
            (int(line), REASONS[int(records.verdicts[row])])
            for line, row in zip(lines, bad, strict=True)
        )
        fields, starts = fields[sound], starts[sound]
    arrays, repaired = [], np.zeros(len(starts), dtype=bool)
    for name in columns:
        array, broken = _column(batch.data, fields, int(slots[header.position(name)]))
        arrays.append(array)
        if broken is not None:
            repaired |= broken
    table = pa.table(arrays, names=list(columns)) if columns else _no_columns(len(starts))
    return TextColumns(table, starts, damaged, int(np.count_nonzero(repaired)))


def _no_columns(rows: int) -> pa.Table:
    """A table that has rows but no columns worth keeping still needs a column to count."""
    return pa.table({"": pa.nulls(rows, pa.string())})


def _column(
    buffer: NDArray[np.uint8], fields: NDArray[np.int32], slot: int
) -> tuple[pa.Array, NDArray[np.bool_] | None]:
    rows = len(fields)
    offsets = np.empty(rows + 1, dtype=np.int32)
    present = np.empty(rows, dtype=np.bool_)
    room = _measure(fields, slot, present)
    data = np.empty(room + _SLACK, dtype=np.uint8)
    _gather(buffer, fields, slot, offsets, data)
    nulls = rows - int(np.count_nonzero(present))
    bitmap = pa.py_buffer(np.packbits(present, bitorder="little")) if nulls else None
    array = pa.StringArray.from_buffers(
        rows, pa.py_buffer(offsets), pa.py_buffer(data), bitmap, nulls
    )
    try:
        array.validate(full=True)
    except pa.ArrowInvalid:
        return _repair(array)
    return array, None


def _repair(array: pa.Array) -> tuple[pa.Array, NDArray[np.bool_]]:
    values = array.cast(pa.binary()).to_pylist()
    texts = [None if value is None else value.decode("utf-8", "replace") for value in values]
    broken = [
        text is not None and "\ufffd" in text and text.encode() != value
        for text, value in zip(texts, values, strict=True)
    ]
    return pa.array(texts, pa.string()), np.array(broken, dtype=np.bool_)


@njit(cache=True, nogil=True)
def _measure(fields: Any, slot: int, present: Any) -> int:
    """An upper bound of each text's place (doubled quotes shrink later), and which exist."""
    total = 0
    for row in range(len(fields)):
        begin = fields[row, slot, 0]
        end = fields[row, slot, 1]
        if end < 0:
            end = ~end
        present[row] = end > begin
        total += end - begin
    return total


@njit(cache=True, nogil=True)
def _gather(buffer: Any, fields: Any, slot: int, offsets: Any, data: Any) -> None:
    at = int64(0)
    for row in range(len(fields)):
        offsets[row] = at
        begin = int64(fields[row, slot, 0])
        end = int64(fields[row, slot, 1])
        if end >= 0:
            copy_bytes(buffer, begin, end, data, at)
            at += end - begin
            continue
        i = begin
        while i < ~end:
            data[at] = buffer[i]
            at += 1
            i += 2 if buffer[i] == _QUOTE else 1
    offsets[len(fields)] = at
