"""Starting and stopping of processes on one host.

Rules
1. `start` is idempotent: the caller names the dead incarnation, and nothing happens if a newer one
   runs. Two medics that execute the same order meet at a lock; the second one finds a newer
   incarnation.
2. A process that still runs under the name (it hangs) is killed first, by pid and start time.
3. A process outlives the process that started it. Its output goes to its log, which is bounded.
"""

import contextlib
import fcntl
import os
import signal
import subprocess
from collections.abc import Container, Iterator, Sequence
from pathlib import Path
from typing import Protocol

from caudal.cluster import rabbit_node
from caudal.cluster.folder import USER, Cluster
from caudal.cluster.roster import Member, MemberKind
from caudal.process.privacy import private_file
from caudal.process.pulse import HostRecord
from caudal.process.records import (
    ProcessLife,
    ProcessRecord,
    age_of,
    is_running,
    life_of,
    read_record,
    send_signal,
    wait_until_gone,
    write_record,
)
from caudal.process.watch_pids import Attendance

LOG_MOST = 20 << 20
_KILL_SECONDS = 10.0


class Launcher(Protocol):
    """The port that runs members on this host."""

    def start(self, member: Member, dead: int) -> int | None:
        """Start it. Return its incarnation, or None if one newer than `dead` runs already."""

    def stop(self, name: str, seconds: float) -> None:
        """Ask it to end; kill it after that many seconds."""

    def record(self, name: str) -> HostRecord | None:
        """What is on record about it; None if it was never started here."""

    def records(self, names: Sequence[str], closely: Container[str]) -> list[HostRecord]:
        """The records of all these, quickly; whether one is stopped for those of `closely` only."""

    def names(self) -> list[str]:
        """Return all names on record here."""

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
        with _locked(cluster.run_folder / f"{member.name}.starting") as mine:
            if not mine:
                return None
            record = read_record(cluster.run_folder, member.name)
            if record and is_running(record):
                if record.incarnation > dead:
                    return None
                send_signal(record, signal.SIGKILL)
                wait_until_gone(record, _KILL_SECONDS)
            incarnation = max(dead, record.incarnation if record else 0) + 1
            child = self._spawn(member, incarnation)
            self._children.append(child)
            write_record(cluster.run_folder, member.name, incarnation, child.pid)
            return incarnation

    def stop(self, name: str, seconds: float) -> None:
        """See the port."""
        record = read_record(self._cluster.run_folder, name)
        if record and send_signal(record, signal.SIGTERM):
            send_signal(record, signal.SIGCONT)  # a frozen process cannot handle SIGTERM
            if not wait_until_gone(record, seconds):
                send_signal(record, signal.SIGKILL)
                wait_until_gone(record, _KILL_SECONDS)
        for suffix in ("json", "heart", "lock", "starting"):
            (self._cluster.run_folder / f"{name}.{suffix}").unlink(missing_ok=True)
        self._reap()

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
        return sorted(path.stem for path in self._cluster.run_folder.glob("*.json"))

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
        if cluster.settings.launcher == "local":
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
    return HostRecord(name, found.incarnation, age_of(found), gone, stopped)


def shorten(log: Path) -> None:
    """Keep a log's newest part. Writers append, so truncating the file in place is safe."""
    with contextlib.suppress(FileNotFoundError):
        if log.stat().st_size > LOG_MOST:
            with log.open("rb") as file:
                file.seek(-LOG_MOST // 2, os.SEEK_END)
                log.with_suffix(".log.1").write_bytes(file.read())
            os.truncate(log, 0)


@contextlib.contextmanager
def _locked(path: Path) -> Iterator[bool]:
    """Yield whether we hold the lock; if not, another process does the work."""
    with os.fdopen(os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o600), "ab") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            yield False
            return
        yield True
