"""Inner joins are ordered by what connects them: no product of tables that an equality connects."""

import random
import re
from collections.abc import Iterator

import duckdb
import pyarrow as pa
import pytest
from tests.fuzz.check import compare
from tests.harness.plan_run import PlanRun

from caudal.duck.sandbox import Sandbox, Types
from caudal.sql.planner import Plan, plan

DIMENSIONS = [f"d{number}" for number in range(1, 7)]
SCHEMAS = {
    "f": {**{f"k{n}": "INTEGER" for n in range(1, 7)}, "v": "INTEGER"},
    **{name: {"k": "INTEGER", "name": "VARCHAR", "up": "INTEGER"} for name in DIMENSIONS},
}
ON = [f"f.k{name[1:]} = {name}.k" for name in DIMENSIONS]
LISTED = ", ".join(f"{name}.name" for name in DIMENSIONS)


def star(order: list[str], extra: str = "") -> str:
    return f"SELECT {LISTED}, sum(f.v) AS s FROM {', '.join(order)} WHERE " + " AND ".join(
        [*ON, *([extra] if extra else [])]
    ) + f" GROUP BY {LISTED} ORDER BY ALL"  # fmt: skip


def fragments(made: Plan) -> list[str]:
    stages = [stage.sql for stage in made.stages()]
    return [*stages, *(finish.sql for finish in made.finishes)]


def has_product(made: Plan) -> bool:
    return any(re.search("CROSS JOIN|ON TRUE", sql) for sql in fragments(made))


ORDERS = [
    [*DIMENSIONS, "f"],
    ["d3", "d1", "d6", "f", "d2", "d5", "d4"],
    ["d1", "d2", "f", *DIMENSIONS[2:]],
    ["f", *DIMENSIONS],
]


@pytest.mark.parametrize("order", ORDERS, ids=" ".join)
def test_a_star_is_never_a_product(order: list[str]) -> None:
    made = plan({"q": star(order), "r": star(order, "d4.name = 'x'")}, SCHEMAS)
    assert [finish.strategy for finish in made.finishes] == ["scaled", "scaled"]
    assert not has_product(made)


def test_joins_as_written_are_ordered_too() -> None:
    """CROSS JOIN and JOIN ... ON TRUE say no more than a comma."""
    sql = (
        "SELECT count(*) AS n FROM d1 CROSS JOIN d2 JOIN d3 ON TRUE JOIN f "
        "ON f.k1 = d1.k AND f.k2 = d2.k AND f.k3 = d3.k"
    )
    assert not has_product(plan({"q": sql}, SCHEMAS))


def test_a_snowflake_and_a_chain() -> None:
    snow = "SELECT count(*) AS n FROM d1, d4, d2, d3, f WHERE f.k1 = d1.k AND d1.up = d2.k " \
        "AND d2.up = d3.k AND f.k4 = d4.k"  # fmt: skip
    assert not has_product(plan({"q": snow}, SCHEMAS))


def test_what_nothing_connects_is_crossed_last() -> None:
    sql = "SELECT count(*) AS n FROM d1, d2, f, d3 WHERE f.k1 = d1.k AND d2.up = d3.up"
    made = plan({"q": sql}, SCHEMAS)
    assert sum(len(re.findall("CROSS JOIN", text)) for text in fragments(made)) == 1


def test_filtered_tables_come_first() -> None:
    sql = star(ORDERS[0], "d5.name = 'x'")
    folds = plan({"q": sql}, SCHEMAS).folds
    (filtered,) = [s.name for s in plan({"q": sql}, SCHEMAS).scans if s.table == "d5"]
    assert filtered in folds[0].inputs


def test_outer_joins_stay_where_they_are() -> None:
    sql = "SELECT d1.k FROM d1, d2 LEFT JOIN f ON f.k2 = d2.k WHERE d1.up = d2.up"
    assert "LEFT JOIN" in " ".join(fragments(plan({"q": sql}, SCHEMAS)))


@pytest.fixture(scope="module")
def sandboxes() -> Iterator[tuple[Sandbox, Sandbox]]:
    with Sandbox() as stages, Sandbox(types=Types.PLAIN) as results:
        yield stages, results


def made_tables(seed: int) -> dict[str, pa.Table]:
    chance = random.Random(seed)

    def column(kind: str, rows: int) -> pa.Array:
        values = [chance.choice([None, *range(4)]) for _ in range(rows)]
        if kind == "VARCHAR":
            return pa.array([None if v is None else f"n{v}" for v in values], pa.string())
        return pa.array(values, pa.int32())

    return {
        name: pa.table({c: column(kind, rows) for c, kind in schema.items()})
        for (name, schema), rows in zip(SCHEMAS.items(), [30] + [6] * 6, strict=True)
    }


CONDITIONS = [*ON, "d1.up = d2.up", "d3.up = d4.k", "d1.k + d2.k = d3.k", "d5.up < d6.up",
              "f.v <> d2.up", "coalesce(f.v, 1) = d6.up"]  # fmt: skip


@pytest.mark.parametrize("seed", range(25))
def test_rows_are_those_of_duckdb(seed: int, sandboxes: tuple[Sandbox, Sandbox]) -> None:
    chance, tables = random.Random(seed), made_tables(seed)
    chosen = chance.sample(list(SCHEMAS), chance.randrange(3, 6))
    usable = [c for c in CONDITIONS if set(re.findall(r"[df]\d?(?=\.)", c)) <= set(chosen)]
    where = " AND ".join(chance.sample(usable, chance.randrange(len(usable) + 1))) or "TRUE"
    listed = ", ".join(f"{name}.{column}" for name in chosen for column in SCHEMAS[name])
    source = f"FROM {', '.join(chosen)} WHERE {where}"
    counted = f"SELECT count(*) AS n, sum(hash({listed})) AS h {source}"
    made = plan({"q": counted}, SCHEMAS)
    with duckdb.connect(config={"threads": 1}) as connection:
        for name, rows in tables.items():
            connection.register(name, rows)
        expected = connection.sql(counted).to_arrow_table()
    batches = {name: [rows.slice(0, 4), rows.slice(4)] for name, rows in tables.items()}
    found = PlanRun(made, 3, *sandboxes).answers(batches)
    compare(expected, found["q"], ordered=True)


def test_the_same_statement_gives_the_same_plan() -> None:
    plans = [str(plan({"q": star(ORDERS[1])}, SCHEMAS)) for _ in range(3)]
    assert len(set(plans)) == 1
