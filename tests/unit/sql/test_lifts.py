"""Lifting changes when an expensive function runs, never what a query answers."""

from collections.abc import Iterator

import duckdb
import pytest

from caudal.sql.lifts import EVERYTHING, Member, Sight, look, output_names, quote

SCHEMAS = {
    "books": {"title": "VARCHAR", "categories": "VARCHAR[]", "year": "INTEGER"},
    "reviews": {"title": "VARCHAR", "score": "DOUBLE", "text": "VARCHAR"},
}


def conditions(sql: str) -> list[str | None]:
    return [one.sight.condition for one in look(sql, SCHEMAS).lifts]


def test_a_call_on_a_column_becomes_a_column() -> None:
    seen = look("SELECT sentiment(r.text) FROM reviews r", SCHEMAS)
    assert 'r"."sentiment(text)"' in seen.sql
    assert [(one.table, one.name, one.sight) for one in seen.lifts] == [
        ("reviews", "sentiment(text)", EVERYTHING)
    ]


def test_conditions_on_the_table_alone_restrict_the_work() -> None:
    sql = "SELECT sentiment(text) FROM reviews WHERE score > 3 AND title <> 'x'"
    assert conditions(sql) == ['(("score" > 3) AND ("title" <> \'x\'))']


def test_a_set_of_keys_from_a_table_read_earlier_restricts_the_work() -> None:
    sql = """SELECT avg(sentiment(text)) FROM reviews
             WHERE title IN (SELECT title FROM books WHERE year > 1990)"""
    (found,) = look(sql, SCHEMAS).lifts
    ((name, keys),) = found.sight.key_sets
    assert (
        keys
        == 'SELECT "books"."title" AS "title" FROM "books" AS "books" WHERE "books"."year" > 1990'
    )
    assert found.sight.members == (Member("title", name),)
    assert found.sight.condition == f'("title" IN (SELECT * FROM {name}))'


def test_a_join_to_a_table_read_earlier_restricts_what_is_seen() -> None:
    sql = """SELECT b.title, count(*) FROM books b JOIN reviews r ON r.title = b.title
             WHERE b.year > 1990 GROUP BY b.title"""
    sights = look(sql, SCHEMAS).sights
    (books,), (reviews,) = sights["books"], sights["reviews"]
    assert books.condition == '(("year" > 1990))'
    ((name, keys),) = reviews.key_sets
    assert reviews.condition == f'("title" IN (SELECT * FROM {name}))'
    assert keys == 'SELECT "b"."title" FROM "books" AS "b" WHERE "b"."year" > 1990'


def test_a_join_to_groups_restricts_what_their_select_sees() -> None:
    sql = """SELECT b.title, r.reviews FROM books b
             JOIN (SELECT title, count(*) AS reviews FROM reviews GROUP BY title) r
             ON r.title = b.title WHERE b.year > 1990"""
    ((reviews,), (books,)) = (look(sql, SCHEMAS).sights[name] for name in ("reviews", "books"))
    ((name, keys),) = reviews.key_sets
    assert keys == 'SELECT "b"."title" FROM "books" AS "b" WHERE "b"."year" > 1990'
    assert reviews.members == (Member("title", name),)
    assert books.condition == '(("year" > 1990))'


@pytest.mark.parametrize(
    "groups",
    [
        # Other groups decide about a rank, a limit or a subtotal.
        "SELECT title, rank() OVER (ORDER BY count(*)) AS n FROM reviews GROUP BY title",
        "SELECT title, count(*) AS n FROM reviews GROUP BY title ORDER BY n DESC LIMIT 3",
        "SELECT title, count(*) AS n FROM reviews GROUP BY ROLLUP (title)",
        # The key is not a group key as it stands.
        "SELECT upper(title) AS title, count(*) AS n FROM reviews GROUP BY 1",
        "SELECT max(title) AS title, count(*) AS n FROM reviews GROUP BY score",
        "SELECT title, count(*) AS n FROM reviews GROUP BY ALL",
    ],
)
def test_groups_that_matter_to_each_other_are_all_seen(groups: str) -> None:
    sql = f"SELECT b.title, r.n FROM books b JOIN ({groups}) r ON r.title = b.title"
    assert look(sql, SCHEMAS).sights["reviews"] == (EVERYTHING,)


