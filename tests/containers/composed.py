"""The cluster of compose.yaml on a real engine, driven as a person would: compose and docker."""

import contextlib
import json
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from caudal.medic.engine import DockerEngine
from tests.acceptance.cluster import free_hundred
from tests.containers.engine import BASE, IMAGE, ROOT, Docker
from tests.harness.waiting import until

NAME = "caudaltest"


class NotYetError(Exception):
    """The cluster is not as it is awaited; what it is instead."""


@dataclass(frozen=True)
class Composed:
    """A running cluster of containers."""

    engine: Docker
    folder: Path
    port: int
    image: str = IMAGE
    data: Path | None = None  # instead of the cluster's own folders
    results: Path | None = None

    @property
    def variables(self) -> dict[str, str]:
        gateways = f"http://127.0.0.1:{self.port + 1},http://127.0.0.1:{self.port + 2}"
        return {
            "CAUDAL_BASE": BASE,
            "CAUDAL_IMAGE": self.image,
            "CAUDAL_NAME": NAME,
            "CAUDAL_SETTINGS": str(self.folder / "cluster.toml"),
            "CAUDAL_GATEWAYS": gateways,
            "CAUDAL_DATA": str(self.data or self.folder / "data"),
            "CAUDAL_RESULTS": str(self.results or self.folder / "results"),
            "DOCKER_SOCKET": str(self.engine.socket),
            "COMPOSE_PROJECT_NAME": NAME,
        }

    def compose(self, *words: str, check: bool = True) -> str:
        return self.engine.compose(*words, check=check, **self.variables)

    def admin(self, *words: str, check: bool = True) -> str:
        """One command of Caudal about the cluster, in a container of its own."""
        return self.compose("run", "--rm", "-T", "admin", *words, check=check)

    @contextlib.contextmanager
    def following(self, member: str) -> Iterator[Iterator[str]]:
        """The newest line of a log and those that follow, in a container of its own."""
        container = f"follows-{NAME}"
        words = ("run", "--rm", "-T", "--name", container, "admin", "logs", member)
        with self.engine.composing(*words, "-n", "1", "--follow", **self.variables) as lines:
            try:
                yield lines
            finally:
                self.engine.docker("rm", "-f", container, check=False)

    def client(self, *words: str) -> str:
        return self.compose("run", "--rm", "-T", "client", *words)

    def refusal(self, *words: str) -> str:
        """Return the words with which a command fails."""
        with pytest.raises(AssertionError) as caught:
            self.compose(*words)
        return str(caught.value)

    def docker(self, verb: str, member: str, *words: str) -> str:
        return self.engine.docker(verb, *words, f"{NAME}-{member}")

    def inspect(self, member: str) -> Any:
        return json.loads(self.docker("inspect", member))[0]

    def volume(self) -> Path:
        """The cluster's folder, as root of the host sees it."""
        name = f"{NAME}_cluster"
        shown = self.engine.docker("volume", "inspect", "--format", "{{.Mountpoint}}", name)
        return Path(shown.strip())

    def cpu_seconds(self, member: str) -> float:
        """The CPU time of a container since its start."""
        path = f"/containers/{NAME}-{member}/stats"
        told: Any = DockerEngine(str(self.engine.socket)).get(path, {"stream": "false"})
        return float(told["cpu_stats"]["cpu_usage"]["total_usage"] / 1e9)

    def status(self) -> dict[str, Any]:
        """Every process by name, as the leader of the medics sees it."""
        return {one["name"]: one for one in self.view().get("processes", ())}

    def view(self) -> dict[str, Any]:
        """What the leader of the medics tells, asked in any container; {} if none answers."""
        for asked in ("gateway-1", "gateway-2", "worker-1"):
            container = f"{NAME}-{asked}"
            told = self.engine.docker("exec", container, "caudal", "status", "--json", check=False)
            if told.startswith("{"):  # else the words of docker: it does not run now
                return dict(json.loads(told))
        return {}

    def settled(self, wanted: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
        """Wait for a status; whoever never gets it fails with the last one."""

        def look() -> dict[str, Any]:
            told = self.status()
            if told and wanted(told):
                return told
            raise NotYetError(
                {name: (one["state"], one["incarnation"]) for name, one in told.items()}
            )

        return until(look, NotYetError, pause_seconds=0.5)

    def all_healthy(self) -> dict[str, Any]:
        return self.settled(lambda told: all(one["state"] == "healthy" for one in told.values()))


@contextlib.contextmanager
def composed(engine: Docker, folder: Path) -> Iterator[Composed]:
    """A cluster that is built and up; taken down with its volume at the end, whatever happens."""
    cluster = Composed(engine, folder, free_hundred())
    settings = (ROOT / "deploy" / "cluster.toml").read_text()
    settings = settings.replace('name = "caudal"', f'name = "{NAME}"')
    settings = settings.replace("port = 8420", f"port = {cluster.port}")
    settings = settings.replace("metrics = 8540", f"metrics = {cluster.port + 20_000}")
    folder.chmod(0o755)
    (folder / "cluster.toml").write_text(settings)
    (folder / "cluster.toml").chmod(0o644)
    for name in ("data", "results"):
        (folder / name).mkdir()
        (folder / name).chmod(0o755)
    os.chown(folder / "results", 4321, 4321)  # a user of the host whom no image knows
    try:
        cluster.compose("up", "-d", "--build")
        yield cluster
    finally:
        cluster.compose("down", "-v", "--remove-orphans", check=False)
