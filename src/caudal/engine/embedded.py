"""The embedded engine: DuckDB in this process, each file read once.

The path of a row: cut (one thread, at record ends) → read and clean (a pool, one piece at a
time) → appended to a table, in the order of the pieces → queries, each on a cursor of its own.
Pieces in flight are bounded, so memory does not grow with the files. Rows are appended in the
order of the files whatever the pool's timing, so two runs give the same bits.
"""

import os
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from caudal.answers import Answers, OperatorProfile, Result, TableProfile
from caudal.engine.catalog import Binding, BoundQuery, TableLoad, bind, choose_queries
from caudal.engine.database import one_line, open_database
from caudal.engine.profiling import profile_query
from caudal.engine.reading import Piece, find_files, pieces
from caudal.errors import ApplicationError, QueryError, RejectedRowError
from caudal.kernels.csv import DEFAULT_BATCH_BYTES
from caudal.kernels.sentiment import load_model
from caudal.model import REJECT, Application, ParameterValue, RejectedRow
from caudal.rejects import Rejects


class Progress(Protocol):
    """Told how far a run has come. All calls come from the thread that called `run`."""

    def table(self, name: str, done_bytes: int, total_bytes: int) -> None: ...

    def query(self, name: str, seconds: float) -> None: ...


class Silent:
    """Progress that nobody watches."""

    def table(self, name: str, done_bytes: int, total_bytes: int) -> None: ...

    def query(self, name: str, seconds: float) -> None: ...


@dataclass(frozen=True)
class RunOptions:
    """How to run, as opposed to what to answer."""

    sentiment: str | None = None  # None: what the application says
    memory_limit: int | None = None  # bytes for the process; beyond it, data spills to disk
    batch_bytes: int = DEFAULT_BATCH_BYTES  # larger: fewer, longer steps and more memory
    threads: int = field(default_factory=lambda: os.cpu_count() or 1)
    strict: bool = False  # fail on the first rejected row
    profile: bool = False  # measure every operator (runs queries one after the other)
    reject_sink: Callable[[RejectedRow], None] | None = None


@dataclass(frozen=True)
class Sources:
    """Where the files are: a folder, and for some tables other files instead."""

    folder: Path
    overrides: Mapping[str, Sequence[str]] = field(default_factory=dict)

    def files(self, load: TableLoad) -> list[Path]:
        name = load.table.name
        if name not in self.overrides:
            return find_files(self.folder, load.table.files, name)
        here = (
            [path for pattern in self.overrides[name] for path in Path().glob(pattern)]
            if all(not Path(pattern).is_absolute() for pattern in self.overrides[name])
            else []
        )
        return sorted(here) or find_files(self.folder, self.overrides[name], name)


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
    chosen = choose_queries(app, queries)
    model = load_model(options.sentiment or app.sentiment)
    with open_database(model, memory_limit=options.memory_limit) as connection:
        binding = bind(app, chosen, parameters or {}, connection)
        files = {load.table.name: sources.files(load) for load in binding.loads}
        rejects = Rejects(options.reject_sink)
        with ThreadPoolExecutor(options.threads, thread_name_prefix="caudal") as pool:
            loader = _Loader(connection, pool, options, rejects, progress)
            tables = tuple(loader.load(load, files[load.table.name]) for load in binding.loads)
            results, operators = _answer(connection, pool, binding, options, progress)
    return Answers(results, rejects, tables, operators, time.perf_counter() - began)


@dataclass(frozen=True)
class _Cleaned:
    rows: pa.Table
    rejected: list[RejectedRow]
    repaired: int
    piece: Piece


