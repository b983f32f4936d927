"""One query whose rows are given while DuckDB computes them, so that memory stays small.

A thread of the pool fetches the next rows while the caller uses the last ones. So a signal reaches
the caller at once, and leaving the block stops the query.
"""

import contextlib
from collections.abc import Generator, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import pyarrow as pa

from caudal.duck.arrow_casts import presented_parts
from caudal.duck.bind import BoundQuery
from caudal.duck.database import Connection, DuckDBError, DuckDBMemoryError, one_line
from caudal.embedded.engine import loaded
from caudal.errors import MemoryExceededError, QueryError
from caudal.files.sources import Sources
from caudal.model import Application, ParameterValue
from caudal.results.rejects import Rejects
from caudal.run_options import Progress, RunOptions


@dataclass(frozen=True)
class StreamedResult:
    """The rows that answer one query, as tables that can be read once. There is at least one."""

    name: str
    title: str
    parts: Iterator[pa.Table]
    rejects: Rejects


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
    with loaded(app, sources, [query], parameters, options, progress) as data:
        (bound,) = data.binding.queries
        with contextlib.closing(parts_of(bound, data.connection, data.pool)) as parts:
            yield StreamedResult(bound.query.name, bound.query.title, parts, data.rejects)


def parts_of(
    bound: BoundQuery, connection: Connection, pool: ThreadPoolExecutor
) -> Generator[pa.Table, None, None]:
    """Yield the rows of a bound query while they are computed."""
    cursor = connection.cursor()
    with _errors_of(bound):
        parts = presented_parts(cursor.sql(bound.sql), list(bound.names))
        coming = pool.submit(next, parts, None)
        try:
            while (part := coming.result()) is not None:
                coming = pool.submit(next, parts, None)
                yield part
        finally:
            if not coming.done():
                cursor.interrupt()
                coming.exception()  # wait: the database must not be closed before


@contextlib.contextmanager
def _errors_of(bound: BoundQuery) -> Iterator[None]:
    """Raise QueryError for an error of DuckDB, which Arrow raises as OSError."""
    try:
        yield
    except (DuckDBError, OSError) as error:
        line = f"{bound.query.origin}: {one_line(error)}"
        if isinstance(error, DuckDBMemoryError) or "Out of Memory" in str(error):
            raise MemoryExceededError(line) from None
        raise QueryError(line) from None
