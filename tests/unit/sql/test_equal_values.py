"""Values that are equal without being the same, and keys whose type is easily taken for another:
each statement against DuckDB, cut in several ways."""

import random
from collections.abc import Iterator, Sequence

import duckdb
import pyarrow as pa
import pytest
from tests.fuzz.check import compare
from tests.harness.oracle import ORACLE
from tests.harness.plan_run import PlanRun

from caudal.duck.arrow_casts import presented
from caudal.duck.binder import DuckDBBinder
from caudal.duck.sandbox import Sandbox, Types
from caudal.sql.planner import Plan, aggregate_calls, plan, type_inference, types

SCHEMAS = {
    "odd": {
        "id": "INTEGER", "d": "DOUBLE", "i": "INTEGER", "f": "FLOAT", "ub": "UBIGINT",
        "h": "HUGEINT", "u": "UHUGEINT", "iv": "INTERVAL", "ts": "TIMESTAMP", "bl": "BLOB",
        "l": "VARCHAR[]", "s": "VARCHAR", "n": "BIGNUM", "sm": "SMALLINT",
        "dc": "DECIMAL(4,1)",
    },
    "one": {"id": "INTEGER", "f": "FLOAT", "k": "BIGINT", "t": "VARCHAR", "w": "DECIMAL(38,0)"},
}  # fmt: skip
ROWS = {
    "odd": """
        (1, 0.0, 16777217, 16777216, 18446744073709551615, 1, 1, '1 month', '2020-01-01', 'a',
         ['p'], 'a=1', 1, 1, 1.5),
        (2, -0.0, 16777216, 1.5, 9007199254740993, 2, 340282366920938463463374607431768211455,
         '30 days', '2020-01-01 00:00:00.5', 'b', ['q', 'r'], 'b=2', 2, 2, 0.1),
        (3, 0.0, 3, 'nan', 9007199254740992, 3, 5, '720 hours', '1969-12-31', 'a', [], 'a=1',
         170141183460469231731687303715884105727, 3, 2.0),
        (4, 'nan', NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL),
        (5, -1.5, -7, -0.0, 0, -3, 0, '-1 month', 'infinity', '', ['p'], '', -1, -1, -0.5),
        (6, -0.0, 16777217, 0.0, 1, 1, 1, '1 month', '2020-01-01', 'a', ['p'], 'c', 1, 9, 1.5)""",
    "one": """
        (1, 16777216, 1577836800, '-0.0', 2), (2, 0.5, 16777217, '30 days', 0),
        (3, -0.0, 9007199254740993, '1 month', 1), (4, NULL, NULL, NULL, NULL),
        (5, 1.5, 3, '0.0', 127)""",
}
UNEQUAL_FORMS = {
    "a condition sees the sign of zero": """
        SELECT d, count(*) AS n FROM odd WHERE CAST(d AS VARCHAR) IN (SELECT t FROM one)
        GROUP BY d""",
    "one sign of zero": """
        SELECT d, count(*) AS n FROM odd WHERE CAST(d AS VARCHAR) IN (SELECT '-0.0' FROM one)
        GROUP BY d""",
    "an anti join sees the sign of zero": """
        SELECT d, count(*) AS n FROM odd WHERE NOT EXISTS
        (SELECT 1 FROM one WHERE one.t = CAST(odd.d AS VARCHAR)) GROUP BY d""",
    "an inequality sees the sign of zero": """
        SELECT d, count(*) AS n FROM odd SEMI JOIN one ON signbit(odd.d) = (one.id > 3)
        GROUP BY d""",
    "distinct values": """
        SELECT count(*) AS n FROM (SELECT DISTINCT d FROM odd WHERE CAST(d AS VARCHAR) IN
        (SELECT '-0.0' FROM one))""",
    "the hours of an interval": """
        SELECT iv, count(*) AS n FROM odd WHERE date_part('hour', iv) IN (SELECT 720 FROM one)
        GROUP BY iv""",
    "the text of an interval": """
        SELECT iv, count(*) AS n FROM odd WHERE CAST(iv AS VARCHAR) IN
        (SELECT t FROM one WHERE id = 3) GROUP BY iv""",
    "groups before a join on a text": """
        SELECT count(*) AS n FROM one s JOIN odd o ON s.id < 9 AND CAST(o.iv AS VARCHAR) = '1 month'
        """,
    "groups before a join on a sign": """
        SELECT sum(o.id) AS n FROM one s JOIN odd o ON signbit(o.d) = (s.id > 3)""",
    "groups before a join on a text of the other side": """
        SELECT s.t, count(o.id) AS n FROM one s JOIN odd o ON s.t = CAST(o.iv AS VARCHAR)
        GROUP BY s.t""",
    "floats in a list": """
        SELECT count(*) AS n FROM one s JOIN odd o ON s.t = CAST([o.d][1] AS VARCHAR)""",
}
OTHER_TYPES = {
    "floor of integers in a union": "SELECT floor(ub) AS v FROM odd UNION SELECT ub FROM odd",
    "ceil of integers in except": "SELECT ub FROM odd EXCEPT SELECT ceil(ub) FROM odd",
    "floor of integers joined": """
        SELECT a.id, b.id AS j FROM odd a JOIN odd b ON floor(a.ub) = b.ub""",
    "rounded integers in a union": "SELECT round(ub) AS v FROM odd UNION SELECT ub FROM odd",
    "floor as text": """
        SELECT min(CAST(v AS VARCHAR)) AS m FROM
        (SELECT floor(i) AS v FROM odd UNION ALL SELECT k FROM one)""",
    "floor of huge integers grouped": "SELECT floor(h) AS v, count(*) AS n FROM odd GROUP BY v",
    "seconds of times": """
        SELECT date_part('epoch', ts) AS v FROM odd WHERE isfinite(ts) UNION SELECT k FROM one""",
    "days of times": """
        SELECT a.id, b.id AS j FROM odd a JOIN odd b ON date_part('julian', a.ts) = b.i + 0""",
    "sums of unsigned huge integers": "SELECT sum(u) AS v FROM odd",
    "sums of unsigned huge integers by key": "SELECT i, sum(u) AS v FROM odd GROUP BY i",
    "sums of big numbers": "SELECT sum(n) AS v FROM odd",
    "lists of least values": "SELECT min(i, 2) AS v FROM odd",
    "lists of most values": "SELECT s, max(id, 2) AS v FROM odd GROUP BY s",
    "lists of least values of another": "SELECT arg_min(id, id, 2) AS v FROM odd",
    "lists of most values of another": "SELECT i, arg_max(id, id, 2) AS v FROM odd GROUP BY i",
    "lists of quantiles": "SELECT quantile_disc(id, [0.5, 1.0]) AS v FROM odd",
    "unnested least values": "SELECT unnest(v) AS w FROM (SELECT min(id, 3) AS v FROM odd)",
    "lists put together": "SELECT concat(l, l) AS v, count(*) AS n FROM odd GROUP BY v",
    "lists repeated": "SELECT repeat(l, 2) AS v, count(*) AS n FROM odd GROUP BY v",
    "bytes repeated": "SELECT repeat(bl, 2) AS v, count(*) AS n FROM odd GROUP BY v",
    "structs extracted": """
        SELECT regexp_extract(s, '(.)=(.)', ['x', 'y']) AS v, count(*) AS n FROM odd GROUP BY v""",
    "parts of times as structs": """
        SELECT date_part(['year', 'month'], ts) AS v, count(*) AS n FROM odd
        WHERE isfinite(ts) GROUP BY v""",
    "literals take the width of others": """
        SELECT coalesce(sm, 1) AS v FROM odd UNION SELECT CAST(id AS SMALLINT) FROM one""",
    "deviations": "SELECT stddev(id) AS a, var_pop(d) AS b FROM odd WHERE id <> 4",
    "in over decimals compares as a union": "SELECT id FROM odd WHERE dc IN (SELECT w FROM one)",
    "exists over decimals does not": """
        SELECT id FROM odd WHERE EXISTS (SELECT 1 FROM one WHERE odd.dc = one.w)""",
    "floats and integers in a chain": """
        SELECT a.id, b.id AS j, c.id AS m FROM odd a JOIN one b ON a.i = b.f
        JOIN odd c ON c.i = a.i""",
    "floats and integers in groups": """
        SELECT b.f, count(*) AS n FROM odd a JOIN one b ON a.i = b.f GROUP BY b.f""",
    "no floats among integers": "SELECT id FROM odd WHERE i NOT IN (SELECT f FROM one WHERE f > 0)",
}
STATEMENTS = {**UNEQUAL_FORMS, **OTHER_TYPES}


