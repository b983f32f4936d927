"""A query that reads one field of a struct reads that column (found by simulation, seed 755)."""

from pathlib import Path

import pytest

import caudal

FOLDER = {
    "app.toml": '[[tables]]\nname = "t"\nfiles = ["t.csv"]\ncolumns = ["spot", "a.b", "n"]\n',
    "tables/t.sql": 'SELECT spot::STRUCT(x INTEGER, y VARCHAR) AS spot, "a.b", n FROM raw',
    "queries/field.sql": "SELECT (r.spot).x AS x FROM (SELECT * FROM t WHERE n = '1') AS r",
    "queries/dotted.sql": 'SELECT "a.b" AS d, spot.y AS y FROM t ORDER BY d',
}


@pytest.mark.parametrize("engine", ["embedded", "split"])
def test_one_field_of_a_struct(tmp_path: Path, engine: str) -> None:
    for name, text in FOLDER.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    rows = "\"{'x': 2, 'y': a}\",here,1\n\"{'x': 3, 'y': b}\",there,2\n"
    (tmp_path / "t.csv").write_text("spot,a.b,n\n" + rows)
    answers = caudal.run(str(tmp_path), data=tmp_path, engine=engine)
    assert answers["field"].to_arrow().to_pylist() == [{"x": 2}]
    dotted = answers["dotted"].to_arrow().to_pylist()
    assert dotted == [{"d": "here", "y": "a"}, {"d": "there", "y": "b"}]
