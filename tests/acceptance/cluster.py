"""A real cluster for tests: `caudal up` in a folder of its own, on ports of its own."""

import contextlib
import os
import secrets
import socket
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path


def _without_width() -> dict[str, str]:
    """The environment of a user who pipes: a test before may have left the width of a terminal."""
    return {name: value for name, value in os.environ.items() if name != "COLUMNS"}


Program = tuple[str, ...]  # the beginning of every command of an installed Caudal
CAUDAL = [sys.executable, "-m", "caudal"]
_SHARERS = 8
METRICS = (120, 121, 122, 130, 131, 132)  # of medics and workers, among the next hundred
_STRICT = 200  # tries to find ports that have no memory of earlier connections


@dataclass(frozen=True)
class RealCluster:
    """A running cluster, driven through its commands as a person would."""

    folder: Path
    port: int
    environment: Mapping[str, str] = field(default_factory=dict)
    program: tuple[str, ...] = field(default=tuple(CAUDAL), kw_only=True)

    @property
    def gateways(self) -> str:
        return f"http://127.0.0.1:{self.port + 1},http://127.0.0.1:{self.port + 2}"

    def caudal(self, *arguments: str, check: bool = True) -> subprocess.CompletedProcess[str]:
        """One command on this cluster's folder."""
        done = subprocess.run(
            [*self.program, *arguments, "--dir", str(self.folder)],
            capture_output=True,
            text=True,
            env={**_without_width(), **self.environment},
            check=False,
        )
        if check and done.returncode:
            raise AssertionError(f"caudal {arguments}: {done.stderr}\n{self.words()}")
        return done

    def words(self) -> str:
        """The end of every log, for whoever must find out what went wrong."""
        found = []
        for log in sorted((self.folder / "logs").glob("*.log")):
            lines = log.read_text(errors="replace").splitlines()[-8:]
            found += [f"{log.stem}: {line}" for line in lines]
        return "\n".join(found)

    def submit(self, app: str, data: Path, *more: str) -> list[str]:
        """The command that answers an application's queries here, as JSON."""
        where = ["--data", str(data), "--gateway", self.gateways, "--format", "json"]
        return [*self.program, "submit", app, *where, *more]


@contextlib.contextmanager
def running(
    folder: Path,
    *more: str,
    environment: Mapping[str, str] | None = None,
    program: tuple[str, ...] = tuple(CAUDAL),
) -> Iterator[RealCluster]:
    """A cluster that is up; taken down and purged at the end, whatever happens."""
    cluster = RealCluster(folder, free_hundred(), environment or {}, program=program)
    try:
        cluster.caudal("up", "--port", str(cluster.port), *more)
        yield cluster
    finally:
        cluster.caudal("down", "--purge", check=False)


def free_hundred() -> int:
    """The first of a hundred ports of which nobody uses those that a cluster does.

    Processes that share the tests draw from different hundreds: what one of them found free may
    not be in use yet when another looks. Where connections have just ended, servers can listen:
    that will do if there is nothing better.
    """
    ours = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw")) % _SHARERS
    for attempt in range(2 * _STRICT):
        first = 20_000 + 100 * (secrets.randbelow(120 // _SHARERS) * _SHARERS + ours)
        with contextlib.ExitStack() as held, contextlib.suppress(OSError):
            for port in (1, 2, 3, 50, 51, 52, 90, 91, 92, *METRICS):
                probe = held.enter_context(socket.socket())
                probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, attempt >= _STRICT)
                probe.bind(("127.0.0.1", first + port))
            return first
    raise AssertionError("no hundred free ports")
