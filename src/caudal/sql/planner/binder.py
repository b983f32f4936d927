"""What the planner may ask DuckDB, through its caller: the planner itself imports no engine."""

from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True)
class OutputColumn:
    name: str
    type: str


class Binder(Protocol):
    """DuckDB's own reading of a query, over empty tables of the planned schemas."""

    def table_names(self, sql: str) -> set[str]:
        """The tables that the text reads."""

    def columns(self, sql: str) -> list[OutputColumn]:
        """The names and types of the answer; raises UsageError with DuckDB's reason if invalid."""

    def same(self, sql: str, other: str) -> bool:
        """Whether DuckDB parses both texts into the same tree."""
