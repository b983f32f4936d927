"""Cells of an Excel workbook, xlsx or xls, by sheet, row and column letter."""

from collections.abc import Iterator
from io import BytesIO
from typing import Any
from zoneinfo import ZoneInfo

from python_calamine import CalamineError, CalamineWorkbook, WorksheetNotFound

from caudal.series.config import Series, SeriesConfig
from caudal.series.errors import SourceError
from caudal.series.sources.extent import require_bounded
from caudal.series.sources.observations import Row, SourceReading, read_series
from caudal.series.sources.places import column_index

# The reader gives a formula's error as an empty cell.
_EMPTY = "empty, or the error of a formula"


def read_workbook(data: bytes, name: str, config: SeriesConfig) -> SourceReading:
    """The observations of every configured series of a workbook."""
    require_bounded(data, name)
    try:
        workbook = CalamineWorkbook.from_filelike(BytesIO(data))
    except CalamineError as error:
        raise SourceError(
            f"{name} is no Excel workbook ({error}): give an xlsx or xls file"
        ) from error
    zone, reading = ZoneInfo(config.timezone), SourceReading()
    sheets: dict[str, list[list[Any]]] = {}
    for series in config.series:
        if series.sheet not in sheets:
            sheets[series.sheet] = _cells(workbook, name, series.sheet)
        read_series(series, _rows(sheets[series.sheet], name, series), zone, reading, _EMPTY)
    return reading


def _cells(workbook: CalamineWorkbook, name: str, sheet: str) -> list[list[Any]]:
    try:
        return workbook.get_sheet_by_name(sheet).to_python(skip_empty_area=False)
    except WorksheetNotFound as error:
        sheets = ", ".join(repr(found) for found in workbook.sheet_names)
        raise SourceError(f"{name} has no sheet {sheet!r}; its sheets are: {sheets}") from error
    except BaseException as error:
        # The reader's library names its panics, which are no Exception, only by this word.
        if isinstance(error, CalamineError) or type(error).__name__ == "PanicException":
            raise SourceError(f"{name}: sheet {sheet!r} cannot be read: {error}") from error
        raise


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
