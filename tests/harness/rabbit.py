"""Private RabbitMQ nodes for tests, of the system's package `rabbitmq-server`.

Rules
1. Free loopback ports, a port mapper (epmd), a cookie and a folder of its own: a node meets no
   other one on this machine, and nothing here ever looks for, talks to or stops another.
2. Everything is a child of this process: stopped by its own pid whatever happens, and should the
   tests be killed with -9, by the kernel (`setpriv --pdeathsig`, where that command is there).
3. Without the package, tests skip on a laptop and fail in CI (`CI=true`). `make test` installs it
   where it can.

Tests share one node and take a prefix each (`rabbit_url`). Whoever kills, freezes or wipes starts
a node for itself: `started(folder)`, or three that form a cluster: `started_three(folder)`.
"""

import os
import secrets
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from tests.harness.freezing import freeze, thaw
from tests.harness.seaweed import refuse
from tests.harness.waiting import GUARD_SECONDS

PROGRAM = Path("/usr/lib/rabbitmq/bin/rabbitmq-server")
USER, PASSWORD = "caudal", "rabbit-test-password"

_NODE = pytest.StashKey["Node"]()


@pytest.fixture(scope="session")
def rabbit(pytestconfig: pytest.Config, tmp_path_factory: pytest.TempPathFactory) -> "Node":
    """The session's one node, however many conftest files import this fixture. Do not harm it."""
    if _NODE not in pytestconfig.stash:
        require_rabbit()
        held = ExitStack()
        pytestconfig.add_cleanup(held.close)
        node = held.enter_context(started(tmp_path_factory.mktemp("rabbit")))
        pytestconfig.stash[_NODE] = node
    return pytestconfig.stash[_NODE]


@pytest.fixture
def rabbit_url(rabbit: "Node") -> str:
    """The shared node, with queues that no other test sees."""
    return f"{rabbit.url}?prefix=test-{secrets.token_hex(6)}"


def require_rabbit() -> None:
    """Skip, or fail in CI, where the package is not installed."""
    if not PROGRAM.exists() or shutil.which("epmd") is None:
        refuse("RabbitMQ is not installed: apt-get install rabbitmq-server")


@contextmanager
def started(folder: Path) -> Iterator["Node"]:
    """A node with its own folder, ready; stopped at the end."""
    with _prepared(folder, 1) as (node,):
        node.start()
        node.wait_until_ready()
        yield node


@contextmanager
def started_three(folder: Path) -> Iterator[list["Node"]]:
    """Three nodes that form one cluster."""
    with _prepared(folder, 3) as nodes:
        for node in nodes:
            node.start()
        for node in nodes:
            node.wait_until_ready()
        yield nodes


