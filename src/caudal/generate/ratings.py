"""The file ratings.csv."""

from functools import cache

import numpy as np
import pyarrow as pa

from caudal.generate import films, text
from caudal.generate.dice import Dice, Ints
from caudal.generate.popularity import Popularity, Shuffle, Stratum
from caudal.generate.sheet import Sheet, keep_first, set_field

RATINGS = 26_024_289
HEADER = ("userId", "movieId", "rating", "timestamp")
FAULTS = (set_field(2, "n/a"), keep_first(3), set_field(1, "1995-10-30"), set_field(0, ""))
FAME = (
    Stratum(titles=20, draws=6_000),
    Stratum(titles=200, draws=16_000),
    Stratum(titles=1_500, draws=28_000),
    Stratum(titles=6_000, draws=24_000),
    Stratum(titles=20_000, draws=18_000),
    Stratum(titles=72_280, draws=8_000),
)
_SIZES = np.array((20, 25, 35, 50, 70, 130, 150, 288), dtype=np.int64)
"""The numbers of ratings by eight successive users. The pattern repeats."""
_USER_IN_PATTERN = np.repeat(np.arange(len(_SIZES)), _SIZES)
_SHADES = 20
_FIRST_TIME, _LAST_TIME = 822_873_600, 1_501_829_870


def ratings_sheet(dice: Dice, rows: int, film_count: int) -> Sheet:
    """Describe ratings.csv: this many ratings of these films."""
    fame = Popularity(film_count, rows, FAME)
    return Sheet(
        name="ratings.csv",
        header=HEADER,
        rows=rows,
        chunk_rows=1 << 16,
        columns=lambda row: _columns(dice, row, fame),
        faults=FAULTS,
    )


def _columns(dice: Dice, row: Ints, fame: Popularity) -> list[pa.Array]:
    draw = dice.below("rating/film", row, fame.draws)
    film = Shuffle(fame.titles).forward(fame.ranks(draw))
    user = row // _SIZES.sum() * len(_SIZES) + _USER_IN_PATTERN[row % _SIZES.sum()]
    shade = dice.below("rating/shade", row, _SHADES)
    joined = dice.below("rating/joined", user, _LAST_TIME - _FIRST_TIME - 90_000)
    return [
        text.digits(user + 1),
        text.digits(films.film_ids(dice, films.films_of_rows(film))),
        text.take(_ratings(), films.qualities(dice, film) * _SHADES + shade),
        text.digits(_FIRST_TIME + joined + dice.below("rating/time", row, 90_000)),
    ]


@cache
def _ratings() -> pa.Array:
    """Return ratings in halves, by the quality of the film and twenty degrees of taste."""
    taste = (-6, -4, -3, -3, -2, -2, -1, -1, 0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 3, 4)
    halves = (
        min(10, max(1, 5 + quality // 4 + liking))
        for quality in range(films.QUALITIES)
        for liking in taste
    )
    return text.pool(f"{half // 2}.{half % 2 * 5}" for half in halves)
