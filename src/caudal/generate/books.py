"""The file books_data.csv."""

from functools import cache

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from caudal.generate import dates, text, tokens, volumes
from caudal.generate.dice import Dice, Ints, weighted_slots
from caudal.generate.listing import words
from caudal.generate.literals import literal
from caudal.generate.people import NAMES, family_name, name_literals, names
from caudal.generate.plot_phrases import plot_prose
from caudal.generate.prose import Tone
from caudal.generate.ragged import spread
from caudal.generate.sheet import Sheet, keep_first, keep_last, set_field
from caudal.generate.volumes import Catalogue
from caudal.generate.words import PUBLISHER_ENDINGS

HEADER = words(
    """
    Title description authors image previewLink publisher publishedDate infoLink categories
    ratingsCount
    """
)
FAULTS = (
    keep_first(2),
    set_field(HEADER.index("Title"), ""),
    keep_last(8),
    set_field(HEADER.index("publishedDate"), "19??"),
    set_field(HEADER.index("publishedDate"), "101-01-01"),
)
_AUTHOR_SLOTS = weighted_slots((0, 800, 130, 50, 15, 5))
_SENTENCES = weighted_slots([0, *(50 - 2 * n for n in range(1, 24))])
_PUBLISHERS = 2_500
_GOOGLE = "http://books.google.com/books"


def books_sheet(catalogue: Catalogue) -> Sheet:
    """Describe books_data.csv for this catalogue."""
    return Sheet(
        name="books_data.csv",
        header=HEADER,
        rows=catalogue.books,
        chunk_rows=4_096,
        columns=lambda book: _columns(catalogue, book),
        faults=FAULTS,
    )


def _columns(catalogue: Catalogue, book: Ints) -> list[pa.Array]:
    dice, kept = catalogue.dice, catalogue.kept(book)
    title = catalogue.titles(book)
    preview, info, image = _links(dice, book, title)
    fields = {
        "Title": text.field(title),
        "description": _descriptions(catalogue, book),
        "authors": text.blank(
            _authors(catalogue, book), dice.percent("no author", book, 15) & ~kept
        ),
        "image": image,
        "previewLink": preview,
        "publisher": text.blank(
            text.take(_publishers(), dice.skewed("publisher", book, _PUBLISHERS)),
            dice.percent("no publisher", book, 35),
        ),
        "publishedDate": _published(catalogue, book),
        "infoLink": info,
        "categories": text.blank(
            text.take(_categories(), catalogue.categories(book)),
            dice.percent("no category", book, 19) & ~kept,
        ),
        "ratingsCount": text.blank(
            text.concat(text.digits(1 + dice.skewed("count", book, 60)), ".0"),
            dice.percent("no count", book, 76),
        ),
    }
    return [fields[name] for name in HEADER]


def _descriptions(catalogue: Catalogue, book: Ints) -> pa.Array:
    dice = catalogue.dice
    quality = catalogue.qualities(book)
    sentences = dice.weighted("description/length", book, _SENTENCES)
    sentences[dice.percent("no description", book, 32)] = 0
    tone = Tone(sad=70 - 2 * quality, glad=60 + 4 * quality)
    return plot_prose().fields(dice, "description", book, sentences, tone)


def _authors(catalogue: Catalogue, book: Ints) -> pa.Array:
    """Return lists of authors. Perennial authors are the last names of the pool."""
    dice = catalogue.dice
    counts = dice.weighted("authors/count", book, _AUTHOR_SLOTS)
    row, place = spread(counts)
    author = dice.skewed("author", book[row] * 8 + place, NAMES - 100)
    perennial = NAMES - 1 - book // 50 % catalogue.perennials
    first = (place == 0) & catalogue.perennial(book)[row]
    author = np.where(first, perennial[row], author)
    return text.field(text.listed(text.take(name_literals(), author), counts))


def _published(catalogue: Catalogue, book: Ints) -> pa.Array:
    """Return publication dates. A book without missing fields has a complete date."""
    dice, kept = catalogue.dice, catalogue.kept(book)
    year = catalogue.years(book)
    loose = dates.loose_dates(dice, "published", book, year)
    loose = text.blank(loose, dice.percent("no date", book, 11))
    return text.either(kept, dates.days(dice, "published", book, year), loose)


def _links(dice: Dice, book: Ints, title: pa.Array) -> tuple[pa.Array, pa.Array, pa.Array]:
    """Return links to preview, information and cover with the same volume id, or blanks."""
    volume = tokens.volume_ids(dice, "volume", book)
    query = text.concat(_GOOGLE, "?id=", volume, "&dq=", pc.replace_substring(title, " ", "+"))
    missing = dice.percent("no link", book, 11)
    preview = text.field(text.concat(query, "&hl=&cd=1&source=gbs_api"))
    info = text.field(text.concat(query, "&hl=&source=gbs_api"))
    image = text.concat(
        _GOOGLE,
        "/content?id=",
        volume,
        "&printsec=frontcover&img=1&zoom=1",
        text.either(dice.percent("curl", book, 50), "&edge=curl", ""),
        "&source=gbs_api",
    )
    no_image = missing | dice.percent("no image", book, 15)
    return text.blank(preview, missing), text.blank(info, missing), text.blank(image, no_image)


@cache
def _categories() -> pa.Array:
    return text.field(text.pool(f"[{literal(name)}]" for name, _ in volumes.CATEGORIES))


@cache
def _publishers() -> pa.Array:
    endings = len(PUBLISHER_ENDINGS)
    people = enumerate(names()[:_PUBLISHERS])
    return text.field(
        text.pool(f"{family_name(name)} {PUBLISHER_ENDINGS[i % endings]}" for i, name in people)
    )
