"""The properties of a book that both files share: title, category, year, fame and quality.

These rules make sure that the shipped queries have results from a few thousand books on:

1. The number of reviews depends on fame (see popularity). Famous titles have no missing field.
   Exactly every second one is Fiction. The first sixteen, and a third of the others, are from the
   1990s.
2. One book in 250 has a title about distributed topics. Every second one of these is in Computers,
   from 2000 on.
3. One book in fifty is by a perennial author. The books of such an author go through the decades
   in turn.
"""

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from caudal.generate import text, titles
from caudal.generate.dice import Dice, Ints, Mask, weighted_slots
from caudal.generate.popularity import Popularity, Shuffle, Stratum

BOOKS = 212_404
REVIEWS = 3_000_000
QUALITIES = 16
FAME = (
    Stratum(titles=5, draws=3_000),
    Stratum(titles=150, draws=9_000),
    Stratum(titles=400, draws=15_000),
    Stratum(titles=2_000, draws=16_000),
    Stratum(titles=7_000, draws=17_000),
    Stratum(titles=20_000, draws=18_000),
    Stratum(titles=30_000, draws=13_000),
    Stratum(titles=20_000, draws=6_000),
    Stratum(titles=20_445, draws=3_000),
)
_FAMOUS_STRATA = 3
CATEGORIES = (
    ("Fiction", 215),
    ("Juvenile Fiction", 62),
    ("Religion", 88),
    ("History", 86),
    ("Biography & Autobiography", 60),
    ("Business & Economics", 53),
    ("Computers", 40),
    ("Social Science", 36),
    ("Juvenile Nonfiction", 33),
    ("Science", 30),
    ("Education", 26),
    ("Cooking", 25),
    ("Sports & Recreation", 21),
    ("Family & Relationships", 20),
    ("Literary Criticism", 20),
    ("Art", 19),
    ("Medical", 19),
    ("Philosophy", 18),
    ("Music", 17),
    ("Travel", 16),
    ("Political Science", 15),
    ("Poetry", 14),
    ("Children's stories", 9),
    ("Authors, American", 6),
    ('Novels, "Gothic"', 2),
    ("Fiction in French", 2),
    ("Café & Société", 1),
)
FICTION, COMPUTERS = 0, 6
_CATEGORY_SLOTS = weighted_slots([weight for _, weight in CATEGORIES])
_YEARS = [*range(1900, 2022)]
_YEAR_SLOTS = weighted_slots(
    [3 if y < 1950 else 3 + (y - 1950) // 2 for y in _YEARS[:106]] + [24] * 16
)
_PERENNIAL_SPACING = 50
_DECADES = 14


@dataclass(frozen=True)
class Catalogue:
    """All books of one run, and the distribution of their reviews."""

    dice: Dice
    books: int
    reviews: int

    @property
    def fame(self) -> Popularity:
        """The distribution of the reviews over the books."""
        return Popularity(self.books, self.reviews, FAME)

    def by_rank(self, rank: Ints) -> Ints:
        """Return the book of each rank of fame."""
        return Shuffle(self.books).forward(rank)

    def ranks(self, book: Ints) -> Ints:
        """Return the rank of fame of each book."""
        return Shuffle(self.books).inverse(book)

    def famous(self, book: Ints) -> Mask:
        """Return whether a book has about five hundred reviews or more."""
        return self.ranks(book) < self.fame.famous(_FAMOUS_STRATA)

    def perennial(self, book: Ints) -> Mask:
        """Return whether rule 3 gives a book to a perennial author."""
        return np.equal(book % _PERENNIAL_SPACING, 3) & ~self.famous(book)

    @property
    def perennials(self) -> int:
        """The number of perennial authors. Each has enough books to cover all decades."""
        return min(40, max(1, self.books // (_PERENNIAL_SPACING * _DECADES)))

    def titles(self, book: Ints) -> pa.Array:
        """Return titles. A prefix or suffix keeps them unique."""
        title = titles.book_titles(self.dice, book)
        about = text.blank(titles.distributed_prefixes(book), book % 250 != 7)
        series = text.blank(titles.series_suffixes(book), book % 128 != 5)
        return text.concat(about, title, series)

    def categories(self, book: Ints) -> Ints:
        """Return positions in CATEGORIES."""
        drawn = self.dice.weighted("category", book, _CATEGORY_SLOTS)
        drawn = np.where(distributed_computing(book), COMPUTERS, drawn)
        famous = np.where(self.ranks(book) % 2 == 0, FICTION, np.maximum(drawn, FICTION + 1))
        return np.where(self.famous(book), famous, drawn)

    def years(self, book: Ints) -> Ints:
        """Return years of publication."""
        drawn = np.array(_YEARS)[self.dice.weighted("published", book, _YEAR_SLOTS)]
        recent = 2000 + self.dice.below("published/recent", book, 22)
        drawn = np.where(distributed_computing(book), recent, drawn)
        turn = book // _PERENNIAL_SPACING // self.perennials % _DECADES
        drawn = np.where(self.perennial(book), 1880 + 10 * turn + book % 10, drawn)
        rank = self.ranks(book)
        nineties = self.famous(book) & ((rank < 16) | (rank % 9 < 3))
        return np.where(nineties, 1990 + self.dice.below("nineties", book, 10), drawn)

    def qualities(self, book: Ints) -> Ints:
        """Return the quality of books, from 0 to QUALITIES - 1.

        Scores and reviews depend on it.
        """
        return self.dice.below("book/quality", book, QUALITIES)

    def kept(self, book: Ints) -> Mask:
        """Return whether all fields of a book are present."""
        return self.famous(book) | self.perennial(book) | distributed_computing(book)


def distributed_computing(book: Ints) -> Mask:
    """Return whether rule 2 puts a book in Computers."""
    return np.equal(book % 500, 7)
