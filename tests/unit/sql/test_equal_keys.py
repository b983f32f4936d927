"""Keys that DuckDB calls equal are hashed as equal values, for every pair of types."""

import itertools
import random
from collections.abc import Iterator, Sequence

import duckdb
import numpy as np
import pyarrow as pa
import pytest
from tests.fuzz.check import compare
from tests.harness.oracle import ORACLE
from tests.harness.plan_run import PlanRun

from caudal.duck.arrow_casts import presented
from caudal.duck.binder import DuckDBBinder
from caudal.duck.sandbox import Sandbox, Types
from caudal.kernels.hashing import partition_of
from caudal.sql.planner import plan, types

INTEGERS = {
    "TINYINT": (-(2**7), 2**7 - 1), "UTINYINT": (0, 2**8 - 1),
    "SMALLINT": (-(2**15), 2**15 - 1), "USMALLINT": (0, 2**16 - 1),
    "INTEGER": (-(2**31), 2**31 - 1), "UINTEGER": (0, 2**32 - 1),
    "BIGINT": (-(2**63), 2**63 - 1), "UBIGINT": (0, 2**64 - 1),
    "HUGEINT": (-(2**127), 2**127 - 1), "UHUGEINT": (0, 2**128 - 1),
    "BIGNUM": (-(2**140), 2**140),
}  # fmt: skip
EDGES = sorted(
    {sign * (2**bits + more) for bits in (0, 7, 8, 15, 16, 24, 31, 32, 53, 63, 64, 127, 128)
     for more in (-1, 0, 1) for sign in (1, -1)}
)  # fmt: skip
FLOATS = [
    "0.0", "-0.0", "nan", "inf", "-inf", "1.5", "0.1", "1e-40", "16777216", "16777217", "3e38",
    *(str(edge) for edge in EDGES),
]  # fmt: skip
OTHERS = {
    "FLOAT": FLOATS,
    "DOUBLE": FLOATS,
    "DECIMAL(4,1)": ["0", "-1", "1.5", "0.1", "127", "128", "255"],
    "DECIMAL(18,3)": ["0", "-1", "1.5", "0.1", "16777217", "4294967296"],
    "DECIMAL(38,0)": ["0", "-1", "2", "16777217", "9223372036854775808", "9007199254740993"],
    "BOOLEAN": ["true", "false"],
    "VARCHAR": ["", "a", "0", "-0.0", "1", "01", "1.0", "true", "2020-01-01", "30 days", "nan"],
    "BLOB": ["", "a", "0", "1"],
    "BIT": ["0", "1", "01"],
    "DATE": ["2020-01-01", "infinity", "-infinity", "1969-12-31"],
    "TIMESTAMP": ["2020-01-01", "2020-01-01 00:00:00.000001", "infinity", "-infinity"],
    "TIMESTAMP_S": ["2020-01-01", "2020-01-01 00:00:01"],
    "TIMESTAMP_MS": ["2020-01-01", "2020-01-01 00:00:00.001"],
    "TIMESTAMP_NS": ["2020-01-01", "2020-01-01 00:00:00.000000001"],
    "TIMESTAMP WITH TIME ZONE": ["2020-01-01", "2020-01-01 00:00:00+05", "infinity"],
    "TIME": ["00:00:00", "24:00:00", "12:00:00"],
    "TIME WITH TIME ZONE": ["00:00:00+00", "01:00:00+01", "12:00:00+00"],
    "INTERVAL": ["1 month", "30 days", "720 hours", "0 days"],
    "UUID": ["00000000-0000-0000-0000-000000000001"],
    "JSON": ["1", '"a"', "[1]", "[1 ]"],
    "ENUM('a', '1', '01')": ["a", "1", "01"],
    "ENUM('01', '1', 'b')": ["1", "b", "01"],
    "VARCHAR[]": ["[]", "[a]", "[NULL]", "['[a]']"],
    "INTEGER[]": ["[]", "[1]", "[NULL]"],
    "DOUBLE[]": ["[]", "[0.0]", "[-0.0]", "[1.0]"],
    "FLOAT[]": ["[0.0]", "[-0.0]", "[16777216]"],
    "INTERVAL[]": ["[1 month]", "[30 days]"],
}
VALUES: dict[str, list[str]] = {
    **{
        kind: [str(edge) for edge in EDGES if low <= edge <= high]
        for kind, (low, high) in INTEGERS.items()
    },
    **OTHERS,
}
PAIRS = list(itertools.combinations_with_replacement(VALUES, 2))
NUMBERS = [kind for kind in VALUES if types.is_numeric(kind)]
MANY = 2**31 - 1  # partitions, so that values of different hashes nearly never meet