@dataclass
class Node:
    """One node. Start, kill, freeze and wipe it as the test wants; it keeps its ports."""

    name: str
    folder: Path
    port: int
    dist_port: int
    epmd_port: int
    peers: list[str]
    cookie: str
    _process: subprocess.Popen[bytes] | None = field(default=None, repr=False)

    @property
    def url(self) -> str:
        return f"amqp://{USER}:{PASSWORD}@127.0.0.1:{self.port}/"

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    def start(self) -> None:
        """Begin to start, with whatever data it has."""
        assert self._process is None
        self._lay_out()
        with (self.folder / "output.txt").open("ab") as output:
            self._process = subprocess.Popen(
                [*_tied_to_us(), PROGRAM],
                env=self._environment(),
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                cwd=self.folder,
            )

    def wait_until_ready(self) -> None:
        """It answers a client's greeting."""
        deadline = time.monotonic() + GUARD_SECONDS
        while time.monotonic() < deadline:
            if self._process is None or self._process.poll() is not None:
                break
            if self._greets():
                return
            time.sleep(0.05)
        last = (self.folder / "output.txt").read_text(errors="replace")[-2000:]
        pytest.fail(f"RabbitMQ did not start: {last}")

    def kill(self) -> None:
        """kill -9, and gone."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None

    def restart(self) -> None:
        """Killed, and started with the same data; returns when it is ready again."""
        self.kill()
        self.start()
        self.wait_until_ready()

    def wipe(self) -> None:
        """Killed, and all its data lost."""
        self.kill()
        shutil.rmtree(self.folder / "data", ignore_errors=True)

    def freeze(self) -> None:
        freeze(self.pid)

    def thaw(self) -> None:
        thaw(self.pid)

    def want_free(self, space: str) -> None:
        """Refuse messages while less space than this is free on its disk."""
        command = [str(PROGRAM.with_name("rabbitmqctl")), "set_disk_free_limit", space]
        subprocess.run(command, env=self._environment(), capture_output=True, check=True)

    def _greets(self) -> bool:
        try:
            with socket.create_connection(("127.0.0.1", self.port), timeout=2) as connection:
                connection.sendall(b"AMQP\x00\x00\x09\x01")
                return connection.recv(1) == b"\x01"
        except OSError:
            return False

    def _lay_out(self) -> None:
        for name in ("data", "logs", "generated"):
            (self.folder / name).mkdir(exist_ok=True)
        cookie = self.folder / ".erlang.cookie"
        if not cookie.exists():
            cookie.touch(mode=0o600)
            cookie.write_text(self.cookie)
        (self.folder / "rabbitmq.conf").write_text("\n".join(self._settings()) + "\n")
        (self.folder / "advanced.config").write_text("[].\n")
        (self.folder / "plugins").write_text("[].\n")

    def _settings(self) -> Iterator[str]:
        yield f"default_user = {USER}"
        yield f"default_pass = {PASSWORD}"
        yield "disk_free_limit.absolute = 10MB"
        yield "raft.wal_max_size_bytes = 32000000"
        yield "log.file.level = warning"
        yield "log.console = false"
        if len(self.peers) > 1:
            yield "cluster_formation.peer_discovery_backend = classic_config"
            yield "cluster_partition_handling = pause_minority"
            for number, peer in enumerate(self.peers, 1):
                yield f"cluster_formation.classic_config.nodes.{number} = {peer}"

    def _environment(self) -> dict[str, str]:
        here = self.folder
        return {
            "PATH": os.environ["PATH"],
            "LANG": "C.UTF-8",
            "HOME": str(here),  # the cookie lives there
            "RUNNING_UNDER_SYSTEMD": "1",  # the shell becomes the node: one pid
            "ERL_EPMD_PORT": str(self.epmd_port),
            "ERL_EPMD_ADDRESS": "127.0.0.1",
            "RABBITMQ_CONF_ENV_FILE": "/dev/null",
            "RABBITMQ_NODENAME": self.name,
            "RABBITMQ_NODE_IP_ADDRESS": "127.0.0.1",
            "RABBITMQ_NODE_PORT": str(self.port),
            "RABBITMQ_DIST_PORT": str(self.dist_port),
            "RABBITMQ_MNESIA_BASE": str(here / "data"),
            "RABBITMQ_LOG_BASE": str(here / "logs"),
            "RABBITMQ_CONFIG_FILE": str(here / "rabbitmq.conf"),
            "RABBITMQ_ADVANCED_CONFIG_FILE": str(here / "advanced.config"),
            "RABBITMQ_ENABLED_PLUGINS_FILE": str(here / "plugins"),
            "RABBITMQ_PID_FILE": str(here / "pid"),
            "RABBITMQ_GENERATED_CONFIG_DIR": str(here / "generated"),
            "RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS": "-kernel inet_dist_use_interface {127,0,0,1}"
            " +S 2:2 +sbwt none +sbwtdcpu none +sbwtdio none",
        }


@contextmanager
def _prepared(folder: Path, count: int) -> Iterator[list[Node]]:
    """Nodes that share a port mapper and a cookie, not started; all stopped at the end."""
    epmd_port, *ports = _free_ports(1 + 2 * count)
    names = [f"caudal{number}@localhost" for number in range(count)]
    cookie = secrets.token_hex(16).upper()
    nodes = []
    for number, name in enumerate(names):
        (folder / str(number)).mkdir()
        port, dist_port = ports[2 * number : 2 * number + 2]
        nodes.append(Node(name, folder / str(number), port, dist_port, epmd_port, names, cookie))
    epmd = subprocess.Popen(
        [*_tied_to_us(), "epmd", "-port", str(epmd_port), "-address", "127.0.0.1"],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        yield nodes
    finally:
        for node in nodes:
            node.kill()
        epmd.kill()
        epmd.wait()


def _free_ports(count: int) -> list[int]:
    """Below those that the kernel gives away: a killed node wants its ports back later."""
    found: list[int] = []
    with ExitStack() as held:
        while len(found) < count:
            port = 15_000 + secrets.randbelow(17_000)
            with suppress(OSError):
                held.enter_context(socket.socket()).bind(("127.0.0.1", port))
                found.append(port)
    return found


def _tied_to_us() -> list[str]:
    setpriv = shutil.which("setpriv")
    return [] if setpriv is None else [setpriv, "--pdeathsig", "KILL", "--"]
