"""The embedded engine: DuckDB in this process, each file read once.

Queries are bound, the files that they need are read into tables (loading.py), and each query runs
on a cursor of its own.
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
from caudal.embedded.answering import answer_queries
from caudal.errors import DataError
from caudal.files.sources import Sources
from caudal.kernels.sentiment import load_model
from caudal.model import Application, ParameterValue
from caudal.results.answers import Answers, TableProfile
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
        rejects = Rejects(options.reject_sink)
        with ThreadPoolExecutor(options.threads, thread_name_prefix="caudal") as pool:
            tables: tuple[TableProfile, ...] = ()
            if binding.loads:  # else nothing that reads files is imported
                from caudal.embedded.loading import Loader

                loader = Loader(connection, pool, options, rejects, progress)
                tables = loader.load_all(app, sources, binding.loads)
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
