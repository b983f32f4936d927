"""A broker without a server, for one host: queues in an SQLite file that all processes open.

Rules
1. Messages are only hints (port.py, rule 2), so nothing here is synced to disk. A missing or
   damaged file is replaced by an empty one, and the reconciler publishes missing messages again.
2. A process that uses the file has a *session*. A session holds a lock on a file of its own below
   `sessions/`. The kernel releases the lock when the process ends for any reason. Messages held by
   a session whose lock is free are delivered again.
3. An idle consumer waits in `take` until a process changes the folder (changes.py), for at most
   half a second. Then it asks SQLite whether the file has changed since it last found nothing. So
   an idle consumer costs almost nothing, and a message is taken as soon as it arrives.
4. Every call is one short transaction on one connection, so the threads of a process take turns.
"""

import contextlib
import fcntl
import logging
import os
import sqlite3
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import count
from pathlib import Path
from typing import TypeVar

from caudal.broker.changes import Changes
from caudal.broker.port import BrokerError, Delivery, LaneFullError
from caudal.broker.sessions import Session, inode_of, is_over
from caudal.broker.topology import LANE_LIMIT, LAST_SECONDS, MAP_LANES, VERSION
from caudal.errors import FormatError
from caudal.formats import message as message_format
from caudal.formats.keys import Lane, Message
from caudal.process.logs import fields

FILE = f"queues-{VERSION}.sqlite"
_SESSIONS, _REPLACING = "sessions", "replacing"
_BUSY_SECONDS = 5.0  # how long a call waits for a transaction of another process
_REAP_SECONDS = 0.5  # pause between checks for sessions that have ended
_WAIT_SECONDS = 0.5  # of `take`; also delays a stop, and the check for ended sessions
_TRIES = 3  # of a call that finds the file missing or damaged

_SETTINGS = (
    "PRAGMA journal_mode = PERSIST",
    "PRAGMA synchronous = OFF",
    """CREATE TABLE IF NOT EXISTS messages (
           id INTEGER PRIMARY KEY AUTOINCREMENT, lane TEXT NOT NULL, body BLOB NOT NULL,
           count INTEGER NOT NULL DEFAULT 0, session TEXT, consumer INTEGER)""",
    "CREATE INDEX IF NOT EXISTS waiting ON messages (lane, id) WHERE session IS NULL",
    "CREATE INDEX IF NOT EXISTS held ON messages (session) WHERE session IS NOT NULL",
)
_NEXT = "SELECT id, body, count FROM messages WHERE session IS NULL AND lane = ? ORDER BY id"

Answer = TypeVar("Answer")
Act = Callable[[sqlite3.Connection], Answer]
Version = tuple[int, int, int]

_log = logging.getLogger(__name__)


