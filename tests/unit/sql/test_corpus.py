"""Every statement of the corpus gives DuckDB's rows on every engine.

One test per engine: what a whole run over the corpus shares is made once, not by every process that
happens to be given a statement. `python -m tests.corpus.engines` prints all outcomes.
"""

from contextlib import closing

from tests.corpus.engines import EQUAL, Split, embedded_outcomes, expected_rows
from tests.corpus.statements import statements

LEAST_SCALED = 0.55  # of all statements; docs/reliability.md has the figure


def test_the_split_engine_gives_duckdb_s_rows_and_scales_most_statements() -> None:
    expected = expected_rows()
    with closing(Split()) as split:
        found = {one.sql: split.outcome(one, expected[one.sql]) for one in statements()}
    assert {sql: outcome for sql, (outcome, _) in found.items() if outcome != EQUAL} == {}
    scaled = [sql for sql, (_, strategy) in found.items() if strategy == "scaled"]
    assert len(scaled) >= LEAST_SCALED * len(found)


def test_the_embedded_engine_gives_duckdb_s_rows() -> None:
    outcomes = embedded_outcomes(expected_rows())
    assert {sql: outcome for sql, outcome in outcomes.items() if outcome != EQUAL} == {}
    assert len(outcomes) > 600
