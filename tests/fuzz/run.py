"""Checks random queries for a while: python -m tests.fuzz.run SECONDS [FIRST_SEED].

Every case has a seed of its own; `python -m tests.fuzz.run 0 SEED` replays one.
"""

import itertools
import sys
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from random import Random, SystemRandom
from typing import Protocol

import pyarrow as pa

from caudal.errors import CaudalError
from tests.fuzz.check import Bench, DifferenceError
from tests.fuzz.kinds import KindGenerator
from tests.fuzz.mutations import mutated
from tests.fuzz.tables import Maker
from tests.fuzz.wild import WildGenerator

MOST_DIFFERENCES = 5  # then stop: more of the same help nobody

Tables = dict[str, pa.Table]
Queries = list[tuple[str, bool]]
WRONG = (DifferenceError, CaudalError, AssertionError, LookupError, ValueError, RecursionError)


class Oracle(Protocol):
    """Who knows whether queries are answered rightly; the planner's is `check.Bench`."""

    @property
    def maker(self) -> Maker: ...

    @property
    def keywords(self) -> list[str]: ...

    def told(
        self, queries: Sequence[tuple[str, bool]], tables: Mapping[str, pa.Table], chance: Random
    ) -> list[tuple[str, str]] | None:
        """How each query was run, and why; None if DuckDB refuses one. Raises if rows differ."""

    def close(self) -> None: ...


def case(seed: int, oracle: Oracle) -> tuple[Tables, Queries]:
    """The tables and the queries of a seed.

    Every fourth asks for all types, every third of the others is a mutation of its first query.
    """
    chance = Random(seed)
    if seed % 4 == 0:
        return oracle.maker.kinds(chance), KindGenerator(chance).queries()
    tables, queries = oracle.maker.tables(chance), WildGenerator(chance).queries()
    if seed % 3:
        return tables, queries
    return tables, [(mutated(queries[0][0], oracle.keywords, chance), False)]


def checked(seed: int, oracle: Oracle) -> list[tuple[str, str]] | None:
    """How the seed's queries were run, None if DuckDB refuses one; raises if rows differ."""
    tables, queries = case(seed, oracle)
    return oracle.told(queries, tables, Random(seed))


def main(seconds: float, first: int, oracle: Oracle) -> int:
    """Runs until the time is over; the number of differences."""
    counts, reasons = Counter[str](), Counter[str]()
    end, wrong = time.monotonic() + seconds, 0
    for seed in itertools.count(first):
        try:
            told = checked(seed, oracle)
        except WRONG as error:
            wrong += 1
            print(report(seed, error, oracle), flush=True)
        else:
            counts.update(strategy for strategy, _ in told or ())
            counts["refused"] += told is None
            reasons.update(reason for _, reason in told or () if reason)
        if time.monotonic() >= end or wrong >= MOST_DIFFERENCES:
            break
    oracle.close()
    print(summary(counts, reasons, wrong, seconds))
    return wrong


def summary(counts: Counter[str], reasons: Counter[str], wrong: int, seconds: float) -> str:
    queries = counts.total() - counts["refused"] + wrong
    share = counts["scaled"] / max(queries, 1)
    lines = [
        f"{queries} queries in {seconds:g} seconds: {share:.0%} split, {wrong} differences "
        f"({counts['refused']} more were refused by DuckDB itself)"
    ]
    lines += [f"  {number:6} gathered: {reason}" for reason, number in reasons.most_common(12)]
    return "\n".join(lines)


def report(seed: int, error: Exception, oracle: Oracle) -> str:
    """What differs, over the smallest tables that still show it."""
    tables, queries = case(seed, oracle)
    small = shrunk(tables, queries, seed, oracle)
    texts = "\n".join(f"  {sql}" for sql, _ in queries)
    rows = "\n".join(f"  {name}: {table.to_pylist()}" for name, table in small.items())
    return f"seed {seed}: {type(error).__name__}: {error}\n{texts}\n{rows}"


def shrunk(tables: Tables, queries: Queries, seed: int, oracle: Oracle) -> Tables:
    """The tables without rows that the difference does not need."""

    def differs(smaller: Tables) -> bool:
        try:
            oracle.told(queries, smaller, Random(seed))
        except WRONG:
            return True
        return False

    for name in tables:
        for smaller in _without_rows(tables[name]):
            if smaller.num_rows < tables[name].num_rows and differs({**tables, name: smaller}):
                tables = {**tables, name: smaller}
    return tables


def _without_rows(table: pa.Table) -> Iterator[pa.Table]:
    for size in (0, 1, 2, 4, 8, 16):
        for start in range(0, table.num_rows, max(size, 1)):
            yield table.slice(start, size)


if __name__ == "__main__":
    given = [float(argument) for argument in sys.argv[1:]]
    start = int(given[1]) if len(given) > 1 else SystemRandom().randrange(1 << 32)
    print(f"first seed {start}", flush=True)
    sys.exit(1 if main(given[0] if given else 60.0, start, Bench()) else 0)
