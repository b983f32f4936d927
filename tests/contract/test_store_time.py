"""The clock of a store."""

import time

from tests.contract.conftest import NewStore

from caudal.store import MemoryStore, Store
from caudal.store.port import Timed


def test_a_store_tells_its_time_and_lists_nothing_of_it(new_store: NewStore) -> None:
    store: Store = new_store()
    assert isinstance(store, Timed) is not isinstance(store, MemoryStore)
    if not isinstance(store, Timed):
        return
    before = store.time()
    assert abs(before - time.time()) < 3_600
    assert store.time() >= before
    assert store.list("").entries == ()
