"""The domain model of Caudal as immutable data. docs/glossary.md defines each term."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

ParameterValue = str | int | float | bool

ROW = "row of raw"  # column of cleaned rows: the number of their row in `raw`
ADHOC = "sql"  # name of a query that is not part of an application
SEEN = "seen by a query"  # column of cleaned rows: whether any query can see the row

REJECT = "reject"  # column of a table's SQL: the reason to reject the row, or null


@dataclass(frozen=True)
class Table:
    """One table of an application: its files and the SQL that cleans their rows."""

    name: str
    files: tuple[str, ...]  # names or glob patterns inside the data folder
    columns: tuple[str, ...]  # the columns of the files that `sql` reads from `raw`
    sql: str
    origin: str  # the file that holds `sql`, for messages


@dataclass(frozen=True)
class DerivedTable:
    """A table without files: a SELECT over other tables of the application."""

    name: str
    sql: str
    origin: str


@dataclass(frozen=True)
class Query:
    """One query: a SELECT over the application's tables."""

    name: str
    title: str
    sql: str
    origin: str


@dataclass(frozen=True)
class Application:
    """A set of tables and the queries over them.

    The SQL of `queries` and `checks` already holds the derived tables that it reads.
    """

    name: str
    title: str
    folder: Path
    tables: tuple[Table, ...]
    queries: tuple[Query, ...]
    parameters: Mapping[str, ParameterValue] = field(default_factory=dict)
    sentiment: str = "lexicon"
    derived: tuple[DerivedTable, ...] = ()  # each after those that it reads
    checks: tuple[Query, ...] = ()  # each selects rows that must not exist

    def table(self, name: str) -> Table:
        return next(table for table in self.tables if table.name == name)


@dataclass(frozen=True)
class RejectedRow:
    """A rejected row: its place and the reason.

    Line 0 stands for `rows` rejected rows with the same reason whose lines were not kept.
    """

    table: str
    file: str
    line: int
    reason: str
    rows: int = 1
