"""LIMIT and OFFSET: every reader sees the same rows, in the order that a subquery gives them."""

import re
from collections.abc import Iterator
from contextlib import closing

import pytest
from tests.harness.every_cut import EveryCut

# A SELECT with LIMIT, and two of its columns. Many rows tie.
CUT_ROWS = {
    "ordered": ("SELECT id, shop FROM sales WHERE item = 2 ORDER BY item LIMIT 1", "id", "shop"),
    "of a join": (
        "SELECT s.id, i.name, s.shop FROM sales s JOIN items i USING (item) LIMIT 1", "shop", "id"
    ),
    "of a join in one place": (
        "SELECT s.id, i.name FROM sales s FULL JOIN items i ON s.item < i.item LIMIT 1",
        "name", "id",
    ),
    "of groups": ("SELECT shop, count(*) AS n, max(id) AS m FROM sales GROUP BY shop LIMIT 1",
                  "shop", "m"),
    "of a set operation": (
        "SELECT shop, id FROM sales EXCEPT SELECT shop, size FROM shops LIMIT 1", "id", "shop"
    ),
    "of a union": (
        "SELECT shop, id FROM sales UNION SELECT shop, size FROM shops ORDER BY 2 > 9 LIMIT 1",
        "id", "shop",
    ),
    "with an offset": ("SELECT shop, id, item FROM sales ORDER BY item > 0 LIMIT 1 OFFSET 2",
                       "id", "item"),
    "in the order of the files": ("SELECT shop, id, day FROM sales LIMIT 1", "day", "id"),
    "of windows": (
        "SELECT shop, id, count(*) OVER (PARTITION BY shop) AS n FROM sales LIMIT 1", "id", "n"
    ),
    "of windows in one place": (
        "SELECT id, row_number() OVER (ORDER BY price DESC, id) AS n FROM sales LIMIT 1", "id", "n"
    ),
    "of windows in two orders": (
        "SELECT id, row_number() OVER (ORDER BY price DESC, id) AS n, "
        "row_number() OVER (ORDER BY day DESC) AS m FROM sales LIMIT 1", "n", "m",
    ),
    "of filtered windows": (
        "SELECT shop, id, n FROM (SELECT id, shop, rank() OVER (ORDER BY price DESC, id) AS n "
        "FROM sales) WHERE id > 1 LIMIT 1 OFFSET 1", "n", "shop",
    ),
    "of groups in one place": (
        "SELECT spot, max(name) AS m, count(*) AS n FROM items GROUP BY spot LIMIT 1", "n", "m"
    ),
    "of groups of windows": (
        "SELECT r > 2 AS k, max(id) AS m, min(id) AS n FROM (SELECT id, rank() OVER (ORDER BY "
        "price DESC, id) AS r FROM sales) GROUP BY k LIMIT 1", "n", "m",
    ),
    "cut twice": (
        "SELECT id, shop, d FROM (SELECT id, shop, day AS d FROM sales ORDER BY item > 0 LIMIT 4) "
        "LIMIT 1", "shop", "id",
    ),
}  # fmt: skip

# Each order is total, so DuckDB's rows are the only right ones.
JOINED = "SELECT s.id, i.name FROM sales s JOIN items i ON s.item = i.item ORDER BY s.id DESC"
GROUPED = "SELECT shop, sum(id) AS n FROM sales GROUP BY shop ORDER BY n, shop"
ORDERED_INSIDE = [
    f"SELECT * FROM ({GROUPED}) LIMIT 2",
    f"SELECT * FROM ({GROUPED}) LIMIT 2 OFFSET 1",
    f"SELECT n FROM ({GROUPED}) OFFSET 2",
    f"WITH t AS ({GROUPED}) SELECT shop FROM t LIMIT 1",
    f"SELECT * FROM ({JOINED}) LIMIT 3",
    f"SELECT max(id) AS m, min(id) AS l FROM (SELECT * FROM ({JOINED}) LIMIT 2)",
    f"SELECT * FROM ({JOINED}) OFFSET 4",
    f"SELECT id + 1 AS more, upper(name) AS u FROM ({JOINED}) WHERE id < 6 LIMIT 2",
    f"SELECT * FROM (SELECT id FROM ({JOINED}) WHERE id > 1) WHERE id < 6 LIMIT 2",
    f"SELECT * FROM (SELECT * FROM ({JOINED} LIMIT 4) OFFSET 1) LIMIT 2",
    f"SELECT * FROM (SELECT * FROM ({JOINED}) LIMIT 4) OFFSET 1",
    f"SELECT name FROM ({JOINED} LIMIT 3) LIMIT 2",
    "SELECT id FROM (SELECT id, price FROM sales ORDER BY price DESC NULLS LAST, id) LIMIT 3",
    "SELECT id FROM (SELECT id FROM sales ORDER BY length(note) DESC NULLS FIRST, id) LIMIT 3",
    "SELECT id FROM (SELECT * FROM (SELECT id FROM sales ORDER BY id) ORDER BY id DESC) LIMIT 2",
    "SELECT c FROM (SELECT id, 1 AS c FROM sales ORDER BY id DESC) LIMIT 2",
    "SELECT * FROM (SELECT shop FROM sales UNION SELECT town FROM shops ORDER BY 1 DESC) LIMIT 3",
]
HANDED_OVER = [
    f"SELECT * FROM (({JOINED}) UNION ALL (SELECT item, name FROM items)) LIMIT 3",
    f"SELECT *, count(*) OVER () AS c FROM ({JOINED}) LIMIT 3",
    f"SELECT id, row_number() OVER () AS r FROM ({JOINED}) OFFSET 2",
    "SELECT id, unnest(tags) AS t FROM (SELECT * FROM sales ORDER BY id DESC) LIMIT 3",
    "SELECT id, t FROM (SELECT * FROM sales ORDER BY id DESC), unnest(tags) AS u(t) LIMIT 3",
    f"SELECT * FROM ({JOINED}) WHERE id > (SELECT min(item) FROM items) LIMIT 2",
    f"SELECT id, (SELECT max(item) FROM items) AS m FROM ({JOINED}) LIMIT 2",
    f"SELECT * FROM ({GROUPED}) WHERE shop IN (SELECT shop FROM shops) LIMIT 1",
    f"SELECT * FROM ({GROUPED} LIMIT 3) t LEFT JOIN shops USING (shop) LIMIT 2",
]


