"""The columns of a film that are lists: genres, companies, countries and languages."""

from collections.abc import Iterable
from functools import cache
from itertools import cycle

import numpy as np
import pyarrow as pa

from caudal.generate import films, places, text
from caudal.generate.dice import Dice, Ints, weighted_slots
from caudal.generate.literals import literal, spellings
from caudal.generate.people import family_name, names
from caudal.generate.ragged import distinct, spread
from caudal.generate.words import COMPANY_ENDINGS

Entries = tuple[pa.Array, Ints]
"""Literals with doubled quotes, and the slots from which they are drawn."""

_COMPANIES = 3_000
_MOST_ENTRIES = 8
_LIST_SLOTS = {
    "genres": weighted_slots((54, 320, 345, 215, 66)),
    "companies": weighted_slots((261, 330, 180, 120, 60, 30, 19)),
    "countries": weighted_slots((138, 720, 105, 27, 10)),
    "languages": weighted_slots((84, 745, 120, 36, 15)),
}


def genres(dice: Dice, film: Ints) -> pa.Array:
    """Return CSV fields with the genres of films."""
    return _drawn(dice, "genres", film, _genres())


def companies(dice: Dice, film: Ints) -> pa.Array:
    """Return CSV fields with the companies that made films."""
    return _drawn(dice, "companies", film, _companies())


def languages(dice: Dice, film: Ints) -> pa.Array:
    """Return CSV fields with the languages spoken in films."""
    return _drawn(dice, "languages", film, _languages())


def countries(dice: Dice, film: Ints) -> pa.Array:
    """Return CSV fields with countries.

    Argentina and Spain are set for the films that rule 2 of films.py selects.
    """
    literals, slots = _countries()
    kept = films.argentine(film)
    counts = dice.weighted("countries/count", film, _LIST_SLOTS["countries"])
    counts = np.where(kept, 1 + films.with_spain(film), counts)
    row, place = spread(counts)
    drawn = dice.weighted("countries", film[row] * _MOST_ENTRIES + place, slots)
    wanted = np.where(place == 0, places.ARGENTINA, places.SPAIN)
    chosen, counts = distinct(row, np.where(kept[row], wanted, drawn), len(film))
    return text.listed_field(text.take(literals, chosen), counts)


def _drawn(dice: Dice, label: str, film: Ints, entries: Entries) -> pa.Array:
    """Return lists of literals, short or empty, with entries drawn by weight."""
    literals, slots = entries
    row, place = spread(dice.weighted(f"{label}/count", film, _LIST_SLOTS[label]))
    drawn = dice.weighted(label, film[row] * _MOST_ENTRIES + place, slots)
    chosen, counts = distinct(row, drawn, len(film))
    return text.listed_field(text.take(literals, chosen), counts)


def _entries(literals: Iterable[str], weights: list[int]) -> Entries:
    return text.doubled(text.pool(literals)), weighted_slots(weights)


@cache
def _genres() -> Entries:
    literals = (f"{{'id': {number}, 'name': {literal(name)}}}" for number, name, _ in places.GENRES)
    return _entries(literals, [weight for _, _, weight in places.GENRES])


@cache
def _countries() -> Entries:
    literals = (
        f"{{'iso_3166_1': {literal(code)}, 'name': {literal(name)}}}"
        for code, name, _ in places.COUNTRIES
    )
    return _entries(literals, [weight for _, _, weight in places.COUNTRIES])


@cache
def _languages() -> Entries:
    literals = (
        f"{{'iso_639_1': {literal(code)}, 'name': {literal(name)}}}"
        for code, name, _ in places.LANGUAGES
    )
    return _entries(literals, [weight for _, _, weight in places.LANGUAGES])


@cache
def _companies() -> Entries:
    """Return companies named after people, in order of size."""
    endings = cycle(COMPANY_ENDINGS)
    strings = [f"{family_name(name)} {next(endings)}" for name in names()[:_COMPANIES]]
    literals = (f"{{'name': {name}, 'id': {i}}}" for i, name in enumerate(spellings(strings), 3))
    return _entries(literals, [10**6 // (i + 20) for i in range(_COMPANIES)])
