"""From the cells of a source to observations. Pure.

Rules:
1. A row where both the date and the value are blank holds no observation and is only counted.
2. Where one of the two is there, the other must be: a cell that is blank, or is not what its
   column should hold, is rejected and reported. A row with a rejected cell gives no observation.
   A blank value beside something that is no date (a note under the table) is not reported itself.
   The error of a formula is not blank, wherever it is: it is reported, and so is a blank date
   beside it, as beside any other value. So a formula that fails under the table gives two cells.
3. A date that comes again with the same value is counted; with another value, the later cell is
   rejected: which of the two is right cannot be known.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime
from typing import NamedTuple
from zoneinfo import ZoneInfo

from caudal.series.config import Series
from caudal.series.errors import SourceError
from caudal.series.sources.cells import EMPTY, Bad, Cell, Moment, is_blank, read_moment, read_number

_REJECTS_TOLD = 3


class Row(NamedTuple):
    """The two cells of a series in one row of its source."""

    number: int
    date: Cell
    value: Cell


class Observation(NamedTuple):
    """One value of one series at one moment."""

    series_code: str
    time: datetime
    day: date
    value: float


@dataclass(frozen=True)
class RejectedCell:
    """A cell that was left out. `column` is empty when the whole record is damaged.

    Reasons of one `kind` differ only in what the cell holds.
    """

    series_code: str
    sheet: str
    row: int
    column: str
    reason: str
    kind: str = ""

    def __str__(self) -> str:
        place = f"{self.sheet!r} " if self.sheet else ""
        column = f", column {self.column}" if self.column else ""
        return f"{place}row {self.row}{column}: {self.reason}"


@dataclass
class SourceReading:
    """What a source holds: observations in its own order, and what was left out."""

    observations: list[Observation] = field(default_factory=list)
    rejected: list[RejectedCell] = field(default_factory=list)
    blank_rows: int = 0
    repeated: int = 0


class NoObservationsError(SourceError):
    """Nothing in a source can be used: compare the config with the file, and see `rejected`."""

    def __init__(self, name: str, rejected: Sequence[RejectedCell]) -> None:
        self.rejected = tuple(rejected)
        told = "no row holds a date or a value"
        if rejected:
            first = "; ".join(map(str, rejected[:_REJECTS_TOLD]))
            cells = "cell was" if len(rejected) == 1 else "cells were"
            told = f"{len(rejected):,} {cells} rejected, the first: {first}"
        super().__init__(
            f"{name}: no observation was found: "
            f"check first_row, the columns and date_format ({told})"
        )


def read_series(
    series: Series, rows: Iterable[Row], zone: ZoneInfo, reading: SourceReading, empty: str = EMPTY
) -> None:
    """Add the observations of one series, and what had to be rejected, to a reading."""
    first_seen: dict[datetime, tuple[int, float]] = {}
    code = series.internal_series_code

    def reject(row: Row, column: str, reason: str, kind: str) -> None:
        reason = empty if reason == EMPTY else reason
        reading.rejected.append(RejectedCell(code, series.sheet, row.number, column, reason, kind))

    for row in rows:
        if is_blank(row.date) and is_blank(row.value):
            reading.blank_rows += 1
            continue
        moment = read_moment(row.date, series.date_format, zone)
        value = read_number(row.value, series.decimal_separator, series.thousands_separator)
        if isinstance(moment, Bad):
            reject(row, series.date_column, moment.reason, moment.kind)
        if isinstance(value, Bad) and (isinstance(moment, Moment) or not is_blank(row.value)):
            reject(row, series.value_column, value.reason, value.kind)
        if isinstance(moment, Bad) or isinstance(value, Bad):
            continue
        earlier = first_seen.setdefault(moment.time, (row.number, value))
        if earlier[0] == row.number:
            reading.observations.append(Observation(code, moment.time, moment.day, value))
        elif earlier[1] == value:
            reading.repeated += 1
        else:
            reason = f"row {earlier[0]} has another value for this date"
            reject(row, series.value_column, reason, "another value")
