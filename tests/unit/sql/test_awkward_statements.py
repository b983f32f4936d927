"""Whatever DuckDB takes for a SELECT, both engines answer alike."""

from collections.abc import Sequence
from pathlib import Path

import pytest
from tests.fuzz.check import compare

from caudal.errors import ApplicationError, CaudalError
from caudal.files.sources import Sources
from caudal.local.engines import run_with
from caudal.model import Application, Query, Table
from caudal.results.answers import Result
from caudal.run_options import IN_PROCESS, Engine, RunOptions

TABLES = {
    "sales": (
        "shop,item,price,day\n"
        "a,1,2.5,2020-01-03\nb,2,0.5,2020-01-01\na,2,1.5,2020-01-02\nc,3,,2020-01-05\n"
        "b,1,4.0,2020-01-04\na,3,8.25,2020-01-06\n,4,1.0,2020-01-07\n"
    ),
    "items": "item,name\n1,pen\n2,ink\n3,\n5,cup\n",
}
SALES = (
    "SELECT nullif(shop, '') AS shop, item::INTEGER AS item, try_cast(price AS DOUBLE) AS price, "
    "day::DATE AS day, NULL::VARCHAR AS reject FROM raw"
)
ITEMS = "SELECT item::INTEGER AS item, nullif(name, '') AS name, NULL::VARCHAR AS reject FROM raw"

