"""One cell to one date or one number, or the reason why not. Pure.

Nothing is guessed: a cell that is not plainly what its column should hold is rejected.
1. A date is a date cell, or text in the series' `date_format` (ISO 8601 without one). A bare number
   is no date, even if a spreadsheet might show it as one; nor is the day before a spreadsheet's
   first, which the reader gives for a number that is none.
2. A number is a number cell, or text that is a number throughout, with the series' separators.
   Truth values, infinities and NaN are no numbers.
3. The error of a formula is neither, and is not blank.
4. A moment without an offset is local time in the dataset's timezone; of a moment that the clocks
   show twice the first is meant, and one that they skip is counted on from before the change.
"""

import math
import re
from dataclasses import dataclass
from datetime import UTC, date, datetime
from typing import Final
from zoneinfo import ZoneInfo

Cell = str | float | int | bool | date | datetime | object | None

EMPTY: Final = "empty"
_DAY_ZERO = date(1899, 12, 30)
_SHOWN = 40


@dataclass(frozen=True)
class FormulaError:
    """What a cell holds whose formula has no value: #N/A, #REF!, #DIV/0! and the like."""

    text: str


@dataclass(frozen=True)
class Moment:
    """An observation's moment: UTC, and the local date."""

    time: datetime
    day: date


@dataclass(frozen=True)
class Bad:
    """A cell that cannot be used, and why. Reasons of one kind differ only in the cell's text."""

    kind: str
    text: str = ""

    @property
    def reason(self) -> str:
        return f"{self.kind}: {self.text}" if self.text else self.kind


def is_blank(cell: Cell) -> bool:
    return cell is None or (isinstance(cell, str) and not cell.strip())


def read_moment(cell: Cell, date_format: str, zone: ZoneInfo) -> Moment | Bad:
    """The moment that a cell of a date column means."""
    if is_blank(cell):
        return Bad(EMPTY)
    if isinstance(cell, str):
        try:
            text = cell.strip()
            found = (
                datetime.strptime(text, date_format)
                if date_format
                else datetime.fromisoformat(text)
            )
        except (ValueError, OverflowError):
            return Bad(f"not a date{_as(date_format)}", _show(cell))
    elif isinstance(cell, datetime):
        found = cell
    elif isinstance(cell, date):
        found = datetime(cell.year, cell.month, cell.day)
    else:
        return _neither("not a date", cell)
    if not isinstance(cell, str) and found.date() == _DAY_ZERO:
        return Bad("not a date: the serial number is 0 or none")
    return _moment(found, zone)


def read_number(cell: Cell, decimal: str = ".", thousands: str = "") -> float | Bad:
    """The number that a cell of a value column means."""
    if is_blank(cell):
        return Bad(EMPTY)
    if isinstance(cell, bool):
        return Bad("not a number", _show(cell))
    if isinstance(cell, int | float):
        return float(cell) if math.isfinite(cell) else Bad("not a finite number", _show(cell))
    if isinstance(cell, str) and _numeral(decimal, thousands).match(cell.strip()):
        text = cell.strip()
        text = text.replace(thousands, "") if thousands else text
        number = float(text.replace(decimal, "."))
        return number if math.isfinite(number) else Bad("not a finite number", _show(cell))
    return _neither("not a number", cell)


def _neither(kind: str, cell: Cell) -> Bad:
    """A formula's error says itself why it is not what it should be."""
    if isinstance(cell, FormulaError):
        return Bad("the error of a formula", cell.text)
    return Bad(kind, _show(cell))


def _moment(found: datetime, zone: ZoneInfo) -> Moment | Bad:
    try:
        local = found.replace(tzinfo=zone) if found.tzinfo is None else found.astimezone(zone)
        return Moment(local.astimezone(UTC), local.date())
    except OverflowError:
        return Bad("not a date in years 1 to 9999", str(found))


def _numeral(decimal: str, thousands: str) -> re.Pattern[str]:
    """Grouping is optional, but where it is used it must be by three digits throughout."""
    whole = r"\d+"
    if thousands:
        whole = rf"(?:\d{{1,3}}(?:{re.escape(thousands)}\d{{3}})+|\d+)"
    point = re.escape(decimal)
    return re.compile(
        rf"[+-]?(?:{whole}(?:{point}\d*)?|{point}\d+)(?:[eE][+-]?\d{{1,3}})?\Z", re.ASCII
    )


def _as(date_format: str) -> str:
    return f" as {date_format}" if date_format else ""


def _show(cell: Cell) -> str:
    text = " ".join(str(cell).split())
    return repr(text if len(text) <= _SHOWN else text[: _SHOWN - 1] + "…")
