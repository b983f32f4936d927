"""Small random applications: tables and queries as the planner's fuzz tests draw them.

Making one, planning it and computing its tasks costs more than a run. So the seeds of a block share
one application, with its data, batches and partitions, and each draws everything else by itself.
"""

import io
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from random import Random
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.csv as pa_csv

from caudal.errors import CaudalError
from caudal.model import Application, Query, Table
from tests.fuzz.queries import Generator
from tests.fuzz.tables import SCHEMAS, Maker
from tests.simulation.cutting import cut
from tests.simulation.remembering import Asked, Tables

BLOCK = 50  # seeds that share an application
_WANTED = 2  # queries, besides those with parameters and without tables
_MOST_BATCHES = 9
_TRIES = 12
_LIMITED = (
    "SELECT shop, count(*) AS n, sum(item) AS items FROM sales WHERE rid >= $least "
    "GROUP BY shop ORDER BY shop NULLS FIRST"
)
_CONSTANT = "SELECT 42 AS answer"
_FAILS = "CAST(CASE WHEN {when} THEN 'none' ELSE '1' END AS INTEGER) AS i"
# In a scan, a fold, a finish; whether it fails depends on the data.
_FAILING = (
    f"SELECT rid, {_FAILS.format(when='rid % 7 = {n}')} FROM sales ORDER BY rid",
    f"SELECT shop, {_FAILS.format(when='count(*) > {n}')} FROM sales GROUP BY shop "
    "ORDER BY shop NULLS FIRST",
    f"SELECT {_FAILS.format(when='count(*) > {n}')} FROM sales",
)
_FITTING = {"UHUGEINT": "HUGEINT"}  # DuckDB gives Arrow no number beyond 2^127


@dataclass(frozen=True)
class RandomApplication:
    """An application with its data, another version of them, and the partitions of its folds."""

    asked: Asked
    other: Tables
    partitions: int


@lru_cache(maxsize=4)
def random_application(number: int) -> RandomApplication:
    """The application of that number: everything about it follows from the number."""
    chance = Random(f"application {number}")
    maker = Maker()
    try:
        versions = [_batches(maker.tables(chance), chance) for _ in range(2)]
    finally:
        maker.close()
    queries, unordered = _queries(chance, versions)
    queries |= _failing(Random(f"failing {number}"))
    parameters: dict[str, Any] = {"least": chance.randrange(6)} if "limited" in queries else {}
    app = _application(f"random{number}", queries)
    asked = Asked(app, versions[0], parameters, unordered=unordered, exact=False)
    return RandomApplication(asked, versions[1], chance.choice((1, 2, 5)))


def _failing(chance: Random) -> dict[str, str]:
    """One more query, which may fail; all others are to be answered."""
    if chance.random() < 0.3:
        return {}
    return {"failing": chance.choice(_FAILING).format(n=chance.choice((0, 1, 3)))}


def _application(name: str, queries: dict[str, str]) -> Application:
    texts = tuple(Query(one, one, sql, f"{one}.sql") for one, sql in queries.items())
    defaults = {"least": 0} if "limited" in queries else {}
    return Application(name, "Random", Path(), tuple(map(_table, SCHEMAS)), texts, defaults)


def _table(name: str) -> Table:
    """Rows whose `rid` is no number are rejected."""
    columns = {one: _FITTING.get(kind, kind) for one, kind in SCHEMAS[name].items()}
    listed = [f'TRY_CAST(raw."{one}" AS {kind}) AS "{one}"' for one, kind in columns.items()]
    reject = "CASE WHEN TRY_CAST(raw.rid AS INTEGER) IS NULL THEN 'rid is no number' END AS reject"
    sql = f"SELECT {', '.join(listed)}, {reject} FROM raw"
    return Table(name, (f"{name}.csv",), tuple(columns), sql, f"{name}.sql")


def _queries(chance: Random, versions: list[Tables]) -> tuple[dict[str, str], frozenset[str]]:
    """Queries that the embedded engine answers over both versions, and those without an order."""
    found: dict[str, str] = {}
    unordered: frozenset[str] = frozenset()
    for _ in range(_TRIES):
        drawn = Generator(chance).queries()[:2]
        names = [f"q{len(found) + place}" for place in range(len(drawn))]
        texts = {name: sql for name, (sql, _) in zip(names, drawn, strict=True)}
        if _answers(texts, versions):
            found |= texts
            unordered |= {name for name, (_, o) in zip(names, drawn, strict=True) if not o}
        if len(found) >= _WANTED:
            break
    if chance.random() < 0.4 or not found:
        found["limited"] = _LIMITED
    if chance.random() < 0.2:
        found["constant"] = _CONSTANT
    return found, unordered


def _answers(texts: dict[str, str], versions: list[Tables]) -> bool:
    """Some queries of the generator are refused by DuckDB."""
    app = _application("random draft", texts)
    try:
        for batches in versions:
            Asked(app, batches).embedded(list(texts), batches)
    except (CaudalError, duckdb.Error):
        return False
    return True


def _batches(tables: dict[str, pa.Table], chance: Random) -> Tables:
    """Now and then a table has a row to reject, or nothing at all is sent of it."""
    made = {}
    for name, rows in tables.items():
        text = _csv(rows)
        if chance.random() < 0.3:
            text += "none" + "," * (len(SCHEMAS[name]) - 1) + "\n"
        size = max(len(text) // chance.choice((1, 3, _MOST_BATCHES)), 60)
        made[name] = cut(name, text, size) if chance.random() < 0.9 else ()
    return made


def _csv(rows: pa.Table) -> str:
    listed = ", ".join(f'CAST("{name}" AS VARCHAR) AS "{name}"' for name in rows.column_names)
    with duckdb.connect(config={"threads": 1}) as connection:
        connection.register("rows", rows)
        texts = connection.sql(f"SELECT {listed} FROM rows").to_arrow_table()
    written = io.BytesIO()
    pa_csv.write_csv(texts, written)
    return written.getvalue().decode()
