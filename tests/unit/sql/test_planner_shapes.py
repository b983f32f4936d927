"""Shapes that must split, one by one, each with the rows that DuckDB gives."""

import random
from collections.abc import Iterator

import pyarrow as pa
import pytest
from tests.fuzz.check import Bench, compare
from tests.fuzz.tables import SCHEMAS

from caudal.sql.planner import plan

SPLIT = {
    "group by": "SELECT shop, count(*) AS n, sum(price) AS s FROM sales GROUP BY shop",
    "group by expression": "SELECT year(day) AS y, max(rid) AS m FROM sales GROUP BY 1",
    "group by all": "SELECT shop, item, count(*) AS n FROM sales GROUP BY ALL",
    "distinct": "SELECT DISTINCT shop, item FROM sales",
    "top": "SELECT rid, price FROM sales ORDER BY price DESC, rid LIMIT 4 OFFSET 1",
    "filter": "SELECT rid, upper(shop) AS shop FROM sales WHERE price > 0 AND shop IS NOT NULL",
    "order": "SELECT rid FROM sales WHERE rid > 2 ORDER BY rid DESC",
    "inner join": "SELECT s.rid, i.name FROM sales s JOIN items i ON s.item = i.item",
    "left join": "SELECT s.rid, i.name FROM sales s LEFT JOIN items i ON s.item = i.item",
    "right join": "SELECT s.rid, i.name FROM sales s RIGHT JOIN items i ON s.item = i.item",
    "full join": "SELECT s.rid, i.rid AS i FROM sales s FULL JOIN items i ON s.item = i.item",
    "semi join": "SELECT rid FROM sales s SEMI JOIN items i ON s.item = i.item",
    "anti join": "SELECT rid FROM sales s ANTI JOIN items i ON s.item = i.item",
    "in": "SELECT rid FROM sales WHERE item IN (SELECT item FROM items WHERE sold)",
    "exists": "SELECT rid FROM sales s WHERE EXISTS (FROM items i WHERE i.item = s.item)",
    "not exists": "SELECT rid FROM sales s WHERE NOT EXISTS (FROM items i WHERE i.item = s.item)",
    "comma join": "SELECT s.rid FROM sales s, items i WHERE s.item = i.item AND i.sold",
    "using": "SELECT item, count(*) AS n FROM sales JOIN items USING (item) GROUP BY item",
    "cross join": "SELECT s.rid, t.rid AS t FROM sales s CROSS JOIN shops t",
    "join with group, having, order and limit": """
        SELECT i.name, count(*) AS n, sum(s.paid) AS paid FROM sales s JOIN items i USING (item)
        WHERE s.rid > 1 GROUP BY i.name HAVING count(*) > 1 ORDER BY paid DESC, name LIMIT 3""",
    "left join with group": """
        SELECT t.shop, count(s.rid) AS n FROM shops t LEFT JOIN sales s ON s.shop = t.shop
        GROUP BY t.shop ORDER BY n DESC, t.shop LIMIT 5""",
    "semi join with group": """
        SELECT shop, sum(price) AS s FROM sales WHERE shop IN (SELECT shop FROM shops)
        GROUP BY shop HAVING count(*) > 1""",
    "anti join with group": """
        SELECT s.shop, count(*) AS n FROM sales s ANTI JOIN shops t ON s.shop = t.shop
        GROUP BY s.shop""",
    "chain of joins on different keys": """
        SELECT t."Town Hall" AS town, sum(i.weight) AS w FROM sales s
        JOIN items i ON i.item = s.item JOIN shops t ON t.shop = s.shop GROUP BY 1""",
    "chain of outer joins": """
        SELECT s.rid, i.name, t.size FROM sales s LEFT JOIN items i ON i.item = s.item
        LEFT JOIN shops t ON t.shop = s.shop""",
    "keys of different types": "SELECT s.rid FROM sales s JOIN shops t ON s.price = t.size",
    "count": "SELECT count(*) AS a, count(shop) AS b FROM sales",
    "sum": "SELECT sum(item) AS a, sum(paid) AS b, sum(price) AS c, sum(big) AS d FROM sales",
    "avg": "SELECT avg(item) AS a, avg(paid) AS b, avg(price) AS c FROM sales",
    "min and max": "SELECT min(shop) AS a, max(price) AS b, min(day) AS c FROM sales",
    "count distinct": "SELECT count(DISTINCT shop) AS a, count(*) AS b, sum(rid) AS c FROM sales",
    "count distinct by key": "SELECT item, count(DISTINCT shop) AS n FROM sales GROUP BY item",
    "stddev": "SELECT stddev(price) AS a, var_pop(paid) AS b FROM sales",
    "stddev by key": "SELECT shop, stddev_pop(price) AS a FROM sales GROUP BY shop",
    "filtered aggregates": """
        SELECT count(*) FILTER (WHERE price > 0) AS a, avg(rid) FILTER (WHERE item = 1) AS b
        FROM sales""",
    "quantile by key": "SELECT shop, quantile_cont(price, 0.5) AS q FROM sales GROUP BY shop",
    "list by key": "SELECT shop, list(rid ORDER BY rid) AS l FROM sales GROUP BY shop",
    "union all": "SELECT rid, shop FROM sales UNION ALL SELECT rid, shop FROM shops",
    "group over union all": """
        SELECT k, count(*) AS n FROM
        (SELECT item AS k FROM sales UNION ALL SELECT item FROM items) GROUP BY k""",
    "union": "SELECT shop FROM sales UNION SELECT shop FROM shops",
    "except": "SELECT shop, rid FROM sales EXCEPT SELECT shop, rid FROM shops",
    "intersect": "SELECT shop FROM sales INTERSECT SELECT shop FROM shops",
    "scalar subquery": "SELECT rid FROM sales WHERE price > (SELECT avg(weight) FROM items)",
    "scalar subquery and group": """
        SELECT shop, count(*) AS n FROM sales WHERE rid > (SELECT min(rid) + 1 FROM items)
        GROUP BY shop""",
    "order by a subquery": """
        SELECT rid FROM sales ORDER BY item - (SELECT max(item) FROM items) DESC, rid""",
    "order by a subquery with limit": """
        SELECT rid FROM sales ORDER BY item - (SELECT max(item) FROM items) DESC, rid LIMIT 3""",
    "a function of null": "SELECT rid, abs(NULL) AS a FROM sales",
    "scalar subquery in the list": "SELECT rid, (SELECT max(size) FROM shops) AS m FROM sales",
    "not in": "SELECT rid FROM sales WHERE item NOT IN (SELECT item FROM items)",
    "unnest in the list": "SELECT rid, unnest(tags) AS tag FROM sales",
    "unnest in from": "SELECT v, count(*) AS n FROM sales s, unnest(s.tags) AS u(v) GROUP BY v",
    "group over unnest": """
        SELECT tag, count(DISTINCT rid) AS n FROM (SELECT rid, unnest(tags) AS tag FROM sales)
        GROUP BY tag HAVING count(*) > 1 ORDER BY n DESC, tag LIMIT 3""",
    "common table twice": """
        WITH sums AS (SELECT shop, sum(rid) AS s FROM sales GROUP BY shop)
        SELECT shop FROM sums WHERE s >= (SELECT quantile_cont(s, 0.5) FROM sums)""",
    "no table": "SELECT 1 AS a, 'x' AS b",
    "values": """
        SELECT k.kind, c.n FROM (VALUES ('a'), ('b')) AS k(kind)
        LEFT JOIN (SELECT shop, count(*) AS n FROM sales GROUP BY shop) c ON c.shop = k.kind""",
    "names that need quotes": """
        SELECT "Town Hall" AS "a b", count(*) AS "c""d" FROM shops GROUP BY 1""",
    "names in another case": "SELECT Sales.SHOP, COUNT(*) AS n FROM SALES GROUP BY Shop",
    "names without alias": "SELECT count(*), sum(rid + 1), avg(price) FROM sales",
    "equal names": "SELECT rid AS x, shop AS x FROM sales",
}

