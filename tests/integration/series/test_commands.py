"""`caudal series` as a user meets it."""

import builtins
import csv
import io
import itertools
import json
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from tests.harness.series_world import World, objects
from typer.testing import CliRunner, Result

from caudal.cli.series import series
from caudal.cli.series_show import print_ingest
from caudal.errors import CaudalError, MissingPackageError, OutputError, UsageError
from caudal.series import IngestOutcome
from caudal.series.errors import ConsolidationError, SourceError
from caudal.series.sources import RejectedCell
from caudal.store import MemoryStore

ROWS = [("2024-01-30", 1.0, 10.0), ("2024-01-31", 2.0, 20.0), ("2024-02-01", 3.0, 30.0)]


class Shell:
    """Runs commands on one store."""

    def __init__(self, folder: Path) -> None:
        self.world = World(folder)
        self.folder = folder
        self._config = str(folder / "little-0.toml")
        self._store = str(folder / "store")

    def use(self, store: str) -> None:
        self._store = store

    def invoke(self, command: str, *arguments: object) -> Result:
        given = [command, self._config, *map(str, arguments), "--store", self._store]
        return CliRunner().invoke(series, given)

    def run(self, command: str, *arguments: object) -> str:
        result = self.invoke(command, *arguments)
        if isinstance(result.exception, CaudalError):
            raise result.exception
        assert result.exception is None, result.output
        return result.output or result.stdout  # bytes are only in the latter


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
    assert "version 2: 0 new, 1 revised, in 1 month\n" in told
    assert "2024-01   stale" in shell.run("status")
    assert "note: 2024-01 is stale" in shell.run("read", "ALPHA")
    assert "2024-01 consolidated: new events" in shell.run("consolidate", "--all")
    assert "2 fresh" in shell.run("status")
    assert "revised" in shell.run("read", "ALPHA")
    assert "revised" not in shell.run("read", "ALPHA", "--as-of", "1")
    month = shell.run("consolidate", "--year", 2024, "--month", 1, "--force")
    assert "2024-01 consolidated: forced" in month


def test_what_was_known_before_the_first_version(shell: Shell) -> None:
    shell.run("ingest", shell.world.source("first", ROWS))
    told = shell.run("read", "ALPHA", "--as-of", "2001-01-01")
    assert "note: nothing was known on 2001-01-01: version 1 is from 20" in told
    assert "consolidate" not in told
    for option in ("--as-of", "--from", "--to"):
        with pytest.raises(UsageError, match=option):
            shell.run("read", "ALPHA", option, "")


def test_a_source_that_is_not_there_makes_no_store(shell: Shell) -> None:
    with pytest.raises(SourceError, match=r"cannot read .*none.csv: No such file"):
        shell.run("ingest", shell.folder / "none.csv")
    assert not (shell.folder / "store").exists()


def test_months_that_are_done_are_told_beside_one_that_failed(shell: Shell) -> None:
    shell.run("ingest", shell.world.source("first", ROWS), "--no-consolidate")
    [part] = (shell.folder / "store").glob("datasets/little/events/*/data/*/month=02/part-*")
    part.unlink()
    result = shell.invoke("consolidate")
    assert "2024-01 consolidated: never consolidated" in result.output
    assert isinstance(result.exception, ConsolidationError)
    assert "is lost, but a committed version lists it: restore it" in str(result.exception)


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
    assert "rejected: BETA: 1 cell of column 'beta': not a number: '?' (row 2)" in told
    rows = list(csv.reader((shell.folder / "rejects.csv").read_text().splitlines()))
    assert rows[1] == ["BETA", "", "2", "beta", "not a number: '?'"]


def test_many_rejected_cells_are_told_in_few_lines(shell: Shell) -> None:
    days = [f"{day}/{month}/2024,1,x{day}" for month in range(1, 13) for day in range(1, 29)]
    (shell.folder / "dirty.csv").write_text("\n".join(["day,alpha,beta", "2024-01-01,1,1", *days]))
    told = shell.run("ingest", shell.folder / "dirty.csv").splitlines()
    lines = [line for line in told if line.startswith("rejected: ")]
    assert lines == [
        f"rejected: {cells}, … (rows 3, 4, 5, 6, 7, …)"
        for cells in (
            "ALPHA: 336 cells of column 'day': not a date: '1/1/2024'",
            "BETA: 336 cells of column 'day': not a date: '1/1/2024'",
            "BETA: 336 cells of column 'beta': not a number: 'x1'",
        )
    ]
    assert "--rejects FILE writes every rejected cell" in told


