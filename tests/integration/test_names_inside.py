"""Columns inside of a query keep their names, though averages and the clock are rewritten."""

from collections.abc import Iterator
from pathlib import Path

import duckdb
import pytest
from tests.harness.oracle import ORACLE

from caudal.files.sources import Sources
from caudal.local.engines import run_with
from caudal.model import Application, Table
from caudal.run_options import IN_PROCESS, RunOptions
from caudal.sql.adhoc import with_adhoc_query

CLEANED = "SELECT CAST(id AS INTEGER) AS id, shop, CAST(price AS DOUBLE) AS price FROM raw"
ROWS = "id,shop,price\n" + "".join(f"{n},{'abc'[n % 3]},{n * 0.5}\n" for n in range(12))
APP = Application(
    "sales",
    "",
    Path(),
    (Table("sales", ("sales.csv",), ("id", "shop", "price"), CLEANED, "tables/sales.sql"),),
    (),
)
MEANS = "SELECT avg(price), max(price) FROM sales"
QUERIES = [
    f"UNPIVOT ({MEANS}) ON COLUMNS(*)",
    f"FROM (UNPIVOT ({MEANS}) ON *)",
    f"SELECT to_json(s) AS j FROM ({MEANS}) AS s",
    f"SELECT struct_keys(s) AS k FROM ({MEANS}) AS s",
    f"SELECT CAST(s AS VARCHAR) AS t FROM ({MEANS}) AS s",
    f"SELECT s FROM ({MEANS}) AS s",
    f"SELECT column_name, column_type FROM (DESCRIBE {MEANS})",
    "SELECT column_name, max FROM (SUMMARIZE SELECT avg(price) FROM sales)",
    f"WITH s AS ({MEANS}) SELECT to_json(s) AS j FROM s",
    "FROM (SELECT shop, avg(price) FROM sales GROUP BY shop) AS a "
    "NATURAL JOIN (SELECT shop, mean(price) FROM sales GROUP BY shop) AS b",
    "FROM (SELECT shop, avg(price) FROM sales GROUP BY shop) AS a "
    "NATURAL JOIN (SELECT shop, avg(price) FROM sales WHERE id < 3 GROUP BY shop) AS b",
    'SELECT "avg(price)" + 1 AS x FROM (SELECT avg(price) FROM sales)',
    'SELECT shop FROM (SELECT shop, avg(price) FROM sales GROUP BY shop) WHERE "avg(price)" > 2.6',
    "SELECT * EXCLUDE (\"avg(price)\") FROM (SELECT shop, avg(price) FROM sales GROUP BY shop)",
    "SELECT COLUMNS('avg.*') FROM (SELECT shop, avg(price) FROM sales GROUP BY shop)",
    "SELECT to_json(s) AS j FROM (SELECT shop, avg(price) AS m FROM sales GROUP BY shop) AS s",
    "SELECT to_json(s) AS j FROM (SELECT shop, avg(price) m FROM sales GROUP BY shop) AS s",
    "SELECT to_json(s) AS j FROM (SELECT shop, m: avg(price) FROM sales GROUP BY shop) AS s",
    "SELECT to_json(s) AS j FROM (SELECT DISTINCT avg(price) + 1, shop FROM sales GROUP BY 2) AS s",
    "SELECT to_json(s) AS j FROM (SELECT DISTINCT ON (shop) avg(price), shop FROM sales "
    "GROUP BY shop ORDER BY avg(price)) AS s",
    "SELECT to_json(s) AS j FROM (SELECT avg(price) FILTER (id > 3) -- why\n FROM sales) AS s",
    "SELECT to_json(s) AS j FROM (SELECT avg(price) IS DISTINCT FROM 3, 1 FROM sales) AS s",
    "SELECT to_json(s) AS j FROM (SELECT round(avg(price)::FLOAT), [mean(id)] FROM sales) AS s",
    "SELECT to_json(s) AS j FROM (FROM sales SELECT avg(price), avg(id)) AS s",
    "SELECT to_json(s) AS j FROM (SELECT avg(price) + avg(id) FROM sales) AS s",
    "SELECT to_json(s) AS j FROM (SELECT (SELECT avg(price) FROM sales), id FROM sales) AS s",
    "SELECT to_json(s) AS j FROM (SELECT CASE WHEN avg(price) > 1 THEN 'a' END FROM sales) AS s",
    "SELECT to_json(s) AS j FROM (SELECT avg(price) FROM sales UNION ALL SELECT mean(id) "
    "FROM sales) AS s",
    "SELECT to_json(s) AS j FROM ((SELECT avg(price) FROM sales) UNION ALL (SELECT mean(id) "
    "FROM sales)) AS s",
    "SELECT to_json(s) AS j FROM (((SELECT avg(price), now() IS NULL FROM sales))) AS s",
    "SELECT to_json(s) AS j FROM (VALUES ((SELECT avg(price) FROM sales), 1)) AS s",
    "SELECT to_json(s) AS j FROM ((FROM sales SELECT avg(price))) AS s",
    "SELECT id FROM sales WHERE (id, 1) IN (((SELECT max(id), 1 FROM sales WHERE price < "
    "((SELECT avg(price) FROM sales)))))",
    "SELECT to_json(s) AS j FROM (SELECT avg(price) FROM sales UNION ALL BY NAME "
    "SELECT mean(price) FROM sales) AS s",
    "SELECT avg(price) FROM sales UNION ALL BY NAME SELECT mean(price) FROM sales",
    "SELECT avg(price) FROM sales UNION ALL BY NAME SELECT avg(id) FROM sales",
    "SELECT id FROM sales WHERE price > (SELECT avg(price) FROM sales)",
    "SELECT shop, (SELECT avg(price) FROM sales AS o WHERE o.shop = s.shop) AS m FROM sales AS s",
    'SELECT avg("avg(price)") FROM (SELECT avg(price) FROM sales GROUP BY shop)',
    'SELECT to_json(s) AS j FROM (SELECT avg("avg(price)"), max("avg(price)") AS "avg(price)" '
    "FROM (SELECT avg(price) FROM sales GROUP BY shop)) AS s",
    'SELECT to_json(s) AS j FROM (SELECT avg(id), "avg(id)" FROM (SELECT shop AS "avg(id)", id '
    "FROM sales) GROUP BY ALL) AS s",
    "FROM (PIVOT sales ON shop IN ('a', 'b') USING avg(price), max(price) GROUP BY id)",
    "SELECT to_json(s) AS j FROM (PIVOT sales ON shop IN ('a', 'b') USING avg(price)) AS s",
    "SELECT to_json(s) AS j FROM (SELECT avg(COLUMNS('id|price')) FROM sales) AS s",
    "SELECT to_json(s) AS j FROM (SELECT shop, avg(price) FROM sales GROUP BY ALL "
    "HAVING avg(price) > 2.6 ORDER BY avg(price) DESC LIMIT 2) AS s",
    "WITH age(x) AS (SELECT 1) SELECT * FROM age",
    "WITH a AS (SELECT 1), age(x) AS MATERIALIZED (SELECT 2) SELECT * FROM age",
    "WITH RECURSIVE age(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM age WHERE x < 3) FROM age",
    "WITH avg(x) AS (SELECT 1) SELECT * FROM avg",
    "SELECT t.x FROM (SELECT 1) AS t(x), (SELECT now() IS NULL) AS age(x)",
    "SELECT age.x FROM (SELECT 1) age(x)",
    'SELECT "now()" > TIMESTAMPTZ \'2020-01-01 00:00:00+00\' AS x FROM (SELECT now())',
    "SELECT struct_keys(s) AS k FROM (SELECT now(), today(), current_date, id FROM sales) AS s",
    "SELECT struct_keys(s) AS k FROM (SELECT ago(INTERVAL 1 DAY), age(DATE '2020-01-01')) AS s",
    "SELECT struct_keys(s) AS k FROM (SELECT current_timestamp - INTERVAL 1 DAY, avg(id) "
    "FROM sales) AS s",
    "SELECT column_name, column_type FROM (DESCRIBE SELECT now(), ago(INTERVAL 1 DAY), localtime)",
    "SELECT id FROM sales WHERE ago(INTERVAL 1 DAY) < now() - INTERVAL 1 HOUR "
    "AND ago(INTERVAL 1 DAY) = current_timestamp - INTERVAL 1 DAY",
    "SELECT now() = \"now()\" AS same FROM (SELECT now())",
]  # fmt: skip

