"""Slices that have several parts, and are small enough for the driver to take."""

from base64 import b64encode
from pathlib import Path
from random import Random
from typing import Any

import pytest

from caudal.files.sources import Sources
from caudal.local.engines import run_with
from caudal.model import Application, Query, Table
from caudal.run_options import Engine, RunOptions, SparkOptions
from caudal.spark import frames

pytestmark = pytest.mark.filterwarnings("ignore::FutureWarning", "ignore::DeprecationWarning")

QUERIES = {
    "rows": "SELECT k, v FROM t ORDER BY k",  # gathered
    "lists": "SELECT k % 3 AS g, list(v ORDER BY k) AS all FROM t GROUP BY g ORDER BY g",  # folded
}


@pytest.mark.parametrize("most_bytes", [frames.MOST_BYTES, 9 << 20])
def test_slices_of_several_parts_arrive_whole(
    most_bytes: int, session: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One batch gives one slice of more than five megabytes, in two parts."""
    monkeypatch.setattr(frames, "MOST_BYTES", most_bytes)
    random = Random(7)
    rows = (f"{number},{b64encode(random.randbytes(5600)).decode()}\n" for number in range(1000))
    (tmp_path / "t.csv").write_text(f"k,v\n{''.join(rows)}")
    clean = "SELECT CAST(k AS INTEGER) AS k, v FROM raw"
    queries = tuple(Query(name, name, text, f"{name}.sql") for name, text in QUERIES.items())
    table = Table("t", ("t.csv",), ("k", "v"), clean, "t.sql")
    app = Application("t", "", Path(), (table,), queries)
    expected = run_with(Engine.EMBEDDED, app, Sources(tmp_path))
    options = RunOptions(spark=SparkOptions(session), partitions=1)
    for name in QUERIES:
        found = run_with(Engine.SPARK, app, Sources(tmp_path), [name], options=options)
        assert found[name].table.equals(expected[name].table)
