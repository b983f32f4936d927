"""Checks random queries for a while: python -m tests.fuzz.run SECONDS [FIRST_SEED].

Every case has a seed of its own; `python -m tests.fuzz.run 0 SEED` replays one.
"""

import itertools
import random
import sys
import time
from collections import Counter
from collections.abc import Iterator

import pyarrow as pa

from caudal.errors import CaudalError
from caudal.kernels.hashing import partition_of
from caudal.sql.planner import Plan
from tests.fuzz.check import Bench, DifferenceError
from tests.fuzz.kinds import KindGenerator
from tests.fuzz.odd import OddGenerator

MOST_DIFFERENCES = 5  # then stop: more of the same help nobody

Tables = dict[str, pa.Table]
Queries = list[tuple[str, bool]]


def case(seed: int, bench: Bench) -> tuple[Tables, Queries]:
    """The tables and the queries of a seed."""
    chance = random.Random(seed)
    if seed % 4 == 0:
        return bench.maker.kinds(chance), KindGenerator(chance).queries()
    return bench.maker.tables(chance), OddGenerator(chance).queries()


def checked(seed: int, bench: Bench) -> Plan | None:
    """The plan of a seed's queries, None if DuckDB refuses one; raises if rows differ."""
    tables, queries = case(seed, bench)
    return bench.check(queries, tables, random.Random(seed))


def main(seconds: float, first: int) -> int:
    """Runs until the time is over; the number of differences."""
    bench, counts, reasons = Bench(partition_of), Counter[str](), Counter[str]()
    end, wrong = time.monotonic() + seconds, 0
    for seed in itertools.count(first):
        try:
            made = checked(seed, bench)
        except (DifferenceError, CaudalError, AssertionError, LookupError, ValueError) as error:
            wrong += 1
            print(report(seed, error, bench), flush=True)
        else:
            finishes = made.finishes if made is not None else ()
            counts.update(str(finish.strategy) for finish in finishes)
            counts["refused"] += made is None
            reasons.update([finish.reason for finish in finishes if finish.reason])
        if time.monotonic() >= end or wrong >= MOST_DIFFERENCES:
            break
    bench.close()
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


def report(seed: int, error: Exception, bench: Bench) -> str:
    """What differs, over the smallest tables that still show it."""
    tables, queries = case(seed, bench)
    small = shrunk(tables, queries, seed, bench)
    texts = "\n".join(f"  {sql}" for sql, _ in queries)
    rows = "\n".join(f"  {name}: {table.to_pylist()}" for name, table in small.items())
    return f"seed {seed}: {type(error).__name__}: {error}\n{texts}\n{rows}"


def shrunk(tables: Tables, queries: Queries, seed: int, bench: Bench) -> Tables:
    """The tables without rows that the difference does not need."""

    def differs(smaller: Tables) -> bool:
        try:
            bench.check(queries, smaller, random.Random(seed))
        except (DifferenceError, CaudalError, AssertionError, LookupError, ValueError):
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
    start = int(given[1]) if len(given) > 1 else random.SystemRandom().randrange(1 << 32)
    print(f"first seed {start}", flush=True)
    sys.exit(1 if main(given[0] if given else 60.0, start) else 0)
