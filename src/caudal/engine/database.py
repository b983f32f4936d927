"""Opening DuckDB the way Caudal uses it, and turning its complaints into one line."""

import contextlib
import tempfile
from collections.abc import Iterator

import duckdb

from caudal.engine.functions import register_functions
from caudal.kernels.sentiment import SentimentModel


@contextlib.contextmanager
def open_database(
    model: SentimentModel, *, memory_limit: str | None = None
) -> Iterator[duckdb.DuckDBPyConnection]:
    """An empty in-memory database that knows Caudal's functions.

    One thread: several reorder float sums and rows. Parallel work uses several cursors, each
    on a thread of its own. What exceeds the memory limit spills to a temporary directory.
    """
    with tempfile.TemporaryDirectory(prefix="caudal-") as spill:
        connection = duckdb.connect(
            config={"threads": 1, "temp_directory": spill, "preserve_insertion_order": True}
        )
        try:
            if memory_limit is not None:
                connection.execute(f"SET memory_limit = '{memory_limit}'")
            register_functions(connection, model)
            yield connection
        finally:
            connection.close()


def one_line(error: duckdb.Error) -> str:
    """DuckDB's message without its kind, its hints in brackets and the echo of the SQL."""
    text = str(error).split("\n\nLINE ")[0].split("\nLINE ")[0]
    kind, separator, rest = text.partition(" Error: ")
    message = rest if separator and " " not in kind.strip() or separator else text
    return " ".join(message.split())
