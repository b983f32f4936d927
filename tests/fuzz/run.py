"""Checks random queries for a while: python -m tests.fuzz.run SECONDS [SEED]."""

import random
import sys
import time
import traceback
from collections import Counter

from caudal.kernels.hashing import partition_of
from tests.fuzz.check import Bench
from tests.fuzz.queries import Generator


def case(seed: int, bench: Bench) -> tuple[str, str]:
    """The query of a seed and its strategy (or `refused`, if DuckDB itself refuses it)."""
    chance = random.Random(seed)
    tables = bench.maker.tables(chance)
    sql, ordered = Generator(chance).query()
    made = bench.check(sql, tables, chance, ordered=ordered)
    return sql, "refused" if made is None else made.finish("q").strategy


def main(seconds: float, seed: int, limit: int = 5) -> int:
    """Runs until the time is over; the number of differences."""
    bench, counts, reasons = Bench(partition_of), Counter[str](), Counter[str]()
    end, wrong = time.monotonic() + seconds, 0
    while time.monotonic() < end and wrong < limit:
        try:
            counts[case(seed, bench)[1]] += 1
        except Exception as error:
            wrong += 1
            sql = drawn(seed, bench)
            print(f"seed {seed}: {type(error).__name__}: {error}\n   {sql}", flush=True)
            if not str(error).startswith(("expected", "columns", "types")):
                traceback.print_exc(limit=-4)
        seed += 1
    bench.close()
    checked = counts.total() - counts["refused"]
    share = counts["scaled"] / max(checked, 1)
    print(f"{checked} queries, {share:.0%} scaled, {wrong} differences, {dict(counts)}, {reasons}")
    return wrong


def drawn(seed: int, bench: Bench) -> str:
    chance = random.Random(seed)
    bench.maker.tables(chance)
    return Generator(chance).query()[0]


if __name__ == "__main__":
    given = [float(argument) for argument in sys.argv[1:]]
    start = int(given[1]) if len(given) > 1 else random.SystemRandom().randrange(1 << 32)
    print(f"first seed {start}")
    sys.exit(1 if main(given[0] if given else 60.0, start) else 0)