@dataclass
class _Loader:
    connection: duckdb.DuckDBPyConnection
    pool: ThreadPoolExecutor
    options: RunOptions
    rejects: Rejects
    progress: Progress

    def load(self, load: TableLoad, files: Sequence[Path]) -> TableProfile:
        """Read one table's files into DuckDB."""
        began = time.perf_counter()
        for statement in load.create:
            self.connection.execute(statement)
        for name, select in load.key_sets:
            self.connection.execute(f"CREATE TABLE {name} AS {select}")
        total = sum(path.stat().st_size for path in files)
        read_bytes = rows = rejected = finished = 0
        last = ""
        for cleaned in self._cleaned(load, files):
            if cleaned.piece.file != last:
                finished += Path(last).stat().st_size if last else 0
                last = cleaned.piece.file
            self._append(load, cleaned)
            read_bytes += cleaned.piece.bytes
            rows += cleaned.rows.num_rows
            rejected += len(cleaned.rejected)
            self.progress.table(load.table.name, finished + cleaned.piece.position, total)
        self.progress.table(load.table.name, total, total)
        seconds = time.perf_counter() - began
        return TableProfile(load.table.name, read_bytes, rows, rejected, seconds)

    def _append(self, load: TableLoad, cleaned: _Cleaned) -> None:
        if cleaned.rejected and self.options.strict:
            row = min(cleaned.rejected, key=lambda row: row.line)
            raise RejectedRowError(f"{row.file} line {row.line}: {row.reason} (table {row.table})")
        self.rejects.add(cleaned.rejected)
        self.rejects.note_repaired(load.table.name, cleaned.repaired)
        if cleaned.rows.num_rows:
            self.connection.register("cleaned_rows", cleaned.rows)
            self.connection.execute(f"INSERT INTO {load.stored} SELECT * FROM cleaned_rows")
            self.connection.unregister("cleaned_rows")

    def _cleaned(self, load: TableLoad, files: Sequence[Path]) -> Iterator[_Cleaned]:
        """Cleaned pieces in the order of the files, a bounded number of them in flight."""
        flying: deque[Future[_Cleaned]] = deque()
        try:
            for path in files:
                for piece in pieces(
                    path, load.columns, load.table.name, batch_bytes=self.options.batch_bytes
                ):
                    flying.append(self.pool.submit(_clean, self.connection, load, piece))
                    if len(flying) > self.options.threads + 1:
                        yield flying.popleft().result()
            while flying:
                yield flying.popleft().result()
        finally:
            for future in flying:
                future.cancel()


def _clean(connection: duckdb.DuckDBPyConnection, load: TableLoad, piece: Piece) -> _Cleaned:
    """Read one piece and run the table's SQL over it."""
    text = piece.read()
    name = load.table.name
    cursor = connection.cursor()
    try:
        cursor.register("raw", _all_columns(text.table, load.table.columns))
        cleaned = cursor.sql(load.sql).to_arrow_table()
    except duckdb.Error as error:
        raise ApplicationError(f"{load.table.origin}: {one_line(error)}") from None
    finally:
        cursor.close()
    if cleaned.num_rows != text.table.num_rows:
        raise ApplicationError(
            f"{load.table.origin}: gives {cleaned.num_rows} rows for {text.table.num_rows} of raw; "
            "clean row by row, and leave rows out with a `reject` column instead of WHERE"
        )
    reasons = cleaned.column(REJECT)
    rejected = [RejectedRow(name, text.file, line, reason) for line, reason in text.damaged]
    if reasons.null_count < len(reasons):
        bad = np.flatnonzero(pc.is_valid(reasons).to_numpy())
        lines = text.lines(bad)
        rejected += [
            RejectedRow(name, text.file, int(line), reason)
            for line, reason in zip(lines, reasons.take(bad).to_pylist(), strict=True)
        ]
        rejected.sort(key=lambda row: row.line)
        cleaned = cleaned.filter(pc.is_null(reasons))
    return _Cleaned(cleaned.drop_columns([REJECT]), rejected, text.repaired, piece)


def _all_columns(text: pa.Table, columns: Sequence[str]) -> pa.Table:
    """The columns that were read, and nulls for those that nobody reads."""
    absent = pa.nulls(text.num_rows, pa.string())
    present = set(text.column_names)
    return pa.table({name: text[name] if name in present else absent for name in columns})


def _answer(
    connection: duckdb.DuckDBPyConnection,
    pool: ThreadPoolExecutor,
    binding: Binding,
    options: RunOptions,
    progress: Progress,
) -> tuple[dict[str, Result], tuple[OperatorProfile, ...]]:
    """Run the bound queries, in parallel unless each operator is to be measured."""
    operators: list[OperatorProfile] = []
    for bound in binding.queries if options.profile else ():
        operators += profile_query(connection, bound)
    cursors = [connection.cursor() for _ in binding.queries]
    running = [
        pool.submit(_run_query, cursor, bound)
        for cursor, bound in zip(cursors, binding.queries, strict=True)
    ]
    results = {}
    try:
        for bound, future in zip(binding.queries, running, strict=True):
            results[bound.query.name] = future.result()
            progress.query(bound.query.name, results[bound.query.name].seconds)
    finally:  # when one fails, or on Ctrl-C, the others need not go on
        for cursor, future in zip(cursors, running, strict=True):
            future.cancel()
            if not future.done():
                cursor.interrupt()
    return results, tuple(operators)


def _run_query(cursor: duckdb.DuckDBPyConnection, bound: BoundQuery) -> Result:
    began = time.perf_counter()
    try:
        table = cursor.sql(bound.sql).to_arrow_table()
    except duckdb.Error as error:
        raise QueryError(f"{bound.query.origin}: {one_line(error)}") from None
    finally:
        cursor.close()
    seconds = time.perf_counter() - began
    named = table.rename_columns(list(bound.names))
    return Result(bound.query.name, bound.query.title, named, seconds)