def _is_never_cast(one: str, two: str) -> bool:
    """Whether the planner splits no join of these types, because comparing them could raise."""
    return not types.compare_safely(one, two)


@pytest.fixture(scope="module")
def database() -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect(config=ORACLE) as made:
        made.execute("SET TimeZone = 'UTC'")
        for kind, texts in VALUES.items():
            listed = ", ".join(f"('{text.replace(chr(39), chr(39) * 2)}')" for text in texts)
            made.execute(
                f'CREATE TABLE "{kind}" AS SELECT row_number() OVER () - 1 AS id, '
                f"TRY_CAST(x AS {kind}) AS x FROM (VALUES {listed}) AS v(x)"
            )
        yield made


def places(database: duckdb.DuckDBPyConnection, kind: str, hashed: str) -> Sequence[int]:
    """The partition of every value of a type, hashed as another."""
    with database.cursor() as cursor:
        keys = cursor.sql(f'SELECT CAST(x AS {hashed}) AS x FROM "{kind}" ORDER BY id')
        return [int(place) for place in partition_of([keys.to_arrow_table().column("x")], MANY)]


@pytest.mark.parametrize("kind", VALUES)
def test_equal_values_of_one_form_are_one_value(
    kind: str, database: duckdb.DuckDBPyConnection
) -> None:
    if not types.has_one_form(kind):
        return
    texts = f'SELECT count(*) FROM "{kind}" a, "{kind}" b WHERE a.x = b.x'
    different = database.execute(f"{texts} AND a.x::VARCHAR <> b.x::VARCHAR").fetchall()
    assert different == [(0,)]


def test_keys_of_every_pair_of_types(database: duckdb.DuckDBPyConnection) -> None:
    """As DuckDB compares them in a condition, and as a set operation does."""
    parted = []
    for one, two in PAIRS:
        hashed = types.hashed((one, two))
        if hashed is None or _is_never_cast(one, two):
            continue
        here, there = (np.array(places(database, kind, hashed)) for kind in (one, two))
        both = f'"{one}" AS a, "{two}" AS b'
        union = f'SELECT x FROM "{one}" UNION ALL SELECT x FROM "{two}"'
        with database.cursor() as cursor:
            united = str(cursor.sql(union).types[0])
        for condition in ("a.x = b.x", f"TRY_CAST(a.x AS {united}) = TRY_CAST(b.x AS {united})"):
            pairs = database.execute(f"SELECT a.id, b.id FROM {both} WHERE {condition}").fetchall()
            parted += [
                (one, two, VALUES[one][i], VALUES[two][j]) for i, j in pairs if here[i] != there[j]
            ]
    assert parted == []


def test_integers_and_floats_are_still_split() -> None:
    assert types.hashed(("BIGINT", "FLOAT")) == "FLOAT"
    assert types.hashed(("BIGINT", "DOUBLE")) == types.hashed(("FLOAT", "DOUBLE")) == "DOUBLE"


