"""Refuse a store that does not keep its first promise, before anything relies on it.

Several S3 servers accept `If-None-Match: *` and ignore it, or check it without holding the key:
both would silently let two tasks write one output. No documentation tells them apart reliably, so
Caudal tries: a second create with other bytes must fail, and of several at the same moment exactly
one must win. A race that a store loses only rarely can slip through; one that it does not decide
at all cannot.
"""

import secrets
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from threading import Barrier

from caudal.errors import AlreadyExistsError, StoreError, UsageError
from caudal.store.keys import PROBE_FOLDER
from caudal.store.port import Store

_WRITERS = 4
_RACES = 4


def require_conditional_create(store: Store) -> None:
    """Raise UsageError unless the store honours create-if-absent; leaves nothing behind.

    Raises StoreError if the store cannot be reached.
    """
    mine = f"{PROBE_FOLDER}/{secrets.token_hex(16)}"
    names = [f"{mine}/{number}" for number in range(1 + _RACES)]
    try:
        _require_first_to_win(store, names[0])
        for name in names[1:]:
            _require_one_winner(store, name)
    finally:
        for name in names:
            with suppress(StoreError):
                store.delete(name)


def _require_first_to_win(store: Store, key: str) -> None:
    store.create(key, b"first")
    with suppress(AlreadyExistsError):
        store.create(key, b"second")
        raise _refusal(store, "it let a second create overwrite the first")
    if store.read(key) != b"first":
        raise _refusal(store, "it refused a second create and overwrote the first all the same")


def _require_one_winner(store: Store, key: str) -> None:
    together = Barrier(_WRITERS)

    def won(writer: int) -> bool:
        together.wait()
        try:
            store.create(key, b"%d" % writer)
        except AlreadyExistsError:
            return False
        return True

    with ThreadPoolExecutor(_WRITERS) as pool:
        winners = [writer for writer, first in enumerate(pool.map(won, range(_WRITERS))) if first]
    if len(winners) != 1:
        raise _refusal(store, f"of {_WRITERS} creates at the same moment {len(winners)} succeeded")
    if store.read(key) != b"%d" % winners[0]:
        raise _refusal(store, "after creates at the same moment it holds a loser's bytes")


def _refusal(store: Store, what: str) -> UsageError:
    return UsageError(
        f"{store!r} cannot be used: {what}. Caudal needs a store that creates an object only if "
        "its key is free (S3's `If-None-Match: *`); use a directory, Amazon S3 or SeaweedFS"
    )
