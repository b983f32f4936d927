"""What a query sees changes when and where rows are read, never what the query answers."""

from collections.abc import Iterator

import duckdb
import pyarrow as pa
import pytest
from tests.fuzz.check import compare
from tests.fuzz.pruning import Pruning
from tests.harness.oracle import ORACLE

from caudal.sql.footprint import output_names
from caudal.sql.table_needs import ALL_ROWS, Footprint, KeyMembership

SCHEMAS = {
    "books": {"title": "VARCHAR", "categories": "VARCHAR[]", "year": "INTEGER"},
    "reviews": {"title": "VARCHAR", "score": "DOUBLE", "text": "VARCHAR", "number": "INTEGER"},
}
_SENTIMENT = "CREATE MACRO sentiment(t) AS CAST((length(t) % 5) / 4.0 - 0.5 AS DOUBLE)"


class World:
    """Two tables, whole and pruned, with a stand-in for the expensive function."""

    def __init__(self) -> None:
        self.whole = duckdb.connect(config=ORACLE)
        self.pruning = Pruning(SCHEMAS, _SENTIMENT)
        self.whole.execute(_SENTIMENT)
        self.whole.execute(
            """CREATE TABLE books AS SELECT 't' || i AS title, ['c' || (i % 3)] AS categories,
               CAST(1980 + i AS INTEGER) AS year FROM range(40) r(i);
               CREATE TABLE reviews AS SELECT 't' || (i % 60) AS title, CAST(i % 7 AS DOUBLE)
               AS score, repeat('x', (i * 7) % 31) AS text, CAST(i % 90 + 1970 AS INTEGER) AS number
               FROM range(500) r(i)"""
        )

    def close(self) -> None:
        self.whole.close()
        self.pruning.close()

    def rows(self, sql: str) -> pa.Table:
        return self.whole.sql(sql).to_arrow_table()

    def look(self, sql: str) -> Footprint:
        return self.pruning.bound(sql).seen

    def check(self, sql: str) -> None:
        """The query gives the same rows over pruned tables."""
        tables = {name: self.rows(f"FROM {name}") for name in SCHEMAS}
        expected = self.rows(sql)
        compare(expected, self.pruning.rows(self.pruning.bound(sql), tables), ordered=False)


@pytest.fixture(scope="module")
def world() -> Iterator[World]:
    made = World()
    yield made
    made.close()


def test_a_call_on_a_column_becomes_a_column(world: World) -> None:
    seen = world.look("SELECT sentiment(r.text) FROM reviews r")
    assert seen.sql == 'SELECT r."sentiment(text)" FROM reviews AS r'
    assert [(one.table, one.name, one.visible_rows) for one in seen.computed_columns] == [
        ("reviews", "sentiment(text)", ALL_ROWS)
    ]


def test_conditions_on_the_table_alone_restrict_the_work(world: World) -> None:
    sql = "SELECT sentiment(text) FROM Reviews WHERE Score > 3 AND title <> 'x'"
    seen = world.look(sql)
    ((visible,), (computed,)) = seen.visible_rows["reviews"], seen.computed_columns
    assert visible.condition == '(("score" > 3) AND ("title" <> \'x\'))'
    assert computed.visible_rows == visible


def test_a_set_of_keys_from_a_table_read_earlier_restricts_the_work(world: World) -> None:
    sql = """SELECT avg(sentiment(text)) FROM reviews
             WHERE title IN (SELECT title FROM books WHERE year > 1990)"""
    found = world.look(sql).computed_columns[0]
    ((name, keys),) = found.visible_rows.key_sets
    assert keys == 'SELECT "title" FROM "books" WHERE ("year" > 1990)'
    assert found.visible_rows.members == (KeyMembership("title", name),)
    assert found.visible_rows.condition == f'("title" IN (SELECT * FROM {name}))'


JOINED = [
    "books b JOIN reviews r ON r.title = b.title",
    "books b, reviews r WHERE r.title = b.title AND",
    "books b LEFT JOIN reviews r ON r.title = b.title",
    "books b JOIN (SELECT title, count(*) AS n FROM reviews GROUP BY title) r ON r.title = b.title",
    "books b LEFT JOIN (SELECT title, count(*) AS n FROM reviews GROUP BY title) r USING (title)",
    "books b SEMI JOIN reviews r ON r.title = b.title",
    "books b ANTI JOIN reviews r ON r.title = b.title",
    "books b JOIN (SELECT title, rank() OVER (PARTITION BY title ORDER BY score, text) AS n "
    "FROM reviews) r ON r.title = b.title",
]


