"""Which queries only filter: batch by batch they give the rows of the answer."""

from datetime import UTC, datetime

import pytest

from caudal.application import find_application
from caudal.duck.job_plan import make_plan
from caudal.kernels.sentiment import load_model
from caudal.sql.planner import only_filters, plan

TABLES = {"t": {"a": "INTEGER", "b": "VARCHAR", "l": "INTEGER[]"}, "u": {"a": "INTEGER"}}
MOMENT = datetime(2026, 1, 31, tzinfo=UTC)


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT a FROM t",
        "SELECT a FROM t WHERE b = 'x' ORDER BY a",
        "SELECT upper(b), a + 1 FROM t WHERE len(l) > 2 ORDER BY 2 DESC NULLS FIRST",
        "SELECT unnest(l) FROM t WHERE a IN (1, 2)",
        "SELECT list_sum(list_filter(l, x -> x > 1)) FROM t",
        "SELECT sentiment(b) AS s FROM t WHERE sentiment(b) > 0 ORDER BY s",
        "SELECT x FROM (SELECT a AS x FROM t WHERE a > 1) WHERE x < 9",
        "SELECT a FROM t WHERE now() > TIMESTAMP '2020-01-01'",
    ],
)
def test_rows_of_one_table_can_be_shown_as_they_come(sql: str) -> None:
    made = plan({"q": sql}, TABLES, scalar_functions={"sentiment": "DOUBLE"}, moment=MOMENT)
    assert only_filters(made, "q")


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT 1",
        "SELECT a FROM t LIMIT 3",
        "SELECT a FROM t ORDER BY a OFFSET 1",
        "SELECT a FROM (SELECT a FROM t LIMIT 5)",
        "SELECT DISTINCT a FROM t",
        "SELECT count(*) FROM t",
        "SELECT b, sum(a) FROM t GROUP BY b",
        "SELECT a, row_number() OVER (ORDER BY a) FROM t",
        "SELECT a FROM t QUALIFY row_number() OVER (ORDER BY a) = 1",
        "SELECT t.a FROM t JOIN u USING (a)",
        "SELECT a FROM t WHERE EXISTS (SELECT 1 FROM u WHERE u.a = t.a)",
        "SELECT a FROM t WHERE a > (SELECT max(a) FROM u)",
        "SELECT a FROM t UNION ALL SELECT a FROM t",
        "SELECT a, random() FROM t",
        "SELECT a FROM t USING SAMPLE 10",
        "SELECT rowid FROM t",
    ],
)
def test_whatever_looks_at_several_rows_cannot(sql: str) -> None:
    assert not only_filters(plan({"q": sql}, TABLES, moment=MOMENT), "q")


@pytest.mark.parametrize("name", ["books", "movies"])
def test_the_first_query_of_each_shipped_application_only_filters(name: str) -> None:
    made = make_plan(find_application(name), None, {}, load_model("lexicon")).plan
    filtering = [last.query for last in made.finishes if only_filters(made, last.query)]
    assert filtering == ["q1"]
