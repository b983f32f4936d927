"""Where the cells of a sheet lie, as the reader of workbooks finds it out. Pure.

Rules:
1. A row, and a cell, may say where it is; if it does not, it follows the one before.
2. A cell that names another row than the one it is in lies there, but moves only the column: the
   cells after it are in their own row again.
"""

import re
from typing import NamedTuple

from caudal.series.errors import SourceError

_MOST_ROWS, _MOST_COLUMNS = 1_048_576, 16_384
_REFERENCE = re.compile(r"([A-Z]{1,3})([0-9]{1,7})\Z")
_NUMBER = re.compile(r"[0-9]{1,7}\Z")


class Place(NamedTuple):
    """Where a cell lies, counted from 1.

    >>> str(Place(7, 28))
    'AB7'
    """

    row: int
    column: int

    def __str__(self) -> str:
        return f"{_letters(self.column)}{self.row}"


class Places:
    """Follows the rows and cells of a sheet in their order. `sheet` is how errors name it."""

    def __init__(self, sheet: str) -> None:
        self._sheet = sheet
        self._row = self._column = 0
        self._in_data = False
        self.cell: Place | None = None  # the one we are in

    def start(self, kind: str, attributes: dict[str, str]) -> bool:
        """An element begins; whether it is one that says where cells lie."""
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
        """An element ends."""
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

    def _bad(self, reference: str, kind: str) -> SourceError:
        shown = reference if len(reference) <= 40 else reference[:39] + "…"
        return SourceError(
            f"{self._sheet}: {shown!r} is no {kind} of a sheet, which ends at XFD1048576: "
            "save the workbook anew, without it"
        )


def column_index(letters: str) -> int:
    """The place of a column, from 0.

    >>> column_index("A"), column_index("Z"), column_index("AB")
    (0, 25, 27)
    """
    index = 0
    for letter in letters:
        index = index * 26 + ord(letter) - ord("A") + 1
    return index - 1


def _letters(column: int) -> str:
    """The letters of a column, from 1."""
    letters = ""
    while column:
        column, place = divmod(column - 1, 26)
        letters = chr(ord("A") + place) + letters
    return letters
