"""Answers, rejects and profiles as tables on the screen."""

from collections.abc import Iterable, Sequence

import pyarrow as pa
from pyarrow import types
from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from caudal.results.answers import Answers, Result, one_line, show
from caudal.results.rejects import Rejects
from caudal.results.values import python_values

_ROWS_ON_SCREEN = 50
_LONGEST_CELL = 100


def print_result(result: Result, console: Console) -> None:
    """Print one answer, shortened to fit a screen."""
    table = _table("", result.table.column_names)
    for shown, column in zip(table.columns, result.table.columns, strict=True):
        shown.justify = "right" if _is_number(column.type) else "left"
    columns = [python_values(column) for column in result.table.slice(0, _ROWS_ON_SCREEN).columns]
    for row in zip(*columns, strict=True):
        table.add_row(*(Text(_short(show(value))) for value in row))
    left = len(result) - _ROWS_ON_SCREEN
    rows = f"{len(result):,} row{'' if len(result) == 1 else 's'}"
    more = f"; {left:,} more are not shown: use --format csv" if left > 0 else ""
    heading = f"{result.name}  {one_line(result.title)}" if result.title else ""
    if heading:
        console.print(Text(heading, style="bold"), soft_wrap=True)
    console.print(table)
    console.print(f"{rows}, {result.seconds:.3f} s{more}\n", style="dim", highlight=False)


def print_rejects(rejects: Rejects, console: Console) -> None:
    """Print the rejected and repaired rows, if any."""
    for found in rejects:
        console.print(f"rejected: {found.told()}", highlight=False, markup=False)
    for table, rows in rejects.repaired.items():
        console.print(
            f"note: {table}: {rows:,} row{'' if rows == 1 else 's'} held bytes that are not UTF-8, "
            "read as \ufffd",
            highlight=False,
        )


def profile_tables(answers: Answers) -> Iterable[Table]:
    """Return the rows, bytes and times of every table and operator."""
    tables = _table("tables", ["table", "MB", "rows in", "rejected", "rows out", "s", "MB/s"])
    for one in answers.tables:
        megabytes = one.bytes / 1e6
        rate = megabytes / one.seconds if one.seconds else 0.0
        tables.add_row(
            one.table,
            f"{megabytes:,.1f}",
            f"{one.rows + one.rejected:,}",
            f"{one.rejected:,}",
            f"{one.rows:,}",
            f"{one.seconds:.3f}",
            f"{rate:,.0f}",
        )
    yield tables
    columns = ["query", "operator", "table", "rows in", "rows out", "bytes out", "s"]
    operators = _table("operators", columns)
    for step in answers.operators:
        operators.add_row(
            step.query,
            step.operator,
            step.table,
            f"{step.rows_in:,}",
            f"{step.rows_out:,}",
            f"{step.bytes_out:,}",
            f"{step.seconds:.4f}",
        )
    if answers.operators:
        yield operators


def _table(title: str, columns: Sequence[str]) -> Table:
    table = Table(
        title=title,
        title_justify="left",
        caption_justify="left",
        box=box.SIMPLE_HEAD,
        pad_edge=False,
    )
    for name in columns:
        table.add_column(Text(one_line(name)), overflow="fold")
    return table


def _short(text: str) -> str:
    text = one_line(text)
    return text if len(text) <= _LONGEST_CELL else text[: _LONGEST_CELL - 1] + "…"


def _is_number(kind: pa.DataType) -> bool:
    return bool(types.is_integer(kind) or types.is_floating(kind) or types.is_decimal(kind))