def test_the_lines_about_rejected_cells_are_bounded(capsys: pytest.CaptureFixture[str]) -> None:
    cells = [RejectedCell(f"S{number % 30}", "", number, "A", "empty") for number in range(60)]
    print_ingest("d", IngestOutcome(1, rejected=tuple(cells)), None)
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 21
    assert lines[-1] == "... and 20 more: --rejects FILE writes every one"
    print_ingest("d", IngestOutcome(1, rejected=tuple(cells)), Path("r.csv"))
    assert capsys.readouterr().err.splitlines()[-1] == "... and 20 more: r.csv has every one"


def test_damaged_records_are_told_as_such(shell: Shell) -> None:
    source = shell.folder / "dirty.csv"
    source.write_text("day,alpha,beta\n2024-01-01,1,1\n2024-01-02,1\n2024-01-03\n2024-01-04,1\n")
    told = shell.run("ingest", source)
    assert "rejected: 3 damaged records: too few fields (rows 3, 4, 5)" in told


def test_rejects_that_cannot_be_written_come_before_any_commit(shell: Shell) -> None:
    source = shell.world.source("first", ROWS)
    (shell.folder / "file").touch()
    for place in (shell.folder / "file" / "rejects.csv", shell.folder):
        with pytest.raises(OutputError, match="cannot write"):
            shell.run("ingest", source, "--rejects", place)
    assert "no events yet" in shell.run("status")


def test_a_failed_ingest_leaves_no_rejects(shell: Shell) -> None:
    rejects = shell.folder / "rejects.csv"
    with pytest.raises(SourceError):
        shell.run("ingest", shell.folder / "nowhere.csv", "--rejects", rejects)
    assert not [path for path in shell.folder.iterdir() if "rejects" in path.name]


def test_a_source_of_nothing_but_rejects_still_writes_them(shell: Shell) -> None:
    source, rejects = shell.folder / "dirty.csv", shell.folder / "rejects.csv"
    source.write_text("day,alpha,beta\n1/1/24,1,2\n")
    with pytest.raises(SourceError, match="no observation was found"):
        shell.run("ingest", source, "--rejects", rejects)
    assert rejects.read_text().count("not a date: '1/1/24'") == 2
    assert "no events yet" in shell.run("status")


class Overwriting(MemoryStore):
    """A server that ignores the condition of a create."""

    def create(self, key: str, data: bytes | Path, *, lasting: bool = True) -> None:
        del lasting
        self.replace(key, data)