@pytest.mark.parametrize(
    "sql",
    [
        # An outer join may turn a row that is not computed into a row that is kept.
        "SELECT sentiment(r.text) FROM books b LEFT JOIN reviews r ON r.title = b.title "
        "WHERE r.title IS NULL OR r.score > 3",
        # A disjunction with another table says nothing about this table alone.
        "SELECT sentiment(r.text) FROM reviews r, books b WHERE r.score > 3 OR b.year > 1990",
        # A set that depends on the row is not a set of keys.
        "SELECT sentiment(r.text) FROM reviews r "
        "WHERE EXISTS (SELECT 1 FROM books b WHERE b.title = r.title)",
        # The table itself is not read yet while it is being read.
        "SELECT sentiment(text) FROM reviews WHERE score >= (SELECT max(r2.score) FROM reviews r2)",
        # A column by its place in FROM is of whatever table stands there.
        "SELECT sentiment(r.text) FROM reviews r, books b WHERE #9 > 3",
        # Chance may say one thing while reading and another while answering.
        "SELECT sentiment(text) FROM reviews WHERE score > random()",
    ],
)
def test_what_could_matter_elsewhere_restricts_nothing(sql: str) -> None:
    assert conditions(sql) == [None]


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT sentiment(lower(text)) FROM reviews",
        "SELECT sentiment(t.text) FROM (SELECT text || '!' AS text FROM reviews) t",
        "SELECT count(*) FROM reviews",
        "this is not SQL: sentiment(",
    ],
)
def test_what_is_not_a_column_of_a_table_stays(sql: str) -> None:
    seen = look(sql, SCHEMAS)
    assert (seen.sql, seen.lifts) == (sql, ())


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
]


@pytest.fixture(scope="module")
def connection() -> Iterator[duckdb.DuckDBPyConnection]:
    """Tables, and a stand-in for the expensive function."""
    made = duckdb.connect()
    made.execute("CREATE MACRO sentiment(t) AS (length(t) % 5) / 4.0 - 0.5")
    made.execute(
        """CREATE TABLE all_books AS SELECT 't' || i AS title, ['c' || (i % 3)] AS categories,
           1980 + i AS year FROM range(40) r(i);
           CREATE TABLE all_reviews AS SELECT 't' || (i % 60) AS title, i % 7 AS score,
           repeat('x', (i * 7) % 31) AS text FROM range(500) r(i)"""
    )
    yield made
    made.close()


def visible(sights: tuple[Sight, ...]) -> str:
    return " OR ".join(one.condition or "TRUE" for one in sights)


@pytest.mark.parametrize("sql", QUERIES)
def test_what_is_out_of_sight_does_not_matter(
    sql: str, connection: duckdb.DuckDBPyConnection
) -> None:
    """Executed over whole tables, and over tables without what the query cannot see."""
    for table in SCHEMAS:
        connection.execute(f"CREATE OR REPLACE VIEW {table} AS SELECT * FROM all_{table}")
    expected = sorted(connection.execute(sql).fetchall(), key=repr)
    seen = look(sql, SCHEMAS)
    assert set(seen.sights) == {name for name in SCHEMAS if name in sql}
    for table in SCHEMAS:
        lifts = [one for one in seen.lifts if one.table == table]
        sights = seen.sights.get(table, (EVERYTHING,))
        for name, select in [keys for one in sights for keys in one.key_sets] + [
            keys for one in lifts for keys in one.sight.key_sets
        ]:
            connection.execute(f"CREATE OR REPLACE TABLE {name} AS {select}")
        columns = ["*"] + [
            f"CASE WHEN {visible((one.sight,))} THEN {one.name} END AS {quote(one.name)}"
            for one in lifts[:1]
        ]
        connection.execute(
            f"CREATE OR REPLACE VIEW {table} AS SELECT {', '.join(columns)} FROM all_{table} "
            f"WHERE {visible(sights)}"
        )
    assert sorted(connection.execute(seen.sql).fetchall(), key=repr) == expected


def test_output_names_keep_the_authors_case() -> None:
    assert output_names('SELECT "Title" AS title, 1 AS "B"') == ["title", "B"]
    assert output_names("not sql at all (") == []
