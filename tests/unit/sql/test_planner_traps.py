"""Queries that once came out wrong, or easily could: each against DuckDB, cut in several ways."""

import random
from collections.abc import Iterator, Mapping, Sequence

import duckdb
import pyarrow as pa
import pytest
from tests.fuzz.check import compare
from tests.harness.plan_run import PlanRun

from caudal.duck.arrow_casts import presented
from caudal.duck.binder import DuckDBBinder
from caudal.duck.sandbox import Sandbox, Types
from caudal.sql.planner import plan

SCHEMAS = {
    "t": {
        "id": "INTEGER", "k": "INTEGER", "s": "VARCHAR", "x": "DOUBLE", "d": "DECIMAL(10,3)",
        "b": "BOOLEAN", "l": "VARCHAR[]", "h": "HUGEINT", "u": "UBIGINT", "n": "SMALLINT",
    },
    "r": {"id": "INTEGER", "k": "BIGINT", "s": "VARCHAR", "x": "DOUBLE", "y": "FLOAT"},
}  # fmt: skip
ROWS = {
    "t": """
        (0, 1, 'a', 0.0, 0.1, true, ['p', 'q'], 1, 1, 1),
        (1, 1, 'a', -0.0, 0.1, false, [], 170141183460469231731687303715884105720, 2, 2),
        (2, NULL, NULL, 'nan', 0.1, NULL, NULL, -5, 18446744073709551615, 3),
        (3, 2, 'b', 'nan', 0.1, true, ['p'], 0, 0, 4),
        (4, 2, '', NULL, 0.1, NULL, [NULL, 'p'], NULL, NULL, NULL),
        (5, 3, 'A', 1.5, 0.1, false, ['q'], 2, 9, 32767),
        (6, NULL, 'a', 2.5, 0.1, true, ['r'], 3, 3, -1)""",
    "r": """
        (0, 1, 'a', -0.0, 1.5), (1, NULL, NULL, 'nan', 2.5), (2, 2, 'b', 1.5, 'nan'),
        (3, 2, 'a', 2.5, NULL), (4, 7, '', 0.0, -0.0)""",
}

