"""What a run gives back: one result per query, and what happened on the way."""

import html
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from caudal.rejects import Rejects

if TYPE_CHECKING:
    import pandas
    import polars

_ROWS_SHOWN = 20


@dataclass(frozen=True)
class Result:
    """The rows that answer one query. Shows itself as a table in a notebook."""

    name: str
    title: str
    table: pa.Table = field(repr=False)
    seconds: float = 0.0

    def to_arrow(self) -> pa.Table:
        return self.table

    def to_polars(self) -> "polars.DataFrame":
        import polars

        frame = polars.from_arrow(self.table)
        assert isinstance(frame, polars.DataFrame)
        return frame

    def to_pandas(self) -> "pandas.DataFrame":
        frame: pandas.DataFrame = self.table.to_pandas()
        return frame

    def rows(self) -> list[dict[str, Any]]:
        """The rows as dictionaries, with decimals as floats; a second `a` is called `a_1`."""
        names = _unique(self.table.column_names)
        columns = [[plain(value) for value in column.to_pylist()] for column in self.table.columns]
        return [dict(zip(names, row, strict=True)) for row in zip(*columns, strict=True)]

    def __len__(self) -> int:
        return int(self.table.num_rows)

    def __iter__(self) -> Iterator[dict[str, Any]]:
        return iter(self.rows())

    def _repr_html_(self) -> str:
        names = self.table.column_names
        head = "".join(f"<th>{html.escape(name)}</th>" for name in names)
        columns = [column.to_pylist() for column in self.table.slice(0, _ROWS_SHOWN).columns]
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


@dataclass(frozen=True)
class Answers(Mapping[str, Result]):
    """Results by query name, with the rejects report and the profile of the run."""

    results: Mapping[str, Result]
    rejects: Rejects
    tables: tuple[TableProfile, ...] = ()
    operators: tuple[OperatorProfile, ...] = ()
    seconds: float = 0.0

    def __getitem__(self, name: str) -> Result:
        return self.results[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.results)

    def __len__(self) -> int:
        return len(self.results)

    def _repr_html_(self) -> str:
        parts = [result._repr_html_() for result in self.results.values()]
        if self.rejects:
            parts.append(f"<p>{self.rejects.total:,} rows were rejected (see .rejects)</p>")
        return "".join(parts)


def show(value: Any) -> str:
    """A value as a person wants to read it."""
    if value is None:
        return ""
    if isinstance(value, list):
        return ", ".join(show(item) for item in value)
    if isinstance(value, Decimal):
        return f"{value.normalize():f}"
    if isinstance(value, float) and value.is_integer() and abs(value) < 1e15:
        return f"{value:.0f}"
    return str(value)


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


def plain(value: Any) -> Any:
    """A value as JSON can hold it, without losing what it means."""
    if isinstance(value, Decimal):
        return int(value) if value == value.to_integral_value() else float(value)
    if isinstance(value, list):
        return [plain(item) for item in value]
    if isinstance(value, dict):
        return {key: plain(item) for key, item in value.items()}
    return value
