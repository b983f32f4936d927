"""Which queries grow, and in which columns: over fewer rows they give some of the answer."""

from datetime import UTC, datetime

import pytest

from caudal.application import find_application
from caudal.duck.job_plan import make_plan
from caudal.kernels.sentiment import load_model
from caudal.sql.planner import plan

TABLES = {
    "t": {
        "a": "INTEGER", "b": "VARCHAR", "f": "DOUBLE", "d": "DATE", "l": "VARCHAR[]",
        "p": "INTERVAL", "ok": "BOOLEAN",
    },
    "u": {"a": "INTEGER", "c": "VARCHAR"},
}  # fmt: skip
MOMENT = datetime(2026, 1, 31, tzinfo=UTC)


def grows(sql: str) -> tuple[int, ...]:
    made = plan({"q": sql}, TABLES, scalar_functions={"sentiment": "DOUBLE"}, moment=MOMENT)
    return made.finish("q").grows


@pytest.mark.parametrize(
    ("sql", "columns"),
    [
        ("SELECT a, f FROM t WHERE b = 'x' ORDER BY f", (0, 1)),
        ("SELECT unnest(l) FROM t WHERE sentiment(b) > 0", (0,)),
        ("SELECT DISTINCT b FROM t", (0,)),
        ("SELECT b, count(*) AS n, max(f) FROM t GROUP BY b", (0,)),
        ("SELECT b FROM t GROUP BY b HAVING count(*) >= 500", (0,)),
        ("SELECT b FROM t GROUP BY b HAVING 500 < count(a)", (0,)),
        ("SELECT b FROM t GROUP BY b HAVING count(DISTINCT a // 10) >= 10", (0,)),
        ("SELECT b FROM t GROUP BY b HAVING count(*) FILTER (WHERE ok) > 1", (0,)),
        ("SELECT b FROM t GROUP BY b HAVING count_if(ok) > 1 OR bool_or(ok)", (0,)),
        ("SELECT b FROM t GROUP BY b HAVING max(f) > 2.5 AND min(a) <= 0", (0,)),
        ("SELECT b FROM t GROUP BY b HAVING max(d) >= DATE '2020-01-01'", (0,)),
        ("SELECT b, a FROM t GROUP BY a, b HAVING count(*) > a", (0, 1)),
        ("SELECT b FROM (SELECT b, count(*) AS n FROM t GROUP BY b) WHERE n >= 3", (0,)),
        ("SELECT t.b, u.c FROM t JOIN u ON t.a = u.a WHERE t.f > 0", (0, 1)),
        ("SELECT u.c, n FROM u JOIN (SELECT a, count(*) AS n FROM t GROUP BY a) AS g "
         "ON g.a = u.a AND g.n >= 2", (0,)),
        ("SELECT a FROM t WHERE a IN (SELECT a FROM u)", (0,)),
        ("SELECT a FROM t UNION ALL SELECT a FROM u", (0,)),
        ("SELECT f, b FROM t GROUP BY f, b HAVING count(*) > 1", (1,)),
        ("SELECT p, a FROM t GROUP BY p, a", (1,)),
    ],
)  # fmt: skip
def test_a_query_grows_in_the_columns_that_never_change(sql: str, columns: tuple[int, ...]) -> None:
    assert grows(sql) == columns


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT a FROM t LIMIT 3",
        "SELECT a FROM t ORDER BY a OFFSET 1",
        "SELECT b FROM t GROUP BY b HAVING count(*) >= 3 ORDER BY count(*) LIMIT 5",
        "SELECT b FROM t GROUP BY b HAVING count(*) = 3",
        "SELECT b FROM t GROUP BY b HAVING count(*) < 3",
        "SELECT b FROM t GROUP BY b HAVING count(*) BETWEEN 3 AND 5",
        "SELECT b FROM t GROUP BY b HAVING NOT count(*) >= 3",
        "SELECT b FROM t GROUP BY b HAVING count(*) % 10 >= 3",
        "SELECT b FROM t GROUP BY b HAVING count(*) >= 3 AND sum(a) > 0",
        "SELECT b FROM t GROUP BY b HAVING min(a) > 0",
        "SELECT b FROM t GROUP BY b HAVING max(a) < 0",
        "SELECT b FROM t GROUP BY b HAVING max(b) > 3",
        "SELECT b FROM t GROUP BY b HAVING max(b)::INTEGER > 3",
        "SELECT b FROM t GROUP BY b HAVING max(l) > ['a']",
        "SELECT b FROM t GROUP BY b HAVING avg(f) > 0",
        "SELECT b FROM t GROUP BY b HAVING count(*) > max(a)",
        "SELECT b FROM t GROUP BY b HAVING bool_and(ok)",
        "SELECT n FROM (SELECT b, count(*) AS n FROM t GROUP BY b) GROUP BY n",
        "SELECT b FROM (SELECT b, count(*) AS n FROM t GROUP BY b) WHERE n >= 3 AND n <> 5",
        "SELECT count(*) FROM t",
        "SELECT f FROM t GROUP BY f",
        "SELECT t.b FROM t LEFT JOIN u ON t.a = u.a WHERE u.c IS NULL",
        "SELECT a FROM t WHERE NOT EXISTS (SELECT 1 FROM u WHERE u.a = t.a)",
        "SELECT a FROM t WHERE a NOT IN (SELECT a FROM u)",
        "SELECT a FROM t WHERE f > (SELECT max(f) FROM t)",
        "SELECT a FROM t EXCEPT SELECT a FROM u",
        "SELECT a, rank() OVER (ORDER BY a) FROM t",
        "SELECT u.c FROM u JOIN (SELECT a, count(*) AS n FROM t GROUP BY a) AS g ON g.n = u.a",
        "SELECT a, random() FROM t",
    ],
)
def test_what_later_rows_may_take_back_is_not_shown(sql: str) -> None:
    assert grows(sql) == ()


@pytest.mark.parametrize(
    ("name", "growing"),
    [("books", {"q1": 3, "q2": 1, "q3": 2}), ("movies", {"q1": 2})],
)
def test_the_shipped_queries(name: str, growing: dict[str, int]) -> None:
    made = make_plan(find_application(name), None, {}, load_model("lexicon")).plan
    assert {one.query: len(one.grows) for one in made.finishes if one.grows} == growing
