"""A cluster's folder on one host: the places of its files, and the command of each process."""

import shlex
import sys
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import msgspec

from caudal.cluster.compare_settings import PASSWORD
from caudal.cluster.roster import Member, MemberKind, medics, metrics_port, roster
from caudal.cluster.settings import EMBEDDED, FILE, PRIVATE, ClusterSettings, check, read_settings
from caudal.cluster.start_note import anything_runs, difference, held, read_note
from caudal.errors import UsageError
from caudal.process.heart import HeartFile
from caudal.process.privacy import private_file, private_folder, require_not_everyones
from caudal.process.records import read_record
from caudal.process.wire import make_secret, read_secret
from caudal.sizes import parse_seconds

USER = "caudal"


@dataclass(frozen=True)
class Cluster:
    """The folder, its settings, and the name of this host."""

    folder: Path
    settings: ClusterSettings
    host: str
    strayed: str = ""  # how cluster.toml differs from the running settings (start_note.py)

    @classmethod
    def open(cls, folder: Path, host: str | None = None) -> "Cluster":
        """Read the folder. The host must be named if there are several.

        Settings that may not change while the cluster runs keep the values of its start.
        """
        settings = read_settings(folder)
        names = list(settings.hosts)
        if host is None and len(names) == 1:
            host = names[0]
        if host not in settings.hosts:
            what = f"{FILE} has no host {host!r}" if host else f"{FILE} has several hosts"
            raise UsageError(f"{what}: give --host with one of: {', '.join(names)}")
        found = cls(folder.resolve(), settings, host)
        noted = read_note(found.run_folder)
        if noted is None or not found.is_running:
            return found
        kept = held(settings, noted)
        check(kept, str(folder / FILE))
        return cls(found.folder, kept, host, difference(settings, noted))

    @classmethod
    def open_anyway(cls, folder: Path, host: str | None = None) -> "Cluster":
        """Open the folder as `open` does; if cluster.toml is invalid, use the note of the start.

        For code that must work without the file: medics, and commands that stop processes or read
        logs.
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
        """Return the members of this host."""
        return tuple(one for one in self.members if one.host == self.host)

    @property
    def options(self) -> str:
        """Return the command-line options for this cluster and host, quoted for a shell."""
        host = f" --host {self.host}" if len(self.settings.hosts) > 1 else ""
        return f"--dir {shlex.quote(str(self.folder))}{host}"

    def options_on(self, host: str) -> str:
        """Return the options to use on that host. It may have its folder elsewhere, unless it has
        run in this one.
        """
        if host == self.host:
            return self.options
        is_shared = (self.folder / "run" / host).exists()
        return f"--dir {shlex.quote(str(self.folder)) if is_shared else 'FOLDER'} --host {host}"

    @cached_property
    def run_folder(self) -> Path:
        """Return the folder of this host's locks, records and heart files."""
        return self.folder / "run" / self.host

    @property
    def is_running(self) -> bool:
        """Return whether any process of this host exists."""
        return anything_runs(self.run_folder)

    @property
    def logs(self) -> Path:
        return self.folder / "logs"

    @property
    def secret(self) -> Path:
        return self.folder / "secret"

    @property
    def node(self) -> Path:
        """Return the folder of a private or embedded broker."""
        return self.folder / "broker"

    @property
    def store(self) -> str:
        store = self.settings.store
        return store if "://" in store else str(self.folder / store)

    @property
    def _store_folder(self) -> Path | None:
        """Return the store's folder if it lies in this one, else None."""
        folder = Path(self.store)
        return folder if "://" not in self.store and self.folder in folder.parents else None

    def lay_out(self) -> None:
        """Create what must exist before a start, for this user only.

        Raises UsageError on one of several hosts without a secret: each would make its own.
        """
        for path in self.secrets:
            if len(self.settings.hosts) > 1 and not path.exists():
                make = f"umask 077; od -An -tx1 -N32 /dev/urandom | tr -d ' \\n' > {path}"
                raise UsageError(
                    f"{path} is missing, and all hosts need the same one: copy it from another "
                    f"host, or make it once: ({make})"
                )
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
        for path in self.secrets:
            make_secret(path)

    @property
    def secrets(self) -> tuple[Path, ...]:
        """Return the files that every host must have, with the same content."""
        is_private = self.settings.broker == PRIVATE
        return (self.secret, self.folder / PASSWORD) if is_private else (self.secret,)

    def audit_of(self, name: str) -> Path:
        """Return the path of a gateway's audit log."""
        return self.folder / "audit" / f"{name}.jsonl"

    @property
    def tokens(self) -> Path:
        """Return the token file's path, also if gateways do not use it yet."""
        return self.folder / (self.settings.tokens or "tokens")

    def log_of(self, name: str) -> Path:
        return self.logs / f"{name}.log"

    def write_heart(self, member: Member, incarnation: int, suffix: str = "heart") -> Path:
        """Write the heart file, which a process needs for heartbeats, for its next start."""
        others = [one for one in medics(self.members) if one.name != member.name]
        addresses = [(one.address, one.port) for one in others]
        run, secret = str(self.run_folder), str(self.secret)
        file = HeartFile(member.name, incarnation, run, secret, addresses)
        path = self.run_folder / f"{member.name}.{suffix}"
        private_file(path)
        path.write_bytes(msgspec.json.encode(file))
        return path

    def take_heart(self, member: Member) -> Path:
        """Return the heart file that a launcher left for a container, else write the next one."""
        path = self.run_folder / f"{member.name}.heart"
        try:
            return (self.run_folder / f"{member.name}.next").rename(path)
        except FileNotFoundError:
            record = read_record(self.run_folder, member.name)
            return self.write_heart(member, record.incarnation + 1 if record else 1)

    def command(self, member: Member, heart: Path) -> list[str]:
        """Return the command of a member, except for a private broker (rabbit_node.py)."""
        return [sys.executable, "-m", "caudal", *self.arguments(member, heart)]

    def arguments(self, member: Member, heart: Path) -> list[str]:
        """Return the words after `caudal` that run a member."""
        command = [member.kind.value, "--heart", str(heart)]
        if member.kind is MemberKind.MEDIC:
            return [*command, "--dir", str(self.folder), "--host", self.host]
        settings = self.settings
        command += ["--store", self.store, "--name", member.name]
        command += [
            "--log-format",
            settings.log_format,
            "--fsync" if settings.fsync else "--no-fsync",
        ]
        if member.kind is MemberKind.WORKER:
            return [*command, *self._work(member)]
        command += ["--host", member.address, "--port", str(member.port)]
        command += ["--job-timeout", str(parse_seconds(settings.job_timeout))]
        command += ["--rate", str(settings.rate)]
        command += [word for model in settings.sentiment for word in ("--sentiment", model)]
        return [*command, *self._access(member)]

    def _work(self, member: Member) -> list[str]:
        """Return a worker's options about its tasks, memory, folders and metrics."""
        settings = self.settings
        words = ["--memory-limit", settings.worker_memory]
        if self._is_quick(member):
            words.append("--quick")
        if roles := settings.hosts[member.host].tasks:
            words += ["--tasks", roles[(member.number - 1) % len(roles)]]
        if settings.workspace:
            words += ["--workspace", str(self.folder / settings.workspace)]
        words += [word for model in settings.sentiment for word in ("--sentiment", model)]
        if settings.wait:
            words += ["--wait", str(parse_seconds(settings.wait))]
        if (port := metrics_port(settings, member)) is not None:
            words += ["--metrics-port", str(port)]
            if self.metrics_token is not None:
                words += ["--metrics-token-file", str(self.metrics_token)]
        return words

    @property
    def metrics_token(self) -> Path | None:
        """Return the file with the token of metrics, if they need one."""
        token = self.settings.metrics_token
        return self.folder / token if token else None

    def health_of(self, member: Member) -> str:
        """Return the address that tells a container's engine of a member's health; "" if none does.

        A worker is healthy once it takes tasks, for medics too. A gateway is while it answers.
        """
        where = f"{member.address}:{member.port}"
        if member.kind is MemberKind.GATEWAY:
            return f"{'https' if self.settings.tls.certificate else 'http'}://{where}/healthz"
        if member.kind is MemberKind.MEDIC:
            return f"tcp://{where}"
        port = metrics_port(self.settings, member)
        return f"http://127.0.0.1:{port}/readyz" if port else ""

    def _access(self, member: Member) -> list[str]:
        """Return a gateway's options about clients. The gateway follows changes of the files."""
        words = ["--quotas", str(self.folder / FILE), "--audit", str(self.audit_of(member.name))]
        tls, tokens = self.settings.tls, self.settings.tokens
        if self.settings.keep_results:
            words += ["--keep-results", self.settings.keep_results]
        if self.settings.keep_unused:
            words += ["--keep-unused", self.settings.keep_unused]
        if tokens:
            words += ["--token-file", str(self.folder / tokens)]
        if tls.certificate:
            words += ["--tls-certificate", str(self.folder / tls.certificate)]
            words += ["--tls-key", str(self.folder / tls.key)]
        return words

    def _is_quick(self, member: Member) -> bool:
        """Return whether this worker is for short tasks: every other one, if there are several."""
        workers = [one for one in self.members if one.kind is MemberKind.WORKER]
        return len(workers) > 1 and workers.index(member) % 2 == 0

    def broker_url(self) -> str:
        """Return the URL with this cluster's prefix. It holds a password: never log or print it."""
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
        """Return the kind of broker for people, without its URL, which may hold a password."""
        if self.settings.broker == PRIVATE:
            return "a private RabbitMQ"
        if self.settings.broker == EMBEDDED:
            return f"embedded, in {self.node} (one host only; several need RabbitMQ)"
        return "the RabbitMQ that cluster.toml names"

    def password(self) -> str:
        """Return the private broker's password."""
        return read_secret(self.folder / PASSWORD).decode("ascii")

    @property
    def known_password(self) -> str:
        """Return the private broker's password; "" without one, or if it cannot be read."""
        if self.settings.broker != PRIVATE:
            return ""
        try:
            return self.password()
        except (UsageError, UnicodeDecodeError):
            return ""
