"""The port through which the planner asks DuckDB. The planner itself does not import DuckDB."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from caudal.sql.planner.text_checks import Edit, SelectItem


@dataclass(frozen=True)
class OutputColumn:
    name: str
    type: str


@dataclass(frozen=True)
class Reads:
    """What a query reads, from DuckDB's plan of it. Tables have their own names."""

    scans: Mapping[str, int]  # how often it scans each table
    columns: Mapping[str, frozenset[str]]  # the columns it reads of each table
    functions: frozenset[str]  # table functions, by lower-case name
    plan: str  # the text of the plan, to compare it with another


class Binder(Protocol):
    """DuckDB's answers about a query, over empty tables of the planned schemas."""

    def table_names(self, sql: str) -> set[str]:
        """Return the tables that the text names."""

    def columns(self, sql: str) -> list[OutputColumn]:
        """Return the columns of the answer. Raise UsageError with DuckDB's reason if invalid."""

    def same(self, sql: str, other: str) -> bool:
        """Return whether DuckDB parses both texts into the same tree."""

    def mean_same(self, sql: str, other: str) -> bool:
        """Return whether DuckDB binds both texts to the same plan."""

    def change(self, sql: str, edits: Sequence[Edit], items: Sequence[SelectItem]) -> str | None:
        """Return the text after edits, with the names that items have now; None if a column inside
        of the query may get another name."""

    def reads(self, sql: str) -> Reads | None:
        """Return what the query reads; None if DuckDB does not say."""

    def reads_over(self, sql: str, columns: Mapping[str, Sequence[str]]) -> Reads | None:
        """Return what the query reads over tables that have only these columns."""
