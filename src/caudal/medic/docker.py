"""Members as containers: the Docker command starts, stops and inspects containers by name.

The containers exist already: deploy/compose.yaml creates one for each member, with the member's
name. A medic only starts them again. Incarnations are counted here. The state of a container is
cached for a second, because asking for it starts a process.
"""

import json
import subprocess
import time
from collections.abc import Container, Sequence
from datetime import datetime

from caudal.cluster.folder import Cluster
from caudal.cluster.roster import Member
from caudal.process.pulse import HostRecord
from caudal.process.records import read_record, write_record

_SECONDS = 60.0
_KEPT_SECONDS = 1.0


class DockerLauncher:
    """Containers of this machine's Docker engine."""

    def __init__(self, cluster: Cluster, program: str = "docker") -> None:
        self._cluster = cluster
        self._program = program
        self._known: dict[str, tuple[float, dict[str, object]]] = {}

    def start(self, member: Member, dead: int) -> int | None:
        """See the port."""
        record = read_record(self._cluster.run_folder, member.name)
        known = record.incarnation if record else 0
        if known > dead and not self._is_gone(member.name):
            return None
        incarnation = max(dead, known) + 1
        self._cluster.write_heart(member, incarnation)
        write_record(self._cluster.run_folder, member.name, incarnation, 0)
        self._docker("kill", member.name)
        self._docker("start", member.name)
        return incarnation

    def stop(self, name: str, seconds: float) -> None:
        """See the port."""
        self._docker("stop", "--time", str(int(seconds)), name)
        for suffix in ("json", "heart", "lock"):
            (self._cluster.run_folder / f"{name}.{suffix}").unlink(missing_ok=True)

    def record(self, name: str) -> HostRecord | None:
        """See the port."""
        found = read_record(self._cluster.run_folder, name)
        if found is None:
            return None
        return HostRecord(name, found.incarnation, self._age(name), self._is_gone(name))

    def records(self, names: Sequence[str], closely: Container[str]) -> list[HostRecord]:
        """See the port. That a container is paused shows by its silence."""
        return [record for name in names if (record := self.record(name)) is not None]

    def names(self) -> list[str]:
        """See the port."""
        return sorted(path.stem for path in self._cluster.run_folder.glob("*.json"))

    def follow(self, cluster: Cluster) -> None:
        """See the port."""
        self._cluster = cluster

    def _is_gone(self, name: str) -> bool:
        return not self._state(name).get("Running", False)

    def _age(self, name: str) -> float:
        try:
            began = datetime.fromisoformat(str(self._state(name).get("StartedAt", "")))
        except ValueError:
            return 0.0
        return max(0.0, time.time() - began.timestamp())

    def _state(self, name: str) -> dict[str, object]:
        known = self._known.get(name)
        if known is None or time.monotonic() - known[0] > _KEPT_SECONDS:
            known = self._known[name] = time.monotonic(), self._inspect(name)
        return known[1]

    def _inspect(self, name: str) -> dict[str, object]:
        shown = self._docker("inspect", "--format", "{{json .State}}", name)
        try:
            state = json.loads(shown)
        except ValueError:
            return {}
        return state if isinstance(state, dict) else {}

    def _docker(self, *arguments: str) -> str:
        if arguments[0] != "inspect":
            self._known.clear()
        command = [self._program, *arguments]
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=_SECONDS, check=False
        )
        return done.stdout
