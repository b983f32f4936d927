"""Where SQL that a user wrote runs: a DuckDB that can compute, and nothing else.

Rules
1. One SELECT per call. Anything else (COPY, ATTACH, SET, INSTALL, DDL, two statements) is refused
   before it is executed.
2. No file, no network, no extension, no Python variable: only the relations handed to the call.
   The configuration is locked before the first user's text is seen, so SQL cannot undo this.
3. Memory and time are bounded; exceeding either is the query's error, not the process's death.
4. One thread: with several, DuckDB reorders rows and so changes the last bits of float sums.
5. Between stages Arrow carries DuckDB's types without loss (HUGEINT stays HUGEINT); a result that
   leaves Caudal is in plain Arrow types.
"""

import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from types import TracebackType
from typing import Self

import duckdb
import pyarrow as pa

from caudal.errors import QueryError, UsageError

Register = Callable[[duckdb.DuckDBPyConnection], None]  # adds Caudal's own functions


class Types(Enum):
    """How a fragment's result is typed in Arrow."""

    LOSSLESS = "lossless"  # for the next stage: HUGEINT, UUID and their kin survive
    PLAIN = "plain"  # for people and tools: HUGEINT becomes decimal128(38, 0)


@dataclass(frozen=True)
class Limits:
    """What one call may use."""

    memory_bytes: int = 1 << 30
    seconds: float = 600.0
    spill: Path | None = None  # where DuckDB may spill; None: it never does


class Sandbox:
    """A contained DuckDB. Not for use by two threads at once.

    >>> with Sandbox() as sandbox:
    ...     sandbox.select("SELECT a + 1 AS b FROM t", {"t": pa.table({"a": [1]})}).to_pydict()
    {'b': [2]}
    """

    def __init__(
        self,
        limits: Limits | None = None,
        register: Register | None = None,
        types: Types = Types.LOSSLESS,
    ) -> None:
        self._limits = limits or Limits()
        self._connection = duckdb.connect(":memory:", config=_configuration(self._limits, types))
        if register is not None:
            register(self._connection)
        self._connection.execute("SET TimeZone = 'UTC'")  # the same answers on every machine
        self._connection.execute("SET enable_external_access = false")
        self._connection.execute("SET lock_configuration = true")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def interrupt(self) -> None:
        """End what is running, from another thread."""
        self._connection.interrupt()

    def close(self) -> None:
        self._connection.close()

    def select(self, sql: str, relations: Mapping[str, pa.Table]) -> pa.Table:
        """The rows of one SELECT over the given relations."""
        self._require_one_select(sql)
        for name, rows in relations.items():
            self._connection.register(name, rows)
        timer = threading.Timer(self._limits.seconds, self._connection.interrupt)
        timer.daemon = True
        timer.start()
        try:
            return self._connection.sql(sql).to_arrow_table()
        except duckdb.Error as error:
            raise QueryError(self._explained(error)) from error
        finally:
            timer.cancel()
            for name in relations:
                self._connection.unregister(name)

    def _require_one_select(self, sql: str) -> None:
        try:
            statements = self._connection.extract_statements(sql)
        except duckdb.Error as error:
            raise QueryError(first_line(error)) from error
        if len(statements) != 1 or statements[0].type != duckdb.StatementType.SELECT:
            raise UsageError("a query must be one SELECT statement: remove everything else")

    def _explained(self, error: duckdb.Error) -> str:
        if isinstance(error, duckdb.InterruptException):
            return f"the query took more than {self._limits.seconds:g} seconds"
        if isinstance(error, duckdb.OutOfMemoryException):
            return f"the query needs more than {self._limits.memory_bytes >> 20} MiB of memory"
        return first_line(error)


def first_line(error: duckdb.Error) -> str:
    """DuckDB's message without its drawing of the query."""
    return str(error).split("\n", 1)[0]


def _configuration(limits: Limits, types: Types) -> dict[str, str | bool | int | float | list[str]]:
    return {
        "threads": 1,
        "memory_limit": f"{limits.memory_bytes}B",
        "temp_directory": str(limits.spill) if limits.spill else "",
        "max_temp_directory_size": "1TB" if limits.spill else "0B",
        "autoinstall_known_extensions": False,
        "autoload_known_extensions": False,
        "python_enable_replacements": False,
        "arrow_lossless_conversion": types is Types.LOSSLESS,
    }