STATEMENTS = [
    # Positions instead of names.
    "SELECT #1 FROM sales",
    "SELECT #2, #1 FROM sales ORDER BY ALL",
    "SELECT #1 + #2 FROM (SELECT item, price FROM sales)",
    "SELECT item FROM sales ORDER BY #1 DESC LIMIT 2",
    "SELECT s.item FROM sales AS s, items WHERE #2 = #5 ORDER BY 1",
    "SELECT shop, item FROM sales ORDER BY 2, 1 NULLS FIRST",
    # FROM first, tables and values by themselves.
    "FROM sales",
    "FROM sales SELECT item ORDER BY item",
    "FROM sales SELECT shop, sum(item) GROUP BY ALL ORDER BY ALL",
    "FROM sales WHERE item > 2 ORDER BY ALL",
    "FROM (FROM items) AS i JOIN sales USING (item) SELECT name, price ORDER BY ALL",
    "TABLE items",
    "TABLE items ORDER BY item LIMIT 1",
    "VALUES (1, 'a'), (2, 'b')",
    "SELECT * FROM (VALUES (1), (2)) AS v(x), items ORDER BY ALL",
    "(SELECT item FROM items) ORDER BY 1",
    "((SELECT item FROM items)) UNION ALL (SELECT item FROM sales) ORDER BY 1",
    "SELECT 1",
    "SELECT 1 AS a, 2 AS a",
    # Pivots and summaries.
    "PIVOT sales ON shop IN ('a', 'b') USING sum(item) GROUP BY item ORDER BY item",
    "SELECT * FROM (PIVOT sales ON shop IN ('a', 'b') USING count(*) GROUP BY item) ORDER BY item",
    "FROM sales PIVOT (sum(item) FOR shop IN ('a', 'b') GROUP BY day) ORDER BY day",
    "UNPIVOT (SELECT item, price * 2 AS p FROM sales) ON p ORDER BY ALL",
    "FROM (SELECT item AS a, item + 1 AS b FROM items) UNPIVOT (v FOR k IN (a, b)) ORDER BY ALL",
    "SUMMARIZE items",
    "SELECT column_name, max FROM (SUMMARIZE items)",
    "SELECT column_name FROM (DESCRIBE items)",
    "DESCRIBE SELECT item FROM items",
    # Joins of every kind.
    "SELECT * FROM items NATURAL JOIN sales ORDER BY ALL",
    "SELECT * FROM sales POSITIONAL JOIN items",
    "SELECT s.day, i.name FROM sales s ASOF JOIN items i ON s.item >= i.item ORDER BY ALL",
    "SELECT s.day, i.name FROM sales s ASOF LEFT JOIN items i USING (item) ORDER BY ALL",
    "SELECT * FROM items SEMI JOIN sales USING (item) ORDER BY ALL",
    "SELECT * FROM items ANTI JOIN sales USING (item) ORDER BY ALL",
    "SELECT item, count(*) FROM items FULL JOIN sales USING (item) GROUP BY item ORDER BY ALL",
    "SELECT i.name, l.n FROM items i, LATERAL (SELECT count(*) AS n FROM sales s "
    "WHERE s.item = i.item) AS l ORDER BY ALL",
    "SELECT * FROM items LEFT JOIN LATERAL (SELECT items.item + 1 AS next) ON true ORDER BY ALL",
    "SELECT main.sales.item FROM main.sales ORDER BY 1",
    "SELECT s.item FROM main.sales s JOIN main.items i ON s.item = i.item ORDER BY 1",
    # Windows and what filters them.
    "SELECT shop, item FROM sales QUALIFY row_number() OVER (PARTITION BY shop ORDER BY day) = 1 "
    "ORDER BY ALL",
    "SELECT day, sum(item) OVER w FROM sales WINDOW w AS (ORDER BY day) ORDER BY ALL",
    "SELECT day, lag(price IGNORE NULLS) OVER (ORDER BY day) FROM sales ORDER BY ALL",
    # Stars and columns by pattern.
    "SELECT COLUMNS('i.*') FROM items ORDER BY ALL",
    "SELECT min(COLUMNS(*)) FROM items",
    "SELECT * EXCLUDE (day) FROM sales ORDER BY ALL",
    "SELECT * REPLACE (item * 2 AS item) FROM items ORDER BY ALL",
    "SELECT * RENAME (item AS thing) FROM items ORDER BY ALL",
    "SELECT * LIKE 'it%' FROM items ORDER BY ALL",
    "SELECT sales FROM sales ORDER BY ALL",
    "SELECT s.* FROM sales AS s(a, b) ORDER BY ALL",
    # Groups.
    "SELECT shop, item, count(*) FROM sales GROUP BY CUBE (shop, item) ORDER BY ALL",
    "SELECT shop, count(*) FROM sales GROUP BY ROLLUP (shop) ORDER BY ALL",
    "SELECT shop, item, grouping(shop) FROM sales GROUP BY GROUPING SETS ((shop), (item)) "
    "ORDER BY ALL",
    "SELECT DISTINCT ON (shop) shop, day FROM sales ORDER BY shop, day",
    "SELECT shop, list(item ORDER BY day) FROM sales GROUP BY ALL HAVING count(*) > 1 ORDER BY ALL",
    "SELECT arg_max(shop, price), max_by(day, price, 2) FROM sales",
    "SELECT count(*) FILTER (item > 1), sum(DISTINCT item) FROM sales",
    # Sets by name, common tables, recursion.
    "SELECT item FROM items UNION BY NAME SELECT item, price FROM sales ORDER BY ALL",
    "SELECT item FROM items UNION ALL BY NAME SELECT shop FROM sales ORDER BY ALL",
    "WITH x AS MATERIALIZED (FROM items) FROM x, x AS y ORDER BY ALL",
    "WITH x(a) AS (SELECT item FROM items) SELECT a, (SELECT max(a) FROM x) FROM x ORDER BY ALL",
    "WITH RECURSIVE r AS (SELECT 1 AS n UNION ALL SELECT n + 1 FROM r WHERE n < 4) "
    "SELECT n, name FROM r LEFT JOIN items ON n = item ORDER BY ALL",
    "WITH sales AS (SELECT 7 AS item) SELECT * FROM sales, items ORDER BY ALL",
    # Lists, structs, maps, lambdas and other grammar.
    "SELECT [x + 1 FOR x IN list(item ORDER BY item) IF x > 1] FROM sales",
    "SELECT list_transform(list(item ORDER BY day), lambda x: x * 2) FROM sales",
    "SELECT {'a': item, 'b': name}.a FROM items ORDER BY ALL",
    "SELECT MAP {'a': item} FROM items ORDER BY ALL",
    "SELECT unnest([item, item + 1]) AS u, name FROM items ORDER BY ALL",
    "SELECT name.upper().reverse() FROM items ORDER BY ALL",
    "SELECT item: item + 1 FROM items ORDER BY ALL",
    "SELECT name COLLATE NOCASE AS n FROM items ORDER BY n",
    "SELECT name FROM items WHERE name ILIKE 'P%' OR name SIMILAR TO 'i.*' ORDER BY ALL",
    "SELECT CASE item WHEN 1 THEN 'one' END, item::VARCHAR || 'x', -item, item // 2, item ** 2 "
    "FROM items ORDER BY ALL",
    "SELECT day - INTERVAL 1 DAY, day + 1, date_trunc('month', day), extract(dow FROM day) "
    "FROM sales ORDER BY ALL",
    "SELECT item FROM sales WHERE (shop, item) IN (SELECT ('a', 2)) OR item = ANY (SELECT 4)",
    "SELECT item FROM items LIMIT 50%",
    "SELECT item FROM items ORDER BY item LIMIT (SELECT 2) OFFSET 1",
    "SELECT item FROM items -- a comment\nORDER BY item /* another */",
    "SELECT 'a;b' AS \"x;y\", $$it's$$ AS d, E'\\n' AS e FROM items LIMIT 1",
    'SELECT "ITEM" AS "Item", ITEM FROM Items ORDER BY 1',
    "SELECT item AS item, count(*) OVER () FROM items WHERE EXISTS (FROM sales) ORDER BY ALL",
    "SELECT TRY(item / 0), coalesce(name, '?') FROM items ORDER BY ALL",
    "SELECT s.item FROM sales s, items WHERE s.item = #5 ORDER BY 1",
    "SELECT name FROM sales s, items i WHERE s.item = i.item AND #1 = 'a' ORDER BY 1",
    "SELECT max(it) FROM query('SELECT ite' || 'm AS it FROM items')",
    "SELECT item FROM query_table('items') ORDER BY ALL",
    "SELECT a.item FROM items a, generate_series(1, a.item) AS g(n) ORDER BY ALL",
]