@pytest.fixture
def bucket(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> MemoryStore:
    store = Overwriting()
    monkeypatch.setattr("caudal.cli.series_store.open_store", lambda url: store)
    shell.use("s3://bucket/prefix")
    return store


def test_a_bucket_that_overwrites_is_not_written_to(shell: Shell, bucket: MemoryStore) -> None:
    source = shell.world.source("first", ROWS)
    for arguments in (("ingest", source), ("consolidate",)):
        with pytest.raises(UsageError, match="overwrite"):
            shell.run(*arguments)
    assert objects(bucket) == {}


def test_reading_a_bucket_writes_nothing_to_it(shell: Shell, bucket: MemoryStore) -> None:
    shell.world.run(bucket, shell.world.source("first", ROWS))
    before = bucket._writes
    assert "2 fresh" in shell.run("status")
    assert "3 rows" in shell.run("read", "ALPHA")
    assert bucket._writes == before


@pytest.mark.parametrize("form", ["{}", "file://{}"])
def test_reading_makes_no_store(shell: Shell, form: str) -> None:
    nowhere = shell.folder / "no where"
    shell.use(form.format(nowhere if form == "{}" else str(nowhere).replace(" ", "%20")))
    for command in ("status", "read ALPHA", f"plot ALPHA -o {shell.folder}/a.png"):
        with pytest.raises(UsageError, match=f"no store at {nowhere}: "):
            shell.run(*command.split())
    assert not nowhere.exists()


def test_a_dataset_without_events_is_not_an_empty_one(shell: Shell) -> None:
    (shell.folder / "store").mkdir()
    assert "no events yet" in shell.run("status")
    for command in ("read ALPHA", "read ALPHA --as-of 1", f"plot ALPHA -o {shell.folder}/a.png"):
        with pytest.raises(UsageError, match="little: no events yet"):
            shell.run(*command.split())


def test_months_that_are_not_consolidated_are_one_note(shell: Shell) -> None:
    days = [(f"2024-{month:02}-01", 1.0, 1.0) for month in range(1, 6)]
    shell.run("ingest", shell.world.source("first", days), "--no-consolidate")
    advice = "run `caudal series consolidate`"
    missing = "5 months (2024-01 to 2024-05) have events but are not consolidated yet"
    assert shell.run("read", "ALPHA").count(f"note: {missing}: {advice}") == 1
    with pytest.raises(UsageError, match=r"ALPHA has no values there: 5 months .*consolidate`"):
        shell.run("plot", "ALPHA", "-o", shell.folder / "a.png")
    shell.run("consolidate")
    changed = [(day, 2.0, 2.0) for day, _, _ in days[:2]]
    shell.run("ingest", shell.world.source("second", changed), "--no-consolidate")
    stale = "2 months (2024-01 to 2024-02) are stale: events came after they were consolidated"
    assert shell.run("read", "ALPHA").count(f"note: {stale}: {advice}") == 1
    shell.run("consolidate")
    for path in (shell.folder / "store").glob(
        "datasets/little/projections/windows/*/*/*/*.parquet"
    ):
        path.write_bytes(b"rot")
    told = shell.run("read", "ALPHA")
    assert "5 months (2024-01 to 2024-05) were merged from events: final files are" in told


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ("yesterday", "--as-of yesterday: give a version number, or a day as 2025-08-01"),
        ("2024-02-31", "give a version number, or a day as 2025-08-01"),
        ("٣", "give a version number, or a day as 2025-08-01"),
        ("20240131", "has no version 20240131: they are 1 to 1; write a day as 2024-01-31"),
        ("20249931", "has no version 20249931: they are 1 to 1"),
        ("7", "has no version 7: they are 1 to 1"),
        ("9" * 5000, "give a version number, or a day as 2025-08-01"),
    ],
)
def test_as_of_names_both_forms(shell: Shell, given: str, told: str) -> None:
    shell.run("ingest", shell.world.source("first", ROWS))
    with pytest.raises(UsageError) as raised:
        shell.run("read", "ALPHA", "--as-of", given)
    assert told in str(raised.value)
    assert len(str(raised.value)) < 200


def test_reading_takes_time(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    shell.run("ingest", shell.world.source("first", ROWS))
    clock = itertools.count(step=1.5)
    monkeypatch.setattr("caudal.cli.series.perf_counter", lambda: next(clock))
    assert "3 rows, 1.500 s" in shell.run("read", "ALPHA")


def test_mistakes_are_one_line(shell: Shell) -> None:
    shell.run("ingest", shell.world.source("first", ROWS))
    with pytest.raises(UsageError, match="has no series 'X'; it has: ALPHA, BETA"):
        shell.run("read", "X")
    with pytest.raises(UsageError, match="--year and --month together"):
        shell.run("consolidate", "--year", 2024)
    with pytest.raises(UsageError, match="--from May: write a day as"):
        shell.run("read", "ALPHA", "--from", "May")
    with pytest.raises(UsageError, match="--from 2024-02-01 is after --to 2024-01-31"):
        shell.run("read", "ALPHA", "--from", "2024-02-01", "--to", "2024-01-31")
    with pytest.raises(UsageError, match="no values there: choose other dates"):
        shell.run("plot", "ALPHA", "-o", shell.folder / "a.png", "--from", "2030-01-01")
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
