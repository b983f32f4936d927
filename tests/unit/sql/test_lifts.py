"""Lifting changes when an expensive function runs, never what a query answers."""

import duckdb
import pytest

from caudal.sql.lifts import lift, output_names, quote

SCHEMAS = {
    "books": {"title": "VARCHAR", "categories": "VARCHAR[]", "year": "INTEGER"},
    "reviews": {"title": "VARCHAR", "score": "DOUBLE", "text": "VARCHAR"},
}


def conditions(sql: str) -> list[str | None]:
    return [one.condition for one in lift(sql, SCHEMAS, label="q")[1]]


def test_a_call_on_a_column_becomes_a_column() -> None:
    sql, lifts = lift("SELECT sentiment(r.text) FROM reviews r", SCHEMAS, label="q")
    assert 'r"."sentiment(text)"' in sql
    assert [(one.table, one.name, one.condition) for one in lifts] == [
        ("reviews", "sentiment(text)", None)
    ]


def test_conditions_on_the_table_alone_restrict_the_work() -> None:
    sql = "SELECT sentiment(text) FROM reviews WHERE score > 3 AND title <> 'x'"
    assert conditions(sql) == ["(\"score\" > 3 AND \"title\" <> 'x')"]


def test_a_set_of_keys_from_a_table_read_earlier_restricts_the_work() -> None:
    sql = """SELECT avg(sentiment(text)) FROM reviews
             WHERE title IN (SELECT title FROM books WHERE year > 1990)"""
    (found,) = lift(sql, SCHEMAS, label="q")[1]
    assert found.condition == '("title" IN (SELECT * FROM keys_q_0_0))'
    assert [name for name, _ in found.key_sets] == ["keys_q_0_0"]


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
        "SELECT sentiment(text) FROM reviews "
        "WHERE score >= (SELECT max(r2.score) FROM reviews r2)",
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
    assert lift(sql, SCHEMAS, label="q") == (sql, ())


def test_lifted_queries_answer_the_same() -> None:
    """Executed both ways, with a stand-in for the expensive function."""
    connection = duckdb.connect()
    connection.execute("CREATE MACRO sentiment(t) AS (length(t) % 5) / 4.0 - 0.5")
    connection.execute(
        """CREATE TABLE books AS SELECT 't' || i AS title, ['c' || (i % 3)] AS categories,
           1980 + i AS year FROM range(40) r(i);
           CREATE TABLE plain AS SELECT 't' || (i % 60) AS title, i % 7 AS score,
           repeat('x', (i * 7) % 31) AS text FROM range(500) r(i)"""
    )
    for sql in (
        "SELECT title, sum(sentiment(text)) FROM reviews WHERE score > 2 GROUP BY ALL",
        "SELECT r.title, sentiment(r.text) FROM reviews r JOIN books b ON b.title = r.title "
        "WHERE b.year > 1990 AND r.score < 5 AND sentiment(r.text) > 0",
        "SELECT title, sentiment(text) FROM reviews "
        "WHERE title IN (SELECT title FROM books WHERE list_contains(categories, 'c1'))",
        "SELECT title FROM reviews WHERE sentiment(text) < 0 AND NOT (score > 2 AND score < 6)",
    ):
        lifted, lifts = lift(sql, SCHEMAS, label="q")
        assert lifts
        connection.execute("CREATE OR REPLACE VIEW reviews AS SELECT * FROM plain")
        expected = sorted(connection.execute(sql).fetchall())
        for one in lifts:
            for name, select in one.key_sets:
                connection.execute(f"CREATE OR REPLACE TABLE {name} AS {select}")
        seen = " OR ".join(one.condition or "TRUE" for one in lifts)
        connection.execute(
            f"CREATE OR REPLACE VIEW reviews AS SELECT *, CASE WHEN {seen} "
            f"THEN sentiment(text) END AS {quote('sentiment(text)')} FROM plain"
        )
        assert sorted(connection.execute(lifted).fetchall()) == expected
    connection.close()


def test_output_names_keep_the_authors_case() -> None:
    assert output_names('SELECT "Title" AS title, 1 AS "B"') == ["title", "B"]
    assert output_names("not sql at all (") == []