@pytest.mark.parametrize("joined", JOINED)
def test_a_join_to_a_table_read_earlier_restricts_what_is_seen(joined: str, world: World) -> None:
    where = "" if joined.endswith("AND") else "WHERE"
    sql = f"SELECT b.title, count(*) FROM {joined} {where} b.year > 1990 GROUP BY b.title"
    world.check(sql)
    visible_rows = world.look(sql).visible_rows
    (books,), (reviews,) = visible_rows["books"], visible_rows["reviews"]
    assert books.condition == '(("year" > 1990))'
    ((name, keys),) = reviews.key_sets
    assert reviews.members == (KeyMembership("title", name),)
    assert keys == 'SELECT "title" FROM "books" WHERE ("year" > 1990)'


@pytest.mark.parametrize(
    "groups",
    [
        # Other groups decide about a rank, a limit or a subtotal.
        "SELECT title, rank() OVER (ORDER BY count(*)) AS n FROM reviews GROUP BY title",
        "SELECT title, count(*) AS n FROM reviews GROUP BY title ORDER BY n DESC, title LIMIT 3",
        "SELECT title, count(*) AS n FROM reviews GROUP BY ROLLUP (title)",
        # The key is not a group key as it stands.
        "SELECT upper(title) AS title, count(*) AS n FROM reviews GROUP BY 1",
        "SELECT max(title) AS title, count(*) AS n FROM reviews GROUP BY score",
    ],
)
def test_groups_that_matter_to_each_other_are_all_seen(groups: str, world: World) -> None:
    sql = f"SELECT b.title, r.n FROM books b JOIN ({groups}) r ON r.title = b.title"
    world.check(sql)
    assert world.look(sql).visible_rows.get("reviews", (ALL_ROWS,)) == (ALL_ROWS,)


@pytest.mark.parametrize(
    "sql",
    [
        # An outer join may turn a row that is not computed into a row that is kept.
        "SELECT sentiment(r.text) FROM reviews r LEFT JOIN books b ON r.title = b.title "
        "WHERE b.title IS NULL OR r.score > 3",
        # A disjunction with another table says nothing about this table alone.
        "SELECT sentiment(r.text) FROM reviews r, books b WHERE r.score > 3 OR b.year > 1990",
        # The table itself is not read yet while it is being read.
        "SELECT sentiment(text) FROM reviews WHERE score >= (SELECT max(r2.score) FROM reviews r2)",
        # A column by its place in FROM is of whatever table stands there.
        "SELECT sentiment(r.text) FROM reviews r, books b WHERE #3 > 'x'",
        # Another type: the comparison converts, and a conversion may fail.
        "SELECT sentiment(r.text) FROM reviews r JOIN books b ON r.score = b.year",
        # Conditions that can fail.
        "SELECT sentiment(text) FROM reviews WHERE CAST(substr(title, 2) AS INTEGER) > 5",
        "SELECT sentiment(text) FROM reviews WHERE number * 2000000 > 5",
    ],
)
def test_what_could_matter_elsewhere_restricts_nothing(sql: str, world: World) -> None:
    seen = world.look(sql)
    assert seen.visible_rows.get("reviews", (ALL_ROWS,))[0] == ALL_ROWS
    assert all(one.visible_rows == ALL_ROWS for one in seen.computed_columns)


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT sentiment(r.text) FROM reviews r LEFT JOIN books b ON r.title = b.title",
        "SELECT sentiment(r.text) FROM books b RIGHT JOIN reviews r ON r.title = b.title",
        "SELECT sentiment(r.text) FROM books b JOIN reviews r ON r.title = b.title",
        "SELECT sentiment(r.text) FROM books b LEFT JOIN books c ON b.title = c.title "
        "JOIN reviews r ON r.title = b.title",
        "SELECT b.title, s.s FROM books b LEFT JOIN (SELECT title, sentiment(text) AS s "
        "FROM reviews) AS s ON s.title = b.title",
    ],
)
def test_a_call_on_rows_that_no_join_extends_becomes_a_column(sql: str, world: World) -> None:
    assert world.look(sql).computed_columns
    world.check(sql)


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT sentiment(lower(text)) FROM reviews",
        "SELECT sentiment(t.text) FROM (SELECT text || '!' AS text FROM reviews) t",
        "SELECT upper(text) AS text, sentiment(text) FROM reviews",
        "SELECT *, sentiment(text) FROM reviews",
        "SELECT list_transform([title], lambda text: sentiment(text)) FROM reviews",
        "SELECT sentiment(a) FROM reviews AS r(b, c, a, d)",
        "SELECT count(*) FROM reviews",
        # An outer join gives rows for which the call has a value, and a column has none.
        "SELECT sentiment(r.text) FROM books b LEFT JOIN reviews r ON r.title = b.title",
        "SELECT b.title FROM books b LEFT JOIN reviews r USING (title) WHERE sentiment(text) >= 0",
        "SELECT sentiment(r.text) FROM reviews r RIGHT JOIN books b ON r.title = b.title",
        "SELECT sentiment(r.text) FROM reviews r FULL JOIN books b ON r.title = b.title",
        "SELECT sentiment(r.text) FROM books b FULL JOIN reviews r ON r.title = b.title",
        "SELECT sentiment(r.text) FROM books b LEFT JOIN reviews r ON r.title = b.title "
        "JOIN books c ON c.title = b.title",
        "SELECT sentiment(r.text) FROM reviews r JOIN books b ON r.title = b.title "
        "RIGHT JOIN books c ON c.title = b.title",
    ],
)
def test_what_is_not_certainly_a_column_of_a_table_stays(sql: str, world: World) -> None:
    seen = world.look(sql)
    assert (seen.sql, seen.computed_columns) == (sql, ())
    world.check(sql)


