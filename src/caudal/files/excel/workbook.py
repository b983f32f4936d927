"""Open a workbook within bounds, and give the cells of a sheet."""

from collections.abc import Iterator
from io import BytesIO
from typing import TYPE_CHECKING, Any

from caudal.errors import WorkbookError
from caudal.files.excel.extent import require_bounded
from caudal.files.excel.formula_errors import ErrorCell, error_cells
from caudal.files.excel.parts import open_archive, read_pieces
from caudal.files.excel.sheet_names import find_sheet

if TYPE_CHECKING:
    from python_calamine import CalamineWorkbook


def open_workbook(data: bytes, name: str) -> "CalamineWorkbook":
    """Open an xlsx or xls; raise WorkbookError for anything else and for one that is too large."""
    from python_calamine import CalamineError, CalamineWorkbook

    require_bounded(data, name)
    try:
        return CalamineWorkbook.from_filelike(BytesIO(data))
    except CalamineError as error:
        raise WorkbookError(
            f"{name} is not an Excel workbook ({error}): give an xlsx or xls file"
        ) from error


def sheet_cells(workbook: "CalamineWorkbook", name: str, sheet: str) -> list[list[Any]]:
    """Return the cells of a sheet from A1 on, row by row."""
    from python_calamine import CalamineError, WorksheetNotFound

    try:
        return workbook.get_sheet_by_name(sheet).to_python(skip_empty_area=False)
    except WorksheetNotFound as error:
        sheets = ", ".join(repr(found) for found in workbook.sheet_names)
        raise WorkbookError(f"{name} has no sheet {sheet!r}; its sheets are: {sheets}") from error
    except BaseException as error:
        # The reader's library raises panics that are not an Exception; only the name identifies
        # them.
        if isinstance(error, CalamineError) or type(error).__name__ == "PanicException":
            raise WorkbookError(f"{name}: sheet {sheet!r} cannot be read: {error}") from error
        raise


def formula_errors(data: bytes, sheet: str) -> Iterator[ErrorCell]:
    """Yield the cells of an xlsx with a formula error, which the reader returns as empty.

    Raises WorkbookError if they cannot be found, as in an xls.
    """
    with open_archive(data, sheet) as archive:
        part = find_sheet(archive, sheet)
        yield from error_cells(lambda: read_pieces(archive, part), sheet)
