"""Which tables' SQL is understood well enough to drop rows unseen, and what a row then needs."""

import pytest

from caudal.sql.prefilters import Projection, project
from caudal.sql.table_needs import Flag

COLUMNS = ("a", "b", "c")


def understood(sql: str) -> Projection:
    found = project(sql, COLUMNS)
    assert found is not None
    return found


def test_columns_are_followed_through_selects_inside_each_other() -> None:
    found = understood(
        "SELECT x, y, upper(x) AS z FROM (SELECT raw.a AS x, b AS y, lower(c) AS w FROM raw)"
    )
    assert [found.origin(name) for name in ("x", "y", "z", "w", "nowhere")] == [
        *("a", "b"),
        *(None, None, None),
    ]


def test_a_default_for_nulls_leaves_the_column_itself() -> None:
    assert understood("SELECT COALESCE(raw.a, lower(raw.b)) AS x FROM raw").origin("x") == "a"


def test_a_name_that_the_list_itself_gives_is_no_column_of_raw() -> None:
    found = understood("SELECT lower(a) AS d, CASE WHEN d IS NULL THEN 'd' END AS reject FROM raw")
    assert (found.origin("d"), found.present()) == (None, None)


@pytest.mark.parametrize(
    ("reject", "present"),
    [
        ("CASE WHEN x IS NULL THEN 'x' WHEN y IS NULL THEN 'y' END", ("a", "b")),
        ("CASE WHEN x IS NULL OR (y IS NULL OR x IS NULL) THEN 'x' END", ("a", "b")),
        ("CASE WHEN x IS NULL AND y IS NULL THEN 'x' END", None),
        ("CASE WHEN x IS NOT NULL THEN 'x' END", None),
        ("CASE WHEN x > 'm' THEN 'x' END", None),
        ("CASE WHEN x IS NULL THEN 'x' ELSE 'y' END", None),
        ("CASE x WHEN NULL THEN 'x' END", None),
        ("CASE WHEN lower(x) IS NULL THEN 'x' END", None),
        ("y", None),
    ],
)
def test_what_a_row_needs_in_order_not_to_be_rejected(
    reject: str, present: tuple[str, ...] | None
) -> None:
    inner = "SELECT raw.a AS x, raw.b AS y FROM raw"
    assert understood(f"SELECT x, {reject} AS reject FROM ({inner})").present() == present
    around = f"SELECT x, reject FROM (SELECT x, {reject} AS reject FROM ({inner}))"
    assert understood(around).present() == present


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT a FROM raw WHERE a > 1",
        "SELECT DISTINCT a FROM raw",
        "SELECT * FROM raw",
        "SELECT max(a) AS a FROM raw",
        "SELECT a, row_number() OVER () AS n FROM raw",
        "SELECT a, a > (SELECT max(b) FROM raw) AS b FROM raw",
        "SELECT a FROM raw ORDER BY a LIMIT 3",
        "SELECT a FROM raw AS r",
        "SELECT a FROM raw TABLESAMPLE 10%",
        "SELECT r.a FROM raw AS r, raw AS s",
        "SELECT a FROM elsewhere",
        "WITH r AS (FROM raw) SELECT a FROM r",
        "SELECT a FROM raw UNION ALL SELECT b FROM raw",
        "SELECT a FROM (SELECT a FROM raw) PIVOT (count(*) FOR a IN (1))",
        "SELECT 1 AS a",
        "this is not SQL (",
    ],
)
def test_rows_that_depend_on_others_are_not_understood(sql: str) -> None:
    assert project(sql, COLUMNS) is None


def test_flags_are_carried_through_every_select() -> None:
    found = understood("SELECT x FROM (SELECT raw.a AS x FROM raw)")
    assert found.carrying([Flag("a", "keys")]) == (
        'SELECT x, "a in keys" FROM (SELECT raw.a AS x, raw."a in keys" FROM raw)'
    )
    assert found.carrying([]) == "SELECT x FROM (SELECT raw.a AS x FROM raw)"
