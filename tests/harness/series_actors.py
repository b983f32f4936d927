"""What the processes of the concurrency tests do, on a directory or on S3."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from caudal.series import MonthResult, consolidate_all
from caudal.store import DirectoryStore, S3Settings, S3Store, Store
from tests.harness.series_world import Watcher, World


@dataclass(frozen=True)
class Place:
    """Where a process finds the world and the store."""

    folder: Path
    bucket: str = ""
    prefix: str = ""
    settings: S3Settings | None = None

    def store(self) -> Store:
        if self.settings is None:
            return DirectoryStore(self.folder / "store", fsync=False)
        return S3Store(self.bucket, self.prefix, self.settings)

    def world(self, process: int) -> World:
        return World(self.folder, process=process)


def ingest_and_consolidate(place: Place, process: int, numbers: Sequence[int]) -> None:
    """Revise every value, again and again."""
    world, store = place.world(process), place.store()
    for number in numbers:
        world.run(store, world.uniform(number, months=2), parallel=2)


def consolidate(place: Place, process: int, rounds: int) -> None:
    """Notes how each round ended, for the report."""
    world, store = place.world(process), place.store()
    endings = [
        outcome.ending
        for _ in range(rounds)
        for outcome in consolidate_all(world.catalog(store), world.config)
    ]
    assert set(endings) <= set(MonthResult)
    (place.folder / f"endings-{process}").write_text("\n".join(endings))


def watch(place: Place, process: int, until: int) -> None:
    """Look until the given version is there; fails on any mixture."""
    world, store = place.world(process), place.store()
    watcher = Watcher(world, store, ((2024, 1), (2024, 2)))
    while True:
        head = world.catalog(store).log("little").head()
        watcher.look()
        if head is not None and head.version >= until:
            break
    (place.folder / f"reads-{process}").write_text(f"{watcher.reads} {watcher.merged}")
