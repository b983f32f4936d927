"""Random queries on Spark against the embedded engine, several in each run."""

import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pytest

from caudal.duck.arrow_casts import readable
from caudal.errors import CaudalError
from caudal.files.sources import Sources
from caudal.local.engines import run_with
from caudal.model import Application, Query, Table
from caudal.run_options import Engine, RunOptions, SparkOptions
from caudal.spark import frames
from tests.fuzz.check import Bench, compare
from tests.fuzz.tables import SCHEMAS
from tests.fuzz.wild import WildGenerator

pytestmark = pytest.mark.filterwarnings("ignore::FutureWarning", "ignore::DeprecationWarning")

GROUPS, PLANS = 20, 15  # 300 plans


@pytest.fixture(scope="module")
def bench() -> Iterator[Bench]:
    made = Bench()
    yield made
    made.close()


def write_tables(tables: dict[str, pa.Table], folder: Path) -> tuple[Table, ...]:
    """Write tables as CSV files; return how they are read again, with their types."""
    made = []
    with duckdb.connect() as connection:
        for name, schema in SCHEMAS.items():
            texts = ", ".join(f'CAST("{c}" AS VARCHAR) AS "{c}"' for c in schema)
            with readable(connection, "drawn", tables[name]):
                place = f"'{folder / name}.csv' (HEADER, QUOTE '\"')"
                connection.execute(f"COPY (SELECT {texts} FROM drawn) TO {place}")
            typed = ", ".join(f'CAST("{c}" AS {kind}) AS "{c}"' for c, kind in schema.items())
            sql = f"SELECT {typed} FROM raw"
            made.append(Table(name, (f"{name}.csv",), tuple(schema), sql, f"{name}.sql"))
    return tuple(made)


def answerable(
    bench: Bench, tables: dict[str, pa.Table], made: tuple[Table, ...], folder: Path, seed: int
) -> dict[str, tuple[str, bool]]:
    """Return queries that the embedded engine answers, with whether they are ordered."""
    chance, found = random.Random(seed), dict[str, tuple[str, bool]]()
    while len(found) < PLANS:
        for sql, ordered in WildGenerator(chance).queries():
            query = Query("one", "", sql, "one.sql")
            try:
                run_with(
                    Engine.EMBEDDED, Application("f", "", folder, made, (query,)), Sources(folder)
                )
            except CaudalError:
                continue
            found[f"q{len(found)}"] = sql, ordered
    return found


@pytest.mark.parametrize("seed", range(GROUPS))
def test_random_plans_have_the_rows_of_the_embedded_engine(
    seed: int, bench: Bench, session: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    chance = random.Random(seed)
    if seed:  # else the driver folds all
        monkeypatch.setattr(frames, "MOST_BYTES", chance.choice([-1, 2_000, 20_000]))
    tables = bench.maker.tables(chance)
    made = write_tables(tables, tmp_path)
    drawn = answerable(bench, tables, made, tmp_path, seed)
    queries = tuple(Query(name, "", sql, f"{name}.sql") for name, (sql, _) in drawn.items())
    app, sources = Application("fuzz", "", tmp_path, made, queries), Sources(tmp_path)
    expected = run_with(Engine.EMBEDDED, app, sources)
    options = RunOptions(
        spark=SparkOptions(session), partitions=chance.randrange(1, 6), batch_bytes=4 << 10
    )
    found = run_with(Engine.SPARK, app, sources, options=options)
    assert found.failures == {}
    for name, (_, ordered) in drawn.items():
        compare(expected[name].table, found[name].table, ordered=ordered)
