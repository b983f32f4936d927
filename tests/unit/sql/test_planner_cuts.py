"""Neither batches nor partitions decide anything: the same bits for every way to cut the rows."""

import math
import random
import struct
from collections.abc import Iterator

import pyarrow as pa
import pytest
from tests.harness.plan_run import PlanRun

from caudal.duck.binder import DuckDBBinder
from caudal.duck.sandbox import Sandbox, Types
from caudal.sql.planner import plan

SCHEMAS = {
    "t": {"id": "INTEGER", "k": "INTEGER", "g": "VARCHAR", "x": "DOUBLE", "y": "FLOAT"},
    "u": {"k": "INTEGER", "w": "DOUBLE"},
}
CUTS = [(1, 200), (1, 31), (3, 50), (5, 67)]  # partitions, rows of a batch

SUMS = [
    "SELECT sum(x) FROM t",
    "SELECT avg(x), sum(y), count(*) FROM t",
    "SELECT g, sum(x), avg(y) FROM t GROUP BY g ORDER BY g",
    "SELECT g, sum(x * 3 + 0.1) FILTER (id % 3 = 0) FROM t GROUP BY g ORDER BY g",
    "SELECT sum(x), sum(y), sum(x + y) FROM t",
    "SELECT g, sum(x * w) FROM t JOIN u USING (k) GROUP BY g ORDER BY g",
    "SELECT g, count(DISTINCT k), sum(x) FROM t GROUP BY g ORDER BY g",
    "SELECT count(DISTINCT k), sum(x) FROM t",
    "SELECT sum(s) FROM (SELECT g, sum(x) AS s FROM t GROUP BY g)",
]
_WHOLE = (  # some have no parts, so these are computed over whole groups
    "corr(x, y), corr(x, id), covar_pop(x, w), covar_samp(x, w), skewness(x), skewness(id), "
    "kurtosis(x), kurtosis_pop(y), product(y * 3), product(k + 1), sem(x), sem(id), "
    "geomean(y + 2), entropy(k), entropy(y), stddev(id), var_pop(x), fsum(x), favg(x), avg(y), "
    "sum(x), regr_avgx(y, x), regr_avgy(y, x), regr_intercept(y, x), regr_r2(y, x), "
    "regr_slope(y, x), regr_sxx(y, x), regr_sxy(y, x), regr_syy(y, x), regr_count(y, x), "
    "median(x), mad(x), covar_pop(x, 0.5), entropy('a'), product(0.5), regr_avgx(y, 2)"
)
SUMS += [f"SELECT {_WHOLE} FROM t JOIN u USING (k)"]
STATISTICS = [
    f"SELECT g, {_WHOLE} FROM t JOIN u USING (k) GROUP BY g ORDER BY g",
    f"SELECT g, {_WHOLE.replace(', w)', ', id)')} FROM t GROUP BY g ORDER BY g",
]
TIES = [
    "SELECT id, g FROM t ORDER BY g LIMIT 7",
    "SELECT id FROM t ORDER BY k DESC LIMIT 5 OFFSET 3",
    "SELECT g, k, count(*) AS n FROM t GROUP BY ALL ORDER BY n LIMIT 4",
    "SELECT t.id, u.w FROM t JOIN u USING (k) ORDER BY u.w LIMIT 6",
    "SELECT id FROM t ORDER BY g OFFSET 190",
    "SELECT t.id FROM t JOIN u USING (k) LIMIT 5",
    "SELECT DISTINCT k FROM t LIMIT 3",
    "SELECT id FROM t LIMIT 9",
    "SELECT sum(id) FROM (SELECT id FROM t ORDER BY g LIMIT 10)",
]