NO_KEYS = [
    "SELECT count(*) AS n FROM sales GROUP BY ()",
    "SELECT sum(id) AS n FROM sales WHERE id > 100 GROUP BY ()",
    "SELECT shop, avg(price) FROM sales GROUP BY shop, ()",
    "SELECT count(*) AS n FROM sales GROUP BY GROUPING SETS (())",
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("names")
    (made / "sales.csv").write_text(ROWS)
    return made


@pytest.fixture(scope="module")
def oracle(folder: Path) -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect(config=ORACLE) as connection:
        connection.execute("SET TimeZone = 'UTC'")
        connection.execute(
            f"CREATE TABLE sales AS WITH raw AS (FROM read_csv('{folder / 'sales.csv'}', "
            f"all_varchar = true)) {CLEANED}"
        )
        yield connection


@pytest.mark.parametrize("sql", [*QUERIES, *NO_KEYS])
def test_columns_inside_keep_their_names(
    sql: str, folder: Path, oracle: duckdb.DuckDBPyConnection
) -> None:
    wanted = oracle.sql(sql).to_arrow_table()
    rows = sorted(map(repr, wanted.to_pylist()))
    for engine in IN_PROCESS:
        asked = with_adhoc_query(APP, sql)
        found = run_with(engine, asked, Sources(folder), options=RunOptions(threads=1))["sql"].table
        assert found.column_names == wanted.column_names, engine
        assert sorted(map(repr, found.to_pylist())) == rows, engine
