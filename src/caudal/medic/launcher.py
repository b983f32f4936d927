"""Starting and stopping of processes on one host.

Rules
1. `start` is idempotent: the caller names the dead incarnation, and nothing happens if a newer one
   runs. Two medics that execute the same order meet at a lock; the second one finds a newer
   incarnation.
2. A process that still runs under the name (it hangs) is killed first, by pid and start time.
3. A process outlives the process that started it. Its output goes to its log, which is bounded.
4. Incarnations of a name only grow, also over `stop` and `remove`: medics of other hosts take what
   has a lower number than they know for late. So the number stays on record.
"""

import contextlib
import fcntl
import logging
import os
import signal
import subprocess
from collections.abc import Container, Iterator, Sequence
from pathlib import Path
from typing import Protocol

from caudal.cluster import rabbit_node
from caudal.cluster.folder import USER, Cluster
from caudal.cluster.log_files import added_lines, earlier_part, newest_lines
from caudal.cluster.roster import Member, MemberKind
from caudal.process.logs import fields
from caudal.process.privacy import private_file
from caudal.process.pulse import HostRecord
from caudal.process.records import (
    ProcessLife,
    ProcessRecord,
    age_of,
    is_running,
    life_of,
    note_stop,
    read_record,
    send_signal,
    wait_until_gone,
    was_stopped,
    write_record,
)
from caudal.process.watch_pids import Attendance

LOG_MOST = 20 << 20
_KILL_SECONDS = 10.0

_log = logging.getLogger(__name__)


class Launcher(Protocol):
    """The port that runs members on this host."""

    def start(self, member: Member, dead: int) -> int | None:
        """Start it. Return its incarnation, or None if one newer than `dead` runs already."""

    def replace(self, member: Member, seconds: float) -> int | None:
        """End it as `stop` does and start it anew, with no other start in between.

        Return its new incarnation, or None if it is being started at this moment.
        """

    def stop(self, name: str, seconds: float) -> None:
        """Ask it to end; kill it after that many seconds."""

    def kill(self, name: str) -> bool:
        """Kill it without warning. Return False if it does not run."""

    def pause(self, name: str) -> bool:
        """Freeze it. Return False if it does not run, or is frozen already."""

    def create(self, member: Member) -> None:
        """Create what a first start needs beside the cluster's folder; `start` does it, too."""

    def remove(self, name: str) -> None:
        """Remove what `create` has made for a name that is not used any more."""

    def log_lines(self, name: str, count: int, *, follow: bool = False) -> Iterator[str]:
        """Yield the newest lines of its log; then, to follow, those it gets, without end."""

    def keep_logs_short(self) -> None:
        """Bound the logs of all names on record."""

    def trouble(self) -> str:
        """Return what keeps this launcher from working; "" if nothing does."""

    def record(self, name: str) -> HostRecord | None:
        """What is on record about it; None if it was never started here."""

    def records(self, names: Sequence[str], closely: Container[str]) -> list[HostRecord]:
        """The records of all these, quickly; whether one is stopped for those of `closely` only."""

    def names(self) -> list[str]:
        """Return all names of which something may be left here: those not stopped, or not removed
        (`remove`)."""

    def follow(self, cluster: Cluster) -> None:
        """Use the changed settings of the cluster."""


