"""A vacuum keeps what it should, whatever the clocks of this process and of committers say."""

from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest
from tests.harness.datasets import append, new_dataset

from caudal.datasets.commits import open_contents
from caudal.datasets.compaction import compact
from caudal.datasets.vacuum import vacuum
from caudal.store import MemoryStore
from caudal.store.port import PAGE, Page

HOUR, DAY = 3_600.0, 86_400.0
NOON = 1_000 * DAY


@dataclass
class DatingStore(MemoryStore):
    """A store with a clock, which dates objects."""

    now: float = NOON
    _dates: dict[str, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        super().__init__()

    def time(self) -> float:
        return self.now

    def create(self, key: str, data: bytes | Path, *, lasting: bool = True) -> None:
        super().create(key, data, lasting=lasting)
        self._dates.setdefault(key, self.now)

    def list(
        self, prefix: str, *, recursive: bool = True, after: str = "", limit: int = PAGE
    ) -> Page:
        page = super().list(prefix, recursive=recursive, after=after, limit=limit)
        dated = tuple(replace(one, modified=self._dates[one.key]) for one in page.entries)
        return replace(page, entries=dated)


@pytest.fixture
def store() -> DatingStore:
    """With two loads, made long before noon."""
    made = DatingStore(now=NOON - 100 * DAY)
    append(made, append(made, new_dataset(made), 1), 2)
    made.now = NOON
    return made


def deleted(store: DatingStore, ahead: float = 0.0) -> int:
    """Return how many files a vacuum that keeps a day deletes, by a clock that is so much ahead."""
    return vacuum(store, store.now + ahead, keep=DAY).files


@pytest.mark.parametrize("ahead", [0.0, 25 * HOUR, 400 * DAY])
def test_a_clock_that_is_ahead_deletes_nothing_early(store: DatingStore, ahead: float) -> None:
    compact(store, NOON)
    store.now += DAY - HOUR
    assert deleted(store, ahead) == 0
    store.now += 2 * HOUR
    assert deleted(store, ahead) == 2


def test_a_clock_that_is_behind_deletes_later(store: DatingStore) -> None:
    compact(store, NOON)
    store.now += DAY + HOUR
    assert deleted(store, -2 * HOUR) == 0
    assert deleted(store) == 2


@pytest.mark.parametrize("behind", [2 * HOUR, 25 * HOUR, 99 * DAY])
def test_a_committer_whose_clock_is_behind_has_nothing_deleted_early(
    store: DatingStore, behind: float
) -> None:
    compact(store, NOON - behind)
    store.now += DAY - HOUR
    assert deleted(store) == 0
    store.now += 2 * HOUR
    assert deleted(store) == 2


def test_a_vacuum_says_no_wrong_time(store: DatingStore) -> None:
    compact(store, NOON)
    store.now += 2 * DAY
    assert deleted(store, 400 * DAY) == 2
    assert open_contents(store).time <= (store.now + 60) * 1000
