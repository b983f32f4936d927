"""Refuse a store that breaks rule 1 of the port (create-if-absent) before it is used.

Several S3 servers accept `If-None-Match: *` and ignore it, or check it without locking the key. In
both cases two tasks could write one output without an error. Documentation does not say reliably
which servers do this, so Caudal tests it. A second create with other bytes must fail, and exactly
one of several simultaneous creates must succeed. The test may miss a store that rarely lets two
creates succeed. It cannot miss a store that never checks.

A server may let simultaneous creates wait for each other (SeaweedFS: a second each time), and a
process that was killed should be back at once. So a host notes that the races were won, and the
processes that its medics restart do not race again (`passed`; cluster/start_note.py). What costs
nothing is tested at every start.
"""

import secrets
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from threading import Barrier

from caudal.errors import AlreadyExistsError, StoreError, UsageError
from caudal.store.keys import PROBE_FOLDER
from caudal.store.port import Store

_WRITERS = 4
_RACES = 4


def require_conditional_create(store: Store, passed: Path | None = None) -> None:
    """Raise UsageError unless the store honours create-if-absent. Leaves nothing in the store.

    Raises StoreError if the store cannot be reached. If the file `passed` exists, there are no
    races; after races that were won it is created.
    """
    mine = f"{PROBE_FOLDER}/{secrets.token_hex(16)}"
    races = 0 if passed is not None and passed.exists() else _RACES
    names = [f"{mine}/{number}" for number in range(1 + races)]
    try:
        _require_first_to_win(store, names[0])
        for name in names[1:]:
            _require_one_winner(store, name)
    finally:
        for name in names:
            with suppress(StoreError):
                store.delete(name)
    if passed is not None:
        with suppress(OSError):  # then the next process races again
            passed.touch(mode=0o600)


def _require_first_to_win(store: Store, key: str) -> None:
    store.create(key, b"first")
    with suppress(AlreadyExistsError):
        store.create(key, b"second")
        raise _refusal(store, "it let a second create overwrite the first")
    if store.read(key) != b"first":
        raise _refusal(store, "it refused a second create but overwrote the first object")


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
        raise _refusal(store, f"{len(winners)} of {_WRITERS} simultaneous creates succeeded")
    if store.read(key) != b"%d" % winners[0]:
        raise _refusal(store, "after simultaneous creates it holds the bytes of one that failed")


def _refusal(store: Store, what: str) -> UsageError:
    return UsageError(
        f"{store!r} cannot be used: {what}. Caudal needs a store that creates an object only if "
        "its key is free (S3's `If-None-Match: *`); use a directory, Amazon S3 or SeaweedFS"
    )
