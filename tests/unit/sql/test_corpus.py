"""Every statement of the corpus gives DuckDB's rows on every engine.

A few tests per engine: what a run over many statements shares is made once, not by every process
that happens to be given a statement. `python -m tests.corpus.engines` prints all outcomes.
"""

from contextlib import closing

import pytest
from tests.corpus.engines import EQUAL, Split, embedded_outcomes, expected_rows
from tests.corpus.statements import Statement, statements

LEAST_SCALED = 0.55  # of all statements; docs/reliability.md has the figure
PARTS = 4


def part_of(part: int) -> list[Statement]:
    """One statement of so many, from every section."""
    return list(statements())[part::PARTS]


def test_the_corpus_is_large() -> None:
    assert len(list(statements())) > 600


@pytest.mark.one_in(PARTS)
@pytest.mark.parametrize("part", range(PARTS))
def test_the_split_engine_gives_duckdb_s_rows_and_scales_most_statements(part: int) -> None:
    every = part_of(part)
    expected = expected_rows(every)
    with closing(Split()) as split:
        found = {one.sql: split.outcome(one, expected[one.sql]) for one in every}
    assert {sql: outcome for sql, (outcome, _) in found.items() if outcome != EQUAL} == {}
    scaled = [sql for sql, (_, strategy) in found.items() if strategy == "scaled"]
    assert len(scaled) >= LEAST_SCALED * len(found)


@pytest.mark.one_in(PARTS)
@pytest.mark.parametrize("part", range(PARTS))
def test_the_embedded_engine_gives_duckdb_s_rows(part: int) -> None:
    every = part_of(part)
    outcomes = embedded_outcomes(every, expected_rows(every))
    assert {sql: outcome for sql, outcome in outcomes.items() if outcome != EQUAL} == {}
