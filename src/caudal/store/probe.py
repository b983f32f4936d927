"""Refuse a store that breaks rule 1 of the port (create-if-absent) before it is used.

Several S3 servers accept `If-None-Match: *` and ignore it, or check it without locking the key. In
both cases two tasks could write one output without an error. Documentation does not say reliably
which servers do this, so Caudal tests it. A second create with other bytes must fail, and exactly
one of several simultaneous creates must succeed. The test may miss a store that rarely lets two
creates succeed. It cannot miss a store that never checks.

A server may let simultaneous creates wait for each other (SeaweedFS: a second each time), and a
process that was killed should be back at once. So a host notes that the races were won, and the
processes that its medics restart do not race again (`passed`; cluster/start_note.py) for a day:
behind the same address there may be another server by then. What costs nothing is tested at every
start.

A store may also go away or hang meanwhile, and each request to it then takes as long as its time
limit. So only what was certainly created is deleted, and no more after a deletion that fails. An
object of a few bytes stays below PROBE_FOLDER if the outcome of its create is unknown, or if it
could not be deleted. In a directory `Store.sweep` removes it later (the janitor of gateways calls
it); in a bucket it stays, and is never listed.
"""

import secrets
import time
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from threading import Barrier, Thread

from caudal.errors import AlreadyExistsError, StoreError, UsageError
from caudal.store.keys import PROBE_FOLDER
from caudal.store.port import Store

_WRITERS = 4
_RACES = 4
_PASSED_SECONDS = 86_400.0


def require_conditional_create(store: Store, passed: Path | None = None) -> None:
    """Raise UsageError unless the store honours create-if-absent.

    Raises StoreError if the store cannot be reached. Leaves nothing in a store that answers. If the
    file `passed` exists, there are no races; after races that were won it is created.
    """
    mine = f"{PROBE_FOLDER}/{secrets.token_hex(16)}"
    races = 0 if passed is not None and _is_fresh(passed) else _RACES
    probed = _Probed(store)
    try:
        _require_first_to_win(probed, f"{mine}/0")
        for number in range(1, 1 + races):
            _require_one_winner(probed, f"{mine}/{number}")
    finally:
        probed.clear()
    if passed is not None and races:
        with suppress(OSError):  # then the next process races again
            passed.touch(mode=0o600)


def _is_fresh(passed: Path) -> bool:
    """Return whether races were won lately; False if the clock was set back since."""
    with suppress(OSError):
        return 0 <= time.time() - passed.stat().st_mtime < _PASSED_SECONDS
    return False


@dataclass
class _Probed:
    """The store, and the keys below which an object certainly is."""

    store: Store
    made: dict[str, None] = field(default_factory=dict)  # in order

    def create(self, key: str, data: bytes) -> bool:
        """Create the object. Return whether its key was free."""
        try:
            self.store.create(key, data)
            was_free = True
        except AlreadyExistsError:
            was_free = False
        self.made[key] = None
        return was_free

    def clear(self) -> None:
        """Delete what was created, as long as the store does it."""
        with suppress(StoreError):
            for key in self.made:
                self.store.delete(key)


def _require_first_to_win(probed: _Probed, key: str) -> None:
    if not probed.create(key, b"first"):
        raise AlreadyExistsError(f"{key} is taken by another object")
    if probed.create(key, b"second"):
        raise _refusal(probed.store, "it let a second create overwrite the first")
    if probed.store.read(key) != b"first":
        told = "it refused a second create but overwrote the first object"
        raise _refusal(probed.store, told)


def _require_one_winner(probed: _Probed, key: str) -> None:
    winners = [writer for writer, first in enumerate(_race(probed, key)) if first]
    if len(winners) != 1:
        told = f"{len(winners)} of {_WRITERS} simultaneous creates succeeded"
        raise _refusal(probed.store, told)
    if probed.store.read(key) != b"%d" % winners[0]:
        told = "after simultaneous creates it holds the bytes of one that failed"
        raise _refusal(probed.store, told)


def _race(probed: _Probed, key: str) -> list[bool]:
    """Return which writers were told that the key was free."""
    together = Barrier(_WRITERS)
    outcomes: list[Future[bool]] = [Future() for _ in range(_WRITERS)]

    def write(writer: int, outcome: Future[bool]) -> None:
        together.wait()
        try:
            outcome.set_result(probed.create(key, b"%d" % writer))
        except Exception as error:
            outcome.set_exception(error)

    threads = [
        # Not those of an executor: a process could not end while the store hangs.
        Thread(target=write, args=one, name="store probe", daemon=True)
        for one in enumerate(outcomes)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return [outcome.result() for outcome in outcomes]


def _refusal(store: Store, what: str) -> UsageError:
    return UsageError(
        f"{store!r} cannot be used: {what}. Caudal needs a store that creates an object only if "
        "its key is free (S3's `If-None-Match: *`); use a directory, Amazon S3 or SeaweedFS"
    )
