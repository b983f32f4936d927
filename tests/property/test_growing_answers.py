"""Whatever is shown of an answer before all batches have come is part of the answer."""

import random
from collections import Counter
from collections.abc import Iterator, Sequence

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.fuzz.check import Bench
from tests.fuzz.growing import GrowingGenerator
from tests.fuzz.tables import ALL, cut
from tests.fuzz.wild import WildGenerator
from tests.harness.examples import examples
from tests.harness.plan_run import PlanRun

from caudal.errors import CaudalError
from caudal.results.values import python_values
from caudal.sql.planner import plan

ANY = settings(max_examples=examples(12), deadline=None, suppress_health_check=list(HealthCheck))


@pytest.fixture(scope="module")
def bench() -> Iterator[Bench]:
    made = Bench()
    yield made
    made.close()


def tables_of(bench: Bench, chance: random.Random) -> dict[str, pa.Table]:
    """Random tables, of those drawn the ones with most sales."""
    drawn = [bench.maker.tables(chance) for _ in range(3)]
    return max(drawn, key=lambda tables: tables["sales"].num_rows)


def rows_of(table: pa.Table, places: Sequence[int]) -> Counter[str]:
    """Rows as they are written: -0.0 is not 0.0, and NaN is NaN."""
    columns = [python_values(table.column(place)) for place in places]
    return Counter(repr(row) for row in zip(*columns, strict=True))


def check(bench: Bench, sql: str, tables: dict[str, pa.Table], chance: random.Random) -> int:
    """Compare each look with DuckDB's own answer; return how many looks showed rows."""
    made = plan({"q": sql}, ALL, binder=bench.binder)
    places = made.finish("q").grows
    answer = bench.expected(sql, tables)
    if not places or answer is None:
        return 0
    whole, shown, looked = rows_of(answer, places), Counter[str](), 0
    batches = {name: cut(rows, chance) for name, rows in tables.items()}
    run = PlanRun(made, chance.randrange(1, 6), bench.stages, bench.results)
    for looks in run.looks(batches, chance):
        found = rows_of(looks["q"].rows, range(len(places)))
        assert found <= whole, f"{sql}\nshows {found - whole}"
        assert shown <= found, f"{sql}\nno longer shows {shown - found}"
        shown, looked = found, looked + bool(found)
    return looked


@ANY
@given(chance=st.randoms(use_true_random=False))
def test_what_is_shown_is_in_the_answer_and_stays(bench: Bench, chance: random.Random) -> None:
    tables = tables_of(bench, chance)
    for sql in GrowingGenerator(chance).texts():
        check(bench, sql, tables, chance)


@ANY
@given(chance=st.randoms(use_true_random=False))
def test_so_it_is_for_any_query(bench: Bench, chance: random.Random) -> None:
    tables = bench.maker.tables(chance)
    for sql, _ in WildGenerator(chance).queries():
        try:
            check(bench, sql, tables, chance)
        except CaudalError:
            continue  # it is refused, or fails over some of the rows


def test_growing_queries_do_show_rows_early(bench: Bench) -> None:
    """So that the two tests above compare something."""
    looks = 0
    for seed in range(8):
        chance = random.Random(seed)
        tables = tables_of(bench, chance)
        looks += sum(check(bench, sql, tables, chance) for sql in GrowingGenerator(chance).texts())
    assert looks > 15