TRAPS = {
    "distinct on keeps one row of each kind": "SELECT DISTINCT ON (k) k, id FROM t ORDER BY k, id",
    "a star without a column of one table alone": """
        SELECT count(*) AS n FROM (SELECT DISTINCT * EXCLUDE (a.k) FROM (SELECT k, s FROM t) AS a,
        (SELECT k FROM r) AS b)""",
    "a constant to order by is no position": """
        SELECT k AS a, 7 AS b, count(*) AS n FROM t GROUP BY ALL ORDER BY b DESC, n, a LIMIT 2""",
    "a constant text to order by": "SELECT id, 'x' AS b FROM t ORDER BY b, id LIMIT 3",
    "a table with its schema is no common table": """
        WITH t AS (SELECT 99 AS id) SELECT a.id, t.id AS other FROM main.t AS a, t""",
    "positions are not names": "SELECT #2 AS a, #1 AS b FROM t WHERE #2 > 1",
    "positions in outer joins": "SELECT #5 AS a, -#5 AS b FROM t FULL JOIN r ON t.id = r.id "
    "LEFT JOIN t AS u ON u.id = r.id",
    "positions in a join": "SELECT t.id FROM t, r WHERE t.id = #11",
    "group by all of constants": "SELECT 1 AS one FROM t GROUP BY ALL",
    "a count of nothing is zero": "SELECT count(*) AS n, sum(k) AS s FROM t WHERE id > 99",
    "a group of nothing is no row": "SELECT k, count(*) AS n FROM t WHERE id > 99 GROUP BY k",
    "having over everything": "SELECT count(*) AS n FROM t HAVING count(*) > 99",
    "a total and rows of the same table are different scans": """
        SELECT id FROM t WHERE x > (SELECT min(x) FROM r) AND k <= (SELECT count(*) FROM t)""",
    "not in with nulls": "SELECT id FROM t WHERE k NOT IN (SELECT k FROM r)",
    "not in without nulls": "SELECT id FROM t WHERE k NOT IN (SELECT k FROM r WHERE k > 1)",
    "not in nothing": "SELECT id FROM t WHERE k NOT IN (SELECT k FROM r WHERE k > 99)",
    "null keys of an anti join": "SELECT t.id FROM t ANTI JOIN r ON t.k = r.k",
    "null keys of outer joins": "SELECT t.id, r.id AS j FROM t FULL JOIN r ON t.k = r.k",
    "not exists keeps null keys": """
        SELECT id FROM t WHERE NOT EXISTS (SELECT 1 FROM r WHERE r.s = t.s)""",
    "zeros of both signs and NaN join": "SELECT t.id, r.id AS j FROM t JOIN r ON t.x = r.x",
    "floats of different widths join": "SELECT t.id, r.id AS j FROM t JOIN r ON t.x = r.y",
    "integers join floats": "SELECT t.id, r.id AS j FROM t JOIN r ON t.n = r.y",
    "huge integers join small": "SELECT t.id, r.id AS j FROM t JOIN r ON t.h = r.k",
    "unsigned integers join signed": "SELECT t.id, r.id AS j FROM t JOIN r ON t.u = r.k",
    "decimals join integers": "SELECT t.id, r.id AS j FROM t JOIN r ON t.d * 10 = r.k",
    "zeros of both signs and NaN group": "SELECT x, count(*) AS n FROM t GROUP BY x",
    "distinct floats": "SELECT count(DISTINCT x) AS n FROM t",
    "truth values group": "SELECT b, count(*) AS n FROM t GROUP BY b",
    "lists group": "SELECT l, count(*) AS n FROM t GROUP BY l",
    "sums keep their types": """
        SELECT sum(k) AS a, sum(n) AS b, sum(d) AS c, sum(x) AS e, sum(b) AS f FROM t""",
    "sums keep their types by key": "SELECT s, sum(n) AS a, sum(d) AS b FROM t GROUP BY s",
    "integer division": "SELECT sum(k // 2) AS a, sum(k / 2) AS b, sum(k) // 2 AS c FROM t",
    "unions keep the narrower type": "SELECT n FROM t UNION SELECT id FROM r",
    "unions of text and numbers": "SELECT s AS c FROM t UNION ALL SELECT 1 FROM r",
    "least of a union of types": """
        SELECT min(c) AS m
        FROM (SELECT s AS c FROM t UNION ALL SELECT CAST(k AS VARCHAR) FROM r)""",
    "a comma binds less than join": """
        SELECT a.id, c.id AS j FROM t AS a, r AS b LEFT JOIN r AS c ON b.k = c.k""",
    "a comma before a join that looks back": """
        SELECT a.id, c.id AS j FROM t AS a, r AS b RIGHT JOIN r AS c ON a.x = c.x""",
    "count_if of nulls is null": "SELECT s, count_if(b) AS n FROM t GROUP BY s",
    "one NaN deviates by nothing": """
        SELECT id, stddev_pop(x) AS p, stddev(x) AS s FROM t GROUP BY id""",
    "equal decimals deviate by nothing": "SELECT stddev(d) AS a, var_pop(d) AS b FROM t",
    "deviation of NaN": "SELECT stddev(x) AS a FROM t",
    "order by an alias that hides a column": "SELECT -k AS k, id FROM t ORDER BY k, id LIMIT 3",
    "a sum named like its column": """
        SELECT s, sum(k) AS k FROM t GROUP BY s ORDER BY sum(k) DESC NULLS LAST, s LIMIT 2""",
    "an alias of the list used in the list": "SELECT k + 1 AS a, a * 2 AS c FROM t WHERE a > 1",
    "group by a literal": "SELECT 1 AS one, count(*) AS n FROM t GROUP BY one",
    "group by a literal and a column": "SELECT 'x' AS v, k, count(*) AS n FROM t GROUP BY ALL",
    "offset without limit": "SELECT id FROM t ORDER BY id OFFSET 3",
    "limit zero": "SELECT id FROM t ORDER BY id LIMIT 0",
    "top of a join": """
        SELECT t.id, r.id AS j FROM t JOIN r USING (k) ORDER BY t.id DESC, j LIMIT 2""",
    "limit inside a subquery": """
        SELECT count(*) AS n, max(id) AS m
        FROM (SELECT id FROM t ORDER BY id LIMIT 3) WHERE id > 0""",
    "order inside a subquery": "SELECT id FROM (SELECT id FROM t ORDER BY id DESC) LIMIT 2",
    "the same table twice with different needs": """
        SELECT a.id, b.s FROM t a JOIN t b ON a.k = b.id WHERE b.x IS NOT NULL""",
    "a common table joined to itself": """
        WITH c AS (SELECT k, count(*) AS n FROM t GROUP BY k)
        SELECT a.k, b.n FROM c a JOIN c b ON a.n = b.n""",
    "names of an outer query inside": """
        SELECT id, (SELECT max(r.x) FROM r WHERE r.k = t.k) AS m FROM t""",
    "exists over an aggregate is always true": """
        SELECT id FROM t WHERE EXISTS (SELECT count(*) FROM r WHERE r.k = t.k AND r.k > 99)""",
    "text matches a regular expression": "SELECT id FROM t WHERE s ~ 'a'",
    "case of names": 'SELECT ID AS "Id", T."K" FROM T',
    "unnest of nulls and empty lists": "SELECT id, unnest(l) AS v FROM t",
    "full join using": "SELECT k, t.id, r.id AS j FROM t FULL JOIN r USING (k)",
    "star over using": "SELECT * FROM t JOIN r USING (k)",
    "window over groups": """
        SELECT s, count(*) AS n, sum(count(*)) OVER (ORDER BY s) AS c FROM t GROUP BY s""",
    "qualify": "SELECT id FROM t QUALIFY row_number() OVER (PARTITION BY k ORDER BY id) = 1",
    "string aggregates in order": "SELECT k, string_agg(s, ',' ORDER BY id) AS v FROM t GROUP BY k",
    "a mean of dates stays a date": """
        SELECT avg(d2) AS m FROM (SELECT DATE '2020-01-01' + id AS d2 FROM t)""",
    "in a tuple": "SELECT id FROM t WHERE (k, s) IN (SELECT k, s FROM r)",
    "distinct sums beside counts": "SELECT sum(DISTINCT k) AS a, count(*) AS b FROM t",
    "two different distincts": "SELECT count(DISTINCT k) AS a, count(DISTINCT s) AS b FROM t",
}


