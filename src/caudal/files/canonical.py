"""Text in any dialect as CSV: UTF-8, commas, `"`, a header first; a stream of bounded memory.

Rules:
1. The bytes of delimiter and comma, of quote and `"`, are swapped. Then the one state machine
   (kernels/csv/records.py) finds the records, sound and damaged, exactly as it finds those of CSV.
2. Records in which nothing was swapped but marks are CSV as they are. All others are written
   anew: fields with commas, quotes or line ends in quotes. Numbers and dates are converted then
   (values.py), and columns that the file does not have are added.
3. A damaged record becomes one line that says what is wrong with it (`MARK`).
4. Every record stands on the line on which it stood. What is left out leaves empty lines: lines
   before the data, comments, further lines of damaged records.
5. The header is written anew. It takes a line more than the file has, so the first line of the
   stream is number 0.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from caudal.errors import DataError
from caudal.files.detect import Form
from caudal.files.first_records import swap_table
from caudal.files.streams import ByteStream, FieldChanges
from caudal.files.values import convert, for_column
from caudal.kernels.csv import Batch, cut_batches
from caudal.kernels.csv.columns import text_views
from caudal.kernels.csv.records import MARK, Records, has_quote, scan_records, told_verdicts

_BLOCK_BYTES = 1 << 20


def canonical(
    pieces: Iterator[bytes], form: Form, changes: FieldChanges, file: str
) -> Iterator[bytes]:
    """Yield a UTF-8 text as CSV. `form.names` are its columns."""
    header = [name.encode() for name in (*form.names, *changes.added)]
    yield b"\n" * form.skip + _line(header)
    writer = _Writer(form, changes, file)
    width = len(form.names)
    inner = ByteStream(_swapped(_without_lines(pieces, form.skip), form, width))
    for batch in cut_batches(inner, file, batch_bytes=_BLOCK_BYTES):
        yield writer.written(batch)


def _without_lines(pieces: Iterator[bytes], count: int) -> Iterator[bytes]:
    for piece in pieces:
        rest = piece
        while count and rest:
            place = rest.find(b"\n") + 1
            if not place:
                rest = b""
                break
            rest, count = rest[place:], count - 1
        if rest:
            yield rest


def _swapped(pieces: Iterator[bytes], form: Form, width: int) -> Iterator[bytes]:
    """Yield the text with swapped marks, behind a header of the right number of fields."""
    table = swap_table(form.delimiter, form.quote)
    yield b",".join(b"c" for _ in range(width)) + b"\n"
    for piece in pieces:
        yield piece.translate(table)


def _line(fields: Sequence[bytes]) -> bytes:
    return b",".join(map(quoted, fields)) + b"\n"


def quoted(text: bytes) -> bytes:
    """Return a field as CSV writes it."""
    if any(mark in text for mark in (b",", b'"', b"\n", b"\r")):
        return b'"' + text.replace(b'"', b'""') + b'"'
    return text


@dataclass(frozen=True)
class _Writer:
    form: Form
    changes: FieldChanges
    file: str

    def written(self, batch: Batch) -> bytes:
        """Return the records of a batch as CSV."""
        data = batch.data
        if not self.changes and self.form.comment is None and self._is_csv(data):
            return data.tobytes()
        width = batch.header.width
        records = scan_records(data, np.arange(width, dtype=np.int32), final=True)
        lines, starts = self._lines(data, records, width)
        return self._placed(batch, lines, starts)

    def _is_csv(self, data: NDArray[np.uint8]) -> bool:
        """Whether all marks are marks, and none is a part of a text (rule 2)."""
        usual = (self.form.delimiter, self.form.quote) == (",", '"')
        return usual or not (has_quote(data) or self._has_swapped(data))

    def _has_swapped(self, data: NDArray[np.uint8]) -> bool:
        """Whether a comma, or a quote, of the file stands in a text."""
        marks = self.form.delimiter.encode().replace(b",", b"")
        marks += (self.form.quote.encode() or b"\xff").replace(b'"', b"")
        held = data.tobytes()
        return any(bytes([mark]) in held for mark in marks)

    def _lines(
        self, data: NDArray[np.uint8], records: Records, width: int
    ) -> tuple[pa.Array, NDArray[np.int64]]:
        """Return every record as a line without its end, and where each begins."""
        names = self.form.names
        plain = self._is_csv(data)
        columns = [
            self._column(data, records.fields[place], names[place], plain=plain)
            for place in range(width)
        ]
        if width == 1:  # else an empty field would be an empty line
            columns[0] = pc.fill_null(columns[0], b'""')
        added = [pa.scalar(quoted(value.encode()), pa.binary())
                 for value in self.changes.added.values()]  # fmt: skip
        rows = _joined([*columns, *added], len(records.starts))
        verdicts = told_verdicts(data, records.damage)
        damaged = pa.array([MARK + b"%d" % one for one in verdicts.tolist()], pa.binary())
        starts = np.concatenate([records.starts, records.damage.starts])
        return pa.concat_arrays([rows, damaged]), starts

    def _column(
        self, data: NDArray[np.uint8], spans: NDArray[np.int32], name: str, *, plain: bool
    ) -> pa.Array:
        texts = text_views(data, spans).cast(pa.binary_view()).cast(pa.binary())
        if not plain:
            texts = _translated(texts, swap_table(self.form.delimiter, self.form.quote))
        decimal = for_column(self.changes.decimal, name)
        dates = for_column(self.changes.date_format, name)
        return _quoted_column(convert(texts, decimal, dates))

    def _placed(self, batch: Batch, lines: pa.Array, starts: NDArray[np.int64]) -> bytes:
        """Join the lines, each on its own line of the file (rule 4)."""
        order = np.argsort(starts, kind="stable")
        at = batch.lines(starts[order]) - batch.first_line
        span = np.diff(at, append=batch.newlines)
        lines = lines.take(pa.array(order))
        if self.form.comment is not None:
            lines = self._without_comments(batch, lines, starts[order], span)
        inside = pc.count_substring(lines, "\n").to_numpy(zero_copy_only=False).astype(np.int64)
        ends = np.maximum(span - inside, 1)
        joined = _joined([lines, _newlines(ends)], len(lines), mark=b"")
        first = int(at[0]) if len(at) else batch.newlines
        return b"\n" * first + _bytes_of(joined)

    def _without_comments(
        self, batch: Batch, lines: pa.Array, starts: NDArray[np.int64], span: NDArray[np.int64]
    ) -> pa.Array:
        mark = self.form.comment.encode() if self.form.comment else b""
        swapped = mark.translate(swap_table(self.form.delimiter, self.form.quote))
        held = batch.data.tobytes()
        is_comment = np.array([held.startswith(swapped, start) for start in starts.tolist()], bool)
        for place in np.flatnonzero(is_comment & (span > 1)).tolist():
            start = int(starts[place])
            if held.find(b'"', start, held.index(b"\n", start)) >= 0:
                raise DataError(f"{self.file}: a comment of one line has an open quote: remove it")
        return pc.if_else(pa.array(is_comment), pa.scalar(b"", pa.binary()), lines)


def _translated(texts: pa.Array, table: bytes) -> pa.Array:
    """Swap the marks of the texts back."""
    valid, offsets, data = texts.buffers()
    swapped = pa.py_buffer(data.to_pybytes().translate(table)) if data else data
    return pa.Array.from_buffers(pa.binary(), len(texts), [valid, offsets, swapped])


def _quoted_column(texts: pa.Array) -> pa.Array:
    special = pc.fill_null(pc.match_substring_regex(texts, '[",\r\n]'), False)
    if not pc.any(special).as_py():
        return texts
    mark = pa.scalar(b'"', pa.binary())
    inner = pc.replace_substring(texts, '"', '""')
    return pc.if_else(special, _joined([mark, inner, mark], len(texts), mark=b""), texts)


def _joined(parts: Sequence[Any], rows: int, mark: bytes = b",") -> pa.Array:
    if not rows:
        return pa.array([], pa.binary())
    return pc.binary_join_element_wise(
        *parts, pa.scalar(mark, pa.binary()), null_handling="replace", null_replacement=""
    )


def _newlines(counts: NDArray[np.int64]) -> pa.Array:
    """Return so many line ends for each record."""
    different, which = np.unique(counts, return_inverse=True)
    return pa.array([b"\n" * int(one) for one in different], pa.binary()).take(pa.array(which))


def _bytes_of(lines: pa.Array) -> bytes:
    """Return the bytes of all texts, one behind the other."""
    _, offsets, data = lines.buffers()
    if not len(lines) or data is None:
        return b""
    places = np.frombuffer(offsets, np.int32, len(lines) + 1, 4 * lines.offset)
    return bytes(memoryview(data)[places[0] : places[-1]])