@pytest.fixture(scope="module")
def cuts() -> Iterator[EveryCut]:
    with closing(EveryCut()) as made:
        yield made


@pytest.mark.parametrize("name", CUT_ROWS)
def test_every_reader_sees_the_same_rows(name: str, cuts: EveryCut) -> None:
    sql, one, two = CUT_ROWS[name]
    both = f"SELECT {one}, {two} FROM ({sql})"
    readers = [
        f"WITH t AS ({sql}) SELECT (SELECT {one} FROM t) AS {one}, (SELECT {two} FROM t) AS {two}",
        f"WITH t AS ({sql}) SELECT a.{one}, b.{two} FROM t AS a, t AS b",
        f"WITH t AS ({sql}), a AS (SELECT {one} FROM t), b AS (SELECT {two} FROM t) "
        "SELECT * FROM a CROSS JOIN b",
        f"WITH t AS ({sql}) SELECT {one}, {two} FROM t",
    ]
    (seen,) = {
        str(rows.to_pylist()) for reader in [both, *readers] for rows in cuts.answers(reader)
    }
    uncut = re.sub(r" LIMIT \d+( OFFSET \d+)?", "", sql)
    all_rows = cuts.expected(f"SELECT {one}, {two} FROM ({uncut})")
    assert seen in [str([row]) for row in all_rows.to_pylist()]


@pytest.mark.parametrize("sql", ORDERED_INSIDE)
def test_rows_are_cut_in_the_order_of_the_subquery(sql: str, cuts: EveryCut) -> None:
    cuts.check(sql, ordered=True)
    assert cuts.planned(sql).finish("q").strategy == "scaled"


@pytest.mark.parametrize("sql", HANDED_OVER)
def test_what_may_change_an_order_is_left_to_duckdb(sql: str, cuts: EveryCut) -> None:
    cuts.check(sql, ordered=True)
    finish = cuts.planned(sql).finish("q")
    assert (finish.strategy, finish.reason) == (
        "gathered", "LIMIT around rows that a subquery orders",
    )  # fmt: skip


@pytest.mark.parametrize(
    "sql",
    [
        f"SELECT * FROM sales WHERE shop IN (SELECT shop FROM ({GROUPED} LIMIT 2)) LIMIT 100",
        f"SELECT shop, count(*) AS n FROM ({GROUPED}) GROUP BY shop LIMIT 100",
        f"SELECT id, (SELECT shop FROM ({GROUPED} LIMIT 1)) AS s FROM sales LIMIT 100",
    ],
)
def test_an_order_that_no_row_has_is_no_obstacle(sql: str, cuts: EveryCut) -> None:
    cuts.check(sql)
    assert cuts.planned(sql).finish("q").strategy == "scaled"


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT id, CAST(note AS INTEGER) AS n FROM sales ORDER BY id LIMIT 1",
        "SELECT id, n, row_number() OVER (PARTITION BY shop ORDER BY id) AS r FROM "
        "(SELECT id, shop, CAST(note AS INTEGER) AS n FROM sales) ORDER BY id LIMIT 1",
        "SELECT s.id, n FROM sales s JOIN (SELECT id, CAST(note AS INTEGER) AS n FROM sales) "
        "USING (id) ORDER BY id LIMIT 1",
        "SELECT id, CAST(note AS INTEGER) AS n FROM sales UNION ALL SELECT item, 1 FROM items "
        "ORDER BY id LIMIT 1",
    ],
)
def test_a_column_that_nobody_reads_raises_nothing(sql: str, cuts: EveryCut) -> None:
    cuts.check(f"SELECT id FROM ({sql})")


def test_a_cut_in_the_order_of_the_files_reads_no_more_columns(cuts: EveryCut) -> None:
    (scan,) = cuts.planned("SELECT id FROM (SELECT * FROM sales LIMIT 3)").scans
    assert '"shop"' not in scan.sql
