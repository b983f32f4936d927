"""The cells of an Excel workbook, xlsx or xls, by sheet, row and column letter."""

from collections.abc import Iterator
from functools import lru_cache
from typing import Any, NamedTuple

from caudal.errors import WorkbookError
from caudal.files.excel.places import column_index
from caudal.files.excel.workbook import formula_errors, open_workbook, sheet_cells
from caudal.series.config import Series, SeriesConfig
from caudal.series.errors import SourceError
from caudal.series.sources.cells import EMPTY, FormulaError, is_blank
from caudal.series.sources.observations import Row, SourceReading, read_series

# The reader returns a formula error as an empty cell. In an xls the two cannot be distinguished.
_EMPTY_OR_ERROR = "empty, or a formula error"


class _SheetCells(NamedTuple):
    """The cells of a sheet, and the reason to report for an empty one."""

    cells: list[list[Any]]
    empty: str


def read_workbook(data: bytes, name: str, config: SeriesConfig) -> SourceReading:
    """Read the observations of every configured series of a workbook."""
    try:
        return _read(data, name, config)
    except WorkbookError as error:
        raise SourceError(str(error)) from error


def _read(data: bytes, name: str, config: SeriesConfig) -> SourceReading:
    workbook = open_workbook(data, name)
    reading = SourceReading()
    sheets: dict[str, _SheetCells] = {}
    for series in config.series:
        if series.sheet not in sheets:
            cells = sheet_cells(workbook, name, series.sheet)
            sheets[series.sheet] = _SheetCells(cells, _mark_errors(cells, data, series.sheet))
        sheet = sheets[series.sheet]
        read_series(series, _rows(sheet.cells, name, series), config, reading, sheet.empty)
    return reading


def _mark_errors(cells: list[list[Any]], data: bytes, sheet: str) -> str:
    """Put formula errors into their cells. Return the reason to report for an empty cell.

    If the errors cannot be found (in an xls or an unusual xlsx), those found before stay.
    """
    try:
        for (row, column), text in formula_errors(data, sheet):
            inside = row <= len(cells) and column <= len(cells[row - 1])
            if inside and is_blank(cells[row - 1][column - 1]):
                cells[row - 1][column - 1] = _formula_error(text)
    except WorkbookError:
        return _EMPTY_OR_ERROR
    return EMPTY


@lru_cache(maxsize=100)
def _formula_error(text: str) -> FormulaError:
    """Return one shared object for all cells with this error; there may be millions."""
    return FormulaError(text)


def _rows(cells: list[list[Any]], name: str, series: Series) -> Iterator[Row]:
    date_at, value_at = column_index(series.date_column), column_index(series.value_column)
    width = len(cells[0]) if cells else 0
    if max(date_at, value_at) >= width:
        letters = series.date_column if date_at >= width else series.value_column
        raise SourceError(
            f"{name}: sheet {series.sheet!r} has no column {letters} "
            f"(series {series.internal_series_code})"
        )
    first = series.first_row or 1
    for number, row in enumerate(cells[first - 1 :], first):
        yield Row(number, row[date_at], row[value_at])
