"""Every statement of the corpus gives DuckDB's rows on every engine."""

from collections.abc import Iterator

import pyarrow as pa
import pytest
from tests.corpus.engines import EQUAL, Split, embedded_outcomes, expected_rows
from tests.corpus.statements import Statement, statements

LEAST_SCALED = 0.55  # of all statements; docs/reliability.md has the figure

EVERY = list(statements())


@pytest.fixture(scope="module")
def expected() -> dict[str, pa.Table]:
    return expected_rows()


@pytest.fixture(scope="module")
def embedded(expected: dict[str, pa.Table]) -> dict[str, str]:
    return embedded_outcomes(expected)


@pytest.fixture(scope="module")
def split() -> Iterator[Split]:
    made = Split()
    yield made
    made.close()


def named(statement: Statement) -> str:
    return f"{statement.section}: {statement.sql}"


@pytest.mark.parametrize("statement", EVERY, ids=named)
def test_the_split_engine_gives_duckdb_s_rows(
    statement: Statement, expected: dict[str, pa.Table], split: Split
) -> None:
    outcome, _ = split.outcome(statement, expected[statement.sql])
    assert outcome == EQUAL


@pytest.mark.parametrize("statement", EVERY, ids=named)
def test_the_embedded_engine_gives_duckdb_s_rows(
    statement: Statement, embedded: dict[str, str]
) -> None:
    assert embedded[statement.sql] == EQUAL


def test_most_of_the_corpus_scales(split: Split) -> None:
    scaled = [one for one in EVERY if split.planned(one.sql).finish("q").strategy == "scaled"]
    assert len(scaled) >= LEAST_SCALED * len(EVERY)
