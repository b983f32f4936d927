"""Convert the records of a batch to columns of text, as Arrow arrays.

Rules:
1. Every field is text. An empty field, quoted or not, is null.
2. Doubled quotes become one. Bytes that are not UTF-8 become U+FFFD; their row is kept.
3. Only the wanted columns are read. Their texts are not copied: a column is an array of views
   into the batch's bytes. Only texts with doubled quotes are copied.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, overload

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from caudal.kernels.bytescan import copy_bytes, find_byte, load_word
from caudal.kernels.compiled import entry, inlined, int64, uint64
from caudal.kernels.csv.batches import Batch
from caudal.kernels.csv.numbers import NumberColumn, read_numbers
from caudal.kernels.csv.records import REASONS, told_verdicts
from caudal.kernels.declaring import BYTES, INT, Array, filled

_QUOTE = np.uint8(34)
_SLACK = 8
_INLINE = 12


@dataclass(frozen=True)
class TextColumns:
    """The valid records of a batch as columns of text, and the lines of the damaged ones."""

    table: pa.Table
    starts: NDArray[np.int64] = field(repr=False)
    damaged: "DamagedLines"
    repaired: int  # rows with bytes that were not UTF-8
    numbers: tuple["Numbers", ...]
    later: "Later" = field(repr=False)


@dataclass(frozen=True, eq=False)
class DamagedLines(Sequence[tuple[int, str]]):
    """(line, reason) of each damaged record, as arrays, because there may be many."""

    lines: NDArray[np.int64]
    verdicts: NDArray[np.int8]

    reasons = tuple(REASONS.values())

    @property
    def codes(self) -> NDArray[np.int64]:
        """Return for each record the index of its reason."""
        return self.verdicts.astype(np.int64) - min(REASONS)

    def __len__(self) -> int:
        return len(self.lines)

    @overload
    def __getitem__(self, place: int) -> tuple[int, str]: ...
    @overload
    def __getitem__(self, place: slice) -> "DamagedLines": ...
    def __getitem__(self, place: int | slice) -> "tuple[int, str] | DamagedLines":
        if isinstance(place, slice):
            return DamagedLines(self.lines[place], self.verdicts[place])
        return int(self.lines[place]), REASONS[int(self.verdicts[place])]


NO_DAMAGE = DamagedLines(np.empty(0, np.int64), np.empty(0, np.int8))


class Numbers(NamedTuple):
    """A column of numbers, and the texts of the rows that the kernel did not convert."""

    values: pa.Array
    odd_rows: NDArray[np.int64]
    odd_texts: pa.Array


Later = Callable[[NDArray[np.int64]], dict[str, pa.Array]]  # rows -> columns of text, those rows


def read_batch(
    batch: Batch,
    columns: Sequence[str],
    numbers: Sequence[NumberColumn] = (),
    later: Sequence[str] = (),
) -> TextColumns:
    """Return the wanted columns of a batch as texts, and some as numbers, in the given order.

    The columns `later` are read on request, for some rows. If the batch is not UTF-8, they are read
    at once, because repaired rows are counted.
    """
    header = batch.header
    wanted = [*columns, *later, *(one.column for one in numbers)]
    slots = header.slots(tuple(dict.fromkeys(wanted)))
    records = batch.records(slots)
    fields, starts = records.fields, records.starts
    verdicts = told_verdicts(batch.data, records.damage)
    damaged = DamagedLines(batch.lines(records.damage.starts), verdicts)
    spans = {name: fields[slots[header.position(name)]] for name in wanted}
    is_utf8 = _is_utf8(batch.data)
    read = _views if is_utf8 else _checked
    if not is_utf8:
        columns, later = [*columns, *later], ()
    arrays, repaired = [], np.zeros(len(starts), dtype=bool)
    for name in columns:
        array, broken = read(batch.data, spans[name])
        arrays.append(array)
        if broken is not None:
            repaired |= broken
    table = pa.table(arrays, names=list(columns)) if columns else _no_columns(len(starts))
    found = tuple(_numbers(batch.data, spans[one.column], one, read) for one in numbers)

    def read_later(rows: NDArray[np.int64]) -> dict[str, pa.Array]:
        return {name: _views(batch.data, spans[name][rows])[0] for name in later}

    return TextColumns(table, starts, damaged, int(np.count_nonzero(repaired)), found, read_later)


def _numbers(
    data: NDArray[np.uint8],
    spans: NDArray[np.int32],
    wanted: NumberColumn,
    read: Callable[..., tuple[pa.Array, NDArray[np.bool_] | None]],
) -> Numbers:
    values, odd_rows = read_numbers(data, spans, wanted)
    texts, _ = read(data, spans[odd_rows])
    return Numbers(values, odd_rows, texts)


def _is_utf8(data: NDArray[np.uint8]) -> bool:
    """Return whether a batch is UTF-8. Then every field is, because fields end at ASCII bytes."""
    offsets = pa.py_buffer(np.array([0, len(data)], dtype=np.int32))
    try:
        pa.StringArray.from_buffers(1, offsets, pa.py_buffer(data)).validate(full=True)
    except pa.ArrowInvalid:
        return False
    return True


def _no_columns(rows: int) -> pa.Table:
    """Return a table of so many rows without wanted columns: one empty column keeps the count."""
    return pa.table({"": pa.nulls(rows, pa.string())})


def text_views(buffer: NDArray[np.uint8], spans: NDArray[np.int32]) -> pa.Array:
    """Return a column of texts as views, without a check of the encoding."""
    return _views(buffer, spans)[0]


def _views(buffer: NDArray[np.uint8], spans: NDArray[np.int32]) -> tuple[pa.Array, None]:
    """Return a column of UTF-8 texts as views. The second buffer holds the copied texts."""
    rows = len(spans)
    views = np.empty((rows, 2), dtype=np.uint64)
    present = np.empty(rows, dtype=np.bool_)
    rewritten = np.empty(_doubled_bytes(spans) + _SLACK, dtype=np.uint8)
    _make_views(buffer, spans, views, present, rewritten)
    buffers = [_bitmap(present), pa.py_buffer(views), pa.py_buffer(buffer), pa.py_buffer(rewritten)]
    return pa.Array.from_buffers(pa.string_view(), rows, buffers), None


def _checked(
    buffer: NDArray[np.uint8], spans: NDArray[np.int32]
) -> tuple[pa.Array, NDArray[np.bool_] | None]:
    """Return a column of texts that may not be UTF-8, and which rows were repaired."""
    array, _ = _views(buffer, spans)
    try:
        array.validate(full=True)
    except pa.ArrowInvalid:
        return _repair(array)
    return array, None


def _bitmap(present: NDArray[np.bool_]) -> pa.Buffer | None:
    return None if present.all() else pa.py_buffer(np.packbits(present, bitorder="little"))


def _repair(array: pa.Array) -> tuple[pa.Array, NDArray[np.bool_]]:
    values = array.cast(pa.binary_view()).to_pylist()
    texts = [None if value is None else value.decode("utf-8", "replace") for value in values]
    broken = [
        text is not None and "\ufffd" in text and text.encode() != value
        for text, value in zip(texts, values, strict=True)
    ]
    return pa.array(texts, pa.string_view()), np.array(broken, dtype=np.bool_)


@entry(Array("i4", 2), gives=INT)
def _doubled_bytes(spans: Any) -> Any:
    """Return the total size of all fields with doubled quotes, which is enough to copy them."""
    total = int64(0)
    for row in range(len(spans)):
        end = int64(spans[row, 1])
        if end < 0:
            total += ~end - spans[row, 0]
    return total


@entry(BYTES, Array("i4", 2), filled("u8", 2), filled("?"), filled("u1"))
def _make_views(buffer: Any, spans: Any, views: Any, present: Any, rewritten: Any) -> None:
    """Fill Arrow's views: the length, then the text if it has at most twelve bytes, else its
    first four bytes, the number of its buffer, and its offset there."""
    at = int64(0)
    for row in range(len(spans)):
        begin = int64(spans[row, 0])
        end = int64(spans[row, 1])
        if end >= 0:
            _put_view(views, row, buffer, begin, end, 0)
        else:
            start = at
            at = _undouble(buffer, begin, ~end, rewritten, at)
            _put_view(views, row, rewritten, start, at, 1)
        present[row] = views[row, 0] != 0


@inlined
def _undouble(buffer: Any, begin: int, end: int, target: Any, at: int) -> Any:
    """Copy a text with each doubled quote as one. Return the offset after it."""
    while begin < end:
        after = min(find_byte(buffer, begin, end, _QUOTE) + 1, end)
        copy_bytes(buffer, begin, after, target, at)
        at += after - begin
        begin = after + 1
    return at


@inlined
def _put_view(views: Any, row: int, data: Any, begin: int, end: int, number: int) -> None:
    """Store a view as two words: length and first four bytes; then eight more, or the offset."""
    length = uint64(end - begin)
    first = _word(data, begin, end)
    views[row, 0] = length | (first << uint64(32))
    if length > uint64(_INLINE):
        views[row, 1] = uint64(number) | (uint64(begin) << uint64(32))
    else:
        views[row, 1] = _word(data, begin + 4, end)


@inlined
def _word(data: Any, begin: int, end: int) -> Any:
    """Return up to eight bytes as a little-endian word. Bytes from `end` on are zero."""
    if begin >= end:
        return uint64(0)
    if begin + 8 <= len(data):
        word = load_word(data, begin)
        missing = uint64(max(0, begin + 8 - end))
        return word & (~uint64(0) >> (missing * uint64(8)))
    word = uint64(0)
    for i in range(begin, end):
        word |= uint64(data[i]) << uint64(8 * (i - begin))
    return word
