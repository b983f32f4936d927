"""Answers, rejects and profiles as tables on the screen."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Self

import pyarrow as pa
from pyarrow import types
from rich import box
from rich.cells import cell_len
from rich.console import Console
from rich.table import Table
from rich.text import Text

from caudal.cli.formats import Format
from caudal.cli.layout import ColumnSize, Layout, lay_out, more_columns
from caudal.results.answers import Answers, Result, one_line, show
from caudal.results.rejects import Rejects
from caudal.results.values import is_number, python_values

ROWS_ON_SCREEN = 50
_LONGEST_CELL = 100


def print_result(
    result: Result,
    console: Console,
    form: Format = Format.TABLE,
    *,
    total: int | None = None,
    timed: bool = True,
) -> None:
    """Print the first rows of an answer that has `total` rows, as a table or field by field."""
    total = len(result) if total is None else total
    shown = _Cells.of(result.table.slice(0, ROWS_ON_SCREEN))
    layout = lay_out(shown.sizes, console.width)
    if result.title:
        heading = Text(f"{result.name}  {one_line(result.title)}", style="bold")
        console.print(heading, soft_wrap=True)
    if form is Format.FIELDS or (layout.left_out and total == 1):
        layout = Layout(())
        _print_fields(shown, console)
    else:
        console.print(_rows_table(shown, layout))
    counted = f"{total:,} row{'' if total == 1 else 's'}"
    counted += f", {result.seconds:.3f} s" if timed else ""
    told = [counted, *_not_shown(total - ROWS_ON_SCREEN, layout.left_out)]
    console.print("; ".join(told) + "\n", style="dim", highlight=False)


def _not_shown(rows: int, columns: int) -> Iterator[str]:
    if rows > 0:
        yield f"{rows:,} more are not shown: use --format csv"
    if columns:
        named = "1 column is" if columns == 1 else f"{columns:,} columns are"
        yield f"{named} not shown: use --format fields, or a wider screen"


@dataclass(frozen=True)
class _Cells:
    """Rows as texts for a screen."""

    names: list[str]
    columns: list[list[Text]]
    sizes: list[ColumnSize]
    is_number: list[bool]

    @classmethod
    def of(cls, rows: pa.Table) -> Self:
        names = [one_line(name) for name in rows.column_names]
        columns = [[_cell(value) for value in python_values(column)] for column in rows.columns]
        sizes = [
            ColumnSize(
                cell_len(name), max((one.cell_len for one in cells), default=0), _folds(kind)
            )
            for name, cells, kind in zip(names, columns, rows.schema.types, strict=True)
        ]
        return cls(names, columns, sizes, [is_number(kind) for kind in rows.schema.types])


def _cell(value: object) -> Text:
    return Text("NULL", style="dim") if value is None else Text(_short(show(value)))


def _folds(kind: pa.DataType) -> bool:
    return not (is_number(kind) or types.is_temporal(kind) or types.is_boolean(kind))


def _rows_table(shown: _Cells, layout: Layout) -> Table:
    table = _table("", shown.names[: len(layout.widths)])
    for column, width, number in zip(table.columns, layout.widths, shown.is_number, strict=False):
        column.width, column.justify = width, "right" if number else "left"
    if layout.left_out:
        table.add_column(more_columns(layout.left_out), style="dim", no_wrap=True)
    for row in zip(*shown.columns[: len(layout.widths)], strict=True):
        table.add_row(*row, *(["…"] if layout.left_out else []))
    return table


def _print_fields(shown: _Cells, console: Console) -> None:
    """Print one line per field, shortened to the width."""
    widest = max(map(cell_len, shown.names))
    for number, row in enumerate(zip(*shown.columns, strict=True), 1):
        console.print(Text(f"row {number}", style="bold"))
        for name, cell in zip(shown.names, row, strict=True):
            line = Text(f"{name}{' ' * (widest - cell_len(name))}  ").append_text(cell)
            console.print(line, no_wrap=True, overflow="ellipsis", crop=True)


def print_rejects(rejects: Rejects, console: Console, *, quiet: bool = False) -> None:
    """Print the rejected and repaired rows, if any, and what was not read.

    If `quiet`, what was not read is told only where rows before it were rejected.
    """
    for found in rejects:
        console.print(f"rejected: {found.told()}", highlight=False, markup=False)
    for table, rows in rejects.repaired.items():
        console.print(
            f"note: {table}: {rows:,} row{'' if rows == 1 else 's'} held bytes that are not UTF-8, "
            "read as \ufffd",
            highlight=False,
        )
    for line in rejects.unread if rejects or not quiet else ():
        console.print(f"note: {one_line(line)}", highlight=False, markup=False)


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
