"""What the jobs of a run ask: shipped applications, a little one, random ones, and bad ones."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from random import Random
from typing import Any

from caudal.application import find_application
from caudal.model import Application, Query, Table
from tests.simulation.cutting import cut
from tests.simulation.random_applications import BLOCK, random_application
from tests.simulation.remembering import DEADLY, ENDLESS, STRANGE, Asked, Tables

_TABLES = (
    Table(
        "t",
        ("t.csv",),
        ("k", "v"),
        "SELECT k, to_integer(v) AS v, CASE WHEN to_integer(v) IS NULL THEN 'v is no number' END "
        "AS reject FROM raw",
        "t.sql",
    ),
    Table("u", ("u.csv",), ("k", "w"), "SELECT k, to_integer(w) AS w FROM raw", "u.sql"),
)
_QUERIES = {
    "some": "SELECT k, v FROM t WHERE v % 3 = 0 ORDER BY k, v",
    "sums": "SELECT k, sum(v) AS total, count(*) AS n FROM t GROUP BY k ORDER BY k",
    "joined": "SELECT t.k, sum(v * w) AS total FROM t JOIN u ON t.k = u.k GROUP BY t.k ORDER BY 1",
    "best": "SELECT k, w FROM u ORDER BY w DESC, k LIMIT 3",
    "few": "SELECT k, count(*) AS n FROM t WHERE v < $below GROUP BY k ORDER BY k",
    "constant": "SELECT 42 AS answer",
}
_CHOSEN: tuple[tuple[str, ...], ...] = (  # few, since every set is planned and computed apart
    (),
    ("some", "constant"),
    ("sums", "joined"),
)


def _little(name: str, queries: Mapping[str, str], **parameters: Any) -> Application:
    texts = tuple(Query(one, one, sql, f"{one}.sql") for one, sql in queries.items())
    return Application(name, "Two tables", Path(), _TABLES, texts, parameters)


LITTLE = _little("little", _QUERIES, below=20)
POISON = _little(
    "poison",
    {
        "bad": "SELECT CAST(k AS INTEGER) AS n FROM t ORDER BY n",
        "worse": "SELECT k, CAST(CASE WHEN sum(w) > 4 THEN k ELSE '1' END AS INTEGER) AS n FROM u "
        "GROUP BY k ORDER BY k",
        "some": _QUERIES["some"],
    },
)
KILLER = _little("killer", {DEADLY: _QUERIES["sums"], "some": _QUERIES["some"]})
ODD = _little("odd", {STRANGE: _QUERIES["sums"], "some": _QUERIES["some"]})
HOLDER = _little("holder", {ENDLESS: _QUERIES["sums"], "some": _QUERIES["some"]})
SHIPPED = {
    "books": ("top_decile_ties", "books_and_reviews_apart", "empty_tables", "damaged_records"),
    "movies": ("rating_ties", "actor_ties_and_crew", "empty_tables", "damaged_records"),
}


@cache
def little_data(variant: int, batch_bytes: int) -> Tables:
    """Random rows, the same for the same variant."""
    chance = Random(variant)
    t = [f"{chance.choice('abcdefg')},{chance.randrange(50)}" for _ in range(6 + 9 * variant)]
    if variant % 2:
        t.insert(3, "a,none")
    u = [f"{chance.choice('abcdefg')},{chance.randrange(9)}" for _ in range(4 * variant)]
    return {
        "t": cut("t", "\n".join(["k,v", *t]) + "\n", batch_bytes),
        "u": cut("u", "\n".join(["k,w", *u]) + "\n", batch_bytes) if variant else (),
    }


shipped = cache(find_application)


@cache
def case_data(app: str, case: str, batch_bytes: int) -> Tables:
    found = shipped(app)
    folder = found.folder / "cases" / case
    return {
        table.name: cut(table.name, (folder / table.files[0]).read_text("utf-8"), batch_bytes)
        for table in found.tables
    }


@dataclass(frozen=True)
class Choice:
    """What a job asks, with another version of its data."""

    asked: Asked
    other: Tables
    partitions: int = 3
    fails: bool = False  # the whole job; a query that fails takes no other with it


def choose(chance: Random, seed: int) -> Choice:
    """What one job of a run asks."""
    kind = chance.random()
    if kind < 0.12:
        name = chance.choice(sorted(SHIPPED))
        one, other = (case_data(name, case, 500) for case in chance.sample(SHIPPED[name], 2))
        return Choice(Asked(shipped(name), one), other)
    if kind < 0.16:
        return Choice(Asked(POISON, little_data(1, 30)), little_data(2, 30))
    if kind < 0.21:
        app = chance.choice((KILLER, ODD, HOLDER))
        return Choice(Asked(app, little_data(1, 40)), little_data(2, 40), fails=app is ODD)
    if kind < 0.55:
        made = random_application(seed // BLOCK)
        return Choice(made.asked, made.other, made.partitions)
    size, partitions, below = chance.choice(((15, 3, 10), (40, 1, 20)))
    one, other = (little_data(variant, size) for variant in chance.sample(range(4), 2))
    asked = Asked(LITTLE, one, {"below": below}, chance.choice(_CHOSEN))
    return Choice(asked, other, partitions)
