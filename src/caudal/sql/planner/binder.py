"""What the planner may ask DuckDB, through its caller: the planner itself imports no engine."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True)
class OutputColumn:
    name: str
    type: str


@dataclass(frozen=True)
class Reads:
    """What DuckDB's plan of a query reads, by the tables' own names."""

    scans: Mapping[str, int]  # how often each table
    columns: Mapping[str, frozenset[str]]  # which of its columns
    functions: frozenset[str]  # table functions, by lower-case name
    plan: str  # the plan itself, to be compared with another


class Binder(Protocol):
    """DuckDB's own reading of a query, over empty tables of the planned schemas."""

    def table_names(self, sql: str) -> set[str]:
        """The tables that the text reads."""

    def columns(self, sql: str) -> list[OutputColumn]:
        """The names and types of the answer; raises UsageError with DuckDB's reason if invalid."""

    def same(self, sql: str, other: str) -> bool:
        """Whether DuckDB parses both texts into the same tree."""

    def reads(self, sql: str) -> Reads | None:
        """What the query reads; None if DuckDB does not tell."""

    def reads_over(self, sql: str, columns: Mapping[str, Sequence[str]]) -> Reads | None:
        """The same over tables that have only these columns."""