class EmbeddedBroker:
    """A broker for any number of threads, in any number of processes of one host."""

    def __init__(self, folder: Path, lane_limit: int = LANE_LIMIT) -> None:
        self._folder = folder
        self._lane_limit = lane_limit
        self._lock = threading.Lock()
        self._file: _File | None = None
        self._session: Session | None = None
        self._consumers = count(1)
        self._open: list[EmbeddedConsumer] = []
        self._opens = 0  # how often a file was opened
        self._next_reap = 0.0
        self._nobody_at: Version | None = None  # version when other sessions held nothing
        self.connected = True
        self.dropped = 0

    def publish(self, messages: Sequence[Message]) -> None:
        """See the port."""
        rows = [(str(one.lane), message_format.encode(one)) for one in messages]

        def insert(connection: sqlite3.Connection) -> None:
            self._require_room(connection, Counter(lane for lane, _ in rows))
            connection.executemany("INSERT INTO messages (lane, body) VALUES (?, ?)", rows)

        if rows:
            self.act(insert)

    def depths(self) -> Mapping[Lane, int]:
        """See the port."""
        found = self.act(_waiting)
        return {lane: found.get(str(lane), 0) for lane in Lane}

    def consume(
        self, lanes: Sequence[Lane] = tuple(Lane), last: Sequence[Lane] = ()
    ) -> "EmbeddedConsumer":
        """See the port."""
        number, changes = next(self._consumers), Changes(self._folder)
        consumer = EmbeddedConsumer(self, number, changes, lanes, last)
        with self._lock:
            self._open = [one for one in self._open if not one.closed] + [consumer]
        return consumer

    def close(self) -> None:
        """See the port."""
        for consumer in list(self._open):
            consumer.close()
        with self._lock:
            if self._file is not None:
                self._file.close()
            if self._session is not None:
                self._session.close()
            self._file = self._session = None

    @property
    def session(self) -> str:
        """The name of the session in which this process holds messages."""
        with self._lock:
            if self._session is None:
                self._session = Session.begun(self._folder / _SESSIONS)
            return self._session.name

    def version(self) -> Version:
        """Return a value that differs once any process has changed or replaced the file."""
        with self._lock, self._told():
            version = self._opened().version()
            return (self._opens, *version)

    def act(self, act: Act[Answer]) -> Answer:
        """Run one transaction. Use a new file if this one is missing or damaged."""
        with self._lock, self._told():
            for _ in range(_TRIES - 1):
                try:
                    return self._opened().run(act)
                except _DamagedError as error:
                    self._replace(error.inode)
            return self._opened().run(act)

    def reap(self) -> None:
        """Free the messages of sessions that have ended.

        Do nothing if the last check is recent.
        """
        if time.monotonic() < self._next_reap:
            return
        self._next_reap = time.monotonic() + _REAP_SECONDS
        version = self.version()
        if version == self._nobody_at:
            return
        others = [name for name in self.act(_sessions) if name != self.session]
        for name in others:
            if is_over(self._folder / _SESSIONS / name):
                self.act(_freeing("session = ?", name))
        self._nobody_at = None if others else version

    def _require_room(self, connection: sqlite3.Connection, more: Mapping[str, int]) -> None:
        waiting = _waiting(connection)
        for lane in MAP_LANES:
            if more.get(lane) and waiting.get(lane, 0) + more[lane] > self._lane_limit:
                raise LaneFullError(f"lane {lane} is full: try again later")

    def _opened(self) -> "_File":
        """Return the file that is in the folder now. Open it if it is not open yet."""
        path = self._folder / FILE
        if self._file is not None and self._file.is_at(path):
            return self._file
        if self._file is not None:
            self._file.close()
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._opens += 1
        self._file = _File.opened(path)
        return self._file

    def _replace(self, inode: int) -> None:
        """Remove a damaged file, unless another process has already removed it."""
        path = self._folder / FILE
        with _locked(self._folder / _REPLACING):
            if inode_of(path) == inode:
                for name in (f"{FILE}-journal", FILE):
                    (self._folder / name).unlink(missing_ok=True)

    @contextlib.contextmanager
    def _told(self) -> Iterator[None]:
        """Raise errors of SQLite and of the disk as BrokerError."""
        try:
            yield
            self.connected = True
        except LaneFullError:
            raise
        except (sqlite3.Error, OSError, _DamagedError) as error:
            self.connected = False
            raise BrokerError(f"the queues in {self._folder} cannot be used: {error}") from error


class EmbeddedConsumer:
    """A consumer that takes from its lanes in turn. Not for use by two threads at once."""

    def __init__(
        self,
        broker: EmbeddedBroker,
        number: int,
        changes: Changes,
        lanes: Sequence[Lane],
        last: Sequence[Lane],
    ) -> None:
        self._broker = broker
        self._number = number
        self._changes = changes
        self._turns, self._last = list(lanes), list(last)
        self._worked = time.monotonic()
        self._empty_at: tuple[Version, bool] | None = None  # version at which nothing was found
        self.closed = False

    def take(self) -> Delivery | None:
        """See the port. Waits a short time for a message (rule 3)."""
        self._changes.forget()
        delivery = self._look()
        if delivery is None:
            self._changes.wait(self._patience())
            delivery = self._look()
        return delivery

    def _patience(self) -> float:
        """Return how long to wait: less if the check of the last lanes is due earlier."""
        left = self._worked + LAST_SECONDS - time.monotonic()
        return min(left, _WAIT_SECONDS) if self._last and left > 0 else _WAIT_SECONDS

    def _look(self) -> Delivery | None:
        self._broker.reap()
        idle = time.monotonic() - self._worked >= LAST_SECONDS
        at = self._broker.version(), idle
        if at == self._empty_at:
            return None
        lanes, session = (*self._turns, *(self._last if idle else ())), self._broker.session
        delivery = self._broker.act(lambda connection: self._taken(connection, lanes, session))
        self._empty_at = at if delivery is None else None
        if delivery is not None and delivery.message.lane not in self._last:
            self._worked = time.monotonic()
        return delivery

    def acknowledge(self, delivery: Delivery) -> None:
        """See the port."""
        self._settle("DELETE FROM messages WHERE", delivery)

    def hand_back(self, delivery: Delivery) -> None:
        """See the port."""
        self._settle("UPDATE messages SET session = NULL, consumer = NULL WHERE", delivery)

    def close(self) -> None:
        """See the port."""
        self.closed = True
        self._changes.close()
        session = self._broker.session
        with contextlib.suppress(BrokerError):
            self._broker.act(_freeing("session = ? AND consumer = ?", session, self._number))

    def _settle(self, statement: str, delivery: Delivery) -> None:
        """Run a statement on a message, if this consumer still holds it."""
        held = (delivery.tag, self._broker.session, self._number)
        where = "id = ? AND session = ? AND consumer = ?"
        with contextlib.suppress(BrokerError):  # harmless: the message is delivered again
            self._broker.act(lambda connection: connection.execute(f"{statement} {where}", held))

    def _taken(
        self, connection: sqlite3.Connection, lanes: Sequence[Lane], session: str
    ) -> Delivery | None:
        for lane in lanes:
            if lane in self._turns:
                self._turns.append(self._turns.pop(0))
            for number, body, earlier in connection.execute(_NEXT, (str(lane),)):
                try:
                    message = message_format.decode(bytes(body))
                except FormatError as error:  # no consumer can use this message
                    _log.warning("removed a message", extra=fields(reason=str(error)))
                    self._broker.dropped += 1
                    connection.execute("DELETE FROM messages WHERE id = ?", (number,))
                    continue
                connection.execute(
                    "UPDATE messages SET session = ?, consumer = ?, count = count + 1 WHERE id = ?",
                    (session, self._number, number),
                )
                return Delivery(number, message, earlier + 1)
        return None


