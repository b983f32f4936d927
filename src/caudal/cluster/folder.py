"""A cluster's folder on one host: where its files lie, and the command of each process."""

import shlex
import sys
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import msgspec

from caudal.cluster.roster import Member, MemberKind, medics, roster
from caudal.cluster.settings import EMBEDDED, FILE, PRIVATE, ClusterSettings, check, read_settings
from caudal.cluster.start_note import anything_runs, difference, held, read_note
from caudal.errors import UsageError
from caudal.process.heart import HeartFile
from caudal.process.privacy import private_file, private_folder, require_not_everyones
from caudal.process.wire import make_secret, read_secret

USER = "caudal"


@dataclass(frozen=True)
class Cluster:
    """The folder, what it says, and which of its hosts this one is."""

    folder: Path
    settings: ClusterSettings
    host: str
    strayed: str = ""  # where cluster.toml says otherwise than what runs uses (start_note.py)

    @classmethod
    def open(cls, folder: Path, host: str | None = None) -> "Cluster":
        """Read the folder; the host is the only one there is, or must be named.

        What may not change while the cluster runs is as it was when it was started.
        """
        settings = read_settings(folder)
        names = list(settings.hosts)
        if host is None and len(names) == 1:
            host = names[0]
        if host not in settings.hosts:
            raise UsageError(f"which host is this? Say --host with one of: {', '.join(names)}")
        found = cls(folder.resolve(), settings, host)
        noted = read_note(found.run_folder)
        if noted is None or not found.is_running:
            return found
        kept = held(settings, noted)
        check(kept, str(folder / FILE))
        return cls(found.folder, kept, host, difference(settings, noted))

    @classmethod
    def open_anyway(cls, folder: Path, host: str | None = None) -> "Cluster":
        """As `open`, but a cluster.toml that cannot be read is replaced by the note of the start.

        For those who must do without the file: medics, and whoever stops processes or reads logs.
        """
        try:
            read_settings(folder)
        except UsageError as error:
            noted = {one.name: read_note(one) for one in folder.glob("run/*")}
            found = [(name, one) for name, one in noted.items() if one and host in (None, name)]
            if len(found) != 1:
                raise
            name, settings = found[0]
            return cls(folder.resolve(), settings, name, str(error))
        return cls.open(folder, host)

    @cached_property
    def members(self) -> tuple[Member, ...]:
        return roster(self.settings)

    @cached_property
    def here(self) -> tuple[Member, ...]:
        """The members of this host."""
        return tuple(one for one in self.members if one.host == self.host)

    @property
    def options(self) -> str:
        """How a command names this cluster and host, to be pasted into a shell."""
        host = f" --host {self.host}" if len(self.settings.hosts) > 1 else ""
        return f"--dir {shlex.quote(str(self.folder))}{host}"

    @cached_property
    def run_folder(self) -> Path:
        """Locks, records and heart files of this host."""
        return self.folder / "run" / self.host

    @property
    def is_running(self) -> bool:
        """Does any process of this host exist?"""
        return anything_runs(self.run_folder)

    @property
    def logs(self) -> Path:
        return self.folder / "logs"

    @property
    def secret(self) -> Path:
        return self.folder / "secret"

    @property
    def node(self) -> Path:
        """The folder of a private or embedded broker."""
        return self.folder / "broker"

    @property
    def store(self) -> str:
        store = self.settings.store
        return store if "://" in store else str(self.folder / store)

    @property
    def _store_folder(self) -> Path | None:
        """If the store is a folder of this one."""
        folder = Path(self.store)
        return folder if "://" not in self.store and self.folder in folder.parents else None

    def lay_out(self) -> None:
        """Make what must exist before anything starts; for this user only, where it runs here."""
        if self.settings.launcher == "local":
            require_not_everyones(self.folder)
            for folder in (
                self.run_folder.parent,
                self.run_folder,
                self.logs,
                self.node,
                self._store_folder,
            ):
                if folder is not None:
                    private_folder(folder)
        self.run_folder.mkdir(parents=True, exist_ok=True)
        self.logs.mkdir(exist_ok=True)
        make_secret(self.secret)
        make_secret(self.folder / "broker.password")

    def audit_of(self, name: str) -> Path:
        """Where a gateway writes who did what."""
        return self.folder / "audit" / f"{name}.jsonl"

    @property
    def tokens(self) -> Path:
        """The token file, whether gateways are told of it yet or not."""
        return self.folder / (self.settings.tokens or "tokens")

    def log_of(self, name: str) -> Path:
        return self.logs / f"{name}.log"

    def write_heart(self, member: Member, incarnation: int) -> Path:
        """What a process needs to beat, written for its next start."""
        others = [one for one in medics(self.members) if one.name != member.name]
        addresses = [(one.address, one.port) for one in others]
        run, secret = self._as_seen(self.run_folder), self._as_seen(self.secret)
        file = HeartFile(member.name, incarnation, run, secret, addresses)
        path = self.run_folder / f"{member.name}.heart"
        if not self.settings.mount:  # else it is read by the user of a container
            private_file(path)
        path.write_bytes(msgspec.json.encode(file))
        return path

    def _as_seen(self, path: Path) -> str:
        """A path of this folder as its processes see it: containers mount it elsewhere."""
        mount = self.settings.mount
        return str(Path(mount) / path.relative_to(self.folder)) if mount else str(path)

    def command(self, member: Member, heart: Path) -> list[str]:
        """How to start a member, but for a private broker (rabbit_node.py)."""
        command = [sys.executable, "-m", "caudal", member.kind.value, "--heart", str(heart)]
        if member.kind is MemberKind.MEDIC:
            return [*command, "--dir", str(self.folder), "--host", self.host]
        command += ["--store", self.store, "--name", member.name]
        if member.kind is MemberKind.WORKER:
            quick = ["--quick"] if self._is_quick(member) else []
            return [*command, "--memory-limit", self.settings.worker_memory, *quick]
        command += ["--host", member.address, "--port", str(member.port)]
        return [*command, *self._access(member)]

    def _access(self, member: Member) -> list[str]:
        """What a gateway is told of clients. Files that change are read again by the gateway."""
        words = ["--quotas", str(self.folder / FILE), "--audit", str(self.audit_of(member.name))]
        tls, tokens = self.settings.tls, self.settings.tokens
        if self.settings.keep_results:
            words += ["--keep-results", self.settings.keep_results]
        if tokens:
            words += ["--token-file", str(self.folder / tokens)]
        if tls.certificate:
            words += ["--tls-certificate", str(self.folder / tls.certificate)]
            words += ["--tls-key", str(self.folder / tls.key)]
        return words

    def _is_quick(self, member: Member) -> bool:
        """Every other worker is kept free for short tasks, unless there is but one."""
        workers = [one for one in self.members if one.kind is MemberKind.WORKER]
        return len(workers) > 1 and workers.index(member) % 2 == 0

    def broker_url(self) -> str:
        """With the prefix of this cluster. It holds a password: never for logs or commands."""
        url = self.settings.broker
        if url == EMBEDDED:
            return f"embedded:{self.node}"
        if url == PRIVATE:
            node = next(one for one in self.members if one.kind is MemberKind.BROKER)
            url = f"amqp://{USER}:{self.password()}@{node.address}:{node.port}/"
        prefix = f"?prefix={self.settings.name}"
        return ",".join(one if "?" in one else one + prefix for one in url.split(","))

    @property
    def broker_words(self) -> str:
        """Which broker the cluster uses, for people. Never its URL, which may hold a password."""
        if self.settings.broker == PRIVATE:
            return "a private RabbitMQ"
        if self.settings.broker == EMBEDDED:
            return f"embedded, in {self.node} (one host only; several need RabbitMQ)"
        return "the RabbitMQ that cluster.toml names"

    def password(self) -> str:
        """Of the private broker."""
        return read_secret(self.folder / "broker.password").decode("ascii")
