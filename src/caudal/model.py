"""The nouns of Caudal, as plain immutable data. docs/glossary.md says what each word means."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

ParameterValue = str | int | float | bool

ROW = "row of raw"  # the column of cleaned rows that says which row of `raw` they come from
ADHOC = "sql"  # the name of a SELECT that is not part of an application
SEEN = "seen by a query"  # the column of cleaned rows that says whether any query can see them

REJECT = "reject"  # the column of a table's SQL that holds the reason to leave a row out


@dataclass(frozen=True)
class Table:
    """One table of an application: where its rows come from and how they are cleaned."""

    name: str
    files: tuple[str, ...]  # names or glob patterns inside the data folder
    columns: tuple[str, ...]  # the columns of the files that `sql` reads from `raw`
    sql: str
    origin: str  # the file that holds `sql`, for messages


@dataclass(frozen=True)
class Query:
    """One question: a SELECT over the application's tables."""

    name: str
    title: str
    sql: str
    origin: str


@dataclass(frozen=True)
class Application:
    """A set of tables and the questions asked of them."""

    name: str
    title: str
    folder: Path
    tables: tuple[Table, ...]
    queries: tuple[Query, ...]
    parameters: Mapping[str, ParameterValue] = field(default_factory=dict)
    sentiment: str = "lexicon"

    def table(self, name: str) -> Table:
        return next(table for table in self.tables if table.name == name)


@dataclass(frozen=True)
class RejectedRow:
    """A row that was left out: where it stands and why; or, on line 0, so many rows that were left
    out for the same reason and whose lines nobody kept."""

    table: str
    file: str
    line: int
    reason: str
    rows: int = 1
