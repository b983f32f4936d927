"""One statement, one moment: whatever asks the clock is answered before the query is split."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta, timezone

import duckdb
import pytest

from caudal.duck.binder import DuckDBBinder
from caudal.sql.planner import TextChecks, plan
from caudal.sql.planner.current_time import freeze_current_time

MOMENT = datetime(2026, 1, 2, 3, 4, 5, 678901, tzinfo=UTC)
SCHEMAS = {
    "t": {"a": "INTEGER", "ts": "TIMESTAMP", "tz": "TIMESTAMP WITH TIME ZONE", "d": "DATE"},
    "c": {"current_date": "INTEGER", "localtimestamp": "INTEGER", "a": "INTEGER"},
}
CLOCKS = [
    "now()", "NOW ( )", "transaction_timestamp()", "get_current_timestamp()", "current_timestamp",
    "current_date", "current_date()", "today()", "current_time", "get_current_time()", "localtime",
    "current_localtime()", "localtimestamp", "CURRENT_LOCALTIMESTAMP()", "age(ts)", "age(tz)",
    "age(CAST(d AS TIMESTAMP))", "age(coalesce(ts, ts))", "ago(INTERVAL 1 DAY)",
    "AGO ( to_days(a) )", "ago(now() - tz)",
]  # fmt: skip
IN_PLACES = [
    "SELECT a FROM t ORDER BY d < {}, a",
    "SELECT count(*) FILTER (WHERE d < {}) AS n, list(a ORDER BY d < {}) AS l FROM t",
    "SELECT rank() OVER (PARTITION BY d < {} ORDER BY a) AS n FROM t",
    "SELECT list_filter([d], lambda x: x < {}) AS l FROM t",
    "SELECT [x FOR x IN [d] IF x < {}] AS l FROM t",
    "SELECT (SELECT max(s.d) FROM t AS s WHERE s.d < {} AND s.a = t.a) AS m FROM t",
    "SELECT {} AS x UNION ALL SELECT d FROM t WHERE d < {}",
    "WITH s AS (SELECT {} AS x, a FROM t) SELECT max(r.x) AS x FROM s JOIN s AS r USING (a)",
]
COLUMNS = [
    "SELECT current_date FROM c",
    "SELECT c.current_date, localtimestamp FROM c",
    'SELECT "current_date" FROM c',
    "SELECT a AS current_date FROM t",
    "SELECT current_date + 1 FROM c WHERE localtimestamp > 2",
    "SELECT x.current_date FROM (SELECT a AS current_date FROM t) AS x",
    "SELECT current_date FROM (SELECT a AS current_date FROM t)",
    "SELECT now FROM (SELECT a AS now FROM t)",
    "SELECT 'now()', age(ts, ts) FROM t",
    "SELECT ago(INTERVAL 1 DAY) FROM (SELECT ts AS current_timestamp FROM t)",
    "WITH age(x) AS (SELECT a FROM t) SELECT x FROM age",
    "WITH b AS (SELECT 1), age(x) AS NOT MATERIALIZED (SELECT a FROM t) SELECT x FROM age",
    "WITH RECURSIVE age(x) AS (SELECT a FROM t UNION ALL SELECT x - 1 FROM age WHERE x > 3) "
    "SELECT x FROM age",
    "SELECT x FROM (SELECT a FROM t) age(x)",
    "SELECT d AS current_date, current_date + 1 AS x FROM t",
    "SELECT current_date AS x, * FROM (SELECT d AS current_date FROM t)",
    "SELECT current_date AS x, s.current_date AS y FROM (SELECT d AS current_date FROM t) AS s",
    "SELECT ago(INTERVAL 1 DAY) AS x, * FROM (SELECT tz AS current_timestamp FROM t)",
    "SELECT list_transform([d], lambda current_date: current_date) AS x FROM t",
    'SELECT list_transform([d], lambda "CURRENT_DATE", i: current_date) AS x FROM t',
    "SELECT [current_date FOR current_date IN [d]] AS x FROM t",
]


@pytest.fixture(scope="module")
def binder() -> Iterator[DuckDBBinder]:
    made = DuckDBBinder(SCHEMAS)
    yield made
    made.close()


def planned(sql: str, binder: DuckDBBinder) -> str:
    """All the SQL of a plan."""
    made = plan({"q": sql}, SCHEMAS, moment=MOMENT, binder=binder)
    return " ".join(one.sql for one in (*made.stages(), *made.finishes))


@pytest.mark.parametrize("clock", CLOCKS)
def test_every_way_to_ask_the_clock_is_frozen(clock: str, binder: DuckDBBinder) -> None:
    text = planned(f"SELECT a, {clock} AS x FROM t", binder)
    assert "2026-01-02" in text or "03:04:05.678901" in text
    assert clock not in text


@pytest.mark.parametrize("sql", IN_PLACES)
def test_the_clock_is_frozen_wherever_it_stands(sql: str, binder: DuckDBBinder) -> None:
    text = planned(sql.replace("{}", "current_date"), binder)
    assert "CAST('2026-01-02' AS DATE)" in text
    assert "current_date" not in text


@pytest.mark.parametrize("clock", CLOCKS)
def test_a_frozen_moment_has_the_type_of_the_clock(clock: str, binder: DuckDBBinder) -> None:
    sql = f"SELECT {clock} AS x FROM t"
    assert binder.columns(freeze_current_time(sql, TextChecks(MOMENT))) == binder.columns(sql)


@pytest.mark.parametrize("word", ["current_timestamp", "now()", "ago(INTERVAL 2 HOUR)"])
def test_a_moment_that_duckdb_folds_into_its_plan_is_frozen(
    word: str, binder: DuckDBBinder
) -> None:
    text = planned(f"SELECT a FROM t WHERE tz > {word} - INTERVAL 1 DAY", binder)
    assert "2026-01-02 03:04:05.678901" in text
    assert word not in text


@pytest.mark.parametrize("clock", CLOCKS)
def test_a_column_inside_keeps_its_name(clock: str, binder: DuckDBBinder) -> None:
    inner = f"SELECT {clock}, a, {clock} AS b FROM t"
    text = planned(f"SELECT to_json(s) AS j FROM ({inner}) AS s", binder)
    name = binder.columns(inner)[0].name
    assert f'AS "{name}", a, ' in text
    assert "2026-01-02" in text or "03:04:05.678901" in text


@pytest.mark.parametrize("sql", COLUMNS)
def test_columns_with_such_names_are_no_clocks(sql: str, binder: DuckDBBinder) -> None:
    text = planned(sql, binder)
    assert "2026-01-02" not in text
    assert "03:04:05" not in text


def test_a_column_and_the_clock_in_one_statement(binder: DuckDBBinder) -> None:
    sql = "SELECT current_date, (SELECT max(d) FROM t WHERE d < current_date) FROM c"
    text = planned(sql, binder)
    assert "CAST('2026-01-02' AS DATE)" not in text.split("FROM")[0]


def test_local_forms_are_those_of_utc() -> None:
    elsewhere = datetime(2026, 1, 1, 23, 0, tzinfo=timezone(timedelta(hours=-5)))
    sql = "SELECT today(), localtimestamp"
    expected = "SELECT CAST('2026-01-02' AS DATE), CAST('2026-01-02 04:00:00.000000' AS TIMESTAMP)"
    assert freeze_current_time(sql, TextChecks(elsewhere)) == expected


def test_age_counts_from_the_present_day() -> None:
    with duckdb.connect() as connection:
        connection.execute("SET TimeZone = 'UTC'")
        for kind in ("TIMESTAMP", "TIMESTAMPTZ"):
            sql = f"SELECT age({kind} '2020-02-03 04:05:06')"
            ((today,),) = connection.sql("SELECT current_date").fetchall()
            moment = datetime(today.year, today.month, today.day, 11, tzinfo=UTC)
            frozen = freeze_current_time(sql, TextChecks(moment))
            assert connection.sql(sql).fetchall() == connection.sql(frozen).fetchall()
