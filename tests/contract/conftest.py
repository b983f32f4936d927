"""Every store behind one fixture."""

from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path
from uuid import uuid4

import pytest
from tests.harness.seaweed import S3Server
from tests.harness.seaweed import s3_server as s3_server

from caudal.store import DirectoryStore, MemoryStore, S3Store, Store, temporaries
from caudal.store.below import StoreBelow

NewStore = Callable[[], Store]
"""Gives an empty store of the kind under test, as often as it is called."""


@pytest.fixture(
    scope="module", params=["memory", "below", "directory", "directory with names", "s3"]
)
def new_store(request: pytest.FixtureRequest) -> NewStore:
    """A maker of empty stores; the second directory store lacks O_TMPFILE and fsync."""
    if request.param == "memory":
        return MemoryStore
    if request.param == "below":
        return lambda: StoreBelow(MemoryStore(), "some/prefix/")
    if request.param == "s3":
        return _s3_stores(request.getfixturevalue("s3_server"))
    paths = _new_paths(request.getfixturevalue("tmp_path_factory").mktemp("stores"))
    if request.param == "directory":
        return lambda: DirectoryStore(next(paths))
    return lambda: _store_with_names(next(paths))


@pytest.fixture
def store(new_store: NewStore) -> Store:
    """An empty store."""
    return new_store()


def _s3_stores(server: S3Server) -> NewStore:
    return lambda: S3Store(server.bucket, f"contract/{uuid4().hex}", server.settings)


def _new_paths(folder: Path) -> Iterator[Path]:
    return (folder / f"{number}" for number in count())


def _store_with_names(path: Path) -> Store:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(temporaries, "nameless_files_work", lambda _: False)
        return DirectoryStore(path, fsync=False)
