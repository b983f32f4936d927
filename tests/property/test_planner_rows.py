"""Any query, over any tables, cut anyhow: the plan gives the rows that DuckDB gives."""

import random
from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.fuzz.check import Bench
from tests.fuzz.kinds import KindGenerator
from tests.fuzz.odd import OddGenerator
from tests.fuzz.run import checked
from tests.fuzz.wild import WildGenerator
from tests.harness.examples import examples


@pytest.fixture(scope="module")
def bench() -> Iterator[Bench]:
    made = Bench()
    yield made
    made.close()


@settings(
    max_examples=examples(40),
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
@given(chance=st.randoms(use_true_random=False))
def test_a_plan_gives_the_rows_of_duckdb(bench: Bench, chance: random.Random) -> None:
    tables = bench.maker.tables(chance)
    bench.check(WildGenerator(chance).queries(), tables, chance)


@settings(max_examples=examples(40), deadline=None, suppress_health_check=list(HealthCheck))
@given(chance=st.randoms(use_true_random=False))
def test_columns_of_every_type_give_the_rows_of_duckdb(bench: Bench, chance: random.Random) -> None:
    tables = bench.maker.kinds(chance)
    bench.check(KindGenerator(chance).queries(), tables, chance)


@pytest.mark.parametrize("seed", [503359])  # a column by its place in outer joins
def test_a_seed_that_once_differed(bench: Bench, seed: int) -> None:
    assert checked(seed, bench) is not None


@pytest.mark.long
def test_most_random_queries_are_split(bench: Bench) -> None:
    strategies = []
    for seed in range(examples(40)):
        chance = random.Random(seed)
        tables = bench.maker.tables(chance)
        made = bench.check(OddGenerator(chance).queries(), tables, chance)
        strategies += [] if made is None else [finish.strategy for finish in made.finishes]
    share = strategies.count("scaled") / len(strategies)
    print(f"{share:.0%} of {len(strategies)} random queries were split")
    assert share >= 0.5
