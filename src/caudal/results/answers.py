"""The answers of a run: one result per query, with rejected rows, failures and profile."""

import html
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from caudal.errors import QueryError
from caudal.results.rejects import Rejects
from caudal.results.values import python_values, text

if TYPE_CHECKING:  # keep `import caudal` fast: heavy packages load on first use
    import pandas
    import polars
    import pyarrow as pa

_ROWS_SHOWN = 20
_LONGEST_CELL = 60  # characters, in a table shown as text
_UNSEEN = re.compile("[\x00-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")


@dataclass(frozen=True, repr=False)
class Result:
    """The rows that answer one query. Its repr is a table, also in notebooks."""

    name: str
    title: str
    table: "pa.Table"
    seconds: float = 0.0
    rejects: Rejects = field(default_factory=Rejects, compare=False)  # only for an ad hoc SELECT

    def to_arrow(self) -> "pa.Table":
        return self.table

    def to_polars(self) -> "polars.DataFrame":
        import polars

        frame = polars.from_arrow(_with_texts(self.table))
        assert isinstance(frame, polars.DataFrame)
        return frame

    def to_pandas(self) -> "pandas.DataFrame":
        frame: pandas.DataFrame = self.table.to_pandas()
        return frame

    def rows(self) -> list[dict[str, Any]]:
        """Return the rows as dictionaries of Python values; a second column `a` becomes `a_1`.

        A DECIMAL becomes an int if it is whole, else a float, or a Decimal beyond 15 digits.
        """
        names = unique(self.table.column_names)
        columns = [python_values(column) for column in self.table.columns]
        return [dict(zip(names, row, strict=True)) for row in zip(*columns, strict=True)]

    def __len__(self) -> int:
        return int(self.table.num_rows)

    def __iter__(self) -> Iterator[dict[str, Any]]:
        return iter(self.rows())

    def __repr__(self) -> str:
        columns = [
            [one_line(name), *(_short(show(value)) for value in python_values(column))]
            for name, column in zip(
                self.table.column_names, self.table.slice(0, _ROWS_SHOWN).columns, strict=True
            )
        ]
        widths = [max(map(len, column)) for column in columns]
        lines = [
            "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
            for row in zip(*columns, strict=True)
        ]
        lines[1:1] = ["  ".join("─" * width for width in widths)]
        more = f"… {len(self):,} rows in all" if len(self) > _ROWS_SHOWN else ""
        heading = f"{self.name}: {self.title}" if self.title else self.name
        return "\n".join([heading, *lines, *filter(None, [more])])

    def _repr_html_(self) -> str:
        names = self.table.column_names
        head = "".join(f"<th>{html.escape(name)}</th>" for name in names)
        columns = [python_values(column) for column in self.table.slice(0, _ROWS_SHOWN).columns]
        body = "".join(
            "<tr>" + "".join(f"<td>{html.escape(show(value))}</td>" for value in row) + "</tr>"
            for row in zip(*columns, strict=True)
        )
        more = f"<p>… {len(self):,} rows in all</p>" if len(self) > _ROWS_SHOWN else ""
        caption = html.escape(f"{self.name}: {self.title}")
        return f"<table><caption>{caption}</caption><tr>{head}</tr>{body}</table>{more}"


@dataclass(frozen=True)
class TableProfile:
    """Bytes, rows and time of reading one table."""

    table: str
    bytes: int
    rows: int
    rejected: int
    seconds: float
    mapped_bytes: int = 0  # output of the scan stage, if there is one


@dataclass(frozen=True)
class OperatorProfile:
    """Rows, bytes and time of one operator of a query."""

    query: str
    operator: str
    table: str  # the table that a read operator reads
    rows_in: int
    rows_out: int
    bytes_out: int
    seconds: float


@dataclass(frozen=True, repr=False)
class Answers(Mapping[str, Result]):
    """Results by query name, with the rejects report and the profile of the run.

    Keys include queries that failed while others succeeded; looking one up raises its error.
    """

    results: Mapping[str, Result]
    rejects: Rejects
    tables: tuple[TableProfile, ...] = ()
    operators: tuple[OperatorProfile, ...] = ()
    seconds: float = 0.0
    failures: Mapping[str, QueryError] = field(default_factory=dict)

    def __getitem__(self, name: str) -> Result:
        if name in self.failures:
            raise self.failures[name]
        return self.results[name]

    def __iter__(self) -> Iterator[str]:
        return iter([*self.results, *self.failures])

    def __len__(self) -> int:
        return len(self.results) + len(self.failures)

    def __repr__(self) -> str:
        told = [f"{name} failed: {error}" for name, error in self.failures.items()]
        told += [repr(self.rejects)] if self.rejects else []
        return "\n\n".join([*map(repr, self.results.values()), *told])

    def _repr_html_(self) -> str:
        parts = [result._repr_html_() for result in self.results.values()]
        parts += [
            f"<p>{html.escape(f'{name} failed: {error}')}</p>"
            for name, error in self.failures.items()
        ]
        if self.rejects:
            parts.append(f"<p>{self.rejects.total:,} rows were rejected (see .rejects)</p>")
        return "".join(parts)


def _with_texts(table: "pa.Table") -> "pa.Table":
    """Convert 39-digit integer columns to text, because Polars has no type for them."""
    import pyarrow as pa

    for place, kept in enumerate(table.schema):
        if "decimal256" in str(kept.type):
            values = python_values(table.column(place))
            texts = [None if value is None else text(value) for value in values]
            table = table.set_column(place, kept.name, pa.array(texts, pa.string()))
    return table


def show(value: Any) -> str:
    """Return a value as readable text, null as NULL."""
    if value is None:
        return "NULL"
    if isinstance(value, list):
        return ", ".join(show(item) for item in value)
    if isinstance(value, float) and value.is_integer() and abs(value) < 1e15:
        return f"{value:.0f}"
    return text(value)


def one_line(text: str) -> str:
    """Return a text that is safe on a terminal, on one line.

    Control characters and characters that change the writing direction are escaped. Each run of
    white space becomes one space.
    """
    text = " ".join(text.split())
    return _UNSEEN.sub(lambda found: found[0].encode("unicode_escape").decode(), text)


def _short(cell: str) -> str:
    cell = one_line(cell)
    return cell if len(cell) <= _LONGEST_CELL else cell[: _LONGEST_CELL - 1] + "…"


def unique(names: list[str]) -> list[str]:
    """Make names unique by adding a number to repeated ones."""
    given: list[str] = []
    for name in names:
        free, number = name, 0
        while free in given:
            number += 1
            free = f"{name}_{number}"
        given.append(free)
    return given
