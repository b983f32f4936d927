"""The heart of a process: its name's lock, its record, and its heartbeats to every medic.

Rules
1. A process takes a lock under its name before anything else; so a name is held once per host, and
   the lock goes with the process, however it ends.
2. It beats from its own loop only (process/ticks.py), so that a stuck one falls silent. Before
   that loop runs, it beats while another thread loads: slow libraries are no silence. A load that
   has no end is.
3. A medic that has just started does not know whether a heartbeat is fresh. It answers with its
   session, and counts those that name it.
"""

import contextlib
import fcntl
import importlib
import os
import socket
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from io import FileIO
from pathlib import Path
from typing import TypeVar

import msgspec

from caudal.errors import UsageError
from caudal.formats.frame import JSON_ERRORS
from caudal.process.privacy import keep_private
from caudal.process.pulse import HostRecord, Pulse
from caudal.process.records import write_record
from caudal.process.ticks import Tick
from caudal.process.wire import Seal, read_secret
from caudal.version import __version__

PACKET_MOST = 16_384
LOADING_BEAT_SECONDS = 0.25
LOADING_MOST_SECONDS = 60.0
_ANSWERS_PER_BEAT = 16

Loaded = TypeVar("Loaded")


class HeartFile(msgspec.Struct, frozen=True):
    """What a launcher tells the process that it starts."""

    name: str
    incarnation: int
    folder: str  # where locks and records of this host lie
    secret: str  # path of the cluster's secret
    medics: list[tuple[str, int]]


class Heartbeat(msgspec.Struct, frozen=True, tag="beat"):
    """A heartbeat as it travels; a medic's also tells what is on record on its host."""

    session: str
    pulse: Pulse
    records: list[HostRecord] = []


class HeartSession(msgspec.Struct, frozen=True, tag="session"):
    """A medic's answer to a heartbeat that does not name its session."""

    session: str


class Heart:
    """One process's way to be known as alive."""

    def __init__(self, path: Path) -> None:
        try:
            self.file = msgspec.json.decode(path.read_bytes(), type=HeartFile)
        except (OSError, msgspec.MsgspecError) as error:
            raise UsageError(
                f"cannot read {path}: {error}; start processes by `caudal up`"
            ) from error
        folder = Path(self.file.folder)
        self._lock = take_lock(folder / f"{self.file.name}.lock", self.file.name)
        write_record(folder, self.file.name, self.file.incarnation, os.getpid())
        self.seal = Seal(read_secret(Path(self.file.secret)))
        self.progress: Callable[[], int] = lambda: 0
        self.ready = True  # a process that is not yet able to do its work says so
        self._sequence = 0
        self._sessions: dict[tuple[str, int], str] = {}
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._socket.setblocking(False)

    def beat(self, tick: Tick, detail: str = "", records: Sequence[HostRecord] = ()) -> Pulse:
        """Tell every other medic; called on the process's own loop, never blocks."""
        self._listen()
        pulse = self._pulse(tick.number, detail)
        for medic in self.file.medics:
            beat = Heartbeat(self._sessions.get(medic, ""), pulse, list(records))
            with contextlib.suppress(OSError):  # a medic that is away is no reason to stop
                self._socket.sendto(self.seal.close(msgspec.json.encode(beat)), medic)
        return pulse

    def through(
        self, load: Callable[[], Loaded], most_seconds: float = LOADING_MOST_SECONDS
    ) -> Loaded:
        """Load in another thread, and meanwhile beat as one that is not ready yet."""
        self.ready = False
        try:
            with ThreadPoolExecutor(1, "loading") as pool:
                loading = pool.submit(load)
                for number in range(1, round(most_seconds / LOADING_BEAT_SECONDS) + 1):
                    self.beat(Tick(number, 0.0))
                    if wait([loading], LOADING_BEAT_SECONDS).done:
                        break
                return loading.result()
        finally:
            self.ready = True

    def _pulse(self, ticks: int, detail: str) -> Pulse:
        self._sequence += 1
        return Pulse(
            name=self.file.name,
            incarnation=self.file.incarnation,
            sequence=self._sequence,
            pid=os.getpid(),
            ticks=ticks,
            progress=self.progress(),
            memory=resident_bytes(),
            detail=detail,
            ready=self.ready,
            version=__version__,
        )

    def close(self) -> None:
        self._socket.close()
        self._lock.close()

    def _listen(self) -> None:
        for _ in range(_ANSWERS_PER_BEAT):
            try:
                data, sender = self._socket.recvfrom(PACKET_MOST)
            except OSError:
                return
            payload = self.seal.open(data)
            if payload is not None:
                with contextlib.suppress(*JSON_ERRORS):
                    self._sessions[sender] = msgspec.json.decode(payload, type=HeartSession).session


@contextlib.contextmanager
def alive(path: Path | None, module: str) -> Iterator[Heart | None]:
    """Load what a process consists of, its heart beating; no heart if no medic looks after it.

    From here on what it writes is private.
    """
    keep_private()
    if path is None:
        importlib.import_module(module)
        yield None
        return
    with contextlib.closing(Heart(path)) as heart:
        heart.through(lambda: importlib.import_module(module))
        yield heart


def take_lock(path: Path, name: str) -> FileIO:
    """The lock of a name, held until it is closed or the process ends."""
    file = FileIO(path, "a")
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        file.close()
        raise UsageError(f"another process runs as {name} already") from None
    return file


def resident_bytes() -> int:
    """The memory of this process."""
    pages = Path("/proc/self/statm").read_text(encoding="ascii").split()[1]
    return int(pages) * os.sysconf("SC_PAGE_SIZE")
