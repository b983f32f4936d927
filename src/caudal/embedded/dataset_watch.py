"""Watch a dataset: its newest version, and each one that comes later."""

import time
from collections.abc import Callable, Iterator

from caudal.datasets.commits import newer
from caudal.datasets.shelf import Shelf

POLL_SECONDS = 0.5


def versions_of(
    shelf: Shelf,
    poll_seconds: float = POLL_SECONDS,
    sleep: Callable[[float], None] = time.sleep,
) -> Iterator[Shelf]:
    """Yield the dataset as it is, then again whenever it has a new version; never ends.

    Versions that come while the caller works are given as one: the newest.
    """
    while True:
        yield shelf
        number = shelf.contents.number
        while shelf.contents.number == number:
            contents = newer(shelf.store, shelf.contents)
            shelf = Shelf(shelf.place, shelf.store, contents)
            if contents.number == number:
                sleep(poll_seconds)