STATEMENTS = {
    "join": "SELECT a.id, b.id AS j FROM a JOIN b ON a.x = b.x",
    "left_join": "SELECT a.id, b.id AS j FROM a LEFT JOIN b ON a.x = b.x",
    "full_join": "SELECT a.id, b.id AS j FROM a FULL JOIN b ON a.x = b.x",
    "anti_join": "SELECT a.id FROM a ANTI JOIN b ON a.x = b.x",
    "exists": "SELECT id FROM a WHERE EXISTS (SELECT 1 FROM b WHERE b.x = a.x)",
    "in": "SELECT id FROM a WHERE x IN (SELECT x FROM b)",
    "using": "SELECT x, a.id, b.id AS j FROM a JOIN b USING (x)",
    "union": "SELECT count(*) AS n FROM (SELECT x FROM a UNION SELECT x FROM b)",
    "except": "SELECT count(*) AS n FROM (SELECT x FROM a EXCEPT SELECT x FROM b)",
    "intersect": "SELECT count(*) AS n FROM (SELECT x FROM b INTERSECT SELECT x FROM a)",
    "groups": "SELECT count(*) AS n, sum(b.id) AS s FROM a JOIN b ON a.x = b.x GROUP BY a.id % 3",
    "joined_groups": """
        SELECT a.id, b.n FROM a JOIN (SELECT x, count(*) AS n FROM b GROUP BY x) AS b
        ON a.x = b.x""",
    "chain": "SELECT a.id, c.id AS j FROM a JOIN b ON a.x = b.x JOIN a AS c ON b.x = c.x",
}


@pytest.fixture(scope="module")
def tools() -> Iterator[tuple[Sandbox, Sandbox]]:
    stages, results = Sandbox(), Sandbox(types=Types.PLAIN)
    yield stages, results
    for tool in (stages, results):
        tool.close()


@pytest.mark.one_in(32)
@pytest.mark.parametrize(("left", "right"), list(itertools.product(NUMBERS, repeat=2)))
def test_statements_over_every_pair_of_numbers(
    left: str, right: str, database: duckdb.DuckDBPyConnection, tools: tuple[Sandbox, Sandbox]
) -> None:
    _compare_statements(left, right, database, tools)


@pytest.mark.parametrize(("left", "right"), [("INTEGER", "FLOAT"), ("FLOAT", "BIGINT")])
def test_statements_over_integers_and_floats(
    left: str, right: str, database: duckdb.DuckDBPyConnection, tools: tuple[Sandbox, Sandbox]
) -> None:
    _compare_statements(left, right, database, tools)


def _compare_statements(
    left: str, right: str, database: duckdb.DuckDBPyConnection, tools: tuple[Sandbox, Sandbox]
) -> None:
    schemas = {"a": {"id": "BIGINT", "x": left}, "b": {"id": "BIGINT", "x": right}}
    rows = {"a": _table(database, left), "b": _table(database, right)}
    expected = {}
    for name, kind in (("a", left), ("b", right)):
        database.execute(f'CREATE OR REPLACE TEMP VIEW {name} AS FROM "{kind}"')
    for name, sql in STATEMENTS.items():
        try:
            expected[name] = presented(database.sql(sql))
        except duckdb.Error:
            continue  # a value that does not fit into the type in which DuckDB compares
    binder = DuckDBBinder(schemas)
    try:
        made = plan({name: STATEMENTS[name] for name in expected}, schemas, binder=binder)
    finally:
        binder.close()
    batches = {name: [one.slice(at, 11) for at in range(0, len(one), 11)]
               for name, one in rows.items()}  # fmt: skip
    answers = PlanRun(made, 4, *tools).answers(batches, _shuffled)
    for name, answer in expected.items():
        compare(answer, answers[name], ordered=False)


def _table(database: duckdb.DuckDBPyConnection, kind: str) -> pa.Table:
    database.execute("SET arrow_lossless_conversion = true")
    try:
        return database.sql(f'SELECT id, x FROM "{kind}"').to_arrow_table()
    finally:
        database.execute("SET arrow_lossless_conversion = false")


def _shuffled(numbers: Sequence[int]) -> list[int]:
    return random.Random(len(numbers)).sample(numbers, len(numbers))
