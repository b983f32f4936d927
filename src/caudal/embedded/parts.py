"""The rows of a query, given while DuckDB computes them, so that memory stays small.

Another thread fetches the next rows while the caller uses the last ones. So a signal reaches the
caller at once, and leaving the block stops the query.
"""

import contextlib
from collections.abc import Generator, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import pyarrow as pa

from caudal.duck.arrow_casts import presented_parts
from caudal.duck.bind import BoundQuery
from caudal.duck.database import Connection, DuckDBError, DuckDBMemoryError, one_line
from caudal.errors import MemoryExceededError, QueryError
from caudal.results.rejects import Rejects


@dataclass(frozen=True)
class StreamedResult:
    """The rows that answer one query, as tables that can be read once. There is at least one.

    The rejected rows are known when all rows were read.
    """

    name: str
    title: str
    parts: Iterator[pa.Table]
    rejects: Rejects


def parts_of(
    bound: BoundQuery, cursor: Connection, pool: ThreadPoolExecutor
) -> Generator[pa.Table, None, None]:
    """Yield the rows of a bound query while they are computed by a cursor of its own."""
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
