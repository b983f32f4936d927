"""`caudal series list`, `vacuum` and the filters of `status`, as a user meets them."""

from pathlib import Path

import pytest
from tests.harness.series_world import World, objects
from typer.testing import CliRunner

from caudal.cli.series import series
from caudal.errors import UsageError
from caudal.series import ingest, layout
from caudal.store import DirectoryStore

JANUARY = [("2024-01-30", 1.0, 10.0)]
FEBRUARY = [*JANUARY, ("2024-02-01", 3.0, 30.0)]


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


def store_of(world: World) -> DirectoryStore:
    return DirectoryStore(world.folder / "store", fsync=False)


def run(world: World, *arguments: str) -> str:
    config = [] if arguments[0] == "list" else [str(world.folder / "little-0.toml")]
    given = [arguments[0], *config, *arguments[1:], "--store", str(world.folder / "store")]
    result = CliRunner().invoke(series, given, env={"COLUMNS": "200"})
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result.output


def test_list_shows_every_dataset(world: World) -> None:
    store = store_of(world)
    assert "no dataset in this store: `caudal series ingest`" in run(world, "list")
    world.run(store, world.source("one", FEBRUARY))
    store.create(layout.version_manifest("broken", 1), b"{}")
    store.create("datasets/begun/events/00000001/data/year=2024/month=01/part-x.parquet", b"")
    lines = {line.split()[0]: line for line in run(world, "list").splitlines() if line.split()}
    assert lines["little"].split()[1:] == ["1", "2024-05-06", "2", "2", "2024-01", "2024-02"]
    assert "no version yet" in lines["begun"]
    assert "broken" in lines
    assert "damaged" in run(world, "list")


def test_status_can_be_filtered(world: World) -> None:
    store = store_of(world)
    world.run(store, world.source("one", JANUARY))
    ingest(world.catalog(store), world.config, world.source("two", FEBRUARY))
    whole = run(world, "status")
    assert "2024-01" in whole
    assert "2024-02" in whole
    missing = run(world, "status", "--state", "missing")
    assert "2024-01" not in missing
    assert "2024-02" in missing
    assert "1 fresh, 1 missing" in missing, "the total is that of all months"
    both = run(world, "status", "--state", "missing", "--state", "fresh", "--month", "1")
    assert "2024-01" in both
    assert "2024-02  " not in both
    assert "none of 2 months is like that" in run(world, "status", "--year", "2023")
    assert "'suspicious' is not one of" in run(world, "status", "--state", "suspicious")


def test_vacuum_tells_what_it_deleted(world: World) -> None:
    store = store_of(world)
    for value in (1.0, 2.0, 3.0):
        world.run(store, world.source("one", [("2024-01-30", value, 10.0)]))
    assert "nothing to delete" in run(world, "vacuum"), "they are younger than 30 days"
    assert "little: deleted 6 manifests of 1 months" in run(world, "vacuum", "--keep", "0s")
    left = [key for key in objects(store) if layout.parse_manifest("little", key)]
    assert len(left) == 3
    assert "nothing to delete" in run(world, "vacuum", "--keep", "0s")
    with pytest.raises(UsageError, match="'7' is not a time: write it like 90s, 30m, 12h or 7d"):
        run(world, "vacuum", "--keep", "7")
