"""A group that is much larger than the others is folded on an executor."""

import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from caudal.files.sources import Sources
from caudal.local.engines import run_with
from caudal.run_options import Engine, RunOptions, SparkOptions
from caudal.spark import bootstrap, frames
from caudal.spark.rows import PART_BYTES
from tests.spark.test_answers import application, assert_identical

pytestmark = pytest.mark.filterwarnings("ignore::FutureWarning", "ignore::DeprecationWarning")

BATCH_BYTES = 3 * PART_BYTES + (1 << 20)
QUERIES = {
    "least": "SELECT k, min(v) AS v, count(*) AS n FROM t GROUP BY k ORDER BY k",
    "lists": "SELECT k, list(v ORDER BY v) AS l FROM t GROUP BY k ORDER BY k LIMIT 3",
}


def noting(marker: Path) -> Callable[..., Any]:
    """Return a `task_function` whose folds note each part of a stream that reaches them."""
    real, place = bootstrap.task_function, str(marker)

    def made(name: str, *given: Any) -> Any:
        run = real(name, *given)

        def noted(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            def seen() -> Iterator[pa.RecordBatch]:
                for batch in batches:
                    parts = batch.column("part").to_pylist()
                    with open(place, "a") as notes:  # noqa: PTH123
                        notes.writelines(f"{part}\n" for part in parts)
                    yield batch

            yield from run(seen() if name == "fold_rows" else batches)

        return noted

    return made


def test_a_skewed_key_is_folded_from_all_parts_of_its_streams(
    tmp_path: Path, session: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nine of ten rows have one key. Its values are of chance, so that they do not compress."""
    chance = random.Random(89)
    with (tmp_path / "t.csv").open("w") as file:
        file.write("k,v\n")
        while file.tell() < 2 * BATCH_BYTES:
            rows = (f"{0 if n % 10 else n},{chance.random()}\n" for n in range(10_000))
            file.writelines(rows)
    monkeypatch.setattr(frames, "MOST_BYTES", -1)
    monkeypatch.setattr(bootstrap, "task_function", noting(tmp_path / "parts"))
    app, sources = application(QUERIES), Sources(tmp_path)
    options = RunOptions(spark=SparkOptions(session), partitions=3, batch_bytes=BATCH_BYTES)
    found = run_with(Engine.SPARK, app, sources, options=options)
    assert_identical(found, run_with(Engine.EMBEDDED, app, sources))
    parts = (tmp_path / "parts").read_text().split()
    assert parts.count("1") >= 2  # the streams of at least two batches had more than one part
