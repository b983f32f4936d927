"""The clock of a store."""

import time

from tests.contract.conftest import NewStore

from caudal.store import MemoryStore, Store
from caudal.store.below import StoreBelow


def test_a_store_tells_its_time_and_lists_nothing_of_it(new_store: NewStore) -> None:
    store: Store = new_store()
    before = store.time()
    whole = store.inner if isinstance(store, StoreBelow) else store
    assert (before is None) is isinstance(whole, MemoryStore)
    if before is None:
        return
    assert abs(before - time.time()) < 3_600
    assert (store.time() or 0.0) >= before
    assert store.list("").entries == ()


def test_a_listing_says_when_an_object_was_created(new_store: NewStore) -> None:
    store: Store = new_store()
    before = store.time()
    store.create("a/b", b"bytes")
    (entry,) = store.list("a/").entries
    if before is None:
        assert entry.modified == 0.0
    else:
        assert -2 < entry.modified - before < 60  # S3 tells whole seconds
