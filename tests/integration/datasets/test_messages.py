"""What a user sees: one line that says what is wrong and what to do."""

import errno
import io
import os
from pathlib import Path

import pytest
from tests.harness.shelves import (
    SALES,
    ask_sales,
    load_files,
    sales_loader,
    write_sales,
    write_sales_app,
    write_shops,
)

from caudal.cli.main import main
from caudal.datasets.shelf import open_shelf
from caudal.errors import StoreError
from caudal.store import DirectoryStore

Capture = pytest.CaptureFixture[str]


@pytest.fixture
def app(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with an application and its files; it is the current one."""
    monkeypatch.chdir(tmp_path)
    folder = write_sales_app(tmp_path / "sales")
    write_sales(tmp_path, "sales.csv", range(5))
    write_shops(tmp_path)
    return folder


def told(capsys: Capture, *arguments: str) -> tuple[int, str, str]:
    status = main(list(arguments))
    out, err = capsys.readouterr()
    return status, out, err


def load(capsys: Capture, *arguments: str) -> tuple[int, str, str]:
    return told(capsys, "load", "./sales", "--to", "shelf", *arguments)


def test_a_load_says_what_it_did(app: Path, capsys: Capture) -> None:
    status, out, err = load(capsys, "--data", ".")
    assert status == 0
    assert out.startswith("shelf: version 1: 7 rows, 1 rejected in ")
    assert "rejected: sales: 1 row: id is not a number (line 7)" in err


def test_a_file_that_was_loaded_is_skipped_and_named(app: Path, capsys: Capture) -> None:
    load(capsys, "--data", ".")
    Path("copy.csv").write_bytes(Path("sales.csv").read_bytes())
    status, out, err = load(capsys, "--file", "sales=copy.csv")
    assert (status, out) == (0, "shelf: nothing new; the newest version is 1\n")
    assert f"copy.csv skipped: version 1 loaded it as {Path.cwd() / 'sales.csv'}" in err


def test_a_file_that_changed_is_refused_unless_again(app: Path, capsys: Capture) -> None:
    load(capsys, "--data", ".")
    with Path("sales.csv").open("a") as file:
        file.write("9,1,2024-01-01\n")
    status, _, err = load(capsys, "--file", "sales=sales.csv")
    assert status == 2
    assert "sales.csv has changed since version 1 loaded it" in err
    assert "add --again" in err
    status, out, _ = load(capsys, "--file", "sales=sales.csv", "--again")
    assert (status, out[:25]) == (0, "shelf: version 2: 6 rows,")


def test_a_broken_file_leaves_nothing(app: Path, capsys: Capture) -> None:
    Path("bad.csv").write_text("number,amount,day\n1,2,3\n")
    status, _, err = load(capsys, "--file", "sales=bad.csv")
    assert status == 4
    assert "bad.csv: no column 'id', which table sales needs" in err
    assert not Path("shelf").exists()
    assert told(capsys, "versions", "shelf")[0] == 2
    load(capsys, "--data", ".")
    assert load(capsys, "--file", "sales=bad.csv")[0] == 4
    assert open_shelf("shelf").contents.number == 1


def test_a_folder_that_was_there_stays_after_a_failed_load(app: Path, capsys: Capture) -> None:
    Path("shelf").mkdir()
    Path("bad.csv").write_text("number,amount,day\n1,2,3\n")
    assert load(capsys, "--file", "sales=bad.csv")[0] == 4
    assert list(Path("shelf").iterdir()) == []


def test_strict_loads_nothing(app: Path, capsys: Capture) -> None:
    status, _, err = load(capsys, "--data", ".", "--strict")
    assert status == 6
    assert "line 7: id is not a number" in err
    assert load(capsys, "--data", ".")[1].startswith("shelf: version 1: 7 rows")


def test_a_dataset_of_another_application(app: Path, capsys: Capture) -> None:
    load(capsys, "--data", ".")
    status, _, err = told(capsys, "run", "movies", "--from", "shelf")
    assert status == 2
    assert "shelf holds a dataset of sales, not of movies" in err
    Path("more.csv").write_text("userId,movieId,rating\n1,2,3\n")
    status, _, err = told(capsys, "load", "movies", "--file", "ratings=more.csv", "--to", "shelf")
    assert status == 2
    assert "not of movies: load into another one (--to NEW), or ask it with sales" in err


def test_changed_sql_of_a_table(app: Path, capsys: Capture) -> None:
    load(capsys, "--data", ".")
    (app / "tables" / "sales.sql").write_text(SALES + " -- changed")
    for command in (["load", "./sales", "--data", ".", "--to"], ["run", "./sales", "--from"]):
        status, _, err = told(capsys, *command, "shelf")
        assert status == 2
        assert "the SQL or the columns of table sales changed since shelf was made" in err
        assert "caudal load sales --data DIR --to NEW" in err


def test_a_type_that_delta_lacks(app: Path, capsys: Capture) -> None:
    (app / "tables" / "shops.sql").write_text(
        "SELECT name, TRY_CAST(opened AS TIME) AS opened FROM raw"
    )
    status, _, err = load(capsys, "--data", ".")
    assert status == 3
    assert "column 'opened' of table shops has type TIME" in err
    assert 'CAST("opened" AS VARCHAR)' in err


def test_versions_that_are_not_there(app: Path, capsys: Capture) -> None:
    load(capsys, "--data", ".")
    write_sales(Path(), "more.csv", range(20, 25))
    load(capsys, "--file", "sales=more.csv")
    status, _, err = told(capsys, "run", "./sales", "--from", "shelf", "--as-of", "7")
    assert (status, err.count("\n")) == (2, 1)
    assert "there is no version 7: the newest is 2" in err
    assert told(capsys, "compact", "shelf")[1] == "shelf: version 3: 5 files became 3\n"
    assert "deleted 4 files" in told(capsys, "vacuum", "shelf", "--keep", "0s", "--grace", "0s")[1]
    status, _, err = told(capsys, "run", "./sales", "--from", "shelf", "--as-of", "1")
    assert status == 2
    assert "version 1 of shelf was vacuumed" in err
    assert told(capsys, "run", "./sales", "--from", "shelf", "--as-of", "3")[0] == 0


def test_no_dataset(app: Path, capsys: Capture) -> None:
    status, _, err = told(capsys, "run", "./sales", "--from", "nowhere")
    assert status == 2
    assert "there is no dataset in nowhere" in err
    assert not Path("nowhere").exists()
    assert "--as-of is for a dataset" in told(capsys, "run", "./sales", "--as-of", "1")[2]


@pytest.mark.parametrize("option", [["--data", "."], ["--strict"], ["--engine", "split"]])
def test_options_that_contradict_a_dataset(app: Path, capsys: Capture, option: list[str]) -> None:
    load(capsys, "--data", ".")
    assert told(capsys, "run", "./sales", "--from", "shelf", *option)[0] == 2


def test_watch_marks_what_changed(app: Path, capsys: Capture) -> None:
    load(capsys, "--data", ".")
    status, out, _ = told(
        capsys, "watch", "./sales", "total", "--from", "shelf", "--count", "1", "--format", "json"
    )
    assert (status, out) == (
        0, '{"version":1,"rows":[{"sales":5,"total":12.5}],"added":[],"gone":[]}\n'
    )  # fmt: skip


def test_explain_names_the_files_of_the_version(app: Path, capsys: Capture) -> None:
    load(capsys, "--data", ".")
    out = told(capsys, "explain", "./sales", "total", "--from", "shelf")[1]
    assert "dataset: shelf, version 1" in out
    assert "read sales from 1 Parquet file" in out


def test_the_shell_asks_a_dataset(
    app: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    load(capsys, "--data", ".")
    Path("sales.csv").unlink()
    script = b"SELECT sum(id) AS s FROM sales; SELECT name FROM shops ORDER BY 1; FROM rejects;"
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(script)))
    status, out, err = told(capsys, "shell", "./sales", "--from", "shelf", "--format", "csv")
    assert status == 0, err
    assert out.startswith('s\n10\nname\nNorth\n"South, ""old"""\n')
    assert out.endswith('sales.csv,7,id is not a number,"x,1,"\n')


def test_rejected_rows_are_a_table(app: Path, capsys: Capture) -> None:
    load(capsys, "--data", ".")
    sql = 'SELECT "table", line, reason, record FROM rejects'
    out = told(capsys, "sql", "./sales", sql, "--from", "shelf", "--format", "csv")[1]
    assert out == 'table,line,reason,record\nsales,7,id is not a number,"x,1,"\n'


def test_a_full_disk_costs_only_the_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_shops(tmp_path)
    write_sales(tmp_path, "s.csv", range(5))
    with sales_loader(DirectoryStore(tmp_path / "shelf"), str(tmp_path / "shelf")) as loader:
        write, left = os.write, [3]

        def full(descriptor: int, data: bytes) -> int:
            left[0] -= 1
            if left[0] < 0:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            return write(descriptor, data)

        with monkeypatch.context() as patched:
            patched.setattr(os, "write", full)
            patched.setattr("os.sendfile", full, raising=False)
            with pytest.raises(StoreError, match="the disk is full; free some space"):
                load_files(loader, tmp_path, sales=["s.csv"], shops=["shops.csv"])
        report = load_files(loader, tmp_path, sales=["s.csv"], shops=["shops.csv"])
    assert report.version == 1
    assert ask_sales(open_shelf(str(tmp_path / "shelf")))[0]["sales"] == 5


def test_mistakes_with_versions_compact_and_vacuum(app: Path, capsys: Capture) -> None:
    load(capsys, "--data", ".")
    for command in ("versions", "compact", "vacuum"):
        assert "there is no dataset in sehlf: make one" in told(capsys, command, "sehlf")[2]
        assert "give its folder, " in told(capsys, command, "shelf/tables/sales")[2]
    assert "--size 64 is 64 bytes" in told(capsys, "compact", "shelf", "--size", "64")[2]
    assert "'30' is not a time: write it like" in told(capsys, "vacuum", "shelf", "--keep", "30")[2]
    assert not Path("sehlf").exists()
