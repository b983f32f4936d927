"""Empty databases of DuckDB. To open one takes longer than to parse or bind a short statement.

One that has only been asked about statements (their parse trees, the keywords of SQL) is as good as
new. So a run takes the database that was asked before: a short command opens one, not two.
"""

from collections.abc import Iterator
from contextlib import contextmanager

import duckdb

# With this rule DuckDB 2.0.0 takes the rows of a subquery's table for those of the comparison with
# it, and a sum around it for smaller than it may be: HAVING drops groups, ORDER BY fails (ADR 74).
DISABLED_OPTIMIZERS = "statistics_propagation"

_idle: list[duckdb.DuckDBPyConnection] = []  # at most one for each thread


@contextmanager
def lent_database() -> Iterator[duckdb.DuckDBPyConnection]:
    """Lend an empty database for a SELECT that leaves nothing behind."""
    connection = take_database()
    try:
        yield connection
    finally:
        _idle.append(connection)


def take_database() -> duckdb.DuckDBPyConnection:
    """Return an empty database, which the caller closes."""
    try:
        return _idle.pop()
    except IndexError:
        return _opened()


def disable_rules(connection: duckdb.DuckDBPyConnection, *more: str) -> None:
    """Switch these rules of the optimiser off, besides the one that is always off; others on."""
    rules = ",".join((DISABLED_OPTIMIZERS, *more))
    connection.execute(f"SET disabled_optimizers = '{rules}'")


def _opened() -> duckdb.DuckDBPyConnection:
    return duckdb.connect(
        config={
            "threads": 1,
            "disabled_optimizers": DISABLED_OPTIMIZERS,
            "preserve_insertion_order": True,
            "autoinstall_known_extensions": False,
            "autoload_known_extensions": False,
            # A name in SQL is a table, never a variable of the code that runs it.
            "python_enable_replacements": False,
        }
    )
