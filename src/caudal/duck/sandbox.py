"""The sandbox for a user's SQL: a DuckDB that can compute, and nothing else.

Rules
1. A call runs one SELECT. Anything else (COPY, ATTACH, SET, INSTALL, DDL, two statements) is
   refused before it is executed.
2. The SQL has no access to files, network, extensions or Python variables, only to the relations
   that are passed to the call (`reach.py`). The configuration is locked before the first text of a
   user is read, so SQL cannot undo this.
3. Memory and time are bounded (`containment.py`). A query that exceeds them fails; the process
   survives. A disk that fails or is full is an OSError of the machine; the task is tried again.
4. DuckDB uses one thread. With several, it reorders rows and so changes the last bits of float
   sums.
5. Between stages, Arrow carries DuckDB's types without loss (HUGEINT stays HUGEINT, ENUM stays
   ENUM: `arrow_casts.py`). A result that leaves Caudal has plain Arrow types.
"""

import contextlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from types import TracebackType
from typing import Self

import duckdb
import pyarrow as pa

from caudal.duck.arrow_casts import carried, presented, readable
from caudal.duck.containment import ContainedCall, Excess, contained
from caudal.duck.database import one_line, pointer
from caudal.duck.empty_database import DISABLED_OPTIMIZERS
from caudal.duck.reach import FUNCTIONS, TRUSTED_FUNCTIONS, require_own_relations
from caudal.errors import (
    CaudalError,
    InterruptedQueryError,
    MemoryExceededError,
    QueryError,
    UsageError,
)

_KNOWN = 256  # texts that need no second check

Register = Callable[[duckdb.DuckDBPyConnection], None]  # adds Caudal's own functions


class Types(Enum):
    """The Arrow types of a result."""

    LOSSLESS = "lossless"  # for the next stage: HUGEINT, UUID and similar types are kept
    PLAIN = "plain"  # for people and tools: HUGEINT becomes decimal128(38, 0)


@dataclass(frozen=True)
class SandboxLimits:
    """The limits of one call."""

    memory_bytes: int = 1 << 30
    seconds: float = 600.0  # of the thread that runs it; waiting for a processor does not count
    spill: Path | None = None  # folder for spilled data; None: DuckDB never spills
    trusted: bool = False  # the SQL belongs to the user of this process (reach.py, rule 5)


