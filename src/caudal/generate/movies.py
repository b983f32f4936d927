"""The file movies_metadata.csv."""

from functools import cache
from itertools import cycle

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from caudal.generate import dates, film_lists, films, places, text, tokens
from caudal.generate.dice import Dice, Ints, weighted_slots
from caudal.generate.listing import words
from caudal.generate.literals import spellings
from caudal.generate.people import family_name, names
from caudal.generate.plot_phrases import plot_prose, taglines
from caudal.generate.prose import Tone
from caudal.generate.sheet import Sheet, keep_first, keep_last, set_field
from caudal.generate.titles import film_titles
from caudal.generate.words import ADJECTIVES

HEADER = words(
    """
    adult belongs_to_collection budget genres homepage id imdb_id original_language original_title
    overview popularity poster_path production_companies production_countries release_date revenue
    runtime spoken_languages status tagline title video vote_average vote_count
    """
)
FAULTS = (
    keep_first(10),
    keep_last(15),
    set_field(HEADER.index("id"), "1991-03-14"),
    set_field(HEADER.index("budget"), "/kT0mQw7rYbHs2LxVn9cGdPz4fUa.jpg"),
    set_field(HEADER.index("title"), ""),
    set_field(HEADER.index("release_date"), "1"),
    set_field(HEADER.index("revenue"), ""),
)


def movies_sheet(dice: Dice, rows: int) -> Sheet:
    """Describe movies_metadata.csv with this many records."""
    return Sheet(
        name="movies_metadata.csv",
        header=HEADER,
        rows=rows,
        chunk_rows=4_096,
        columns=lambda row: _columns(dice, row),
        faults=FAULTS,
    )


def _columns(dice: Dice, row: Ints) -> list[pa.Array]:
    film = films.films_of_rows(row)
    kept = films.argentine(film)
    title = text.field(film_titles(dice, film))
    budget, revenue = _money(dice, film)
    fields = {
        "adult": text.either(dice.one_in("adult", film, 5_000), "True", "False"),
        "belongs_to_collection": _collections(dice, film),
        "budget": text.digits(budget),
        "genres": film_lists.genres(dice, film),
        "homepage": _homepages(dice, film),
        "id": text.digits(films.film_ids(dice, film)),
        "imdb_id": text.concat("tt", _padded(dice, "imdb", film, 10_000_000, 7)),
        "original_language": _original_languages(dice, film),
        "original_title": title,
        "overview": text.blank(
            _overviews(dice, film), dice.percent("no overview", film, 2) & ~kept
        ),
        "popularity": _popularities(dice, row),
        "poster_path": text.blank(
            tokens.image_paths(dice, "poster", film), dice.one_in("no poster", film, 120)
        ),
        "production_companies": film_lists.companies(dice, film),
        "production_countries": film_lists.countries(dice, film),
        "release_date": text.blank(
            dates.days(dice, "release", film, films.years(dice, film)),
            dice.one_in("no release", film, 520) & ~kept,
        ),
        "revenue": text.digits(revenue),
        "runtime": _runtimes(dice, film),
        "spoken_languages": film_lists.languages(dice, film),
        "status": text.take(
            text.pool(("Released", "Rumored", "Post Production", "")),
            dice.weighted("status", film, weighted_slots((990, 5, 3, 2))),
        ),
        "tagline": text.blank(
            text.take(taglines(), dice.below("tagline", film, len(taglines()))),
            dice.percent("no tagline", film, 55),
        ),
        "title": title,
        "video": text.either(dice.one_in("video", film, 490), "True", "False"),
        "vote_average": _tenths(dice, film),
        "vote_count": text.digits(dice.skewed("votes", film, 600)),
    }
    return [fields[name] for name in HEADER]


def _collections(dice: Dice, film: Ints) -> pa.Array:
    pool = _collection_names()
    number = dice.below("collection", film, len(pool))
    column = text.concat(
        "{'id': ",
        text.digits(number + 10_000),
        ", 'name': ",
        text.take(pool, number),
        ", 'poster_path': '",
        tokens.image_paths(dice, "collection/poster", number),
        "', 'backdrop_path': '",
        tokens.image_paths(dice, "collection/backdrop", number),
        "'}",
    )
    return text.field(text.blank(column, ~dice.percent("in collection", film, 10)))


def _money(dice: Dice, film: Ints) -> tuple[Ints, Ints]:
    """Return budget and revenue.

    Most are unknown, which is written as zero; good films earn more.
    """
    budget = (1 + dice.skewed("budget", film, 300)) * 250_000
    factor = 1 + dice.below("factor", film, 8 + 2 * films.qualities(dice, film))
    revenue = budget * factor // 6 + dice.below("cents", film, 99_991)
    unknown_budget = dice.percent("no budget", film, 80)
    unknown_revenue = dice.percent("no revenue", film, 32) | (
        unknown_budget & dice.percent("no money", film, 85)
    )
    return np.where(unknown_budget, 0, budget), np.where(unknown_revenue, 0, revenue)


def _overviews(dice: Dice, film: Ints) -> pa.Array:
    quality = films.qualities(dice, film)
    tone = Tone(sad=132 - 8 * quality, glad=12 + 8 * quality)
    sentences = 2 + dice.skewed("overview/length", film, 11)
    return plot_prose().fields(dice, "overview", film, sentences, tone)


def _homepages(dice: Dice, film: Ints) -> pa.Array:
    column = text.concat("http://www.film", text.digits(film % 9_973), ".example/home")
    return text.blank(column, ~dice.percent("homepage", film, 17))


def _original_languages(dice: Dice, film: Ints) -> pa.Array:
    codes = text.pool(code for code, _, _ in places.LANGUAGES)
    slots = weighted_slots([weight for _, _, weight in places.LANGUAGES])
    return text.take(codes, dice.weighted("original language", film, slots))


def _popularities(dice: Dice, row: Ints) -> pa.Array:
    whole = text.digits(dice.skewed("popularity", row, 30))
    return text.concat(whole, ".", _padded(dice, "popularity/fraction", row, 1_000_000, 6))


def _padded(dice: Dice, label: str, index: Ints, bound: int, width: int) -> pa.Array:
    drawn = text.digits(dice.below(label, index, bound) + 10**width)
    return pc.utf8_slice_codeunits(drawn, 1)


def _runtimes(dice: Dice, film: Ints) -> pa.Array:
    minutes = 60 + dice.below("runtime", film, 50) + dice.below("runtime/more", film, 40)
    minutes = np.where(dice.percent("no runtime", film, 4), 0, minutes)
    return text.blank(text.concat(text.digits(minutes), ".0"), dice.one_in("blank", film, 180))


def _tenths(dice: Dice, film: Ints) -> pa.Array:
    tenths = 35 + 2 * films.qualities(dice, film) + dice.below("average", film, 21)
    return text.take(text.pool(f"{n // 10}.{n % 10}" for n in range(101)), tenths)


@cache
def _collection_names() -> pa.Array:
    families = map(family_name, names()[:1_000])
    adjectives = cycle(ADJECTIVES)
    return text.pool(spellings([f"{next(adjectives)} {family} Collection" for family in families]))
