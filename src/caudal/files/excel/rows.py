"""The rows of a sheet as texts, under the names of its header.

Rules:
1. The header is the first row with two cells or more that are not empty; in a sheet of one column
   the first row with any. Rows before it are left out. `skip` and `header` say otherwise.
2. A number is its shortest exact text: 1, 0.1, 1500000. A date is YYYY-MM-DD, a moment has a time,
   a formula error is its text (#N/A), so that no error passes for an empty cell.
3. The number of a row is that of the sheet. Empty rows are left out.
"""

import contextlib
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from typing import Any

from caudal.errors import WorkbookError
from caudal.files.detect import lay_out
from caudal.files.excel.workbook import formula_errors, open_workbook, sheet_cells
from caudal.model import Reading


@dataclass(frozen=True)
class SheetRows:
    """The rows of a sheet under its header; `first` is the number of the first one."""

    names: tuple[str, ...]
    rows: Sequence[Sequence[Any]]
    first: int
    notes: tuple[str, ...] = ()


def read_sheet(data: bytes, name: str, reading: Reading) -> SheetRows:
    """Return the rows of the chosen sheet, or of the first one that is not empty."""
    workbook = open_workbook(data, name)
    sheets = [reading.sheet] if reading.sheet else list(workbook.sheet_names)
    for sheet in sheets:
        cells = sheet_cells(workbook, name, sheet)
        if any(cell not in ("", None) for row in cells for cell in row):
            with contextlib.suppress(WorkbookError):  # an xls says nothing of errors
                for (row, column), text in formula_errors(data, sheet):
                    if row <= len(cells) and column <= len(cells[row - 1]):
                        cells[row - 1][column - 1] = text
            others = [] if reading.sheet else [one for one in sheets if one != sheet]
            return _under_header(cells, sheet, others, reading)
    raise WorkbookError(f"{name}: {'the sheet is' if reading.sheet else 'all sheets are'} empty")


def _under_header(
    cells: list[list[Any]], sheet: str, others: Sequence[str], reading: Reading
) -> SheetRows:
    filled = [[cell not in ("", None) for cell in row] for row in cells]
    width = max(place + 1 for row in filled for place, one in enumerate(row) if one)
    least = 2 if sum(map(any, zip(*filled, strict=True))) > 1 else 1
    at = reading.skip if reading.skip is not None else _first_row(filled, least)
    texts = [tuple(cell_text(cell) or "" for cell in row[:width]) for row in cells[at : at + 200]]
    if not texts:
        raise WorkbookError(f"sheet {sheet!r} has no row behind row {at}")
    plain = Reading(header=reading.header, names=reading.names, skip=0)
    layout = lay_out(texts, plain)
    notes = [*layout.notes]
    if at and reading.skip is None:
        notes.insert(0, f"{at} {'row' if at == 1 else 'rows'} before the header left out")
    if others:
        notes.insert(0, f"sheet {sheet!r} is read; there are more: {', '.join(others)}")
    start = at + layout.first
    rows = [row[:width] for row in cells[start:]]
    return SheetRows(layout.names, rows, start + 1, tuple(notes))


def _first_row(filled: Sequence[Sequence[bool]], least: int) -> int:
    return next((at for at, row in enumerate(filled) if sum(row) >= least), 0)


def cell_text(cell: Any) -> str | None:
    """Return a cell as the text that a CSV file would hold; None for an empty one (rule 2)."""
    if cell is None or cell == "":
        return None
    if isinstance(cell, bool):
        return "true" if cell else "false"
    if isinstance(cell, float):
        return f"{Decimal(repr(cell)).normalize():f}"
    if isinstance(cell, datetime):
        return str(cell) if cell.time() != time() else str(cell.date())
    if isinstance(cell, timedelta):
        seconds = cell.total_seconds()
        return f"{int(seconds // 3600):02}:{int(seconds // 60 % 60):02}:{seconds % 60:02g}"
    return str(cell.isoformat() if isinstance(cell, date | time) else cell)