UNREADABLE = "SELECT rid! AS f FROM sales WHERE rid < 9"

GATHERED = {
    "window functions": (
        "SELECT rid, row_number() OVER (ORDER BY rid) AS n FROM sales",
        "window functions",
    ),
    "recursive": (
        "WITH RECURSIVE r AS (SELECT 1 AS n UNION ALL SELECT n + 1 FROM r WHERE n < "
        "(SELECT count(*) FROM sales)) SELECT n FROM r",
        "recursive",
    ),
    "correlated scalar subquery": (
        "SELECT rid, (SELECT count(*) FROM items i WHERE i.item = s.item) AS n FROM sales s",
        "is not a column of its own SELECT",
    ),
    "grouping sets": ("SELECT shop, count(*) AS n FROM sales GROUP BY ROLLUP (shop)", "rollup"),
    "median of everything": ("SELECT median(price) AS m FROM sales", "no parts"),
    "positional join": (
        "SELECT s.rid, t.rid AS t FROM sales s POSITIONAL JOIN shops t",
        "POSITIONAL join",
    ),
    "lateral join": (
        "SELECT s.rid, l.x FROM sales s, LATERAL (SELECT s.rid + 1 AS x) l",
        "lateral is not split",
    ),
}


@pytest.fixture(scope="module")
def bench() -> Iterator[Bench]:
    made = Bench()
    yield made
    made.close()


@pytest.fixture(scope="module", params=["full", "empty"])
def tables(request: pytest.FixtureRequest, bench: Bench) -> dict[str, pa.Table]:
    drawn = (bench.maker.tables(random.Random(seed)) for seed in range(1000))
    full = next(made for made in drawn if min(t.num_rows for t in made.values()) >= 8)
    if request.param == "empty":
        return {name: table.slice(0, 0) for name, table in full.items()}
    return full


def _same_rows(sql: str, bench: Bench, tables: dict[str, pa.Table]) -> None:
    expected = bench.expected(sql, tables)
    assert expected is not None
    made = plan({"q": sql}, SCHEMAS, binder=bench.binder)
    for seed in range(3):
        answers = bench.answer(made, tables, random.Random(seed))
        compare(expected, answers["q"], ordered=False)


@pytest.mark.one_in(2)
@pytest.mark.parametrize("name", SPLIT)
def test_splits_with_the_same_rows(name: str, bench: Bench, tables: dict[str, pa.Table]) -> None:
    finish = plan({"q": SPLIT[name]}, SCHEMAS, binder=bench.binder).finish("q")
    assert (finish.strategy, finish.reason) == ("scaled", "")
    _same_rows(SPLIT[name], bench, tables)


@pytest.mark.parametrize("name", GATHERED)
def test_gathers_with_a_reason(name: str, bench: Bench, tables: dict[str, pa.Table]) -> None:
    sql, reason = GATHERED[name]
    finish = plan({"q": sql}, SCHEMAS, binder=bench.binder).finish("q")
    assert finish.strategy == "gathered"
    assert reason in finish.reason
    _same_rows(sql, bench, tables)


def test_takes_whole_tables_if_only_duckdb_can_read_the_text(
    bench: Bench, tables: dict[str, pa.Table]
) -> None:
    sql = UNREADABLE
    finish = plan({"q": sql}, SCHEMAS, binder=bench.binder).finish("q")
    assert finish.strategy == "whole tables"
    assert list(finish.inputs) == ["sales"]
    _same_rows(sql, bench, tables)