class Sandbox:
    """A contained DuckDB. It is not thread-safe.

    >>> with Sandbox() as sandbox:
    ...     sandbox.select("SELECT a + 1 AS b FROM t", {"t": pa.table({"a": [1]})}).to_pydict()
    {'b': [2]}
    """

    def __init__(
        self,
        limits: SandboxLimits | None = None,
        register: Register | None = None,
        types: Types = Types.LOSSLESS,
    ) -> None:
        self._limits = limits or SandboxLimits()
        self._register = register
        self._types = types
        self._connection = self._opened()
        self._broken = False  # the database was invalidated and must be reopened
        self._known: set[tuple[str, frozenset[str]]] = set()  # checked texts and their relations

    def _opened(self) -> duckdb.DuckDBPyConnection:
        connection = duckdb.connect(":memory:", config=_configuration(self._limits, self._types))
        if self._register is not None:
            self._register(connection)
        connection.execute("SET TimeZone = 'UTC'")  # the same answers on every machine
        connection.execute("SET enable_progress_bar = false")  # it would write to standard output
        connection.execute("SET enable_external_access = false")
        connection.execute("SET lock_configuration = true")
        return connection

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
        """End the running call. Another thread calls this."""
        with contextlib.suppress(duckdb.ConnectionException):  # it is being reopened
            self._connection.interrupt()

    def close(self) -> None:
        self._connection.close()

    def select(self, sql: str, relations: Mapping[str, pa.Table]) -> pa.Table:
        """Return the rows of one SELECT over the given relations."""
        self._require_safe(sql, frozenset(relations))
        limits = self._limits
        try:
            with contained(self.interrupt, limits.memory_bytes, limits.seconds) as call:
                return self._rows(sql, relations, call)
        finally:
            if self._broken or call.grown_bytes > limits.memory_bytes // 2:
                self._reopen()

    def place_of_mistake(self, sql: str, relations: Mapping[str, pa.Table]) -> str:
        """Return the line of a SELECT that failed, with carets below; "" if that is not known.

        DuckDB tells the place only when it describes the SELECT, not when it runs it.
        """
        limits = self._limits
        with contained(self.interrupt, limits.memory_bytes, limits.seconds):
            try:
                self._require_safe(sql, frozenset(relations))
                with contextlib.ExitStack() as reading:
                    for name, rows in relations.items():
                        empty = rows.slice(0, 0)
                        reading.enter_context(readable(self._connection, name, empty))
                    self._connection.execute(f"DESCRIBE {sql}")
            except duckdb.Error as error:
                return pointer(error, sql)
            except CaudalError as error:
                cause = error.__cause__
                return pointer(cause, sql) if isinstance(cause, Exception) else ""
        return ""

    def _rows(self, sql: str, relations: Mapping[str, pa.Table], call: ContainedCall) -> pa.Table:
        """Return the rows of the SQL over these relations.

        An interrupt may also come while they are unregistered. Then the database is opened anew, so
        that none of them is there for the next call.
        """
        try:
            with contextlib.ExitStack() as reading:
                try:
                    for name, rows in relations.items():
                        reading.enter_context(readable(self._connection, name, rows))
                    relation = self._connection.sql(sql)
                    return carried(relation) if self._is_lossless else presented(relation)
                except duckdb.FatalException:
                    reading.pop_all()  # an invalid database cannot unregister
                    raise
        except duckdb.IOException as error:  # SQL cannot name files here, so a spill failed
            raise OSError(one_line(error)) from error
        except (duckdb.Error, MemoryError) as error:
            self._broken = isinstance(error, duckdb.FatalException | duckdb.InterruptException)
            raise self._explained(error, call) from error

    @property
    def _is_lossless(self) -> bool:
        return self._types is Types.LOSSLESS

    def _require_safe(self, sql: str, relations: frozenset[str]) -> None:
        if (sql, relations) in self._known:
            return
        try:
            statements = self._connection.extract_statements(sql)
            if len(statements) != 1 or statements[0].type != duckdb.StatementType.SELECT:
                raise UsageError("a query must be one SELECT statement: remove everything else")
            functions = TRUSTED_FUNCTIONS if self._limits.trusted else FUNCTIONS
            require_own_relations(self._connection, sql, relations, functions)
        except duckdb.Error as error:
            raise _explained(error) from error
        if len(self._known) >= _KNOWN:
            self._known.clear()
        self._known.add((sql, relations))

    def _reopen(self) -> None:
        """Open a new database. Only this frees what DuckDB's allocator keeps after large calls."""
        self._connection.close()
        self._connection = self._opened()
        self._broken = False

    def _explained(self, error: Exception, call: ContainedCall) -> QueryError:
        if call.excess is Excess.TIME:
            return QueryError(f"the query took more than {self._limits.seconds:g} seconds")
        memory = isinstance(error, duckdb.OutOfMemoryException | MemoryError)
        if memory or call.excess is Excess.MEMORY:
            mebibytes = self._limits.memory_bytes >> 20
            return MemoryExceededError(f"the query needs more than {mebibytes} MiB of memory")
        return _explained(error)


def _explained(error: Exception) -> QueryError:
    interrupted = isinstance(error, duckdb.InterruptException)
    return (InterruptedQueryError if interrupted else QueryError)(one_line(error))


def _configuration(
    limits: SandboxLimits, types: Types
) -> dict[str, str | bool | int | float | list[str]]:
    return {
        "threads": 1,
        "disabled_optimizers": DISABLED_OPTIMIZERS,
        "memory_limit": f"{limits.memory_bytes}B",
        "temp_directory": str(limits.spill) if limits.spill else "",
        "max_temp_directory_size": "1TB" if limits.spill else "0B",
        "autoinstall_known_extensions": False,
        "autoload_known_extensions": False,
        "python_enable_replacements": False,
        "arrow_lossless_conversion": types is Types.LOSSLESS,
    }
