"""Opens DuckDB with Caudal's settings, and shortens its error messages to one line."""

import contextlib
import functools
import os
import re
import shutil
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import duckdb
from duckdb import DuckDBPyConnection as Connection
from duckdb import DuckDBPyRelation as Relation
from duckdb import Error as DuckDBError
from duckdb import IOException as DuckDBIOError
from duckdb import OutOfMemoryException as DuckDBMemoryError

from caudal.duck.empty_database import lent_database, take_database
from caudal.duck.functions import register_functions
from caudal.errors import CaudalError, UsageError
from caudal.kernels.sentiment import SentimentModel
from caudal.sizes import told_bytes

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = [
    "Connection",
    "DuckDBError",
    "DuckDBIOError",
    "DuckDBMemoryError",
    "Relation",
    "keywords",
    "one_line",
    "open_database",
    "read_files",
    "rows_in_memory",
]

# Memory outside of DuckDB: the interpreter with its libraries, and the batches that are being
# read. A memory limit is for the whole process, so DuckDB gets the rest.
_PROCESS_BYTES = 400 << 20
_LEAST_DATABASE_BYTES = 128 << 20
_LEAST_LIMIT_BYTES = 500_000_000
_QUOTED_LINE = re.compile(r"\nLINE (\d+): (.*)\n( *\^+)")
_OWN_COLUMN = re.compile(r" when casting from source column .*\b(scan|fold)[0-9]+_.*$")
_DESCRIBE = "DESCRIBE "


@contextlib.contextmanager
def open_database(
    model: SentimentModel, *, memory_limit: int | None = None, contained: bool = False
) -> Iterator[duckdb.DuckDBPyConnection]:
    """Open an empty in-memory database with Caudal's functions.

    DuckDB gets one thread, because several threads reorder float sums and rows. Parallel work uses
    several cursors, each on its own thread. Data beyond the memory limit spills to a temporary
    directory.

    `contained` is for SQL of other people. Such a database reads no file, no network and no
    extension. It cannot spill, because DuckDB lets SQL read the folder that it spills to.
    """
    if memory_limit is not None and memory_limit < _LEAST_LIMIT_BYTES:
        raise UsageError(
            f"a memory limit of {told_bytes(memory_limit)} is too small: "
            f"give at least {_LEAST_LIMIT_BYTES // 10**6}MB"
        )
    with _spill_folder() as spill:
        connection = take_database()
        try:
            folder = "" if contained else spill.replace("'", "''")
            connection.execute(f"SET temp_directory = '{folder}'")
            if memory_limit is not None:
                share = max(memory_limit - _PROCESS_BYTES, _LEAST_DATABASE_BYTES)
                connection.execute(f"SET memory_limit = '{share // 1000}KB'")
            # GLOBAL: the same answers on every machine and every cursor.
            connection.execute("SET GLOBAL TimeZone = 'UTC'")
            register_functions(connection, model)
            if contained:
                connection.execute("SET enable_external_access = false")
            yield connection
        finally:
            connection.close()


@contextlib.contextmanager
def _spill_folder() -> Iterator[str]:
    """Provide a folder that is deleted afterwards, even if a signal comes while it is created.

    `tempfile.TemporaryDirectory` can be interrupted after it has created the folder and before it
    knows that it must delete it.
    """
    folder = Path(tempfile.gettempdir(), f"caudal-{os.urandom(8).hex()}")
    try:
        folder.mkdir(mode=0o700)
        yield str(folder)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def read_files(
    connection: Connection | None, paths: Sequence[str], columns: Mapping[str, str]
) -> Relation:
    """Return the rows of Parquet files as a relation; without files, no rows of these columns."""
    connection = connection or duckdb.connect()
    if paths:
        return connection.read_parquet(list(paths), hive_partitioning=False)
    nulls = ", ".join(f'CAST(NULL AS {kind}) AS "{name}"' for name, kind in columns.items())
    return connection.sql(f"SELECT {nulls} LIMIT 0")


def rows_in_memory(connection: Connection | None, rows: "pa.Table") -> Relation:
    """Return rows that are in memory as a relation."""
    return (connection or duckdb.connect()).from_arrow(rows)


def one_line(error: Exception) -> str:
    """Return DuckDB's message without the error type, without the quoted SQL, and without a cast's
    column if its name is Caudal's own: users have not written it."""
    text = str(error).split("\n\nLINE ")[0].split("\nLINE ")[0]
    kind, separator, rest = text.partition(" Error: ")
    return _OWN_COLUMN.sub("", " ".join((rest if separator and len(kind) < 30 else text).split()))


def pointer(error: Exception, sql: str) -> str:
    """Return the line of the SQL that DuckDB's message is about, with carets below; or "".

    DuckDB quotes a part of a long line, and the word DESCRIBE that asks for a SELECT's columns.
    """
    found = _QUOTED_LINE.search(str(error))
    if found is None:
        return ""
    number, quoted, carets = int(found[1]), found[2], found[3]
    lead = f"line {number}: "
    line = f"{_DESCRIBE}{sql}".splitlines()[number - 1]
    part = quoted if quoted == line else quoted.removeprefix("...").removesuffix("...")
    if line.count(part) != 1:
        return ""
    before = len(carets) - len(carets.lstrip()) - len(f"LINE {number}: ") - quoted.index(part)
    before += line.index(part)
    if number == 1:
        line, before = line.removeprefix(_DESCRIBE), before - len(_DESCRIBE)
    return f"  {lead}{line}\n  {' ' * (len(lead) + before)}{carets.strip()}"


def point_out(raised: CaudalError, error: Exception, sql: str) -> CaudalError:
    """Return the raised error with a note that points to the place in the SQL."""
    note = pointer(error, sql)
    if note:
        raised.add_note(note)
    return raised


@functools.cache
def keywords() -> frozenset[str]:
    """Return the keywords of SQL. Some of them need quotes when they are names."""
    with lent_database() as connection:
        rows = connection.execute("SELECT keyword_name FROM duckdb_keywords()").fetchall()
    return frozenset(name for (name,) in rows)