# Statements that read a table in more than one way; each once lost rows that another part reads.
SEVERAL_READINGS = [
    "SELECT (SELECT count(*) FROM REVIEWS) n, count(*) FROM reviews WHERE score > 3",
    "SELECT count(*) FROM (books b LEFT JOIN reviews r ON b.title = r.title) WHERE r.title IS NULL",
    "SELECT count(*) FROM (reviews r RIGHT JOIN books b ON b.title = r.title) "
    "WHERE r.title IS NULL",
    "SELECT count(*) FROM (books b FULL JOIN reviews r ON b.title = r.title) WHERE r.title IS NULL",
    "SELECT unnest((SELECT list(score ORDER BY score) FROM reviews)) FROM reviews WHERE score > 5",
    "SELECT (SELECT count(*) FROM query_table('reviews')), count(*) FROM reviews WHERE score > 3",
    "SELECT (SELECT count(*) FROM query('FROM reviews')), count(*) FROM reviews WHERE score > 3",
    "SELECT (SELECT sum(v) FROM reviews UNPIVOT (v FOR n IN (score))), count(*) FROM reviews "
    "WHERE score > 3",
    "FROM reviews UNPIVOT (score FOR name IN (score, number)) WHERE score > 1975",
    "SELECT b.title, r.title FROM books b FULL OUTER JOIN reviews r ON b.title = r.title AND "
    "EXISTS (SELECT 1 FROM books c WHERE c.title = r.title AND c.year > 2000)",
    "SELECT b.title, r.title FROM books b FULL JOIN reviews r ON b.title = r.title AND "
    "b.year NOT IN (SELECT year FROM books WHERE year < 2000)",
    "WITH reviews AS (SELECT * FROM books) SELECT count(*) FROM reviews WHERE year > 2000",
    "WITH r AS (SELECT * FROM reviews) SELECT (SELECT count(*) FROM r), count(*) FROM r "
    "WHERE score > 3",
    "WITH r AS MATERIALIZED (SELECT * FROM reviews WHERE score > 1) SELECT a.title FROM r a "
    "JOIN r b ON a.text = b.text AND a.number = b.number WHERE a.score > 4",
    "SELECT count(*) FROM reviews r POSITIONAL JOIN books b WHERE r.score > 3",
    "SELECT title, (SELECT count(*) FROM reviews i WHERE i.score = o.score) FROM reviews o "
    "WHERE number > 2050",
    "SELECT title FROM reviews WHERE score > 5 UNION ALL SELECT title FROM Main.Reviews "
    "WHERE score < 1",
    "SELECT count(*) FROM reviews TABLESAMPLE 100% WHERE score > 3",
    "PIVOT reviews ON score IN (1, 2) USING count(*) GROUP BY title",
    "SELECT r FROM reviews r WHERE score > 5",
    "SELECT count(reviews) FROM reviews WHERE score > 5",
    "SELECT COLUMNS('t.*') FROM reviews WHERE score > 5",
    "SELECT title FROM reviews WHERE score > 5 AND title IN (SELECT title FROM reviews "
    "WHERE score < 2)",
    "SELECT count(*) FROM reviews, LATERAL (SELECT year FROM books WHERE books.title = "
    "reviews.title) x WHERE score > 3",
    "SUMMARIZE SELECT score FROM reviews WHERE score > 3",
]