REFUSED = [
    "PIVOT sales ON shop USING sum(item)",  # creates a type, then selects: two statements
    "SELECT nothing FROM sales",
    "SELECT #9 FROM items",
    "SELECT shop, count(*) FROM sales GROUP BY #1",
    "SELECT 1; SELECT 2",
    "CALL range(3)",
    "EXPLAIN SELECT 1",
    "DELETE FROM sales",
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("awkward")
    for name, text in TABLES.items():
        (made / f"{name}.csv").write_text(text, encoding="utf-8")
    return made


def answers(engine: Engine, folder: Path, texts: Sequence[str]) -> list[Result | str]:
    """The answers of all, in one run; if it fails, each by itself, so that others still show."""
    tables = tuple(
        Table(name, (f"{name}.csv",), tuple(TABLES[name].split("\n")[0].split(",")), sql, name)
        for name, sql in (("sales", SALES), ("items", ITEMS))
    )
    queries = tuple(Query(f"q{n}", text, text, "the query") for n, text in enumerate(texts))
    app = Application("awkward", "awkward statements", folder, tables, queries)
    options = RunOptions(threads=1, partitions=2, batch_bytes=64)
    try:
        found = run_with(engine, app, Sources(folder), options=options)
        return [found[query.name] for query in queries]
    except CaudalError as error:
        if len(texts) == 1:
            return [f"{type(error).__name__}: {error}"]
        return [one for text in texts for one in answers(engine, folder, [text])]


@pytest.fixture(scope="module")
def results(folder: Path) -> dict[str, tuple[Result | str, Result | str]]:
    embedded, split = (answers(engine, folder, STATEMENTS) for engine in IN_PROCESS)
    return dict(zip(STATEMENTS, zip(embedded, split, strict=True), strict=True))


@pytest.mark.parametrize("sql", STATEMENTS)
def test_both_engines_answer_alike(
    sql: str, results: dict[str, tuple[Result | str, Result | str]]
) -> None:
    expected, found = results[sql]
    assert isinstance(expected, Result), expected
    assert isinstance(found, Result), found
    compare(expected.table, found.table, ordered="ORDER BY" in sql)


@pytest.mark.parametrize("sql", REFUSED)
def test_both_engines_refuse_alike(sql: str, folder: Path) -> None:
    (expected,), (found,) = (answers(engine, folder, [sql]) for engine in IN_PROCESS)
    assert isinstance(expected, str)
    assert expected == found


def test_a_refusal_names_the_file_of_its_query(folder: Path) -> None:
    table = Table("items", ("items.csv",), ("item", "name"), ITEMS, "items")
    queries = (
        Query("good", "good", "SELECT item FROM items", "queries/good.sql"),
        Query("bad", "bad", "SELECT table_name FROM duckdb_tables()", "queries/bad.sql"),
    )
    app = Application("awkward", "awkward statements", folder, (table,), queries)
    with pytest.raises(ApplicationError, match=r"queries/bad\.sql: it reads DuckDB's own catalog"):
        run_with(Engine.SPLIT, app, Sources(folder), options=RunOptions(threads=1))
