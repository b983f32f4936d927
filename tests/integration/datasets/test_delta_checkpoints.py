"""Checkpoints of Delta logs say what all commits before them say, and readers use them."""

import shutil
from pathlib import Path
from typing import Any

import deltalake
import polars
import pytest
from tests.harness.datasets import append, new_dataset

from caudal.datasets import commits
from caudal.datasets.commits import open_contents
from caudal.datasets.compaction import compact
from caudal.datasets.contents import HeldFile
from caudal.datasets.vacuum import vacuum
from caudal.store import DirectoryStore

EVERY = 3
VERSIONS = 11


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A dataset with checkpoints at versions 3, 6 and 9, a compaction and a vacuum."""
    folder = tmp_path_factory.mktemp("checkpoints") / "shelf"
    store = DirectoryStore(folder, fsync=False)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(commits, "CHECKPOINT_EVERY", EVERY)
        contents = new_dataset(store)
        for number in range(5):
            contents = append(store, contents, number, 100 + number, now=10.0 + number)
        contents = compact(store, 20.0)
        for number in range(5, 8):
            contents = append(store, contents, number, now=30.0 + number)
        vacuum(store, 1e10, 0.0, grace=-1e10)
        append(store, open_contents(store), 99, now=2e9)
    return folder


def state(folder: Path, table: str, version: int) -> dict[str, Any]:
    """Everything that a reader of the log learns."""
    found = deltalake.DeltaTable(folder / "tables" / table, version=version)
    rows = found.get_add_actions(flatten=True)
    names = [name for name in rows.schema.names if name != "modification_time"]
    columns = [rows[name].to_pylist() for name in names]
    loads = [one.load for one in open_contents(DirectoryStore(folder)).history if one.load]
    return {
        "adds": sorted(map(repr, zip(*columns, strict=True))),
        "names": names,
        "metadata": str(found.metadata()),
        "protocol": str(found.protocol()),
        "txns": [found.transaction_version(load) for load in loads],
        "schema": found.schema().to_json(),
    }


def logs(folder: Path, pattern: str) -> list[Path]:
    return sorted(folder.glob(f"tables/*/_delta_log/{pattern}"))


@pytest.mark.parametrize("table", ["numbers", "rejects"])
def test_a_checkpoint_says_what_the_commits_say(place: Path, table: str, tmp_path: Path) -> None:
    without = tmp_path / "without"
    shutil.copytree(place, without)
    assert len(logs(without, "*.checkpoint.parquet")) == 2 * (VERSIONS // EVERY)
    for path in logs(without, "*.checkpoint.parquet"):
        path.unlink()
    for version in range(VERSIONS + 1):
        assert state(place, table, version) == state(without, table, version), version


def test_readers_use_checkpoints(place: Path, tmp_path: Path) -> None:
    """The commits that a checkpoint covers are not there any more, and nobody misses them."""
    only = tmp_path / "only"
    shutil.copytree(place, only)
    for path in logs(only, "*.json"):
        if int(path.stem) <= 9:
            path.unlink()
    source = str(only / "tables" / "numbers")
    newest = open_contents(DirectoryStore(place))
    assert deltalake.DeltaTable(source).version() == newest.number == VERSIONS
    files = [Path(path).name for path in deltalake.DeltaTable(source).file_uris()]
    held: tuple[HeldFile, ...] = newest.tables["numbers"]
    assert sorted(files) == sorted(Path(file.path).name for file in held)
    expected = sorted([*range(8), *range(100, 105), 99])
    assert sorted(polars.scan_delta(source).collect()["n"].to_list()) == expected
    at_nine = deltalake.DeltaTable(source, version=9).to_pyarrow_table()
    assert sorted(at_nine["n"].to_pylist()) == sorted([*range(8), *range(100, 105)])
    kept = deltalake.DeltaTable(source).to_pyarrow_table(filters=[("n", "=", 104)])
    assert kept["text"].to_pylist() == ["number 104"]
