"""The embedded engine: DuckDB in this process, each file read once.

The path of a row: cut (one thread, at record ends) → read and clean (a pool, one piece at a
time) → append to a table, in the order of the pieces → queries, each on its own cursor. The number
of pieces in flight is bounded, so memory does not grow with the files. Rows are appended in the
order of the files, independent of the pool's timing, so two runs give the same bits.
"""

import contextlib
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from queue import SimpleQueue

import pyarrow as pa

from caudal.duck.arrow_casts import carrying_list, marked, presented, readable, without_loss
from caudal.duck.bind import BoundQuery, RunBinding, TableLoad, choose_queries
from caudal.duck.clean import clean_piece, note_rejects
from caudal.duck.database import Connection, DuckDBError, DuckDBMemoryError, one_line, open_database
from caudal.duck.kept_bindings import bind_or_recall
from caudal.duck.prefilter import KeyFilters
from caudal.embedded.read_progress import ReadingProfile
from caudal.errors import ApplicationError, DataError, MemoryExceededError, QueryError
from caudal.files.ordered import in_order
from caudal.files.pieces import Cleaned, FilePiece, pieces
from caudal.files.sources import Sources
from caudal.kernels.hashing import KeyFilter, key_words
from caudal.kernels.sentiment import load_model
from caudal.model import Application, ParameterValue
from caudal.results.answers import Answers, OperatorProfile, Result, TableProfile
from caudal.results.failures import Failures, settled
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
        results, operators, failures = _answer(data, options, progress)
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
        files = {load.table.name: sources.files(load.table) for load in binding.loads}
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

    def load(self, load: TableLoad, files: Sequence[Path]) -> TableProfile:
        """Read one table's files into DuckDB."""
        for statement in load.create:
            self.connection.execute(statement)
        for name, select in load.key_sets:
            self.connection.execute(f"CREATE TABLE IF NOT EXISTS {name} AS {select}")
        profile = ReadingProfile(load.table.name, files, self.progress)
        cut = (
            piece
            for path in files
            for piece in pieces(path, load.cleaning.wanted, batch_bytes=self.options.batch_bytes)
        )
        rows = _Rows(self.connection, load.stored)
        with (
            _cleaners(self.connection, load, self.options.threads) as clean,
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


class _Cleaner:
    """A cleaner of one table's pieces, one after the other. Its SQL is planned once, over a
    relation `raw` whose rows are replaced for each piece."""

    def __init__(self, cursor: Connection, load: TableLoad, filters: KeyFilters) -> None:
        self._cursor = cursor
        self._load = load
        self._filters = filters
        self._rows = pa.table({})
        self._columns: list[tuple[str, str]] = []  # columns of the SQL's result, with types

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """Return the rows of `raw`. DuckDB calls this each time that the SQL runs."""
        return self._rows.__arrow_c_stream__(requested_schema)

    def clean(self, piece: FilePiece) -> Cleaned:
        try:
            return clean_piece(piece, self._load.cleaning, self._select, self._filters)
        except (DuckDBError, QueryError) as error:
            raise ApplicationError(f"{self._load.table.origin}: {one_line(error)}") from None

    def _select(self, sql: str, relation: str, rows: pa.Table) -> pa.Table:
        planned, self._rows = self._rows.schema, rows
        if rows.schema != planned:
            self._cursor.register(relation, self)
            given = self._cursor.sql(sql)
            self._columns = list(zip(given.columns, map(str, given.types), strict=True))
            listed = carrying_list(self._columns)
            self._cursor.execute(f"PREPARE clean AS SELECT {listed} FROM (\n{sql}\n) AS given")
        carried = self._cursor.sql("EXECUTE clean").to_arrow_table()
        return marked(carried, [kind for _, kind in self._columns])


@contextlib.contextmanager
def _cleaners(
    connection: Connection, load: TableLoad, threads: int
) -> Iterator[Callable[[FilePiece], Cleaned]]:
    """Provide a function that cleans pieces of a table in a pool of `threads` cleaners.

    On exit this waits for running calls; no call may be queued.
    """
    filters = {
        flag.keys: KeyFilter(key_words(connection.table(flag.keys).to_arrow_table().column(0)))
        for flag in load.cleaning.prefilter.flags
    }
    cursors = [connection.cursor() for _ in range(threads)]
    idle: SimpleQueue[_Cleaner] = SimpleQueue()
    for cursor in cursors:
        idle.put(_Cleaner(cursor, load, filters))

    def clean(piece: FilePiece) -> Cleaned:
        cleaner = idle.get()
        try:
            return cleaner.clean(piece)
        finally:
            idle.put(cleaner)

    try:
        yield clean
    finally:
        for _ in cursors:
            idle.get()
        for cursor in cursors:
            cursor.close()


def _answer(
    data: Loaded, options: RunOptions, progress: Progress
) -> tuple[dict[str, Result], tuple[OperatorProfile, ...], Mapping[str, QueryError]]:
    """Run the bound queries in parallel. For a profile, first measure each query alone."""
    connection, pool, binding = data.connection, data.pool, data.binding
    operators = _profiled(connection, binding) if options.profile else []
    cursors = [connection.cursor() for _ in binding.queries]
    running = [
        pool.submit(_run_query, cursor, bound)
        for cursor, bound in zip(cursors, binding.queries, strict=True)
    ]
    answering = _Answering(progress)
    again = []
    try:
        for bound, future in zip(binding.queries, running, strict=True):
            try:
                answering.note(bound, future.result)
            except MemoryExceededError:
                again.append(bound)
    finally:  # on Ctrl-C, stop the other queries
        for cursor, future in zip(cursors, running, strict=True):
            future.cancel()
            if not future.done():
                cursor.interrupt()
    for bound in again:  # alone: memory may have been short because of another query
        with answering.failures.of(bound.query.name):
            answering.note(bound, partial(_run_query, connection.cursor(), bound))
    results = {
        bound.query.name: answering.results[bound.query.name]
        for bound in binding.queries
        if bound.query.name in answering.results
    }
    return results, tuple(operators), settled(results, answering.failures.errors)


def _profiled(connection: Connection, binding: RunBinding) -> list[OperatorProfile]:
    from caudal.duck.profile import profile_query

    operators: list[OperatorProfile] = []
    for bound in binding.queries:
        with contextlib.suppress(QueryError):  # an error here is raised again later
            operators += profile_query(connection, bound)
    return operators


@dataclass
class _Answering:
    """The results and failures of queries so far."""

    progress: Progress
    results: dict[str, Result] = field(default_factory=dict)
    failures: Failures = field(default_factory=Failures)

    def note(self, bound: BoundQuery, answer: Callable[[], Result]) -> None:
        """Store the result or the failure of a query. Raise if it lacked memory."""
        name = bound.query.name
        try:
            self.results[name] = answer()
        except MemoryExceededError:
            raise
        except QueryError as error:
            self.failures.note(name, error)
        else:
            self.progress.query(name, self.results[name].seconds)


def _run_query(cursor: Connection, bound: BoundQuery) -> Result:
    began = time.perf_counter()
    try:
        table = presented(cursor.sql(bound.sql))
    except DuckDBMemoryError as error:
        raise MemoryExceededError(f"{bound.query.origin}: {one_line(error)}") from None
    except DuckDBError as error:
        raise QueryError(f"{bound.query.origin}: {one_line(error)}") from None
    finally:
        cursor.close()
    seconds = time.perf_counter() - began
    named = table.rename_columns(list(bound.names))
    return Result(bound.query.name, bound.query.title, named, seconds)
