"""Opening DuckDB the way Caudal uses it, and turning its complaints into one line."""

import contextlib
import functools
import tempfile
from collections.abc import Iterator

import duckdb
from duckdb import DuckDBPyConnection as Connection
from duckdb import Error as DuckDBError
from duckdb import IOException as DuckDBIOError
from duckdb import OutOfMemoryException as DuckDBMemoryError

from caudal.duck.functions import register_functions
from caudal.errors import UsageError
from caudal.kernels.sentiment import SentimentModel
from caudal.sizes import told_bytes

__all__ = [
    "Connection",
    "DuckDBError",
    "DuckDBIOError",
    "DuckDBMemoryError",
    "keywords",
    "one_line",
    "open_database",
]

# What a process holds besides DuckDB's own memory: the interpreter with its libraries, and the
# batches that are being read. A memory limit is for the process, so DuckDB gets the rest.
_PROCESS_BYTES = 400 << 20
_LEAST_DATABASE_BYTES = 128 << 20
_LEAST_LIMIT_BYTES = 500_000_000


@contextlib.contextmanager
def open_database(
    model: SentimentModel, *, memory_limit: int | None = None, contained: bool = False
) -> Iterator[duckdb.DuckDBPyConnection]:
    """An empty in-memory database that knows Caudal's functions.

    One thread: several reorder float sums and rows. Parallel work uses several cursors, each
    on a thread of its own. What exceeds the memory limit spills to a temporary directory.
    Contained, it reads no file, no network and no extension, and has nowhere to spill to, since
    DuckDB lets SQL read that folder: for SQL of others.
    """
    if memory_limit is not None and memory_limit < _LEAST_LIMIT_BYTES:
        raise UsageError(
            f"a memory limit of {told_bytes(memory_limit)} is too small: "
            f"give at least {_LEAST_LIMIT_BYTES // 10**6}MB"
        )
    with tempfile.TemporaryDirectory(prefix="caudal-") as spill:
        connection = duckdb.connect(
            config={
                "threads": 1,
                "temp_directory": "" if contained else spill,
                "preserve_insertion_order": True,
                "autoinstall_known_extensions": False,
                "autoload_known_extensions": False,
            }
        )
        try:
            if memory_limit is not None:
                share = max(memory_limit - _PROCESS_BYTES, _LEAST_DATABASE_BYTES)
                connection.execute(f"SET memory_limit = '{share // 1000}KB'")
            # The same answers on every machine, and on every cursor.
            connection.execute("SET GLOBAL TimeZone = 'UTC'")
            register_functions(connection, model)
            if contained:
                connection.execute("SET enable_external_access = false")
            yield connection
        finally:
            connection.close()


def one_line(error: Exception) -> str:
    """DuckDB's message without its kind and without the echo of the SQL."""
    text = str(error).split("\n\nLINE ")[0].split("\nLINE ")[0]
    kind, separator, rest = text.partition(" Error: ")
    return " ".join((rest if separator and len(kind) < 30 else text).split())


@functools.cache
def keywords() -> frozenset[str]:
    """Return the words of SQL; as names, some of them need quotes."""
    with duckdb.connect() as connection:
        rows = connection.execute("SELECT keyword_name FROM duckdb_keywords()").fetchall()
    return frozenset(name for (name,) in rows)
