"""Write the files of a load: cut its sources into batches, clean each, create its files.

Batches are always cut at the same places, so a repeated load skips those that are done.
"""

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing, suppress
from dataclasses import dataclass, field, replace
from functools import partial

import pyarrow as pa

from caudal.datasets import keys
from caudal.datasets.commits import FilesVacuumedError, create_dataset
from caudal.datasets.documents import BatchDone, DatasetHead, decode_batch, encode_batch
from caudal.datasets.files import MissingFileError, create_file, read_file
from caudal.datasets.parquet import read_rows
from caudal.duck.database import Connection
from caudal.duck.dataset_tables import AppTables
from caudal.embedded.cleaners import cleaners
from caudal.embedded.dataset_sources import Source
from caudal.errors import NotFoundError
from caudal.files.cleaning import Cleaning
from caudal.files.ordered import in_order
from caudal.files.pieces import Cleaned, FilePiece
from caudal.files.raw_records import no_records
from caudal.model import RejectedRow
from caudal.results.rejects import Rejects, strict_error
from caudal.run_options import Progress, RunOptions
from caudal.store.port import Store, entries

BATCH_BYTES = 32 << 20


@dataclass(frozen=True)
class Tools:
    """What every load of a loader uses."""

    store: Store
    connection: Connection
    bound: AppTables
    options: RunOptions
    progress: Progress
    pool: ThreadPoolExecutor


@dataclass
class Writing:
    """Writes the files of one load."""

    tools: Tools
    head: DatasetHead
    load: str
    sources: Sequence[Source]
    rejects: Rejects
    is_created: bool = False

    def write(self) -> dict[str, list[BatchDone]]:
        """Write all batches; return them by table, in the order of the sources."""
        done = self._done_before()
        tables = dict.fromkeys(one.offered.table for one in self.sources)
        return {table: self._write_table(table, done) for table in tables}

    def _done_before(self) -> dict[str, BatchDone]:
        store = self.tools.store
        found = [one.key for one in entries(store, keys.progress_folder(self.load))]
        done = {}
        for key in found:
            with suppress(NotFoundError):  # a vacuum deletes it
                done[key] = decode_batch(store.read(key), key)
        return done

    def _write_table(self, table: str, done: dict[str, BatchDone]) -> list[BatchDone]:
        cleaning, options = self.tools.bound.cleanings[table], self.tools.options
        progress = _Reading(table, self.sources, self.tools.progress)
        work = _TableBatches(self, cleaning, done, progress)
        ready: list[BatchDone] = []
        pending: deque[Future[BatchDone]] = deque()
        with (
            cleaners(self.tools.connection, cleaning, options.threads) as clean,
            closing(
                in_order(
                    self.tools.pool,
                    partial(_clean_cut, clean),
                    work.cut(),
                    ahead=options.threads + 1,
                )
            ) as outcomes,
        ):
            waiting: list[_Clean] = []
            for outcome in outcomes:
                waiting.append(outcome)
                self._note(outcome)
                progress.note(outcome.cut.piece)
                if outcome.cut.ends_batch:
                    if len(pending) > 1:
                        ready.append(pending.popleft().result())
                    self._create_dataset()
                    pending.append(self.tools.pool.submit(self._create, table, waiting))
                    waiting = []
            ready += [future.result() for future in pending]
        progress.finish()
        return work.all_batches(ready)

    def _note(self, outcome: "_Clean") -> None:
        rejected = outcome.cleaned.rejected
        if rejected and self.tools.options.strict:
            raise strict_error(next(iter(rejected)))
        self.rejects.add(rejected)
        self.rejects.note_repaired(rejected.table, outcome.cleaned.repaired)

    def note_done(self, batch: BatchDone) -> None:
        """Report the rejected rows of a batch that an earlier attempt wrote."""
        table = self.sources[batch.source].offered.table
        self.rejects.note_repaired(table, batch.repaired)
        if batch.rejects is None:
            return
        try:
            rows = read_rows([read_file(self.tools.store, keys.REJECTS, batch.rejects)])
        except MissingFileError as error:
            raise FilesVacuumedError(str(error)) from None
        for row in rows.select(["table", "file", "line", "reason"]).to_pylist():
            rejected = RejectedRow(**row)
            if self.tools.options.strict:
                raise strict_error(rejected)
            self.rejects.add([rejected])

    def _create_dataset(self) -> None:
        """Create the dataset when its first rows are there, so that a bad file leaves nothing."""
        if not self.is_created:
            create_dataset(self.tools.store, self.head)
            self.is_created = True

    def _create(self, table: str, cleaned: Sequence["_Clean"]) -> BatchDone:
        """Create the files of a batch, then the object that says so."""
        store, cut = self.tools.store, cleaned[0].cut
        rows = pa.concat_tables([one.cleaned.rows for one in cleaned])
        rejected = pa.concat_tables([one.rejects for one in cleaned])
        name = f"{cut.batch:08}"
        file = create_file(store, table, self.load, name, rows) if rows.num_rows else None
        rejects = (
            create_file(store, keys.REJECTS, self.load, f"{table}-{name}", rejected)
            if rejected.num_rows
            else None
        )
        repaired = sum(one.cleaned.repaired for one in cleaned)
        done = BatchDone(cut.source, rows.num_rows, rejected.num_rows, repaired, file, rejects)
        key = keys.progress_key(self.load, table, cut.batch)
        store.create(key, encode_batch(done), lasting=False)
        return done


