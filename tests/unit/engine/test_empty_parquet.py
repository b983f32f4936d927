"""A Parquet file without rows is an empty table, in every engine."""

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import caudal

FOLDER = {
    "app.toml": '[[tables]]\nname = "t"\nfiles = ["t.csv"]\ncolumns = ["a"]\n',
    "tables/t.sql": "SELECT TRY_CAST(a AS INTEGER) AS a FROM raw",
    "queries/n.sql": "SELECT count(*) AS n FROM t",
    "queries/rows.sql": "SELECT a FROM t GROUP BY a ORDER BY a",
}


@pytest.mark.parametrize("engine", ["embedded", "split"])
def test_a_file_without_rows(tmp_path: Path, engine: str) -> None:
    for name, text in FOLDER.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    pq.write_table(pa.table({"a": pa.array([], pa.int64())}), tmp_path / "t.parquet")
    answers = caudal.run(str(tmp_path), data=tmp_path, engine=engine)
    assert answers["n"].to_arrow().to_pylist() == [{"n": 0}]
    assert answers["rows"].to_arrow().num_rows == 0
