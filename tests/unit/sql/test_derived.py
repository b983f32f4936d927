"""Tables without files: they are put in front of the statements that read them."""

import duckdb
import pytest

from caudal.errors import ApplicationError
from caudal.model import DerivedTable
from caudal.sql.derived import expand, in_order


def table(name: str, sql: str) -> DerivedTable:
    return DerivedTable(name, sql, f"{name}.sql")


BIG = table("big", "SELECT * FROM base WHERE x > 1 -- a comment at the end")
TWICE = table("twice", "SELECT x * 2 AS x FROM Big")


def rows(sql: str) -> list[tuple[object, ...]]:
    with duckdb.connect() as connection:
        connection.execute("CREATE TABLE base AS SELECT range AS x FROM range(5)")
        found: list[tuple[object, ...]] = connection.execute(sql).fetchall()
        return found


def test_tables_come_after_what_they_read() -> None:
    assert in_order([TWICE, BIG]) == (BIG, TWICE)
    assert in_order([]) == ()


@pytest.mark.parametrize(
    ("sql", "answer"),
    [
        ("SELECT sum(x) FROM twice", 18),
        ("-- title\nSELECT sum(x) FROM twice", 18),
        ("WITH own AS (SELECT 1 AS y) SELECT sum(x) + max(y) FROM twice, own", 19),
        ("WITH RECURSIVE own(y) AS (SELECT 1 UNION ALL SELECT y + 1 FROM own WHERE y < 3) "
         "SELECT sum(y) + (SELECT count(*) FROM big) FROM own", 9),
        ("FROM twice SELECT max(x)", 8),
        ('(SELECT count(*) FROM "BIG") UNION ALL (SELECT 5 WHERE FALSE)', 3),
        ("SELECT sum(x) FROM (SELECT x FROM twice ORDER BY x LIMIT 1)", 4),
        ("SELECT (SELECT max(x) FROM big)", 4),
    ],
)  # fmt: skip
def test_a_statement_gets_what_it_reads(sql: str, answer: int) -> None:
    assert rows(expand(sql, (BIG, TWICE), "q"))[0][0] == answer


def test_a_statement_that_reads_none_stays_as_it_is() -> None:
    for sql in ("SELECT x FROM base", "SELECT 'twice', big FROM base AS big", "SELECT 1 -- big"):
        assert expand(sql, (BIG, TWICE), "q") == sql
    assert "twice" not in expand("SELECT * FROM big", (BIG, TWICE), "q")


@pytest.mark.parametrize(
    ("tables", "told"),
    [
        ([table("a", "FROM b"), table("b", "FROM c"), table("c", "FROM a")],
         "in a circle: a reads b reads c reads a; break it"),
        ([table("a", "SELECT * FROM A")], "in a circle: a reads a"),
        ([table("a", "SELECT * FROM raw")], "a.sql: reads `raw`, so table a needs files"),
        ([BIG, table("a", "WITH big AS (SELECT 1) FROM big")], "a.sql: WITH big has the name"),
    ],
)  # fmt: skip
def test_what_is_refused(tables: list[DerivedTable], told: str) -> None:
    with pytest.raises(ApplicationError, match=told):
        in_order(tables)


def test_a_clause_may_not_have_the_name_of_a_table() -> None:
    with pytest.raises(ApplicationError, match="q: WITH big has the name of a table"):
        expand("WITH Big AS (SELECT 1) SELECT * FROM big", (BIG,), "q")


def test_text_that_is_not_understood_counts_every_name() -> None:
    assert expand("SELEC nonsense ( big", (BIG,), "q").startswith('WITH "big"')
