"""Where answers go: one file by its ending, a folder, or standard output."""

import json
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from caudal.cli.destination import choose_destination
from caudal.cli.formats import Format
from caudal.cli.main import main
from caudal.cli.status import ExitStatus
from caudal.errors import UsageError
from caudal.results.values import json_bytes

SELECT = "SELECT i AS n, CASE WHEN i = 1 THEN NULL ELSE 'x' || i END AS t FROM range(2) AS r(i)"


ROWS: list[dict[str, object]] = [{"n": 0, "t": "x0"}, {"n": 1, "t": None}]


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("x.csv", "n,t\n0,x0\n1,\n"),
        ("x.CSV", "n,t\n0,x0\n1,\n"),
        ("x.json", json_bytes(ROWS).decode()),
        ("x.jsonl", '{"n":0,"t":"x0"}\n{"n":1,"t":null}\n'),
        ("x.ndjson", '{"n":0,"t":"x0"}\n{"n":1,"t":null}\n'),
        ("x.md", "| n | t |\n| ---: | --- |\n| 0 | x0 |\n| 1 |  |\n"),
        ("new/folder/x.csv", "n,t\n0,x0\n1,\n"),
    ],
)
def test_the_ending_of_a_file_is_its_format(name: str, content: str, tmp_path: Path) -> None:
    assert main(["sql", SELECT, "--out", str(tmp_path / name)]) == ExitStatus.OK
    assert (tmp_path / name).read_text() == content


def test_parquet_by_its_ending(tmp_path: Path) -> None:
    assert main(["sql", SELECT, "-o", str(tmp_path / "x.parquet")]) == ExitStatus.OK
    assert pq.read_table(tmp_path / "x.parquet").to_pylist() == ROWS


def test_a_format_that_is_named_wins(tmp_path: Path) -> None:
    out = tmp_path / "x.csv"
    assert main(["sql", SELECT, "-o", str(out), "--format", "jsonl"]) == ExitStatus.OK
    assert out.read_text().startswith('{"n":0')


def test_a_folder_stays_a_folder(tmp_path: Path) -> None:
    (tmp_path / "x.csv").mkdir()
    assert main(["sql", SELECT, "-o", str(tmp_path / "x.csv")]) == ExitStatus.OK
    assert main(["sql", SELECT, "-o", str(tmp_path / "y"), "--format", "markdown"]) == ExitStatus.OK
    assert (tmp_path / "x.csv" / "sql.csv").read_text() == "n,t\n0,x0\n1,\n"
    assert [path.name for path in (tmp_path / "y").iterdir()] == ["sql.md"]


def test_json_of_sql_is_an_array_and_of_a_run_an_object(
    tmp_path: Path, capsysbinary: pytest.CaptureFixture[bytes]
) -> None:
    assert main(["sql", SELECT, "--format", "json"]) == ExitStatus.OK
    assert capsysbinary.readouterr().out == json_bytes(ROWS)
    (tmp_path / "ratings.csv").write_text("userId,movieId,rating\n")
    (tmp_path / "credits.csv").write_text("id,cast,crew\n")
    names = "id,title,genres,production_countries,spoken_languages,release_date,budget,revenue"
    (tmp_path / "movies_metadata.csv").write_text(f"{names},overview\n")
    asked = ["run", "movies", "-d", str(tmp_path), "--format", "json"]
    assert main([*asked, "-q", "q1"]) == ExitStatus.OK
    assert capsysbinary.readouterr().out == json_bytes({"q1": []})
    assert main([*asked, "--out", str(tmp_path / "all.json")]) == ExitStatus.OK
    assert list(json.loads((tmp_path / "all.json").read_text())) == ["q1", "q2", "q3", "q4", "q5"]


def test_a_failing_query_leaves_no_file(tmp_path: Path) -> None:
    select = "SELECT CASE WHEN i = 90000 THEN error('x') ELSE i END AS i FROM range(100000) AS t(i)"
    assert main(["sql", select, "-o", str(tmp_path / "x.csv")]) == ExitStatus.QUERY
    assert list(tmp_path.iterdir()) == []


def test_decisions() -> None:
    for form, out in ((None, "x.csv"), (Format.CSV, None), (Format.PARQUET, "x.parquet")):
        with pytest.raises(UsageError, match="one file per query"):
            choose_destination(form, Path(out) if out else None, 2)
    with pytest.raises(UsageError, match="cannot go to a terminal"):
        choose_destination(Format.ARROW, None, 1, on_terminal=True)
    assert choose_destination(Format.TABLE, Path("d"), 3).form is Format.CSV
    assert choose_destination(None, Path("d"), 3).path_of("q1") == Path("d/q1.csv")
