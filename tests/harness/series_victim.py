"""Processes that ingest and consolidate, and kill themselves on the way."""

import os
import signal
from pathlib import Path

from caudal.store import DirectoryStore
from tests.harness.killing import kill_before_call
from tests.harness.misbehaving_stores import Dying, Moment
from tests.harness.series_world import World


def die_before_call(folder: Path, store: Path, source: Path, number: int) -> None:
    """Ends well if there are fewer system calls."""
    world, opened = World(folder), DirectoryStore(store, fsync=False)
    kill_before_call(number)
    world.run(opened, source)


def die_at(folder: Path, store: Path, source: Path, at: int, moment: Moment) -> None:
    dying = Dying(
        DirectoryStore(store, fsync=False),
        at=at,
        moment=moment,
        die=lambda: os.kill(os.getpid(), signal.SIGKILL),
    )
    World(folder).run(dying, source)
