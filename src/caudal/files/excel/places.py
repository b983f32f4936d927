"""The positions of the cells of a sheet, computed as the workbook reader does it. Pure.

Rules:

1. A row or a cell may state its position. If it does not, it follows the previous one.
2. If a cell states another row than the one it is in, it belongs to the stated row. But it changes
   only the column: the next cells are in their own row again.
"""

import re
from typing import NamedTuple

from caudal.errors import WorkbookError

_MOST_ROWS, _MOST_COLUMNS = 1_048_576, 16_384
_REFERENCE = re.compile(r"([A-Z]{1,3})([0-9]{1,7})\Z")
_NUMBER = re.compile(r"[0-9]{1,7}\Z")


class Place(NamedTuple):
    """The position of a cell, counted from 1.

    >>> str(Place(7, 28))
    'AB7'
    """

    row: int
    column: int

    def __str__(self) -> str:
        return f"{_letters(self.column)}{self.row}"


class Places:
    """A parser that follows the rows and cells of a sheet. Errors name the sheet as `sheet`."""

    def __init__(self, sheet: str) -> None:
        self._sheet = sheet
        self._row = self._column = 0
        self._in_data = False
        self.cell: Place | None = None  # the current cell

    def start(self, kind: str, attributes: dict[str, str]) -> bool:
        """Handle the start of an element. Return whether it determines the position of cells."""
        if kind == "sheetData":
            self._in_data = True
        elif self._in_data and kind == "row":
            self.next_row(attributes.get("r"))
        elif self._in_data and kind == "c":
            self.cell = self.next_cell(attributes.get("r"))
        else:
            return False
        return True

    def end(self, kind: str) -> None:
        """Handle the end of an element."""
        if kind in ("c", "sheetData"):
            self.cell = None
        if kind == "sheetData":
            self._in_data = False

    def next_row(self, number: str | None) -> None:
        self._column = 0
        if number is None:
            self._row += 1
            return
        self._row = int(number) if _NUMBER.match(number) else 0
        if not 1 <= self._row <= _MOST_ROWS:
            raise self._bad(number, "row")

    def next_cell(self, reference: str | None) -> Place:
        if reference is None:
            reference = str(Place(self._row, self._column + 1))
        found = _REFERENCE.match(reference.upper())
        if found is None:
            raise self._bad(reference, "cell")
        place = Place(int(found[2]), column_index(found[1]) + 1)
        if not (1 <= place.row <= _MOST_ROWS and place.column <= _MOST_COLUMNS):
            raise self._bad(reference, "cell")
        self._column = place.column
        return place

    def _bad(self, reference: str, kind: str) -> WorkbookError:
        shown = reference if len(reference) <= 40 else reference[:39] + "…"
        return WorkbookError(
            f"{self._sheet}: {shown!r} is not a valid {kind}, a sheet ends at XFD1048576: "
            "remove it and save the workbook again"
        )


def column_index(letters: str) -> int:
    """Return the index of a column, from 0.

    >>> column_index("A"), column_index("Z"), column_index("AB")
    (0, 25, 27)
    """
    index = 0
    for letter in letters:
        index = index * 26 + ord(letter) - ord("A") + 1
    return index - 1


def _letters(column: int) -> str:
    """Return the letters of a column, counted from 1."""
    letters = ""
    while column:
        column, place = divmod(column - 1, 26)
        letters = chr(ord("A") + place) + letters
    return letters
