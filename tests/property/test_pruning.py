"""Any query, over any tables: leaving out what it cannot see changes no row."""

import random
from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.fuzz.check import Bench
from tests.fuzz.odd import OddGenerator
from tests.harness.examples import examples


@pytest.fixture(scope="module")
def bench() -> Iterator[Bench]:
    made = Bench()
    yield made
    made.close()


def check(bench: Bench, chance: random.Random) -> list[bool]:
    """Whether each query of the case that DuckDB accepts had rows left out."""
    tables = bench.maker.tables(chance)
    pruned = []
    for sql, ordered in OddGenerator(chance).queries():
        expected = bench.expected(sql, tables)
        if expected is not None:
            bound = bench.check_pruned(sql, expected, tables, ordered=ordered)
            visible_rows = [one for every in bound.seen.visible_rows.values() for one in every]
            pruned.append(any(one.condition for one in visible_rows))
    return pruned


@settings(
    max_examples=examples(30),
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
@given(chance=st.randoms(use_true_random=False))
def test_a_query_over_pruned_tables_gives_the_rows_of_duckdb(
    bench: Bench, chance: random.Random
) -> None:
    check(bench, chance)


def test_many_random_queries_leave_rows_out(bench: Bench) -> None:
    pruned = [one for seed in range(examples(40)) for one in check(bench, random.Random(seed))]
    assert sum(pruned) >= len(pruned) / 5
