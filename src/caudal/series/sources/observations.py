"""Convert the cells of a source to observations. Pure.

Rules:

1. A row with a blank date and a blank value holds no observation and is only counted.
2. If one of the two is present, the other must be too. A cell that is blank, or not of the type of
   its column, is rejected and reported. A row with a rejected cell gives no observation. A blank
   value beside a cell that is not a date (a note under the table) is not reported itself. A
   formula error is not blank, wherever it is: it is reported, and so is a blank date beside it, as
   beside any other value. So a formula that fails under the table gives two rejected cells.
3. A date that is repeated with the same value is counted. With another value, the later cell is
   rejected, because it is unknown which of the two is right. If the primary key has days instead
   of times, two times of a day are a repeated date.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime
from typing import NamedTuple
from zoneinfo import ZoneInfo

from caudal.series.config import Series, SeriesConfig
from caudal.series.errors import SourceError
from caudal.series.sources.cells import EMPTY, Bad, Cell, Moment, is_blank, read_moment, read_number

_REJECTS_TOLD = 3


class Row(NamedTuple):
    """The two cells of a series in one row of its source."""

    number: int
    date: Cell
    value: Cell


class Observation(NamedTuple):
    """One value of one series at one time."""

    series_code: str
    time: datetime
    day: date
    value: float


@dataclass(frozen=True)
class RejectedCell:
    """A rejected cell. `column` is empty if the whole record is damaged.

    Reasons of one `kind` differ only in the content of the cell.
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
    """The observations of a source in its own order, and the rejected cells."""

    observations: list[Observation] = field(default_factory=list)
    rejected: list[RejectedCell] = field(default_factory=list)
    blank_rows: int = 0
    repeated: int = 0


class NoObservationsError(SourceError):
    """A source has no usable observation. Compare the config with the file, and see `rejected`."""

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
    series: Series,
    rows: Iterable[Row],
    config: SeriesConfig,
    reading: SourceReading,
    empty: str = EMPTY,
) -> None:
    """Add the observations and the rejected cells of one series to a reading."""
    zone = ZoneInfo(config.timezone)
    first_seen: dict[date, tuple[int, float]] = {}
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
        repeatable = moment.day if config.is_by_day else moment.time
        earlier = first_seen.setdefault(repeatable, (row.number, value))
        if earlier[0] == row.number:
            reading.observations.append(Observation(code, moment.time, moment.day, value))
        elif earlier[1] == value:
            reading.repeated += 1
        else:
            reason = f"row {earlier[0]} has another value for this date"
            reject(row, series.value_column, reason, "another value")
