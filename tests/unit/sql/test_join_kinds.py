"""What the planner believes of each kind of join is what DuckDB does."""

from collections.abc import Iterator
from typing import get_args

import duckdb
import pytest

from caudal.sql.planner.algebra import Join, JoinKind, Side, TableScan

KINDS: tuple[JoinKind, ...] = get_args(JoinKind)
SIDES: tuple[Side, ...] = get_args(Side)
PARTNERS = {
    "left": "DELETE FROM one WHERE k IS NULL OR k NOT IN (SELECT k FROM two WHERE k IS NOT NULL)",
    "right": "DELETE FROM two WHERE k IS NULL OR k NOT IN (SELECT k FROM one WHERE k IS NOT NULL)",
}


@pytest.fixture
def database() -> Iterator[duckdb.DuckDBPyConnection]:
    """Two tables: each has a key that the other has too, one that it has not, and a null."""
    with duckdb.connect() as made:
        made.execute("CREATE TABLE one AS FROM (VALUES (1, 'a'), (2, 'b'), (NULL, 'c')) t(k, v)")
        made.execute("CREATE TABLE two AS FROM (VALUES (1, 'd'), (3, 'e'), (NULL, 'f')) t(k, w)")
        yield made


def join(kind: JoinKind) -> Join:
    return Join(TableScan("one", {}), TableScan("two", {}), kind, ())


def rows(database: duckdb.DuckDBPyConnection, kind: JoinKind) -> list[tuple[object, ...]]:
    return database.sql(f"FROM one {kind} JOIN two ON one.k = two.k ORDER BY ALL").fetchall()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("side", SIDES)
def test_rows_without_a_partner_change_nothing_where_one_is_needed(
    database: duckdb.DuckDBPyConnection, kind: JoinKind, side: Side
) -> None:
    before = rows(database, kind)
    database.execute(PARTNERS[side])
    assert (rows(database, kind) == before) == join(kind).needs_partner(side)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("side", SIDES)
def test_a_null_extended_side_has_nulls_that_its_table_does_not_have(
    database: duckdb.DuckDBPyConnection, kind: JoinKind, side: Side
) -> None:
    column = "v" if side == "left" else "w"
    found = database.sql(f"FROM one {kind} JOIN two ON one.k = two.k")
    nulls = column in found.columns and found.filter(f"{column} IS NULL").fetchall()
    assert bool(nulls) == join(kind).null_extends(side)
