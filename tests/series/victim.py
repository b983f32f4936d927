"""A process that ingests and consolidates, and kills itself at one store operation."""

import os
import signal
from pathlib import Path

from caudal.store import DirectoryStore
from tests.series.stores import Dying, Moment
from tests.series.world import World


def die_at(folder: Path, store: Path, source: Path, at: int, moment: Moment) -> None:
    dying = Dying(
        DirectoryStore(store, fsync=False),
        at=at,
        moment=moment,
        die=lambda: os.kill(os.getpid(), signal.SIGKILL),
    )
    World(folder).run(dying, source)
