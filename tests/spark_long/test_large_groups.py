"""One group of rows that is larger than the memory of its task."""

import base64
import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from caudal.files.sources import Sources
from caudal.local.engines import run_with
from caudal.model import Application, Query, Table
from caudal.run_options import Engine, RunOptions, SparkOptions
from caudal.spark import bootstrap, frames
from tests.spark.test_answers import assert_identical

pytestmark = pytest.mark.filterwarnings("ignore::FutureWarning", "ignore::DeprecationWarning")

ROWS, LIMIT = 2_000_000, 100_000_000
CLEAN = (
    "SELECT k, TRY_CAST(v AS DOUBLE) AS v, CASE WHEN k IS NULL THEN 'k is empty' END AS reject "
    "FROM raw"
)


def measuring(marker: Path) -> Callable[..., Any]:
    """Return a `task_function` whose folds note the bytes they read, and the memory of their
    process before and at its peak."""
    real, place = bootstrap.task_function, str(marker)

    def made(name: str, *given: Any) -> Any:
        run = real(name, *given)

        def measured(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            seen = 0

            def counted() -> Iterator[pa.RecordBatch]:
                nonlocal seen
                for batch in batches:
                    seen += batch.nbytes
                    yield batch

            def memory(kind: str) -> int:
                with open("/proc/self/status") as file:  # noqa: PTH123
                    (line,) = (line for line in file if line.startswith(kind))
                return int(line.split()[1]) * 1024

            with open("/proc/self/clear_refs", "w") as file:  # noqa: PTH123
                file.write("5")  # forget the peak of maps, which ran in the same process
            before = memory("VmRSS")
            yield from run(counted())
            if name == "fold_rows":
                with open(place, "a") as file:  # noqa: PTH123
                    file.write(f"{seen} {before} {memory('VmHWM')}\n")

        return measured

    return made


def test_a_group_larger_than_memory_is_folded(
    tmp_path: Path, session: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(frames, "MOST_BYTES", -1)
    monkeypatch.setattr(bootstrap, "task_function", measuring(tmp_path / "measured"))
    with (tmp_path / "t.csv").open("w") as file:
        file.write("k,v\n")
        # Bits of chance, which do not compress: what travels must be larger than the memory.
        chance = random.Random(19)
        keys = (base64.b64encode(chance.randbytes(384)).decode() for _ in range(ROWS))
        file.writelines(f"{key},{n * 0.5}\n" for n, key in enumerate(keys))
    query = "SELECT sum(n) AS n, sum(s) AS s FROM (SELECT k, v, count(*) AS n, sum(v) AS s "
    table = Table("t", ("t.csv",), ("k", "v"), CLEAN, "t.sql")
    asked = (Query("q", "q", query + "FROM t GROUP BY k, v)", "q.sql"),)
    app = Application("t", "", Path(), (table,), asked)
    sources = Sources(tmp_path)
    options = RunOptions(spark=SparkOptions(session), partitions=1, memory_limit=LIMIT)
    found = run_with(Engine.SPARK, app, sources, options=options)
    assert_identical(found, run_with(Engine.EMBEDDED, app, sources))
    told = [line.split() for line in (tmp_path / "measured").read_text().splitlines()]
    seen, before, peak = max(tuple(map(int, one)) for one in told)  # of the fold, not of a finish
    assert seen > 7 * LIMIT
    assert peak - before < seen / 3