class _DamagedError(Exception):
    """The file is not a valid database of this broker any more."""

    def __init__(self, inode: int, reason: str) -> None:
        super().__init__(reason)
        self.inode = inode


class _File:
    """An open SQLite file and its inode."""

    def __init__(self, connection: sqlite3.Connection, inode: int) -> None:
        self._connection = connection
        self._inode = inode
        self._own = 0  # own changes: SQLite reports only those of others

    @classmethod
    def opened(cls, path: Path) -> "_File":
        """Open the file. Create it if it is missing."""
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600))
        inode = inode_of(path)
        connection = sqlite3.connect(
            path, timeout=_BUSY_SECONDS, isolation_level=None, check_same_thread=False
        )
        file = cls(connection, inode)
        file._guarded(lambda: [connection.execute(one) for one in _SETTINGS])
        return file

    def is_at(self, path: Path) -> bool:
        return inode_of(path) == self._inode

    def version(self) -> tuple[int, int]:
        ((found,),) = self._guarded(
            lambda: self._connection.execute("PRAGMA data_version").fetchall()
        )
        return int(found), self._own

    def run(self, act: Act[Answer]) -> Answer:
        return self._guarded(lambda: self._transaction(act))

    def close(self) -> None:
        with contextlib.suppress(sqlite3.Error):
            self._connection.close()

    def _transaction(self, act: Act[Answer]) -> Answer:
        before = self._connection.total_changes
        self._connection.execute("BEGIN IMMEDIATE")
        try:
            answer = act(self._connection)
            self._connection.execute("COMMIT")
        except BaseException:
            with contextlib.suppress(sqlite3.Error):
                self._connection.execute("ROLLBACK")
            raise
        self._own += self._connection.total_changes != before  # reading is no change
        return answer

    def _guarded(self, act: Callable[[], Answer]) -> Answer:
        """Raise _DamagedError for a damaged file, but not for one that is busy or read-only."""
        try:
            return act()
        except sqlite3.OperationalError as error:
            if "no such table" not in str(error) and "no such column" not in str(error):
                raise
            raise _DamagedError(self._inode, str(error)) from error
        except sqlite3.DatabaseError as error:
            raise _DamagedError(self._inode, str(error)) from error


@contextlib.contextmanager
def _locked(path: Path) -> Iterator[None]:
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def _waiting(connection: sqlite3.Connection) -> dict[str, int]:
    return dict(
        connection.execute(
            "SELECT lane, count(*) FROM messages WHERE session IS NULL GROUP BY lane"
        ).fetchall()
    )


def _sessions(connection: sqlite3.Connection) -> list[str]:
    """Return the sessions that hold messages."""
    rows = connection.execute(
        "SELECT DISTINCT session FROM messages WHERE session IS NOT NULL"
    ).fetchall()
    return [str(name) for (name,) in rows]


def _freeing(where: str, *values: str | int) -> Act[None]:
    """Return an action that frees held messages, so that other consumers can take them."""
    statement = f"UPDATE messages SET session = NULL, consumer = NULL WHERE {where}"

    def free(connection: sqlite3.Connection) -> None:
        connection.execute(statement, values)

    return free
