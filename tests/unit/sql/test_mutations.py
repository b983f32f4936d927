"""Keywords inserted anywhere into the corpus: what DuckDB still accepts gives DuckDB's rows."""

import random
from collections.abc import Iterator

import duckdb
import pyarrow as pa
import pytest
from tests.corpus.engines import EQUAL, Split
from tests.corpus.statements import Statement, database, statements
from tests.fuzz.mutations import keywords, mutated

from caudal.duck.arrow_casts import presented

ROUNDS = range(6)
TRIES = 8
LEAST_ACCEPTED = 20  # of each round: else the mutations are too wild to prove anything


@pytest.fixture(scope="module")
def split() -> Iterator[Split]:
    made = Split()
    yield made
    made.close()


def changes(one: Statement, chance: random.Random, words: list[str]) -> Iterator[Statement]:
    for _ in range(TRIES):
        yield Statement("mutated", mutated(one.sql, words, chance))


def expected_of(sql: str, connection: duckdb.DuckDBPyConnection) -> pa.Table | None:
    try:
        read = connection.extract_statements(sql)
        if [found.type for found in read] != [duckdb.StatementType.SELECT]:
            return None
        return presented(connection.sql(sql))
    except duckdb.Error:
        return None


@pytest.mark.one_in(3)
@pytest.mark.parametrize("seed", ROUNDS)
def test_a_keyword_anywhere_changes_no_rows(seed: int, split: Split) -> None:
    words, chance, done = keywords(), random.Random(seed), 0
    with database() as connection:
        for one in list(statements())[seed :: len(ROUNDS)]:
            for changed in changes(one, chance, words):
                expected = expected_of(changed.sql, connection)
                if expected is not None:
                    done += 1
                    outcome, _ = split.outcome(changed, expected)
                    assert outcome == EQUAL, changed.sql
                    break
    assert done >= LEAST_ACCEPTED
