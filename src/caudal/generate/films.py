"""The properties of a film that all files share: its id, countries, year and quality.

Rules:

1. One row in DUPLICATE_SPACING repeats the previous film, with the same id.
2. One film in a hundred is Argentine, released in 2000 or later, and has no missing field. Every
   second one of these is a joint production with Spain from 2000 to 2009. So the shipped queries
   have results from a few hundred films on.
"""

import numpy as np

from caudal.generate.dice import Dice, Ints, Mask, weighted_slots

FILMS = 45_466
DUPLICATE_SPACING = 1_500
QUALITIES = 16
_ARGENTINE_SPACING = 100
_YEAR_WEIGHTS = (
    ((1874, 1899), 1),
    ((1900, 1929), 6),
    ((1930, 1959), 40),
    ((1960, 1979), 60),
    ((1980, 1989), 95),
    ((1990, 1999), 140),
    ((2000, 2009), 280),
    ((2010, 2017), 350),
)
_YEARS = [year for (first, last), _ in _YEAR_WEIGHTS for year in range(first, last + 1)]
_YEAR_SLOTS = weighted_slots([weight for (a, b), weight in _YEAR_WEIGHTS for _ in range(a, b + 1)])


def films_of_rows(row: Ints) -> Ints:
    """Return the film that each row of the metadata or of the credits describes."""
    return np.where(row % DUPLICATE_SPACING == 777, row - 1, row)


def film_ids(dice: Dice, film: Ints) -> Ints:
    """Return film ids with gaps: one id in every ten numbers."""
    return 2 + film * 10 + dice.below("film/id", film, 10)


def argentine(film: Ints) -> Mask:
    """Return whether rule 2 makes a film Argentine."""
    return np.equal(film % _ARGENTINE_SPACING, 11)


def with_spain(film: Ints) -> Mask:
    """Return whether rule 2 makes a film a joint production with Spain."""
    return np.equal(film % (2 * _ARGENTINE_SPACING), 11)


def years(dice: Dice, film: Ints) -> Ints:
    """Return the years of release."""
    drawn = np.array(_YEARS)[dice.weighted("film/year", film, _YEAR_SLOTS)]
    recent = 2000 + dice.below("film/recent", film, np.where(with_spain(film), 10, 18))
    return np.where(argentine(film), recent, drawn)


def qualities(dice: Dice, film: Ints) -> Ints:
    """Return the quality of films, from 0 to QUALITIES - 1. Ratings and overviews depend on it."""
    return dice.below("film/quality", film, QUALITIES)
