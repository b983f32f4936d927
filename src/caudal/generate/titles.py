"""Titles of books and films.

The title of a book is a number in mixed radix: pattern, adjective, noun and place are its digits,
and the overflow is a volume number. So titles are unique at every scale, and a review can compute
the title of its book without a lookup.
"""

from functools import cache

import numpy as np
import pyarrow as pa

from caudal.generate import text
from caudal.generate.dice import Dice, Ints
from caudal.generate.popularity import Shuffle
from caudal.generate.words import ADJECTIVES, NOUNS, PLACES

BOOK_PATTERNS = (
    ("The ", " ", " of ", ""),
    ("", " ", " in ", ""),
    ("The ", " ", " from ", ""),
    ("Our ", " ", " in ", ": A Novel"),
    ("", " ", ", or the Road to ", ""),
    ("Beyond the ", " ", " of ", ""),
    ("The ", " ", " & Other Stories of ", ""),
    ("My ", " ", ": Letters from ", ""),
    ("Every ", " ", " Goes to ", " (Paperback)"),
    ("Before the ", " ", ": Essays on ", ""),
    ("That ", " ", ": A Life in ", ", Second Edition"),
    ("", " ", "'s Guide to ", ""),
    ("The ", " ", " Papers of ", ""),
    ("No ", " ", " for ", "!"),
    ("¿", " ", "? A Childhood in ", ""),
    ("One ", " ", " at a Time: ", " Remembered"),
)
DISTRIBUTED_PREFIXES = (
    "Distributed Systems: ",
    "Introduction to distributed Computing: ",
    "DISTRIBUTED DATABASES: ",
    "Fault-Tolerant Distributed Algorithms: ",
    "Parallel and distributed programming, or ",
)
SERIES_SUFFIXES = (
    ' ("Lost Lamp" Series, Book 2)',
    ' ("The Harbor Road", No. 7)',
    ': The "Unabridged" Edition',
)
FILM_PATTERNS = (
    ("The ", " ", ""),
    ("", " ", ""),
    ("", "", ""),
    ("The ", "", " of "),
    ("", "", " in "),
    ("The ", "", ""),
)
_RADIXES = (len(BOOK_PATTERNS), len(ADJECTIVES), len(NOUNS), len(PLACES))
_TITLES = int(np.prod(_RADIXES))
_VOLUMES = 1_000


def book_titles(dice: Dice, book: Ints) -> pa.Array:
    """Return the title of every book. Titles of different books differ."""
    start = int(dice.below("title/start", np.zeros(1, dtype=np.int64), _TITLES)[0])
    volume, number = np.divmod(book, _TITLES)
    number = Shuffle(_TITLES).forward((number + start) % _TITLES)
    pattern, adjective, noun, place = np.unravel_index(number, _RADIXES)
    before, between, after, end = (text.take(part, pattern) for part in _book_parts())
    words = _words()
    return text.concat(
        before,
        text.take(words[0], adjective),
        between,
        text.take(words[1], noun),
        after,
        text.take(words[2], place),
        end,
        text.take(_volumes(), np.minimum(volume, _VOLUMES - 1)),
    )


def distributed_prefixes(book: Ints) -> pa.Array:
    """Return title prefixes about distributed topics, in upper, lower or mixed case."""
    return text.take(text.pool(DISTRIBUTED_PREFIXES), book // 250 % len(DISTRIBUTED_PREFIXES))


def series_suffixes(book: Ints) -> pa.Array:
    """Return title suffixes that name a series in quotes."""
    return text.take(text.pool(SERIES_SUFFIXES), book // 128 % len(SERIES_SUFFIXES))


def film_titles(dice: Dice, film: Ints) -> pa.Array:
    """Return the title of every film. Several films may have the same title."""
    pattern = dice.below("film/pattern", film, len(FILM_PATTERNS))
    before, between, after = (text.take(part, pattern) for part in _film_parts())
    words = _words()
    adjective = text.take(words[0], dice.below("film/adjective", film, len(ADJECTIVES)))
    noun = text.take(words[1], dice.below("film/noun", film, len(NOUNS)))
    place = text.take(words[2], dice.below("film/place", film, len(PLACES)))
    return text.concat(
        before,
        text.blank(adjective, pattern > 1),
        between,
        noun,
        after,
        text.blank(place, (pattern < 3) | (pattern == 5)),
    )


@cache
def _words() -> tuple[pa.Array, ...]:
    return text.pool(ADJECTIVES), text.pool(NOUNS), text.pool(PLACES)


@cache
def _book_parts() -> tuple[pa.Array, ...]:
    return tuple(text.pool(part) for part in zip(*BOOK_PATTERNS, strict=True))


@cache
def _film_parts() -> tuple[pa.Array, ...]:
    return tuple(text.pool(part) for part in zip(*FILM_PATTERNS, strict=True))


@cache
def _volumes() -> pa.Array:
    return text.pool(["", *(f" (Volume {i})" for i in range(2, _VOLUMES + 1))])
