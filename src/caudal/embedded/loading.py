"""Reads files into tables of a database, each file once.

The path of a row: cut (one thread, at record ends) → read and clean (a pool, one piece at a
time) → append to a table, in the order of the pieces. The number of pieces in flight is bounded, so
memory does not grow with the files. Rows are appended in the order of the files, independent of the
pool's timing, so two runs give the same bits.
"""

import contextlib
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import pyarrow as pa

from caudal.duck.arrow_casts import readable, without_loss
from caudal.duck.bind import TableLoad
from caudal.duck.clean import note_rejects
from caudal.duck.database import Connection
from caudal.embedded.cleaners import cleaners
from caudal.embedded.read_progress import ReadingProfile
from caudal.files.file_notes import file_notes
from caudal.files.inputs import InputFile
from caudal.files.ordered import in_order
from caudal.files.pieces import Cleaned, pieces
from caudal.files.sources import Sources
from caudal.model import Application
from caudal.results.answers import TableProfile
from caudal.results.rejects import Rejects
from caudal.run_options import Progress, RunOptions

_INSERT_BYTES = 16 << 20


@dataclass
class Loader:
    """Reads files into tables of a database."""

    connection: Connection
    pool: ThreadPoolExecutor
    options: RunOptions
    rejects: Rejects
    progress: Progress

    def load_all(
        self, app: Application, sources: Sources, loads: Sequence[TableLoad]
    ) -> tuple[TableProfile, ...]:
        """Read the files of several tables. How they are read is no part of a load, which may have
        been kept by an earlier run."""
        files = {load.table.name: sources.files(app.table(load.table.name)) for load in loads}
        with without_loss(self.connection):
            return tuple(self.load(load, files[load.table.name]) for load in loads)

    def load(self, load: TableLoad, files: Sequence[InputFile]) -> TableProfile:
        """Read one table's files into DuckDB."""
        for statement in load.create:
            self.connection.execute(statement)
        for name, select in load.key_sets:
            self.connection.execute(f"CREATE TABLE IF NOT EXISTS {name} AS {select}")
        profile = ReadingProfile(load.table.name, files, self.progress)
        rows = _Rows(self.connection, load.stored)
        with self.cleaned(load, files, self.options.read_bytes) as outcomes:
            for cleaned in outcomes:
                note_rejects(self.rejects, cleaned, load.table, strict=self.options.strict)
                rows.append(cleaned.rows)
                profile.note(cleaned)
        rows.insert()
        self.rejects.notes += file_notes(files)
        return profile.finished()

    @contextlib.contextmanager
    def cleaned(
        self, load: TableLoad, files: Sequence[InputFile], batch_bytes: int
    ) -> Iterator[Iterator[Cleaned]]:
        """Provide the cleaned pieces of a table's files, in their order."""
        cut = (
            piece
            for file in files
            for piece in pieces(file, load.cleaning.wanted, batch_bytes=batch_bytes)
        )
        with (
            cleaners(self.connection, load.cleaning, self.options.threads) as clean,
            contextlib.closing(
                in_order(self.pool, clean, cut, ahead=self.options.threads + 1)
            ) as outcomes,
        ):
            yield outcomes


class _Rows:
    """A buffer of rows for a table. Many rows are inserted at a time, because INSERT is costly."""

    def __init__(self, connection: Connection, stored: str) -> None:
        self._connection = connection
        self._stored = stored
        self._waiting: list[pa.Table] = []
        self._bytes = 0

    def append(self, rows: pa.Table) -> None:
        self._waiting.append(rows)
        self._bytes += rows.nbytes
        if self._bytes >= _INSERT_BYTES:
            self.insert()

    def insert(self) -> None:
        if any(one.num_rows for one in self._waiting):
            rows = pa.concat_tables(self._waiting)
            with readable(self._connection, "cleaned_rows", rows):
                self._connection.execute(f"INSERT INTO {self._stored} SELECT * FROM cleaned_rows")
        self._waiting.clear()
        self._bytes = 0
