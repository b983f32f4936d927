"""The heart of a process: the lock of its name, its record, and its heartbeats to every medic.

Rules
1. A process first takes a lock under its name. So a name is used once per host, and the lock ends
   with the process, however that ends.
2. Heartbeats come only from the process's own loop (process/ticks.py), so that a stuck process
   falls silent. Before that loop runs, they are sent while another thread loads, so that slow
   libraries do not cause silence. A load without end does cause it. A library may keep all threads
   waiting for seconds while it loads: whoever loads such a one announces it (Pulse.quiet).
3. A medic that has just started cannot know whether a heartbeat is fresh. It answers with its
   session, and accepts only heartbeats that name this session.
"""

import contextlib
import importlib
import os
import socket
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from pathlib import Path
from typing import TypeVar

import msgspec

from caudal.decoding import decode_json
from caudal.errors import UsageError
from caudal.formats.frame import JSON_ERRORS
from caudal.process.locks import take_lock
from caudal.process.privacy import keep_private
from caudal.process.pulse import HostRecord, Pulse
from caudal.process.records import write_record
from caudal.process.ticks import Tick
from caudal.process.wire import Seal, read_secret
from caudal.version import __version__

PACKET_MOST = 16_384
STORE_PASSED = "store-passed"  # a host's note: the store has won its races (store/probe.py)
LOADING_BEAT_SECONDS = 0.25
LOADING_MOST_SECONDS = 60.0
_ANSWERS_PER_BEAT = 16

Loaded = TypeVar("Loaded")


class HeartFile(msgspec.Struct, frozen=True):
    """The data that a launcher gives to the process that it starts."""

    name: str
    incarnation: int
    folder: str  # of this host's locks and records
    secret: str  # path of the cluster's secret
    medics: list[tuple[str, int]]


class Heartbeat(msgspec.Struct, frozen=True, tag="beat"):
    """An encoded heartbeat. That of a medic also has what it knows of its host.

    `greeted`: pulses of processes that cannot send heartbeats themselves (a broker), and that the
    medic found alive since its last heartbeat.
    """

    session: str
    pulse: Pulse
    records: list[HostRecord] = []
    greeted: list[Pulse] = []
    roster: str = ""  # digest of the members that the medic's cluster.toml names
    settings: dict[str, str] | None = None  # digests of its other keys; None: an earlier version


class HeartSession(msgspec.Struct, frozen=True, tag="session"):
    """A medic's answer to a heartbeat that does not name its session."""

    session: str


class Heart:
    """Sender of the heartbeats of one process."""

    def __init__(self, path: Path) -> None:
        try:
            self.file = decode_json(path.read_bytes(), HeartFile)
        except (OSError, msgspec.MsgspecError) as error:
            raise UsageError(
                f"cannot read {path}: {error}; start processes with `caudal up`"
            ) from error
        folder = Path(self.file.folder)
        self.store_passed = folder / STORE_PASSED
        self._lock = take_lock(folder / f"{self.file.name}.lock", self.file.name)
        write_record(folder, self.file.name, self.file.incarnation, os.getpid())
        self.seal = Seal(read_secret(Path(self.file.secret)))
        self.progress: Callable[[], int] = lambda: 0
        self.ready = True  # False: the process cannot do its work yet
        self._quiet = 0.0
        self._sequence = 0
        self._sessions: dict[tuple[str, int], str] = {}
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._socket.setblocking(False)

    def beat(
        self,
        tick: Tick,
        detail: str = "",
        records: Sequence[HostRecord] = (),
        greeted: Sequence[Pulse] = (),
        roster: str = "",
        *,
        settings: dict[str, str] | None = None,
    ) -> Pulse:
        """Tell every other medic; called on the process's own loop, never blocks."""
        self._listen()
        pulse = self._pulse(tick.number, detail)
        for medic in self.file.medics:
            session = self._sessions.get(medic, "")
            beat = Heartbeat(session, pulse, list(records), list(greeted), roster, settings)
            with contextlib.suppress(OSError):  # an unreachable medic is no reason to stop
                self._socket.sendto(self.seal.close(msgspec.json.encode(beat)), medic)
        return pulse

    def through(
        self,
        load: Callable[[], Loaded],
        most_seconds: float = LOADING_MOST_SECONDS,
        quiet_seconds: float = 0.0,
    ) -> Loaded:
        """Load in another thread, and send heartbeats marked as not ready meanwhile.

        `quiet_seconds`: how long the load may keep this thread from sending one.
        """
        self.ready, self._quiet = False, quiet_seconds
        try:
            with ThreadPoolExecutor(1, "loading") as pool:
                loading = pool.submit(load)
                self._beat_until(lambda pause: bool(wait([loading], pause).done), most_seconds)
                return loading.result()
        finally:
            self.ready, self._quiet = True, 0.0

    def awaiting(self, ended: Callable[[float], bool], most_seconds: float) -> None:
        """Wait, and send heartbeats marked as not ready meanwhile.

        `ended` waits for at most so many seconds, and returns whether the wait is over.
        """
        self.ready = False
        try:
            self._beat_until(ended, most_seconds)
        finally:
            self.ready = True

    def _beat_until(self, ended: Callable[[float], bool], most_seconds: float) -> None:
        for number in range(1, round(most_seconds / LOADING_BEAT_SECONDS) + 1):
            self.beat(Tick(number, 0.0))
            if ended(LOADING_BEAT_SECONDS):
                return

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
            cpu=round(time.process_time(), 2),
            quiet=self._quiet,
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
                    self._sessions[sender] = decode_json(payload, HeartSession).session


@contextlib.contextmanager
def alive(path: Path | None, module: str) -> Iterator[Heart | None]:
    """Load the process's module with heartbeats; without a heart file, no medic watches it.

    From here on all files that the process writes are private.
    """
    keep_private()
    if path is None:
        importlib.import_module(module)
        yield None
        return
    with contextlib.closing(Heart(path)) as heart:
        heart.through(lambda: importlib.import_module(module))
        yield heart


def resident_bytes() -> int:
    """Return the resident memory of this process."""
    pages = Path("/proc/self/statm").read_text(encoding="ascii").split()[1]
    return int(pages) * os.sysconf("SC_PAGE_SIZE")
