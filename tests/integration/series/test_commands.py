"""`caudal series` as a user meets it."""

import builtins
import csv
import io
import json
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from tests.series.world import World
from typer.testing import CliRunner

from caudal.cli.series import series
from caudal.errors import CaudalError, MissingPackageError, UsageError

ROWS = [("2024-01-30", 1.0, 10.0), ("2024-01-31", 2.0, 20.0), ("2024-02-01", 3.0, 30.0)]


class Shell:
    """Runs commands on one store."""

    def __init__(self, folder: Path) -> None:
        self.world = World(folder)
        self.folder = folder
        self._config = str(folder / "little-0.toml")
        self._store = str(folder / "store")

    def run(self, command: str, *arguments: object) -> str:
        given = [command, self._config, *map(str, arguments), "--store", self._store]
        result = CliRunner().invoke(series, given)
        if isinstance(result.exception, CaudalError):
            raise result.exception
        assert result.exception is None, result.output
        return result.output


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    return Shell(tmp_path)


def test_from_ingest_to_a_revision(shell: Shell) -> None:
    first = shell.world.source("first", ROWS)
    assert "version 1: 6 new, 0 revised, in 2 months" in shell.run("ingest", first)
    told = shell.run("ingest", first)
    assert "nothing new: all 6 observations are known already" in told
    assert "months: 2 fresh" in told
    second = shell.world.source("second", [("2024-01-31", 2.5, 20.0)])
    told = shell.run("ingest", second, "--no-consolidate")
    assert "version 2: 0 new, 1 revised, in 1 months" in told
    assert "2024-01   stale" in shell.run("status")
    assert "note: 2024-01 is stale" in shell.run("read", "ALPHA")
    assert "2024-01 consolidated: new events" in shell.run("consolidate", "--all")
    assert "2 fresh" in shell.run("status")
    assert "revised" in shell.run("read", "ALPHA")
    assert "revised" not in shell.run("read", "ALPHA", "--as-of", "1")
    month = shell.run("consolidate", "--year", 2024, "--month", 1, "--force")
    assert "2024-01 consolidated: forced" in month


def test_formats(shell: Shell) -> None:
    shell.run("ingest", shell.world.source("first", ROWS))
    text = shell.run("read", "BETA", "--format", "csv", "--from", "2024-01-31")
    rows = list(csv.DictReader(io.StringIO(text)))
    assert [(row["obs_date"], row["value"]) for row in rows] == [
        ("2024-01-31", "20.0"),
        ("2024-02-01", "30.0"),
    ]
    found = json.loads(shell.run("read", "BETA", "--format", "json", "--to", "2024-01-30"))
    assert [row["value"] for row in found] == [10.0]
    shell.run("read", "BETA", "--format", "parquet", "--out", shell.folder / "b.parquet")
    table = pq.read_table(shell.folder / "b.parquet")
    assert table.column("value").to_pylist() == [10.0, 20.0, 30.0]


def test_rejected_cells_are_told_and_written(shell: Shell) -> None:
    source = shell.folder / "dirty.csv"
    source.write_text("day,alpha,beta\n2024-01-01,1,?\n")
    told = shell.run("ingest", source, "--rejects", shell.folder / "rejects.csv")
    assert "rejected: BETA: 1 cells: not a number: '?' (beta2)" in told
    rows = list(csv.reader((shell.folder / "rejects.csv").read_text().splitlines()))
    assert rows[1] == ["BETA", "", "2", "beta", "not a number: '?'"]


def test_mistakes_are_one_line(shell: Shell) -> None:
    assert "no events yet" in shell.run("status")
    with pytest.raises(UsageError, match="has no series 'X'; it has: ALPHA, BETA"):
        shell.run("read", "X")
    with pytest.raises(UsageError, match="--year and --month together"):
        shell.run("consolidate", "--year", 2024)
    with pytest.raises(UsageError, match="--from May: write a day as"):
        shell.run("read", "ALPHA", "--from", "May")
    with pytest.raises(UsageError, match="no values there"):
        shell.run("plot", "ALPHA", "-o", shell.folder / "a.png")
    with pytest.raises(UsageError, match=r"written as \.png or \.svg"):
        shell.run("plot", "ALPHA", "-o", shell.folder / "a.gif")


def test_plots(shell: Shell) -> None:
    pytest.importorskip("matplotlib")
    shell.run("ingest", shell.world.source("first", ROWS))
    shell.run("plot", "ALPHA", "-o", shell.folder / "a.png")
    assert (shell.folder / "a.png").read_bytes().startswith(b"\x89PNG")
    shell.run("plot", "ALPHA", "-o", shell.folder / "a.svg")
    once = (shell.folder / "a.svg").read_bytes()
    shell.run("plot", "ALPHA", "-o", shell.folder / "a.svg")
    assert (shell.folder / "a.svg").read_bytes() == once


def test_without_matplotlib_the_remedy_is_named(
    shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    shell.run("ingest", shell.world.source("first", ROWS))
    true_import = builtins.__import__

    def without_matplotlib(name: str, *rest: Any, **named: Any) -> Any:
        if name.startswith("matplotlib"):
            raise ImportError(name)
        return true_import(name, *rest, **named)

    monkeypatch.setattr(builtins, "__import__", without_matplotlib)
    with pytest.raises(MissingPackageError, match=r"pip install 'caudal\[plot\]'"):
        shell.run("plot", "ALPHA", "-o", shell.folder / "a.png")
    assert not (shell.folder / "a.png").exists()
