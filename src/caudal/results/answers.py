"""The answers of a run: one result per query, with rejected rows, failures and profile."""

import html
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, SupportsIndex, overload

from caudal.errors import QueryError, UsageError
from caudal.results.rejects import Rejects
from caudal.results.values import python_values, text

if TYPE_CHECKING:  # keep `import caudal` fast: heavy packages load on first use
    import pandas
    import polars
    import pyarrow as pa

    from caudal.results.plotting import Plot

_ROWS_SHOWN = 20
_LONGEST_CELL = 60  # characters, in a table shown as text
_UNSEEN = re.compile("[\x00-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")


@dataclass(frozen=True, repr=False)
class Result:
    """The rows that answer one query. Its repr is a table, also in notebooks.

    `result[0]` is a row, `result[2:5]` a result of those rows, `result["title"]` a column as a list
    of Python values. Libraries that read Arrow take a result as it is, such as
    `polars.DataFrame(result)` and `pyarrow.table(result)`.
    """

    name: str
    title: str
    table: "pa.Table"
    seconds: float = 0.0
    rejects: Rejects = field(default_factory=Rejects, compare=False)  # only for an ad hoc SELECT

    def to_arrow(self) -> "pa.Table":
        """Return the rows as an Arrow table, without a copy."""
        return self.table

    def to_polars(self) -> "polars.DataFrame":
        """Return the rows as a Polars frame."""
        import polars

        frame = polars.from_arrow(_with_texts(self.table))
        assert isinstance(frame, polars.DataFrame)
        return frame

    def to_pandas(self, *, exact: bool = False) -> "pandas.DataFrame":
        """Return the rows as a pandas frame.

        Decimals become float64, dates datetime64. With `exact`, columns have Arrow's own types:
        every digit of a decimal, and dates that stay dates.
        """
        from caudal.results.pandas_frames import computing_frame, exact_frame

        return exact_frame(self.table) if exact else computing_frame(self.table)

    @property
    def columns(self) -> list[str]:
        """The names of the columns."""
        return list(self.table.column_names)

    def head(self, rows: int = 5) -> "Result":
        """Return a result of the first rows."""
        return self[: max(rows, 0)]

    def describe(self) -> "Result":
        """Return a result with one row per column: counts, distinct values, extremes, the mean."""
        from caudal.results.summary import summarize

        return replace(self, title="summary of the columns", table=summarize(self.table))

    def summary(self) -> "Result":
        """Return what `describe` returns."""
        return self.describe()

    def plot(self, kind: str | None = None, *, x: str = "", y: str = "") -> "Plot":
        """Draw the rows as bars, a line or a histogram, chosen by the types of the columns.

        `kind` is "bar", "line" or "histogram". Needs matplotlib: pip install 'caudal[plot]'.
        """
        from caudal.results.plotting import plot_rows

        return plot_rows(self.table, self.title or self.name, kind, x, y)

    def rows(self) -> list[dict[str, Any]]:
        """Return the rows as dictionaries of Python values; a second column `a` becomes `a_1`.

        A DECIMAL becomes an int if it is whole, else a float, or a Decimal beyond 15 digits.
        """
        names = unique(self.table.column_names)
        columns = [python_values(column) for column in self.table.columns]
        return [dict(zip(names, row, strict=True)) for row in zip(*columns, strict=True)]

    def __len__(self) -> int:
        return int(self.table.num_rows)

    @overload
    def __getitem__(self, key: SupportsIndex) -> dict[str, Any]: ...
    @overload
    def __getitem__(self, key: slice) -> "Result": ...
    @overload
    def __getitem__(self, key: str) -> list[Any]: ...
    def __getitem__(
        self, key: SupportsIndex | slice | str
    ) -> "dict[str, Any] | Result | list[Any]":
        """Return a row by its number, some rows by a slice, or a column by its name."""
        if isinstance(key, str):
            return self._column(key)
        if isinstance(key, slice):
            places = range(*key.indices(len(self)))
            if places.step == 1:
                return replace(self, table=self.table.slice(places.start, len(places)))
            return replace(self, table=self.table.take(list(places)))
        place = range(len(self))[key]
        return self[place : place + 1].rows()[0]

    def _column(self, name: str) -> list[Any]:
        names = unique(self.table.column_names)
        if name not in names:
            raise UsageError(f"{self.name} has no column {name!r}; its columns are: {names}")
        return python_values(self.table.column(names.index(name)))

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """Return the rows as an Arrow stream, by the protocol of Arrow's PyCapsule interface."""
        return self.table.__arrow_c_stream__(requested_schema)

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
