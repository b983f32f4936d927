"""Batches that a client sends: cut from files, from standard input or from rows, one at a time.

Only the batches in transit are held in memory. The thread that sends a batch also packs it
(digest, compression); cutting continues meanwhile.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from functools import partial

from caudal.client.addresses import is_loopback
from caudal.client.rows import Rows, is_arrow, pieces_of
from caudal.errors import CaudalError, DataError, UsageError
from caudal.files.batches import Packing, cut_unpacked
from caudal.files.inputs import canonical_stream, pieces_of_stream
from caudal.files.reading import USUAL, over
from caudal.files.sources import Sources
from caudal.formats import batch as batch_format
from caudal.jobs.upload import Sendable
from caudal.kernels import csv
from caudal.model import Reading, Table

STANDARD_INPUT = "-"
PARTITIONS = 4  # of folds
_SMALL_BYTES = 1 << 20  # of all files: one partition is enough


class Compress(StrEnum):
    """Whether batches are compressed for sending."""

    AUTO = "auto"  # if any gateway is on another machine
    ALWAYS = "always"
    NEVER = "never"

    def pays(self, addresses: Iterable[str]) -> bool:
        """Return whether to compress. Batches that do not shrink are always sent uncompressed."""
        if self is Compress.AUTO:
            return not all(is_loopback(address) for address in addresses)
        return self is Compress.ALWAYS


@dataclass(frozen=True)
class BatchCutter:
    """Cuts tables into batches of about `batch_bytes`."""

    batch_bytes: int
    compress: bool

    def table(
        self, table: Table, sources: Sources, standard_input: Callable[[], csv.Stream]
    ) -> Iterator[Sendable]:
        """Yield the batches of a table; `-` among its files is standard input."""
        given = sources.overrides.get(table.name, ())
        if STANDARD_INPUT not in given:
            return cut_unpacked(
                table.name,
                sources.files(table),
                self.batch_bytes,
                columns=table.columns,
                packing=Packing.ALL if self.compress else Packing.UNLESS_PLAIN,
            )
        if len(given) > 1:
            raise UsageError(f"table {table.name}: give standard input or files, not both")
        reading = over(sources.reading, table.reading)
        return self.stream(table.name, standard_input(), "standard input", reading)

    def stream(
        self, table: str, stream: csv.Stream, name: str, reading: Reading = USUAL
    ) -> Iterator[Sendable]:
        """Yield the batches of a text that can be read once."""
        found, first = canonical_stream(pieces_of_stream(stream), reading, name)
        for cut in csv.cut_batches(found, name, batch_bytes=self.batch_bytes, first_line=first):
            yield partial(self._pack, table, cut)

    def _pack(self, table: str, cut: csv.Batch) -> bytes:
        return batch_format.encode(
            table=table,
            number=cut.number,
            file=cut.file,
            columns=cut.header.names,
            first_line=cut.first_line,
            offset=cut.offset,
            newlines=cut.newlines,
            data=cut.data.tobytes(),
            compress=self.compress,
        )


@dataclass
class RowWriter:
    """Collector of rows of one table, which makes batches of them."""

    table: str
    cutter: BatchCutter
    of_tuples: tuple[str, ...] | None = None  # the columns of rows that are tuples
    columns: tuple[str, ...] | None = None  # of all rows; set by the first row
    _waiting: list[bytes] = field(default_factory=list)
    _number: int = 0
    _line: int = 1
    _offset: int = 0

    def batches(self, rows: Rows, columns: Sequence[str] | None = None) -> Iterator[Sendable]:
        """Yield the batches that these rows complete; other rows wait for more, or for `rest`.

        An error before the first batch is yielded takes all rows of this call back. Those of a list
        or a tuple are all written before that; they are in memory anyway. Arrow data is not: it may
        be mapped from a file, or repeat few texts often.
        """
        before = self.columns, list(self._waiting), self._number, self._line, self._offset
        taken = False
        try:
            made = self._made(rows, columns)
            is_whole = isinstance(rows, list | tuple) and not any(map(is_arrow, rows))
            for one in list(made) if is_whole else made:
                taken = True
                yield one
        except BaseException:
            if not taken:
                self.columns, self._waiting, self._number, self._line, self._offset = before
            raise

    def _made(self, rows: Rows, columns: Sequence[str] | None) -> Iterator[Sendable]:
        for names, data in pieces_of(rows, columns or self.columns, self.of_tuples):
            if self.columns is None:
                self.columns = names
            elif names != self.columns:
                raise DataError(
                    f"table {self.table}: rows with the columns {', '.join(names)} after rows with "
                    f"{', '.join(self.columns)}"
                )
            self._waiting.append(data)
            if sum(map(len, self._waiting)) >= self.cutter.batch_bytes:
                yield self._batch()

    def rest(self) -> Iterator[Sendable]:
        """Yield the last batch, if any rows are left."""
        if self._waiting:
            yield self._batch()

    def _batch(self) -> Sendable:
        data, number, line, offset = b"".join(self._waiting), self._number, self._line, self._offset
        newlines = data.count(b"\n")
        self._waiting = []
        self._number += 1
        self._line += newlines
        self._offset += len(data)
        return partial(
            batch_format.encode,
            table=self.table,
            number=number,
            file=f"rows of {self.table}",
            columns=self.columns or (),
            first_line=line,
            offset=offset,
            newlines=newlines,
            data=data,
            compress=self.cutter.compress,
        )


def file_sizes(tables: Iterable[Table], sources: Sources) -> Mapping[str, int]:
    """Return the size of each table's files; standard input is left out."""
    return {
        table.name: sum(file.size for file in sources.files(table))
        for table in tables
        if STANDARD_INPUT not in sources.overrides.get(table.name, ())
    }


def partitions_for(tables: Iterable[Table], sources: Sources) -> int:
    """Return how many partitions folds get: one over small files, where each costs more than it
    computes. The answers are the same."""
    inputs = (one for files in sources.overrides.values() for one in files)
    if STANDARD_INPUT in inputs:
        return PARTITIONS
    try:
        size = sum(file_sizes(tables, sources).values())
    except CaudalError:  # files of tables that no query reads need not exist
        return PARTITIONS
    return 1 if size <= _SMALL_BYTES else PARTITIONS