@dataclass(frozen=True)
class _Cut:
    """A piece of a source: the batch that it belongs to, and whether it is the last of it."""

    piece: FilePiece
    source: int
    batch: int
    ends_batch: bool
    lines_before: int


@dataclass(frozen=True)
class _Clean:
    cut: _Cut
    cleaned: Cleaned
    rejects: pa.Table


@dataclass
class _TableBatches:
    """The batches of one table: those that are done, and the pieces of the others."""

    writing: Writing
    cleaning: Cleaning
    done: dict[str, BatchDone]
    progress: "_Reading"
    earlier: dict[int, BatchDone] = field(default_factory=dict)
    cleaned: list[int] = field(default_factory=list)

    def cut(self) -> Iterator[_Cut]:
        """Yield the pieces of all batches that are not done."""
        number = 0
        table = self.cleaning.table.name
        for place, source in enumerate(self.writing.sources):
            if source.offered.table != table:
                continue
            for batch in self._batches(source):
                key = keys.progress_key(self.writing.load, table, number)
                if key in self.done:
                    self.earlier[number] = self.done[key]
                    self.writing.note_done(self.done[key])
                    self.progress.note(batch[-1])
                else:
                    self.cleaned.append(number)
                    for piece in batch:
                        ends = piece is batch[-1]
                        yield _Cut(piece, place, number, ends, source.lines_before)
                number += 1

    def _batches(self, source: Source) -> Iterator[list[FilePiece]]:
        batch: list[FilePiece] = []
        size = 0
        options = self.writing.tools.options
        for piece in source.cut(self.cleaning.wanted, options.read_bytes):
            batch.append(piece)
            size += piece.bytes
            if size >= BATCH_BYTES:
                yield batch
                batch, size = [], 0
        if batch:
            yield batch

    def all_batches(self, ready: Sequence[BatchDone]) -> list[BatchDone]:
        """Return the batches of earlier attempts and of this one, in order."""
        found = {**self.earlier, **dict(zip(self.cleaned, ready, strict=True))}
        return [found[number] for number in sorted(found)]


class _Reading:
    """How far the sources of a table are read, for the progress display."""

    def __init__(self, table: str, sources: Sequence[Source], progress: Progress) -> None:
        self._table = table
        self._progress = progress
        self._total = sum(one.offered.bytes for one in sources if one.offered.table == table)
        self._seen: dict[str, int] = {}

    def note(self, piece: FilePiece) -> None:
        self._seen[piece.file] = piece.position
        self._progress.table(self._table, min(sum(self._seen.values()), self._total), self._total)

    def finish(self) -> None:
        self._progress.table(self._table, self._total, self._total)


def _clean_cut(clean: Callable[[FilePiece], Cleaned], cut: _Cut) -> _Clean:
    """Clean a piece; keep the raw records of its rejected rows."""
    cleaned = clean(cut.piece)
    rejected = cleaned.rejected
    moved = replace(rejected, lines=rejected.lines + cut.lines_before, raw=no_records)
    rejects = moved.with_records(rejected.raw(rejected.lines))
    return _Clean(cut, replace(cleaned, rejected=moved), rejects)