QUERIES = [
    "SELECT title, sum(sentiment(text)) FROM reviews WHERE score > 2 GROUP BY ALL",
    "SELECT r.title, sentiment(r.text) FROM reviews r JOIN books b ON b.title = r.title "
    "WHERE b.year > 1990 AND r.score < 5 AND sentiment(r.text) > 0",
    "SELECT title, sentiment(text) FROM reviews "
    "WHERE title IN (SELECT title FROM books WHERE list_contains(categories, 'c1'))",
    "SELECT title FROM reviews WHERE sentiment(text) < 0 AND NOT (score > 2 AND score < 6)",
    "SELECT b.title, count(r.text) FROM books b LEFT JOIN reviews r ON r.title = b.title "
    "AND r.score > 4 WHERE b.year > 2000 GROUP BY b.title",
    "SELECT b.title FROM books b WHERE NOT EXISTS "
    "(SELECT 1 FROM reviews r WHERE r.title = b.title AND r.score > 1)",
    "SELECT (SELECT max(score) FROM reviews WHERE title = 't3'), count(*) FROM books "
    "WHERE year < 1990",
    "SELECT b.year, r.score FROM books b, reviews r WHERE b.title = r.title AND b.year = 1985",
    "SELECT a.title FROM reviews a JOIN reviews b ON a.title = b.title AND a.score < b.score "
    "WHERE b.text LIKE '%xxxx%'",
    "SELECT title, rank() OVER (ORDER BY score, text) FROM reviews WHERE score = 3",
    "SELECT title FROM books WHERE year > 1990 UNION ALL SELECT title FROM reviews WHERE score = 6",
    "SELECT count(*) FROM books b JOIN reviews r USING (title) WHERE r.score IN (1, 2)",
    "SELECT b.title, r.n FROM books b JOIN (SELECT title, count(*) AS n FROM reviews "
    "WHERE score > 2 GROUP BY title, score HAVING count(*) > 1) r "
    "ON r.title = b.title WHERE b.year > 1990",
    "SELECT b.title, r.n FROM books b LEFT JOIN (SELECT title, count(*) AS n FROM reviews "
    "GROUP BY title) r ON r.title = b.title WHERE b.year > 2010 OR r.n IS NULL",
    "SELECT r.title, r.n FROM (SELECT title, count(*) AS n FROM reviews GROUP BY title) r",
    "SELECT a.title, r.n FROM (SELECT title, count(*) AS n FROM reviews GROUP BY title) r "
    "JOIN books a ON a.title = r.title JOIN reviews o ON o.title = r.title WHERE a.year < 1985",
    "SELECT count(*) FROM books b SEMI JOIN reviews r ON r.title = b.title AND r.score > 5",
    "SELECT r.title FROM reviews r RIGHT JOIN books b ON r.title = b.title AND b.year > 1990",
    "SELECT b.title, r.score FROM reviews r LEFT JOIN books b ON r.title = b.title "
    "AND b.year > 1990 WHERE r.score > 4",
    "SELECT b.title, c.title, r.score FROM books b LEFT JOIN reviews r ON r.number = b.year "
    "JOIN books c ON c.title = r.title WHERE c.year > 2000",
    "SELECT title FROM books EXCEPT SELECT title FROM reviews WHERE score > 5",
    "SELECT DISTINCT r.title FROM reviews r JOIN books b ON r.title = b.title WHERE b.year > 2000",
]


@pytest.mark.parametrize("sql", [*SEVERAL_READINGS, *QUERIES])
def test_what_is_out_of_sight_does_not_matter(sql: str, world: World) -> None:
    world.check(sql)


def test_output_names_keep_the_authors_case() -> None:
    assert output_names('SELECT "Title" AS title, 1 AS "B"') == ["title", "B"]
    assert output_names("not sql at all (") == []