class LocalLauncher:
    """Processes of this machine."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._children: list[subprocess.Popen[bytes]] = []
        self._attendance = Attendance(cluster.run_folder)

    def start(self, member: Member, dead: int) -> int | None:
        """See the port."""
        cluster = self._cluster
        with locked(cluster.run_folder / f"{member.name}.starting") as mine:
            if not mine:
                return None
            record = read_record(cluster.run_folder, member.name)
            if record and is_running(record):
                if record.incarnation > dead:
                    return None
                about = fields(process=member.name, incarnation=record.incarnation)
                _log.warning("killed a process that hung", extra=about)
                send_signal(record, signal.SIGKILL)
                wait_until_gone(record, _KILL_SECONDS)
            return self._begin(member, max(dead, record.incarnation if record else 0) + 1)

    def replace(self, member: Member, seconds: float) -> int | None:
        """See the port."""
        with locked(self._cluster.run_folder / f"{member.name}.starting") as mine:
            if not mine:
                return None
            self._end(member.name, seconds)
            record = read_record(self._cluster.run_folder, member.name)
            return self._begin(member, record.incarnation + 1 if record else 1)

    def _begin(self, member: Member, incarnation: int) -> int:
        """Start a process and record it, unless this incarnation has recorded itself by now.

        It may be another process: that of a medic that was killed between its start and its record.
        It has the lock of the name, so the new one ends; a record of the new one would call dead
        what runs, and a medic that leads is restarted by nobody.
        """
        folder, child = self._cluster.run_folder, self._spawn(member, incarnation)
        self._children.append(child)
        record = read_record(folder, member.name)
        if record is None or record.incarnation < incarnation:
            write_record(folder, member.name, incarnation, child.pid)
        return incarnation

    def _end(self, name: str, seconds: float) -> None:
        record = read_record(self._cluster.run_folder, name)
        if record and send_signal(record, signal.SIGTERM):
            send_signal(record, signal.SIGCONT)  # a frozen process cannot handle SIGTERM
            if not wait_until_gone(record, seconds):
                send_signal(record, signal.SIGKILL)
                wait_until_gone(record, _KILL_SECONDS)

    def stop(self, name: str, seconds: float) -> None:
        """See the port."""
        self._end(name, seconds)
        folder = self._cluster.run_folder
        for suffix in ("heart", "lock", "starting"):
            (folder / f"{name}.{suffix}").unlink(missing_ok=True)
        note_stop(folder, name)
        self._reap()

    def kill(self, name: str) -> bool:
        """See the port."""
        record = read_record(self._cluster.run_folder, name)
        return record is not None and send_signal(record, signal.SIGKILL)

    def pause(self, name: str) -> bool:
        """See the port."""
        record = read_record(self._cluster.run_folder, name)
        if record is None or life_of(record) is not ProcessLife.RUNNING:
            return False
        return send_signal(record, signal.SIGSTOP)

    def create(self, member: Member) -> None:
        """See the port: a process needs nothing."""

    def remove(self, name: str) -> None:
        """See the port: a process needs nothing."""

    def log_lines(self, name: str, count: int, *, follow: bool = False) -> Iterator[str]:
        """See the port."""
        lines, end = newest_lines(self._cluster.log_of(name), count)
        yield from lines
        if follow:
            yield from added_lines(self._cluster.log_of(name), end)

    def keep_logs_short(self) -> None:
        """See the port."""
        for name in self.names():
            shorten(self._cluster.log_of(name))

    def trouble(self) -> str:
        """See the port."""
        return ""

    def record(self, name: str) -> HostRecord | None:
        """See the port."""
        found = read_record(self._cluster.run_folder, name)
        return _told(name, found, life_of(found)) if found else None

    def records(self, names: Sequence[str], closely: Container[str]) -> list[HostRecord]:
        """See the port."""
        return [_told(*seen) for seen in self._attendance.look(names, closely)]

    def names(self) -> list[str]:
        """See the port."""
        self._reap()
        folder = self._cluster.run_folder
        names = sorted(path.stem for path in folder.glob("*.json"))
        return [name for name in names if not was_stopped(folder, name)]

    def follow(self, cluster: Cluster) -> None:
        """See the port."""
        self._cluster = cluster

    def _spawn(self, member: Member, incarnation: int) -> subprocess.Popen[bytes]:
        cluster = self._cluster
        log = cluster.log_of(member.name)
        shorten(log)
        if member.kind is MemberKind.BROKER:
            rabbit_node.lay_out(cluster.node, USER, cluster.password())
            command: list[str | Path] = [rabbit_node.PROGRAM]
            environment = rabbit_node.environment(cluster.node, member.address, member.port)
        else:
            heart = cluster.write_heart(member, incarnation)
            command = list(cluster.command(member, heart))
            environment = {**os.environ, "CAUDAL_BROKER": cluster.broker_url()}
        private_file(log)
        with log.open("ab") as words:
            return subprocess.Popen(
                command,
                env=environment,
                cwd=cluster.folder,
                stdin=subprocess.DEVNULL,
                stdout=words,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    def _reap(self) -> None:
        """Reap ended children, so that they do not stay as zombies."""
        self._children = [child for child in self._children if child.poll() is None]


def _told(name: str, found: ProcessRecord, life: ProcessLife) -> HostRecord:
    gone, stopped = life is ProcessLife.GONE, life is ProcessLife.STOPPED
    return HostRecord(name, found.incarnation, age_of(found), gone, stopped, found.first)


def shorten(log: Path) -> None:
    """Keep a log's newest part. Writers append, so truncating the file in place is safe."""
    with contextlib.suppress(FileNotFoundError):
        if log.stat().st_size > LOG_MOST:
            with log.open("rb") as file:
                file.seek(-LOG_MOST // 2, os.SEEK_END)
                earlier_part(log).write_bytes(file.read())
            os.truncate(log, 0)


@contextlib.contextmanager
def locked(path: Path) -> Iterator[bool]:
    """Yield whether we hold the lock; if not, another process does the work."""
    with os.fdopen(os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o600), "ab") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            yield False
            return
        yield True
