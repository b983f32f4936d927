"""Columns of the side that an outer join null-extends are null in its rows, constants too."""

from collections.abc import Iterator
from contextlib import closing

import pytest
from tests.harness.every_cut import EveryCut

NOT_NULL_OF_NULLS = (
    "1 AS number, 'x' AS text, TRUE AS truth, NULL AS nothing, DATE '2020-01-01' AS day, "
    "coalesce(item, 9) AS some, item IS NULL AS no, CASE WHEN item > 1 THEN 2 ELSE 3 END AS c, "
    "concat(item, '!') AS told, 2.5 AS decimal"
)
SIDES = {
    "a table": "SELECT item FROM items",
    "one row": "SELECT 3 AS item",
    "one group": "SELECT count(*) AS item FROM shops",
    "values": "SELECT item FROM (VALUES (1), (3), (8)) AS v(item)",
    "windows": "SELECT item, row_number() OVER (PARTITION BY item ORDER BY name) AS r FROM items",
    "windows over all": "SELECT item, rank() OVER (ORDER BY item) AS r FROM items",
    "groups": "SELECT item, count(*) AS n FROM items GROUP BY item",
    "a join": "SELECT i.item, n.f FROM items i JOIN numbers n ON i.item = n.n",
    "an outer join": "SELECT i.item, n.f FROM items i LEFT JOIN numbers n ON i.item = n.n",
    "a union": "SELECT item FROM items UNION ALL SELECT 9",
    "cut rows": "SELECT item FROM items ORDER BY item LIMIT 2",
}
OTHERS = [
    "SELECT item FROM sales",
    "SELECT count(*) AS item FROM items",
    "SELECT item, max(id) AS m FROM sales GROUP BY item",
    "SELECT 1 AS item",
]
CHAINS = [
    """SELECT s.id, x.flag FROM sales s LEFT JOIN (SELECT item, 1 AS flag,
    row_number() OVER (PARTITION BY item ORDER BY name) AS r FROM items) x ON s.item = x.item""",
    """WITH p AS (SELECT 3 AS lim), t AS (SELECT count(*) AS n FROM sales)
    SELECT n, lim FROM t LEFT JOIN p ON n < lim""",
    """SELECT * FROM (SELECT 1 AS k) a FULL JOIN (SELECT 2 AS k) b USING (k)
    FULL JOIN (SELECT 3 AS k) c USING (k)""",
    """SELECT a.k, b.j, c.i FROM (SELECT 1 AS k) a LEFT JOIN (SELECT 2 AS j) b ON k = j
    RIGHT JOIN (SELECT 3 AS i) c ON i = k""",
    """SELECT s.id, c.one, d.two FROM sales s LEFT JOIN (SELECT item, 1 AS one, count(*) AS n
    FROM items GROUP BY item) c ON s.item = c.item FULL JOIN (SELECT 2 AS two, 5 AS id) d
    ON s.id = d.id AND c.one = 1""",
    """SELECT flag, count(*) AS n FROM sales s LEFT JOIN (SELECT item, 1 AS flag FROM items
    GROUP BY item) x ON s.item = x.item GROUP BY flag""",
    """SELECT s.id FROM sales s LEFT JOIN (SELECT item, 'x' AS flag FROM items GROUP BY item) x
    ON s.item = x.item WHERE flag IS NULL""",
    """SELECT s.id, row_number() OVER (PARTITION BY flag ORDER BY s.id) AS r FROM sales s
    LEFT JOIN (SELECT item, TRUE AS flag FROM items GROUP BY item) x ON s.item = x.item""",
    """SELECT a.item, b.item AS other, f FROM (SELECT item, 1 AS f FROM items LIMIT 2) a
    RIGHT JOIN (SELECT item FROM items ORDER BY item DESC LIMIT 2) b ON a.item = b.item""",
]


@pytest.fixture(scope="module")
def cuts() -> Iterator[EveryCut]:
    with closing(EveryCut()) as made:
        yield made


@pytest.mark.one_in(3)
@pytest.mark.parametrize("kind", ["LEFT", "RIGHT", "FULL"])
@pytest.mark.parametrize("side", SIDES)
def test_no_value_stands_where_there_was_no_partner(side: str, kind: str, cuts: EveryCut) -> None:
    inner = f"(SELECT *, {NOT_NULL_OF_NULLS} FROM ({SIDES[side]})) AS c"
    for other in OTHERS:
        for one, two in ((f"({other}) AS o", inner), (inner, f"({other}) AS o")):
            for condition in ("c.item = o.item", "c.item > o.item + 2"):
                joined = f"{one} {kind} JOIN {two} ON {condition}"
                cuts.check(f"SELECT o.item AS other, c.* FROM {joined}")


@pytest.mark.parametrize("sql", CHAINS)
def test_chains_of_joins(sql: str, cuts: EveryCut) -> None:
    cuts.check(sql)


def test_a_constant_stays_where_rows_are_not_null_extended(cuts: EveryCut) -> None:
    grouped = "SELECT item, 1 AS f FROM items GROUP BY item"
    sql = f"SELECT s.id, f FROM sales s JOIN ({grouped}) USING (item)"
    cuts.check(sql)
    assert cuts.planned(sql).finish("q").strategy == "scaled"


@pytest.mark.parametrize("key", ["TRUE", "NULL", "7", "1e2", "'x'", "2.5"])
def test_a_constant_group_key_is_no_position(key: str, cuts: EveryCut) -> None:
    cuts.check(f"SELECT c, count(*) AS n FROM (SELECT {key} AS c, id FROM sales) GROUP BY c")
