"""The domain model of Caudal as immutable data. docs/glossary.md defines each term."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

ParameterValue = str | int | float | bool

ROW = "row of raw"  # column of cleaned rows: the number of their row in `raw`
ADHOC = "sql"  # name of a query that is not part of an application
SEEN = "seen by a query"  # column of cleaned rows: whether any query can see the row

LEXICON = "lexicon"  # the usual model of sentiment

REJECT = "reject"  # column of a table's SQL: the reason to reject the row, or null


@dataclass(frozen=True)
class Reading:
    """How the files of a table are written. What is None is found in each file (files/detect.py).

    docs/reference/files.md describes every field: app.toml and the command line have the same.
    """

    format: str | None = None  # csv, json or excel
    delimiter: str | None = None
    quote: str | None = None
    encoding: str | None = None
    header: bool | None = None
    names: tuple[str, ...] | None = None  # of the columns, in the order of the file
    skip: int | None = None  # lines before the header, or before the first row
    comment: str | None = None  # lines that begin with it are left out
    decimal: str | dict[str, str] | None = field(default=None, hash=False)  # all, or by column
    date_format: str | dict[str, str] | None = field(default=None, hash=False)
    sheet: str | None = None
    filename: bool = False  # add a column `filename`
    union_by_name: bool = False  # a column that a file does not have is null


@dataclass(frozen=True)
class Table:
    """One table of an application: its files and the SQL that cleans their rows."""

    name: str
    files: tuple[str, ...]  # names or glob patterns inside the data folder
    columns: tuple[str, ...]  # the columns of the files that `sql` reads from `raw`
    sql: str
    origin: str  # the file that holds `sql`, for messages
    reading: Reading | None = None  # None: everything is found in the files


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
    sentiment: str = LEXICON
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
