"""Convert one cell to a date or a number, or return the reason for its rejection. Pure.

Nothing is guessed: a cell that is not clearly of the type of its column is rejected.

1. A date is a date cell, or text in the `date_format` of the series (ISO 8601 by default). A plain
   number is not a date, even if a spreadsheet might show it as one. The day before the first day
   of a spreadsheet is not a date either: the reader returns it for an invalid number.
2. A number is a number cell, or text that is entirely a number, with the separators of the series.
   Truth values, infinities and NaN are not numbers.
3. A formula error is neither a date nor a number, and it is not blank.
4. A time without an offset is local time in the timezone of the dataset. If the clock shows a time
   twice, the first one is meant. If the clock skips a time, the offset before the change is used.
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
    """The content of a cell whose formula has no value: #N/A, #REF!, #DIV/0! and the like."""

    text: str


@dataclass(frozen=True)
class Moment:
    """The time of an observation in UTC, and its local date."""

    time: datetime
    day: date


@dataclass(frozen=True)
class Bad:
    """A cell that cannot be used, and the reason.

    Reasons of one kind differ only in the text of the cell.
    """

    kind: str
    text: str = ""

    @property
    def reason(self) -> str:
        return f"{self.kind}: {self.text}" if self.text else self.kind


def is_blank(cell: Cell) -> bool:
    return cell is None or (isinstance(cell, str) and not cell.strip())


def read_moment(cell: Cell, date_format: str, zone: ZoneInfo) -> Moment | Bad:
    """Return the time that a cell of a date column means."""
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
        return Bad("not a date: the serial number is 0 or invalid")
    return _moment(found, zone)


def read_number(cell: Cell, decimal: str = ".", thousands: str = "") -> float | Bad:
    """Return the number that a cell of a value column means."""
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
    """Return the rejection of a cell. A formula error is reported as such."""
    if isinstance(cell, FormulaError):
        return Bad("formula error", cell.text)
    return Bad(kind, _show(cell))


def _moment(found: datetime, zone: ZoneInfo) -> Moment | Bad:
    try:
        local = found.replace(tzinfo=zone) if found.tzinfo is None else found.astimezone(zone)
        return Moment(local.astimezone(UTC), local.date())
    except OverflowError:
        return Bad("not a date in years 1 to 9999", str(found))


def _numeral(decimal: str, thousands: str) -> re.Pattern[str]:
    """Return the pattern of a number.

    Grouping is optional. If it is used, every group but the first must have three digits.
    """
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
