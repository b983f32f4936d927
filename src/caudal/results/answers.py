"""What a run gives back: one result per query, and what happened on the way."""

import html
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from caudal.errors import QueryError
from caudal.results.rejects import Rejects
from caudal.results.values import python_values, text

if TYPE_CHECKING:  # `import caudal` is quick: what is heavy is loaded by whoever computes
    import pandas
    import polars
    import pyarrow as pa

_ROWS_SHOWN = 20
_LONGEST_CELL = 60  # of a table as text
_UNSEEN = re.compile("[\x00-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")


@dataclass(frozen=True, repr=False)
class Result:
    """The rows that answer one query. Shows itself as a table, in a notebook too."""

    name: str
    title: str
    table: "pa.Table"
    seconds: float = 0.0
    rejects: Rejects = field(default_factory=Rejects, compare=False)  # of a SELECT on its own

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
        """The rows as dictionaries of Python values; a second `a` is called `a_1`.

        A DECIMAL is an int where it is whole, else a float, or a Decimal beyond 15 digits.
        """
        names = _unique(self.table.column_names)
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
    """What reading one table took."""

    table: str
    bytes: int
    rows: int
    rejected: int
    seconds: float
    mapped_bytes: int = 0  # what left scan, where there is one


@dataclass(frozen=True)
class OperatorProfile:
    """What one operator of a query did."""

    query: str
    operator: str
    table: str  # of a read
    rows_in: int
    rows_out: int
    bytes_out: int
    seconds: float


@dataclass(frozen=True, repr=False)
class Answers(Mapping[str, Result]):
    """Results by query name, with the rejects report and the profile of the run.

    A query that failed while others were answered is there too: to ask for its result raises why.
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
    """A table with text for whole numbers of 39 digits, which Polars has no type for."""
    import pyarrow as pa

    for place, kept in enumerate(table.schema):
        if "decimal256" in str(kept.type):
            values = python_values(table.column(place))
            texts = [None if value is None else text(value) for value in values]
            table = table.set_column(place, kept.name, pa.array(texts, pa.string()))
    return table


def show(value: Any) -> str:
    """A value as a person wants to read it."""
    if isinstance(value, list):
        return ", ".join(show(item) for item in value)
    if isinstance(value, float) and value.is_integer() and abs(value) < 1e15:
        return f"{value:.0f}"
    return text(value)


def one_line(text: str) -> str:
    """A text for a terminal, which obeys control characters and those that turn the direction of
    writing: they are shown as escapes. White space is one space."""
    text = " ".join(text.split())
    return _UNSEEN.sub(lambda found: found[0].encode("unicode_escape").decode(), text)


def _short(cell: str) -> str:
    cell = one_line(cell)
    return cell if len(cell) <= _LONGEST_CELL else cell[: _LONGEST_CELL - 1] + "…"


def _unique(names: list[str]) -> list[str]:
    """Each name once: a repeated one gets a number."""
    given: list[str] = []
    for name in names:
        free, number = name, 0
        while free in given:
            number += 1
            free = f"{name}_{number}"
        given.append(free)
    return given
