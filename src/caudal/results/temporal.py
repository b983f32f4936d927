"""Dates and times from Arrow's numbers: Python objects within Python's range, else text.

Python supports years 1 to 9999, times before 24:00:00, and no nanoseconds. DuckDB supports more,
and infinity. Values that Python cannot hold become text in DuckDB's form.
"""

from datetime import UTC, date, datetime, time, timedelta

_INFINITE_DAYS = 2**31 - 1
_INFINITE_TICKS = 2**63 - 1
FIRST_DAY = date.min.toordinal() - date(1970, 1, 1).toordinal()
LAST_DAY = date.max.toordinal() - date(1970, 1, 1).toordinal()
_EPOCH = datetime(1970, 1, 1)
SECONDS_PER_DAY = 86_400
_ERA_DAYS, _ERA_YEARS = 146_097, 400  # the calendar repeats after this period

PER_SECOND = {"s": 1, "ms": 1_000, "us": 1_000_000, "ns": 1_000_000_000}


def date_of(days: int) -> date | str:
    """Return the date `days` days after 1970-01-01."""
    if FIRST_DAY <= days <= LAST_DAY:
        return _EPOCH.date() + timedelta(days=days)
    infinite = _infinite(days, _INFINITE_DAYS)
    if infinite:
        return infinite
    text, era = _dated(days)
    return text + era


def time_of(ticks: int, unit: str) -> time | str:
    """Return the time of day `ticks` units after midnight."""
    seconds, fraction = divmod(ticks, PER_SECOND[unit])
    nanoseconds = fraction * (PER_SECOND["ns"] // PER_SECOND[unit])
    if seconds < SECONDS_PER_DAY and nanoseconds % 1000 == 0:
        return (_EPOCH + timedelta(seconds=seconds, microseconds=nanoseconds // 1000)).time()
    return _clock(seconds, nanoseconds)


def timestamp_of(ticks: int, unit: str, *, is_zoned: bool) -> datetime | str:
    """Return the moment `ticks` units after 1970-01-01; as text for nanoseconds."""
    infinite = _infinite(ticks, _INFINITE_TICKS)
    if infinite:
        return infinite
    seconds, fraction = divmod(ticks, PER_SECOND[unit])
    days, second = divmod(seconds, SECONDS_PER_DAY)
    nanoseconds = fraction * (PER_SECOND["ns"] // PER_SECOND[unit])
    if unit != "ns" and FIRST_DAY <= days <= LAST_DAY:
        found = _EPOCH + timedelta(days=days, seconds=second, microseconds=nanoseconds // 1000)
        return found.replace(tzinfo=UTC) if is_zoned else found
    text, era = _dated(days)
    return f"{text}{era} {_clock(second, nanoseconds)}" + ("+00:00" if is_zoned else "")


def _infinite(number: int, largest: int) -> str:
    if abs(number) < largest:
        return ""
    return "infinity" if number > 0 else "-infinity"


def _dated(days: int) -> tuple[str, str]:
    """Return any day as text, and the suffix that marks years before year 1."""
    eras, rest = divmod(days - FIRST_DAY, _ERA_DAYS)
    place = date.min + timedelta(days=rest)
    year = place.year + eras * _ERA_YEARS
    shown, era = (year, "") if year > 0 else (1 - year, " (BC)")
    return f"{shown:04}-{place.month:02}-{place.day:02}", era


def _clock(seconds: int, nanoseconds: int) -> str:
    clock = f"{seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}"
    if nanoseconds % 1000:
        return f"{clock}.{nanoseconds:09}"
    return f"{clock}.{nanoseconds // 1000:06}" if nanoseconds else clock
