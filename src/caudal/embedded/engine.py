"""The embedded engine: DuckDB in this process, each file read once.

The path of a row: cut (one thread, at record ends) → read and clean (a pool, one piece at a
time) → append to a table, in the order of the pieces → queries, each on its own cursor. The number
of pieces in flight is bounded, so memory does not grow with the files. Rows are appended in the
order of the files, independent of the pool's timing, so two runs give the same bits.
"""

import contextlib
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import pyarrow as pa

from caudal.duck.arrow_casts import readable, without_loss
from caudal.duck.bind import RunBinding, TableLoad, choose_queries
from caudal.duck.clean import note_rejects
from caudal.duck.database import Connection, DuckDBError, one_line, open_database
from caudal.duck.kept_bindings import bind_or_recall
from caudal.embedded.answering import answer_queries
from caudal.embedded.cleaners import cleaners
from caudal.embedded.read_progress import ReadingProfile
from caudal.errors import DataError
from caudal.files.inputs import InputFile
from caudal.files.ordered import in_order
from caudal.files.pieces import pieces
from caudal.files.sources import Sources
from caudal.kernels.sentiment import load_model
from caudal.model import Application, ParameterValue
from caudal.results.answers import Answers, TableProfile
from caudal.results.rejects import Rejects
from caudal.run_options import Progress, RunOptions, Silent
from caudal.sql.quoting import quote

_INSERT_BYTES = 16 << 20


def run(
    app: Application,
    sources: Sources,
    queries: Sequence[str] | None = None,
    parameters: Mapping[str, ParameterValue] | None = None,
    options: RunOptions | None = None,
    progress: Progress | None = None,
) -> Answers:
    """Answer the chosen queries (all, if none is named) over the given files."""
    options, progress = options or RunOptions(), progress or Silent()
    began = time.perf_counter()
    with loaded(app, sources, queries, parameters or {}, options, progress) as data:
        results, operators, failures = answer_queries(
            data.connection, data.pool, data.binding.queries, options, progress
        )
    seconds = time.perf_counter() - began
    return Answers(results, data.rejects, data.tables, operators, seconds, failures)


@dataclass(frozen=True)
class Loaded:
    """Bound queries, and a database that holds what they read."""

    connection: Connection
    pool: ThreadPoolExecutor
    binding: RunBinding
    rejects: Rejects
    tables: tuple[TableProfile, ...]


@contextlib.contextmanager
def loaded(
    app: Application,
    sources: Sources,
    queries: Sequence[str] | None,
    parameters: Mapping[str, ParameterValue],
    options: RunOptions,
    progress: Progress,
) -> Iterator[Loaded]:
    """Bind the chosen queries and read the files that they need."""
    chosen = choose_queries(app, queries, parameters)
    model = load_model(options.sentiment or app.sentiment)
    with open_database(model, memory_limit=options.memory_limit) as connection:
        _create_frames(connection, sources.frames)
        folder = None if sources.frames else options.kept_bindings  # of frames it knows nothing
        binding = bind_or_recall(folder, app, chosen, parameters, connection)
        # How files are read is no part of a binding, which may have been kept.
        tables_read = [app.table(load.table.name) for load in binding.loads]
        files = {table.name: sources.files(table) for table in tables_read}
        rejects = Rejects(options.reject_sink)
        with ThreadPoolExecutor(options.threads, thread_name_prefix="caudal") as pool:
            loader = Loader(connection, pool, options, rejects, progress)
            with without_loss(connection):
                tables = tuple(loader.load(load, files[load.table.name]) for load in binding.loads)
            yield Loaded(connection, pool, binding, rejects, tables)


def _create_frames(connection: Connection, frames: Mapping[str, pa.Table]) -> None:
    """Copy data frames into tables, since each query has a cursor of its own."""
    for name, rows in frames.items():
        try:
            connection.register("given_frame", rows)
            connection.execute(f"CREATE TABLE {quote(name)} AS SELECT * FROM given_frame")
            connection.unregister("given_frame")
        except DuckDBError as error:
            raise DataError(f"table {name!r}: {one_line(error)}") from None


@dataclass
class Loader:
    """Reads files into tables of a database."""

    connection: Connection
    pool: ThreadPoolExecutor
    options: RunOptions
    rejects: Rejects
    progress: Progress

    def load(self, load: TableLoad, files: Sequence[InputFile]) -> TableProfile:
        """Read one table's files into DuckDB."""
        for statement in load.create:
            self.connection.execute(statement)
        for name, select in load.key_sets:
            self.connection.execute(f"CREATE TABLE IF NOT EXISTS {name} AS {select}")
        profile = ReadingProfile(load.table.name, files, self.progress)
        cut = (
            piece
            for file in files
            for piece in pieces(file, load.cleaning.wanted, batch_bytes=self.options.batch_bytes)
        )
        rows = _Rows(self.connection, load.stored)
        with (
            cleaners(self.connection, load.cleaning, self.options.threads) as clean,
            contextlib.closing(
                in_order(self.pool, clean, cut, ahead=self.options.threads + 1)
            ) as outcomes,
        ):
            for cleaned in outcomes:
                note_rejects(self.rejects, cleaned, load.table, strict=self.options.strict)
                rows.append(cleaned.rows)
                profile.note(cleaned)
        rows.insert()
        return profile.finished()


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
