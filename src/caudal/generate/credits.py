"""The file credits.csv."""

from functools import cache

import numpy as np
import pyarrow as pa

from caudal.generate import films, people, text, tokens
from caudal.generate.dice import Dice, Ints, weighted_slots
from caudal.generate.literals import literal, spellings
from caudal.generate.ragged import spread
from caudal.generate.sheet import Sheet, keep_first, set_field

HEADER = ("cast", "crew", "id")
FAULTS = (keep_first(2), set_field(2, "1991-03-14"), keep_first(1), set_field(2, ""))
MOST_ENTRIES = 128
_CAST_SLOTS = weighted_slots(
    [350, *(10**4 // (12 + abs(n - 7) ** 2) for n in range(1, 40)), *[6] * 40]
)
_CREW_SLOTS = weighted_slots([400, *(10**4 // (n + 3) for n in range(1, 40)), *[20] * 20])
_JOBS = (
    ("Directing", "Director", 10),
    ("Writing", "Screenplay", 7),
    ("Writing", "Writer", 8),
    ("Production", "Producer", 12),
    ("Production", "Executive Producer", 6),
    ("Sound", "Original Music Composer", 5),
    ("Camera", "Director of Photography", 6),
    ("Editing", "Editor", 7),
    ("Art", "Production Design", 4),
    ("Costume & Make-Up", "Costume Design", 4),
    ("Crew", "Stunts", 2),
    ("Visual Effects", "Visual Effects Supervisor", 2),
    ("Writing", "Author's Consultant", 1),
)


def credits_sheet(dice: Dice, rows: int) -> Sheet:
    """Describe credits.csv with this many records."""
    return Sheet(
        name="credits.csv",
        header=HEADER,
        rows=rows,
        chunk_rows=1_024,
        columns=lambda row: _columns(dice, row),
        faults=FAULTS,
    )


def _columns(dice: Dice, row: Ints) -> list[pa.Array]:
    film = films.films_of_rows(row)
    return [
        _cast(dice, film),
        _crew(dice, film),
        text.digits(films.film_ids(dice, film)),
    ]


def _cast(dice: Dice, film: Ints) -> pa.Array:
    counts = dice.weighted("cast/count", film, _CAST_SLOTS)
    counts = np.where(films.argentine(film), np.maximum(counts, 5), counts)
    row, order = spread(counts)
    of_film = film[row]
    number = of_film * MOST_ENTRIES + order
    person = _actors(dice, of_film, number)
    entries = text.concat(
        "{'cast_id': ",
        text.digits(order + 1 + dice.below("cast/gap", number, 4)),
        ", 'character': ",
        text.take(_characters(), dice.below("character", number, len(_characters()))),
        ", 'credit_id': '",
        tokens.credit_ids(dice, "cast/credit", number),
        "', 'gender': ",
        text.digits(dice.below("gender", person, 3)),
        ", 'id': ",
        text.digits(person + 31),
        ", 'name': ",
        text.take(_names(), person),
        ", 'order': ",
        text.digits(order),
        ", 'profile_path': ",
        _profiles(dice, person),
        "}",
    )
    return text.listed_field(entries, counts)


def _crew(dice: Dice, film: Ints) -> pa.Array:
    counts = dice.weighted("crew/count", film, _CREW_SLOTS)
    row, order = spread(counts)
    of_film = film[row]
    number = of_film * MOST_ENTRIES + order
    person = dice.skewed("crew/person", number, people.NAMES)
    jobs, slots = _job_literals()
    job = np.where(order == 0, 0, dice.weighted("crew/job", number, slots))
    departments, titles = (text.take(part, job) for part in jobs)
    entries = text.concat(
        "{'credit_id': '",
        tokens.credit_ids(dice, "crew/credit", number),
        "', 'department': ",
        departments,
        ", 'gender': ",
        text.digits(dice.below("gender", person, 3)),
        ", 'id': ",
        text.digits(person + 31),
        ", 'job': ",
        titles,
        ", 'name': ",
        text.take(_names(), person),
        ", 'profile_path': ",
        _profiles(dice, person),
        "}",
    )
    return text.listed_field(entries, counts)


def _actors(dice: Dice, film: Ints, number: Ints) -> Ints:
    """Return actors: any person, but in Argentine films mostly the same few.

    So some actors lead the count.
    """
    anyone = dice.skewed("actor", number, people.NAMES)
    regular = people.NAMES - 1 - dice.skewed("actor/regular", number, people.REGULARS)
    return np.where(films.argentine(film) & dice.percent("regular", number, 60), regular, anyone)


def _profiles(dice: Dice, person: Ints) -> pa.Array:
    path = text.concat("'", tokens.image_paths(dice, "profile", person), "'")
    return text.either(dice.percent("no profile", person, 35), "None", path)


@cache
def _names() -> pa.Array:
    return text.doubled(people.name_literals())


@cache
def _characters() -> pa.Array:
    """Return parts as literals: a name, a trade, a note in brackets, or blank."""
    parts = (_part(name, i * 7 % 41 % 6) for i, name in enumerate(people.names()[:4_000]))
    return text.doubled(text.pool(spellings(list(parts))))


def _part(name: str, shape: int) -> str:
    given, family = name.split()[0], people.family_name(name)
    shapes = (
        name,
        given,
        f"{given} (voice)",
        f"Dr. {family}",
        "",
        f'Himself / {given}\'s "Friend"',
    )
    return shapes[shape]


@cache
def _job_literals() -> tuple[tuple[pa.Array, pa.Array], Ints]:
    departments = text.pool(literal(department) for department, _, _ in _JOBS)
    titles = text.doubled(text.pool(literal(title) for _, title, _ in _JOBS))
    return (departments, titles), weighted_slots([weight for _, _, weight in _JOBS])