@pytest.fixture(scope="module")
def direct() -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect(config={**ORACLE, "arrow_lossless_conversion": True}) as made:
        for name, schema in SCHEMAS.items():
            columns = ", ".join(f"{column} {kind}" for column, kind in schema.items())
            made.execute(f"CREATE TABLE {name} ({columns})")
            made.execute(f"INSERT INTO {name} VALUES {ROWS[name]}")
        yield made


@pytest.fixture(scope="module")
def binder() -> Iterator[DuckDBBinder]:
    made = DuckDBBinder(SCHEMAS)
    yield made
    made.close()


@pytest.fixture(scope="module")
def sandboxes() -> Iterator[tuple[Sandbox, Sandbox]]:
    made = Sandbox(), Sandbox(types=Types.PLAIN)
    yield made
    for each in made:
        each.close()


def _shuffled(numbers: Sequence[int]) -> list[int]:
    return random.Random(len(numbers)).sample(numbers, len(numbers))


def _compare(
    sql: str, made: Plan, direct: duckdb.DuckDBPyConnection, sandboxes: tuple[Sandbox, Sandbox]
) -> None:
    tables = {name: direct.sql(f"FROM {name}").to_arrow_table() for name in SCHEMAS}
    direct.execute("SET arrow_lossless_conversion = false")
    expected = presented(direct.sql(sql))
    direct.execute("SET arrow_lossless_conversion = true")
    for size, partitions in ((1, 4), (2, 7), (9, 1)):
        batches = {name: _cut(rows, size) for name, rows in tables.items()}
        answers = PlanRun(made, partitions, *sandboxes).answers(batches, _shuffled)
        found = answers["q"].rename_columns(expected.schema.names)
        compare(expected, found, ordered=False)


