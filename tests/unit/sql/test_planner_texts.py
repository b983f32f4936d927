"""Rewriting of texts before planning, types, the JSON of a plan, and what `explain` says."""

from datetime import UTC, datetime

import pytest
from tests.fuzz.tables import SCHEMAS

from caudal.duck.binder import DuckDBBinder
from caudal.errors import UsageError
from caudal.sql.planner import TextChecks, explain, from_json, plan, to_json, types
from caudal.sql.planner.averages import rewrite_averages
from caudal.sql.planner.current_time import freeze_current_time

MOMENT = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("SELECT avg(x) FROM t", "SELECT (sum(x) / count(x)) FROM t"),
        ("SELECT AVG(DISTINCT x)", "SELECT (sum(DISTINCT x) / count(DISTINCT x))"),
        (
            "SELECT avg(x) FILTER (WHERE y > 1)",
            "SELECT (sum(x) FILTER (WHERE y > 1) / count(x) FILTER (WHERE y > 1))",
        ),
        ("SELECT avg(x) OVER (ORDER BY y)", "SELECT avg(x) OVER (ORDER BY y)"),
        ("SELECT 'avg(x)', avg FROM t", "SELECT 'avg(x)', avg FROM t"),
        ("SELECT mean(f(x, (y)))", "SELECT (sum(f(x, (y))) / count(f(x, (y))))"),
        ("SELECT list_avg(x)", "SELECT list_avg(x)"),
    ],
)
def test_averages_become_sum_over_count(given: str, expected: str) -> None:
    assert rewrite_averages(given, TextChecks()) == expected


def test_an_average_that_cannot_be_a_quotient_stays() -> None:
    sql = "SELECT avg(day), avg(x) FROM t"
    kept = rewrite_averages(sql, TextChecks(is_valid=lambda text: "sum(day)" not in text))
    assert kept == "SELECT avg(day), (sum(x) / count(x)) FROM t"


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (
            "SELECT now()",
            "SELECT CAST('2026-01-02 03:04:05.000000+00' AS TIMESTAMP WITH TIME ZONE)",
        ),
        ("SELECT current_date", "SELECT CAST('2026-01-02' AS DATE)"),
        ("SELECT today() - day", "SELECT CAST('2026-01-02' AS DATE) - day"),
        ('SELECT "current_date", t.now, now', 'SELECT "current_date", t.now, now'),
    ],
)
def test_the_current_time_is_frozen(given: str, expected: str) -> None:
    assert freeze_current_time(given, TextChecks(MOMENT)) == expected


def test_volatile_functions_run_in_the_last_stage_only() -> None:
    binder = DuckDBBinder(SCHEMAS)
    sql = "SELECT rid, random() AS r FROM sales WHERE rid > 2"
    made = plan({"q": sql}, SCHEMAS, binder=binder)
    binder.close()
    assert all("random" not in stage.sql for stage in made.stages())
    assert '"rid" FROM "sales" WHERE ("rid" > 2)' in made.scans[0].sql
    assert made.finish("q").strategy == "gathered"


def test_a_frozen_moment_can_be_pushed_into_the_scan() -> None:
    made = plan({"q": "SELECT rid FROM sales WHERE day < current_date"}, SCHEMAS, moment=MOMENT)
    assert "2026-01-02" in made.scans[0].sql


@pytest.mark.parametrize(
    ("kinds", "expected"),
    [
        (("INTEGER", "BIGINT"), "BIGINT"),
        (("INTEGER", "DOUBLE"), "DOUBLE"),
        (("HUGEINT", "INTEGER"), "VARCHAR"),
        (("VARCHAR", "INTEGER"), None),
        (("DECIMAL(10,2)", "DECIMAL(10,3)"), None),
        (("DECIMAL(10,2)", "DECIMAL(10,2)"), "VARCHAR"),
        (("DATE", "TIMESTAMP"), None),
        (("DOUBLE[]", "DOUBLE[]"), None),
        (("VARCHAR[]", "VARCHAR[]"), "VARCHAR"),
        (("INTERVAL", "INTERVAL"), None),
        ((None, "INTEGER"), None),
    ],
)
def test_keys_are_hashed_in_a_type_in_which_equal_values_are_equal(
    kinds: tuple[str | None, ...], expected: str | None
) -> None:
    assert types.hashed(kinds) == expected


def test_a_plan_survives_json() -> None:
    sql = "SELECT shop, count(*) AS n FROM sales JOIN items USING (item) GROUP BY shop"
    made = plan({"q": sql}, SCHEMAS)
    assert from_json(to_json(made)) == made
    assert plan({"q": sql}, SCHEMAS) == made


def test_an_unreadable_text_needs_duckdb() -> None:
    with pytest.raises(UsageError, match="query q: its grammar"):
        plan({"q": "SELECT rid! FROM sales"}, SCHEMAS)


def test_fragments_of_several_queries_are_shared() -> None:
    first = "SELECT shop, count(*) AS n FROM sales GROUP BY shop"
    second = "SELECT shop, sum(item) AS s FROM sales GROUP BY shop ORDER BY s, shop LIMIT 3"
    made = plan({"a": first, "b": second}, SCHEMAS)
    assert [scan.queries for scan in made.scans] == [("a", "b")]
    assert [fold.queries for fold in made.folds] == [("a", "b")]


def test_a_common_table_used_twice_is_computed_once() -> None:
    sql = """WITH sums AS (SELECT shop, sum(rid) AS s FROM sales GROUP BY shop)
        SELECT a.shop FROM sums a JOIN sums b ON a.s = b.s"""
    assert len(plan({"q": sql}, SCHEMAS).scans) == 1


def test_explain_names_stages_keys_operators_and_sharing() -> None:
    first = "SELECT shop, count(*) AS n FROM sales WHERE price > 0 GROUP BY shop"
    made = plan({"a": first, "b": first + " ORDER BY n, shop LIMIT 3"}, SCHEMAS)
    assert explain(made, "b").splitlines() == [
        "b: scaled: splits over batches and partitions",
        "  scan1   each batch of sales: filter, partial group -> hashed by scan1_shop",
        "          shared with a",
        "  fold1   each partition of scan1: group -> gathered",
        "          shared with a",
        "  finish  all of fold1: top",
    ]
    assert 'FROM "sales" WHERE' in explain(made, "b", sql=True)


def test_explain_says_why_a_query_is_gathered() -> None:
    made = plan({"q": "SELECT rid, rank() OVER (ORDER BY rid) AS r FROM sales"}, SCHEMAS)
    assert "  because: window functions see all rows at once" in explain(made, "q")
