"""Names are the same where DuckDB says so: it ignores the case of ASCII letters, of no others."""

from collections.abc import Iterator
from contextlib import closing

import pytest
from tests.corpus.statements import SCHEMAS, database
from tests.fuzz.check import compare
from tests.fuzz.pruning import Pruning
from tests.harness.every_cut import EveryCut

OTHER_LETTERS = [
    'WITH "Ñ" AS (SELECT 1 AS x), "ñ" AS (SELECT 2 AS x) SELECT * FROM "Ñ"',
    'SELECT id AS "Ñ", -item AS "ñ" FROM sales ORDER BY "ñ", id LIMIT 3',
    'SELECT "ñ", count(*) AS n FROM (SELECT id AS "Ñ", -item AS "ñ" FROM sales) GROUP BY "ñ"',
    'SELECT a."Ñ", a."ñ" FROM (SELECT id AS "Ñ", -item AS "ñ" FROM sales) AS a WHERE "ñ" < -1',
    'SELECT "É".id, "é".name FROM sales AS "É", items AS "é" WHERE "É".item = "é".item',
    'SELECT * EXCLUDE ("ñ") FROM (SELECT id AS "Ñ", -item AS "ñ" FROM sales)',
    'SELECT * FROM (SELECT id AS "Ñ", 1 AS "ñ" FROM sales) JOIN (SELECT item AS "ñ" FROM items) '
    'USING ("ñ")',
    'SELECT "k", count(*) AS n FROM (SELECT id AS "\u212a", item AS k FROM sales) GROUP BY "k"',
    'SELECT s."SHOP", "Item" FROM sales AS "S" WHERE "S"."ID" > 2',
]
PARAMETERS = [  # of lambdas: names that the body also has for a column, in DuckDB or in a stage
    "SELECT list_transform(s.tags, lambda NAME: name || 'x') AS l FROM sales AS s "
    "LEFT JOIN items AS i ON s.item = i.item",
    "SELECT id FROM sales JOIN items USING (item) "
    "WHERE len(list_filter(tags, lambda NAME: name > 'p')) > 1",
    "SELECT max(len(list_filter(tags, lambda NAME: name > 'p'))) AS n, name FROM sales "
    "JOIN items USING (item) GROUP BY name",
    "SELECT id, row_number() OVER (ORDER BY len(list_filter(tags, lambda NAME: name > 'p')), id) "
    "AS n FROM sales JOIN items USING (item)",
    "SELECT list_filter([1, 2], lambda X, I: x > i) AS l FROM (SELECT id AS x, item AS i "
    "FROM sales) AS s JOIN items AS t ON s.i = t.item",
    "SELECT list_transform([{'a': 2}], lambda X: x['a']) AS l FROM (SELECT {'a': id} AS x "
    "FROM sales)",
    "SELECT list_transform([{'shop': 'z'}], lambda s: s.shop) AS l FROM sales AS s",
    "SELECT list_transform([{'shop': 'z'}], lambda s: s.shop) AS l FROM sales AS S",
    "SELECT id FROM sales AS s WHERE EXISTS (SELECT 1 FROM items AS i WHERE i.item = s.item "
    "AND len(list_filter([{'item': 1}], lambda s: s.item = 1)) = 1)",
    "SELECT list_transform(tags, lambda note: note || n) AS l FROM (SELECT note AS n, tags "
    "FROM sales)",
    'SELECT list_transform(tags, lambda "scan1_note": "scan1_note" || note) AS l, name FROM sales '
    "JOIN items USING (item)",
    "SELECT l, count(*) AS n FROM (SELECT list_transform(tags, lambda __1: __1 || note) AS l "
    "FROM (SELECT DISTINCT tags, note FROM sales)) GROUP BY l",
]
SPLIT = [  # nothing is mistaken here
    "SELECT list_transform(tags, lambda shop: shop || 'x') AS l FROM sales",
    "SELECT list_transform(tags, lambda t, i: t || i || shop) AS l FROM sales",
    "SELECT list_transform([{'x': item}], lambda r: r.x) AS l FROM sales",
]


@pytest.fixture(scope="module")
def engines() -> Iterator[EveryCut]:
    with closing(EveryCut()) as made:
        yield made


@pytest.mark.parametrize("sql", [*OTHER_LETTERS, *PARAMETERS, *SPLIT])
def test_names_mean_what_duckdb_says(sql: str, engines: EveryCut) -> None:
    engines.check(sql)


@pytest.mark.parametrize("sql", SPLIT)
def test_parameters_of_their_own_names_are_split(sql: str, engines: EveryCut) -> None:
    assert engines.planned(sql).finish("q").strategy == "scaled"


@pytest.mark.parametrize("sql", [*OTHER_LETTERS, *PARAMETERS])
def test_rows_are_pruned_by_the_columns_that_duckdb_means(sql: str, engines: EveryCut) -> None:
    pruning = Pruning(SCHEMAS)
    with database(lossless=True) as lossless:
        tables = {name: lossless.sql(f"FROM {name}").to_arrow_table() for name in SCHEMAS}
    try:
        found = pruning.rows(pruning.bound(sql), tables)
    finally:
        pruning.close()
    expected = engines.expected(sql)
    compare(expected, found.rename_columns(expected.schema.names), ordered=False)
