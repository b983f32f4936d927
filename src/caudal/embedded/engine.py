"""The embedded engine: DuckDB in this process, each file read once.

Queries are bound, the files that they need are read into tables (loading.py), and each query runs
on a cursor of its own. One query that takes its rows in one pass gets them while they are read
(passing.py).
"""

import contextlib
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import pyarrow as pa

from caudal.duck.bind import RunBinding, choose_queries
from caudal.duck.database import Connection, DuckDBError, one_line, open_database
from caudal.duck.kept_bindings import bind_or_recall
from caudal.duck.one_pass import Passes
from caudal.embedded.answering import answer_queries
from caudal.embedded.parts import StreamedResult, parts_of
from caudal.errors import DataError
from caudal.files.sources import Sources
from caudal.kernels.sentiment import load_model
from caudal.model import ADHOC, Application, ParameterValue
from caudal.results.answers import Answers, Result, TableProfile
from caudal.results.rejects import Rejects
from caudal.run_options import Progress, RunOptions, Silent
from caudal.sql.quoting import quote


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
    with prepared(app, sources, queries, parameters or {}, options, progress) as ready:
        if ready.passes:
            with ready.passing() as streamed:
                return _all_of(streamed, began, progress)
        tables = ready.load()
        results, operators, failures = answer_queries(
            ready.connection, ready.pool, ready.binding.queries, options, progress
        )
    seconds = time.perf_counter() - began
    return Answers(results, ready.rejects, tables, operators, seconds, failures)


def _all_of(streamed: StreamedResult, began: float, progress: Progress) -> Answers:
    """Return the answer whose rows are read in one pass."""
    rows = pa.concat_tables(streamed.parts, promote_options="permissive")
    seconds = time.perf_counter() - began
    progress.query(streamed.name, seconds)
    result = Result(streamed.name, streamed.title, rows, seconds)
    return Answers({streamed.name: result}, streamed.rejects, (), (), seconds, {})


@contextlib.contextmanager
def stream(
    app: Application,
    sources: Sources,
    query: str,
    parameters: Mapping[str, ParameterValue],
    options: RunOptions,
    progress: Progress,
) -> Iterator[StreamedResult]:
    """Answer one query; its rows must be read inside of the block."""
    with prepared(app, sources, [query], parameters, options, progress) as ready:
        if ready.passes:
            with ready.passing() as streamed:
                yield streamed
            return
        ready.load()
        (bound,) = ready.binding.queries
        cursor = ready.connection.cursor()
        with contextlib.closing(parts_of(bound, cursor, ready.pool)) as parts:
            yield StreamedResult(bound.query.name, bound.query.title, parts, ready.rejects)


@dataclass(frozen=True)
class Prepared:
    """Bound queries, and a database for what they read."""

    app: Application
    sources: Sources
    options: RunOptions
    progress: Progress
    connection: Connection
    pool: ThreadPoolExecutor
    binding: RunBinding
    rejects: Rejects

    @property
    def passes(self) -> bool:
        """Whether it is one ad hoc query that may get its rows while they are read."""
        if len(self.binding.queries) != 1 or len(self.binding.loads) != 1:
            return False
        (bound,) = self.binding.queries
        whole = self.options.strict or self.options.reject_sink or self.options.profile
        return bound.passes is not Passes.MANY and bound.query.name == ADHOC and not whole

    @contextlib.contextmanager
    def passing(self) -> Iterator[StreamedResult]:
        """Provide the rows of the only query, which are computed while files are read."""
        from caudal.embedded.loading import Loader
        from caudal.embedded.passing import passing

        (bound,), (load,) = self.binding.queries, self.binding.loads
        files = self.sources.files(self.app.table(load.table.name))
        loader = Loader(self.connection, self.pool, self.options, self.rejects, self.progress)
        with passing(bound, load, files, loader) as parts:
            yield StreamedResult(bound.query.name, bound.query.title, parts, self.rejects)

    def load(self) -> tuple[TableProfile, ...]:
        """Read the files that the queries need."""
        if not self.binding.loads:  # nothing that reads files is imported
            return ()
        from caudal.embedded.loading import Loader

        loader = Loader(self.connection, self.pool, self.options, self.rejects, self.progress)
        return loader.load_all(self.app, self.sources, self.binding.loads)


@contextlib.contextmanager
def prepared(
    app: Application,
    sources: Sources,
    queries: Sequence[str] | None,
    parameters: Mapping[str, ParameterValue],
    options: RunOptions,
    progress: Progress,
) -> Iterator[Prepared]:
    """Bind the chosen queries, in a database of their own."""
    chosen = choose_queries(app, queries, parameters)
    model = load_model(options.sentiment or app.sentiment)
    with open_database(model, memory_limit=options.memory_limit) as connection:
        _create_frames(connection, sources.frames)
        folder = None if sources.frames else options.kept_bindings  # of frames it knows nothing
        binding = bind_or_recall(folder, app, chosen, parameters, connection)
        rejects = Rejects(options.reject_sink, keeps_records=options.records)
        with ThreadPoolExecutor(options.threads, thread_name_prefix="caudal") as pool:
            yield Prepared(app, sources, options, progress, connection, pool, binding, rejects)


def _create_frames(connection: Connection, frames: Mapping[str, pa.Table]) -> None:
    """Copy data frames into tables, since each query has a cursor of its own."""
    for name, rows in frames.items():
        try:
            connection.register("given_frame", rows)
            connection.execute(f"CREATE TABLE {quote(name)} AS SELECT * FROM given_frame")
            connection.unregister("given_frame")
        except DuckDBError as error:
            raise DataError(f"table {name!r}: {one_line(error)}") from None
