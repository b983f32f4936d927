"""A process that loads two files of sales and kills itself at one operation of its store.

`python -m tests.harness.dataset_victim AT PLACE FOLDER`
"""

import os
import signal
import sys
from pathlib import Path

from caudal.store import DirectoryStore
from tests.harness.misbehaving_stores import Dying
from tests.harness.shelves import load_files, sales_loader


def main() -> None:
    at, place, folder = sys.argv[1:]
    store = Dying(
        DirectoryStore(Path(place)),
        at=int(at),
        die=lambda: os.kill(os.getpid(), signal.SIGKILL),
    )
    with sales_loader(store, place) as loader:
        load_files(loader, Path(folder), sales=["s0.csv", "s1.csv"], shops=["shops.csv"])


if __name__ == "__main__":
    main()
