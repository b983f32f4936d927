"""Tables of very many columns: their SQL is not parsed, and their rows are the same."""

from pathlib import Path

import pytest

from caudal.cli.main import main
from caudal.duck import table_sql
from caudal.duck.database import open_database
from caudal.duck.describe import describe, empty_schema
from caudal.embedded import cleaners
from caudal.kernels.sentiment import load_model

COLUMNS = 12


@pytest.fixture
def wide(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Rows of numbers and texts; a later row has a number that is none."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    names = ",".join(f"C{n}" for n in range(COLUMNS))
    rows = [",".join(str(row * n) for n in range(COLUMNS)) for row in range(10_000)]
    rows += [",".join(["007", *["1"] * (COLUMNS - 1)])]
    path = tmp_path / "wide.csv"
    path.write_text("\n".join([names, *rows]) + "\n")
    return path


def test_a_wide_table_gives_the_rows_of_a_narrow_one(
    wide: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    select = "SELECT count(*), sum(C3), max(C11) FROM 'wide.csv'"
    told = []
    for most in (COLUMNS, COLUMNS - 1):
        monkeypatch.setattr(table_sql, "MOST_COLUMNS", most)
        for module in (table_sql, cleaners):
            monkeypatch.setattr(module, "_MANY_COLUMNS", most)
        monkeypatch.setenv("XDG_CACHE_HOME", str(wide.parent / f"cache-{most}"))
        assert main(["sql", select, "--format", "csv", "--quiet"]) == 0
        told.append(capsys.readouterr())
    assert told[0] == told[1]
    assert told[0].out.endswith("10000,149985000,109989\n")
    assert "C0 is not an integer" in told[0].err


@pytest.mark.parametrize(
    ("sql", "names"),
    [
        ('SELECT "Title" AS title FROM raw', ["title"]),  # DuckDB says Title
        ('SELECT "Title" FROM raw', ["Title"]),
        ('SELECT "Title" AS "TITLE", \'title\' AS n FROM raw', ["TITLE", "n"]),
        ("SELECT title AS t FROM raw", ["t"]),
    ],
)
def test_names_are_those_that_were_written(sql: str, names: list[str]) -> None:
    with open_database(load_model("lexicon")) as connection, empty_schema(connection) as cursor:
        cursor.execute('CREATE TABLE raw ("Title" VARCHAR)')
        assert [name for name, _ in describe(cursor, sql, "q")] == names
