"""Dates in every form that the book file has, as one pool.

The pool holds, in this order: days (YYYY-MM-DD), months (YYYY-MM), years (YYYY), doubtful years
(YYYY*) and days in American order (M/D/YY).
"""

from datetime import date, timedelta
from functools import cache

import numpy as np
import pyarrow as pa

from caudal.generate import text
from caudal.generate.dice import Dice, Ints

FIRST_YEAR, LAST_YEAR = 1870, 2023
YEARS = LAST_YEAR - FIRST_YEAR + 1
_FIRST_DAY = date(FIRST_YEAR, 1, 1)
_DAYS = (date(LAST_YEAR + 1, 1, 1) - _FIRST_DAY).days
_MONTHS_AT = _DAYS
_YEARS_AT = _MONTHS_AT + 12 * YEARS
_DOUBTFUL_AT = _YEARS_AT + YEARS
_AMERICAN_AT = _DOUBTFUL_AT + YEARS
_YEAR_STARTS = np.array(
    [(date(year, 1, 1) - _FIRST_DAY).days for year in range(FIRST_YEAR, LAST_YEAR + 1)],
    dtype=np.int64,
)


def days(dice: Dice, label: str, index: Ints, year: Ints) -> pa.Array:
    """Return a day of the given year for every index; one in eight is 1 January."""
    return text.take(_pool(), _day_number(dice, label, index, year))


def loose_dates(dice: Dice, label: str, index: Ints, year: Ints) -> pa.Array:
    """Return a date of the given year in one of the forms.

    All forms except the American one have the full year.
    """
    shape = dice.below(f"{label}/shape", index, 1000)
    month = dice.below(f"{label}/month", index, 12)
    since = year - FIRST_YEAR
    return text.take(
        _pool(),
        np.select(
            [shape < 500, shape < 640, shape < 994, shape < 998],
            [
                _day_number(dice, label, index, year),
                _MONTHS_AT + 12 * since + month,
                _YEARS_AT + since,
                _DOUBTFUL_AT + since,
            ],
            _AMERICAN_AT + 12 * since + month,
        ),
    )


def _day_number(dice: Dice, label: str, index: Ints, year: Ints) -> Ints:
    day = dice.below(f"{label}/day", index, 365)
    day[dice.one_in(f"{label}/first", index, 8)] = 0
    return _YEAR_STARTS[year - FIRST_YEAR] + day


@cache
def _pool() -> pa.Array:
    years = range(FIRST_YEAR, LAST_YEAR + 1)
    shapes = [(_FIRST_DAY + timedelta(days=day)).isoformat() for day in range(_DAYS)]
    shapes += [f"{year}-{month:02}" for year in years for month in range(1, 13)]
    shapes += [f"{year}" for year in years]
    shapes += [f"{year}*" for year in years]
    shapes += [f"{m}/{m * 7 % 28 + 1}/{y % 100:02}" for y in years for m in range(1, 13)]
    return text.pool(shapes)