@pytest.fixture(scope="module")
def tables() -> dict[str, pa.Table]:
    chance = random.Random(5)
    numbers = [chance.choice([1e-9, 1.0, 1e9, 1e17]) * chance.uniform(-1, 1) for _ in range(200)]
    return {
        "t": pa.table(
            {
                "id": pa.array(range(200), pa.int32()),
                "k": pa.array([chance.randrange(20) for _ in range(200)], pa.int32()),
                "g": pa.array([chance.choice("abc") for _ in range(200)]),
                "x": pa.array(numbers, pa.float64()),
                "y": pa.array([chance.uniform(-1, 1) for _ in range(200)], pa.float32()),
            }
        ),
        "u": pa.table(
            {
                "k": pa.array(range(15), pa.int32()),
                "w": pa.array([float(n % 2) + 0.1 for n in range(15)], pa.float64()),
            }
        ),
    }


@pytest.fixture(scope="module")
def tools() -> Iterator[tuple[DuckDBBinder, Sandbox, Sandbox]]:
    made = DuckDBBinder(SCHEMAS), Sandbox(), Sandbox(types=Types.PLAIN)
    yield made
    for one in made:
        one.close()


def answers(
    sql: str, tables: dict[str, pa.Table], tools: tuple[DuckDBBinder, Sandbox, Sandbox]
) -> list[pa.Table]:
    made = plan({"q": sql}, SCHEMAS, binder=tools[0])
    found = []
    for partitions, size in CUTS:
        batches = {
            name: [rows.slice(first, size) for first in range(0, rows.num_rows, size)]
            for name, rows in tables.items()
        }
        run = PlanRun(made, partitions, tools[1], tools[2])
        found.append(run.answers(batches)["q"])
    return found


@pytest.mark.parametrize("sql", [*SUMS, *STATISTICS])
def test_sums_of_floats_have_the_same_bits(
    sql: str, tables: dict[str, pa.Table], tools: tuple[DuckDBBinder, Sandbox, Sandbox]
) -> None:
    first, *others = answers(sql, tables, tools)
    assert all(other.equals(first) for other in others)


@pytest.mark.parametrize("sql", STATISTICS)
def test_statistics_are_computed_by_group(
    sql: str, tools: tuple[DuckDBBinder, Sandbox, Sandbox]
) -> None:
    finish = plan({"q": sql}, SCHEMAS, binder=tools[0]).finish("q")
    assert (finish.strategy, finish.reason) == ("scaled", "")


@pytest.mark.parametrize("sql", TIES)
def test_ties_are_cut_the_same_way(
    sql: str, tables: dict[str, pa.Table], tools: tuple[DuckDBBinder, Sandbox, Sandbox]
) -> None:
    first, *others = answers(sql, tables, tools)
    assert all(other.equals(first) for other in others)


ODD = [
    [float("inf"), 1.0], [float("inf"), float("-inf")], [float("nan"), 2.0], [0.0, -0.0], [],
    [1e308, -1e308, 3.0], [5e-324, 5e-324], [1.0, 1e100, 1.0, -1e100], [2.0**-960, 2.0**-961],
    [None, 3.5], [2.0**31, 2.0**32, 2.0**33 - 1], [None, None],
]  # fmt: skip


@pytest.mark.parametrize("values", ODD)
def test_odd_floats_are_summed(
    values: list[float | None], tools: tuple[DuckDBBinder, Sandbox, Sandbox]
) -> None:
    rows = pa.table({"id": pa.array(range(len(values)), pa.int32())})
    empty = pa.nulls(len(values), pa.int32())
    table = rows.append_column("k", empty).append_column("g", pa.nulls(len(values), pa.string()))
    table = table.append_column("x", pa.array(values, pa.float64()))
    table = table.append_column("y", pa.nulls(len(values), pa.float32()))
    (found,) = {
        struct.pack("d", value) if value is not None else None
        for answer in answers("SELECT sum(x) FROM t", {"t": table, "u": pa.table({})}, tools)
        for value in answer.column(0).to_pylist()
    }
    numbers = [value for value in values if value is not None]
    if not numbers:
        assert found is None
        return
    assert found is not None
    (total,) = struct.unpack("d", found)
    finite = all(map(math.isfinite, numbers))
    exact = math.fsum(numbers) if finite else sum(numbers)
    assert total == pytest.approx(exact, rel=0, abs=1e-300, nan_ok=True)
