"""What functions give at this level of rows. Whoever changes it on purpose raises the level.

Map outputs over a dataset are shared by the level, not by the release (ADR 65). So a change that
gives other rows and leaves the level alone would mix them.
"""

import duckdb
import pyarrow as pa
import pytest

from caudal.duck.functions import RETURN_TYPES, register_functions
from caudal.formats.digest import digest
from caudal.jobs.levels import ROWS_LEVEL
from caudal.kernels.hashing import HASH_VERSION, hash_rows
from caudal.kernels.sentiment import load_model
from caudal.kernels.sentiment.lexicon import LEXICON_FILE

TEXTS = [
    None, "", "good", "not very good!", "ugly - ♥ :-)", "naïve MEËT", "7", " -07 ", "1_000", "1.50",
    "-1e-3", "1e400", "12345678901234567890", "2024-02-29", "2024-02-29 12:30:00.5",
    "2024-02-29T12:30+02:00", "2023-02-29", "[{'name': 'Drama', 'id': 18}, {'name': 'A \\' b'}]",
    "['one', \"two's\"]", "[", "I was extremely disappointed, but the end is not bad at all...",
]  # fmt: skip
GIVEN = {  # digests by level of rows: of what functions give, and of hashes
    1: {
        "exact_decimal": "9286060675c97c1021278faee654f9d2",
        "exact_double": "44e24ba0e5b659204b9a7c55e8787f71",
        "exact_integer": "0818f25b8e856711202e78414e6910f4",
        "exact_timestamp": "0eebc407c4491250901215fda869dfac",
        "exact_timestamptz": "a4e1d656dee5224aa40c86acef0ff8da",
        "items": "6eada6210c5f3c794c241277faaa8c59",
        "names": "3765baf0dab5fdb13153eb3f7dace5c9",
        "number_text": "ae8f972dda78ff2f9aa4990d28f33e6b",
        "sentiment": "66640c0284cdbb11bac0155b5a5911a0",
        "to_integer": "c0ca92b0ab8fd469c841eb156517e418",
        "hash": "2fa4763c2a654079c5a7a2fb0be414a3",
    },
}


def phrases() -> list[str]:
    """Return every word of the lexicon, plain and in phrases that rules change."""
    lines = LEXICON_FILE.read_text(encoding="utf-8").splitlines()
    words = [line.split("\t")[0] for line in lines if not line.startswith("#")]
    return [f"{before}{word}{after}" for word in words
            for before, after in (("", ""), ("not ", "!"), ("very ", " :-("))]  # fmt: skip


@pytest.mark.parametrize("name", sorted(RETURN_TYPES))
def test_functions_give_the_rows_of_their_level(name: str) -> None:
    with duckdb.connect() as connection:
        connection.execute("SET TimeZone = 'UTC'")
        register_functions(connection, load_model())
        given = pa.table({"text": pa.array([*TEXTS, *phrases()] if name == "sentiment" else TEXTS)})
        connection.register("given", given)
        found = connection.sql(f"SELECT CAST({name}(text) AS VARCHAR) FROM given").fetchall()
    assert digest(repr(found).encode()) == GIVEN[ROWS_LEVEL][name], found[: len(TEXTS)]


def test_hashes_are_those_of_their_version() -> None:
    assert HASH_VERSION == 1
    columns = [pa.array(TEXTS), pa.array(range(len(TEXTS))), pa.array([0.5] * len(TEXTS))]
    assert digest(hash_rows(columns).tobytes()) == GIVEN[ROWS_LEVEL]["hash"]