@pytest.fixture(scope="module")
def tables() -> dict[str, pa.Table]:
    made = {}
    with duckdb.connect(config={"arrow_lossless_conversion": True}) as connection:
        for name, schema in SCHEMAS.items():
            columns = ", ".join(f"{column} {kind}" for column, kind in schema.items())
            connection.execute(f"CREATE TABLE {name} ({columns})")
            connection.execute(f"INSERT INTO {name} VALUES {ROWS[name]}")
            made[name] = connection.sql(f"FROM {name}").to_arrow_table()
    return made


@pytest.fixture(scope="module")
def tools() -> Iterator[tuple[DuckDBBinder, Sandbox, Sandbox]]:
    binder, stages, results = DuckDBBinder(SCHEMAS), Sandbox(), Sandbox(types=Types.PLAIN)
    yield binder, stages, results
    for tool in (binder, stages, results):
        tool.close()


def _batches(tables: Mapping[str, pa.Table], size: int) -> dict[str, list[pa.Table]]:
    return {
        name: [rows.slice(start, size) for start in range(0, rows.num_rows, size)]
        for name, rows in tables.items()
    }


def _shuffled(numbers: Sequence[int]) -> list[int]:
    return random.Random(len(numbers)).sample(numbers, len(numbers))


@pytest.mark.one_in(3)
@pytest.mark.parametrize("name", TRAPS)
def test_trap(
    name: str, tables: dict[str, pa.Table], tools: tuple[DuckDBBinder, Sandbox, Sandbox]
) -> None:
    binder, stages, results = tools
    made = plan({"q": TRAPS[name]}, SCHEMAS, binder=binder)
    with duckdb.connect(config={"threads": 1}) as direct:
        for table, rows in tables.items():
            direct.register(table, rows)
        expected = presented(direct.sql(TRAPS[name]))
    ordered = "ORDER BY" in TRAPS[name].rsplit(")", 1)[-1]
    for size, partitions in ((1, 4), (2, 3), (3, 1), (9, 5)):
        for hinted in (False, True):
            run = PlanRun(made, partitions, stages, results, hinted)
            answers = run.answers(_batches(tables, size), _shuffled)
            compare(expected, answers["q"], ordered=ordered)
