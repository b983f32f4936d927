"""`caudal run` tells what it found about the forms of files, as `caudal sql` does."""

from pathlib import Path

import pytest

from caudal.cli.main import main


@pytest.fixture
def shop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An application for files with commas, and a folder with one that has semicolons."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    Path("orders.csv").write_text("id,name\n1,Ana\n2,Bea\n")
    assert main(["new", "shop", "orders.csv"]) == 0
    Path("live").mkdir()
    Path("live/orders.csv").write_bytes("id;name\n1;José\n2;Bea\n".encode("cp1252"))
    return tmp_path


@pytest.mark.parametrize("engine", ["embedded", "split"])
@pytest.mark.parametrize("queries", [["-q", "orders_rows"], []])
def test_a_run_tells_the_form_of_its_files(
    shop: Path, engine: str, queries: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    capsys.readouterr()
    assert main(["run", "./shop", "--data", "live", "--engine", engine, *queries]) == 0
    told = capsys.readouterr().err
    assert "note: live/orders.csv: read as cp1252" in told
    assert told.count("note: ") == told.count("note: live/orders.csv: ")


def test_a_quiet_run_and_usual_files_have_no_notes(
    shop: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["run", "./shop", "--data", "live", "--quiet"]) == 0
    assert main(["run", "./shop", "--data", "."]) == 0
    assert "note: " not in capsys.readouterr().err
