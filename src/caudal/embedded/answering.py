"""Run bound queries over the tables of a database, each on its own cursor."""

import contextlib
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial

from caudal.duck.arrow_casts import presented
from caudal.duck.bind import BoundQuery
from caudal.duck.database import Connection, DuckDBError, DuckDBMemoryError, one_line
from caudal.errors import MemoryExceededError, QueryError
from caudal.results.answers import OperatorProfile, Result
from caudal.results.failures import Failures, settled
from caudal.run_options import Progress, RunOptions

CursorOf = Callable[[Connection, BoundQuery], Connection]  # a new cursor for a query


def plain_cursor(connection: Connection, bound: BoundQuery) -> Connection:
    """Return a cursor for a query whose tables all cursors see."""
    return connection.cursor()


def answer_queries(
    connection: Connection,
    pool: ThreadPoolExecutor,
    queries: Sequence[BoundQuery],
    options: RunOptions,
    progress: Progress,
    cursor_of: CursorOf = plain_cursor,
) -> tuple[dict[str, Result], tuple[OperatorProfile, ...], Mapping[str, QueryError]]:
    """Run the bound queries in parallel. For a profile, first measure each query alone."""
    operators = _profiled(connection, queries, cursor_of) if options.profile else []
    cursors = [cursor_of(connection, bound) for bound in queries]
    running = [
        pool.submit(_run_query, cursor, bound)
        for cursor, bound in zip(cursors, queries, strict=True)
    ]
    answering = _Answering(progress)
    again = []
    try:
        for bound, future in zip(queries, running, strict=True):
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
            answering.note(bound, partial(_run_query, cursor_of(connection, bound), bound))
    results = {
        bound.query.name: answering.results[bound.query.name]
        for bound in queries
        if bound.query.name in answering.results
    }
    return results, tuple(operators), settled(results, answering.failures.errors)


def _profiled(
    connection: Connection, queries: Sequence[BoundQuery], cursor_of: CursorOf
) -> list[OperatorProfile]:
    from caudal.duck.profile import profile_query

    operators: list[OperatorProfile] = []
    for bound in queries:
        with contextlib.suppress(QueryError):  # an error here is raised again later
            operators += profile_query(cursor_of(connection, bound), bound)
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