def _cut(rows: pa.Table, size: int) -> list[pa.Table]:
    return [rows.slice(start, size) for start in range(0, rows.num_rows, size)]


@pytest.mark.parametrize("name", STATEMENTS)
def test_equal_values_meet(
    name: str,
    direct: duckdb.DuckDBPyConnection,
    binder: DuckDBBinder,
    sandboxes: tuple[Sandbox, Sandbox],
) -> None:
    sql = STATEMENTS[name]
    _compare(sql, plan({"q": sql}, SCHEMAS, binder=binder), direct, sandboxes)


@pytest.mark.parametrize("name", OTHER_TYPES)
@pytest.mark.parametrize("lie", ["INTEGER", "BIGINT", "VARCHAR", "DOUBLE", "DECIMAL(18,3)"])
def test_a_false_type_costs_a_split_and_no_right_answer(
    name: str,
    lie: str,
    direct: duckdb.DuckDBPyConnection,
    binder: DuckDBBinder,
    sandboxes: tuple[Sandbox, Sandbox],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """As if the planner did not know the types of functions at all."""
    sql = OTHER_TYPES[name]

    def call(*_: object) -> types.Type:
        return lie

    monkeypatch.setattr(type_inference, "_call", call)
    monkeypatch.setattr(aggregate_calls, "type_of_call", call)
    _compare(sql, plan({"q": sql}, SCHEMAS, binder=binder), direct, sandboxes)


def test_a_stage_of_another_type_is_not_used(
    binder: DuckDBBinder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(type_inference, "_call", lambda *_: "UBIGINT")
    made = plan({"q": "SELECT ub FROM odd EXCEPT SELECT floor(ub) FROM odd"}, SCHEMAS,
                binder=binder).finish("q")  # fmt: skip
    assert made.strategy == "gathered"
    assert made.reason == "a type that the planner inferred is not the type that DuckDB gives"


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT iv, count(*) AS n FROM odd SEMI JOIN one ON odd.i = one.k GROUP BY iv",
        "SELECT CAST(ts AS TIMESTAMPTZ) AS v, count(*) AS n FROM odd GROUP BY v, id",
        "SELECT CAST(id AS INT8) AS v, stddev(d) AS n FROM odd GROUP BY v",
        "SELECT a.id FROM odd a JOIN one b ON a.i = b.f",
    ],
)
def test_what_is_right_is_still_split(sql: str, binder: DuckDBBinder) -> None:
    """A type may be spelled in another way than DuckDB does."""
    assert plan({"q": sql}, SCHEMAS, binder=binder).finish("q").strategy == "scaled"
