"""Members as containers of this machine's Docker engine. Rules: medic/containers.py.

Every part of the cluster, the command line included, runs in containers that share one volume as
the cluster's folder. So records, locks and secrets have the same paths for all of them.
"""

import time
from collections.abc import Container, Iterator, Sequence
from contextlib import suppress

from caudal.cluster.folder import Cluster
from caudal.cluster.roster import Member
from caudal.errors import EngineError, UsageError
from caudal.medic.containers import (
    Condition,
    Json,
    container_of,
    copied,
    inspected,
    is_being_replaced,
    pattern_for,
    renewed,
    told,
)
from caudal.medic.engine import DockerEngine, whole_lines
from caudal.medic.launcher import locked
from caudal.medic.watch_containers import ContainerWatch, list_conditions
from caudal.process.pulse import HostRecord
from caudal.process.records import read_record, write_record, written_at

_LOOK_SECONDS = 0.25
_BEGUN_SECONDS = 10.0  # for a container's process to write its own record


class DockerLauncher:
    """Containers of one engine. `image`: the one of containers that are replaced; "": the one
    that they were made of, by its name."""

    def __init__(self, cluster: Cluster, engine: DockerEngine, image: str = "") -> None:
        self._cluster = cluster
        self._engine = engine
        self._image = image
        self._watch: ContainerWatch | None = None

    def start(self, member: Member, dead: int) -> int | None:
        """See the port."""
        run = self._cluster.run_folder
        with locked(run / f"{member.name}.starting") as mine:
            if not mine:
                return None
            record = read_record(run, member.name)
            known = record.incarnation if record else 0
            condition = self._condition(member.name)
            if not (condition and condition.is_alive) and self._is_being_replaced(member.name):
                return None
            if condition is None:
                self.create(member)
            elif condition.is_alive:
                is_new = condition.since > written_at(run, member.name)
                if known > dead or (is_new and time.time() - condition.since < _BEGUN_SECONDS):
                    return None
                self._end(member.name)
            incarnation = max(dead, known) + 1
            self._begin(member, incarnation)
            return incarnation

    def replace(self, member: Member, seconds: float) -> int | None:
        """See the port. If its image is another one by now, the container is made anew."""
        run = self._cluster.run_folder
        with locked(run / f"{member.name}.starting") as mine:
            if not mine:
                return None
            order = self._renewal(member.name)
            if order is None:
                self._ask_to_end(member.name, seconds)
            else:
                self._make_anew(member.name, order, seconds)
            record = read_record(run, member.name)
            incarnation = record.incarnation + 1 if record else 1
            self._begin(member, incarnation)
            return incarnation

    def _is_being_replaced(self, name: str) -> bool:
        found = self._engine.get("/containers/json", {"all": "true"})
        listed = found if isinstance(found, list) else []
        return is_being_replaced(listed, self._container(name), time.time())

    def _renewal(self, name: str) -> Json | None:
        """Return the order to make a container anew from its image (rule 5); None if it has it."""
        answer = self._engine.get(f"/containers/{self._container(name)}/json")
        if not isinstance(answer, dict):
            return None
        wanted = self._image or str(answer["Config"]["Image"])
        before = self._engine.get(f"/images/{answer['Image']}/json")
        after = self._engine.get(f"/images/{wanted}/json")
        if not isinstance(after, dict):
            raise UsageError(f"the engine has no image {wanted}: pull or build it first")
        if after["Id"] == answer["Image"]:
            return None
        known = before if isinstance(before, dict) else {"Config": None}
        return renewed(answer, known, wanted, after)

    def _make_anew(self, name: str, order: Json, seconds: float) -> None:
        """Replace a container. The new one is created first: if that fails, nothing has changed."""
        container = self._container(name)
        waiting = f"new-{container}"  # not a name of the cluster's containers
        self._engine.delete(f"/containers/{waiting}", {"force": "true"})
        self._engine.post("/containers/create", {"name": waiting}, order)
        self._ask_to_end(name, seconds)
        self._engine.delete(f"/containers/{container}", {"force": "true"})
        self._engine.post(f"/containers/{waiting}/rename", {"name": container})

    def _begin(self, member: Member, incarnation: int) -> None:
        """Leave the incarnation for the process, start it, then write the record (rule 3)."""
        run = self._cluster.run_folder
        self._cluster.write_heart(member, incarnation, "next")
        try:
            self._engine.post(self._path(member.name, "start"))
        except EngineError:
            (run / f"{member.name}.next").unlink(missing_ok=True)
            raise
        record = read_record(run, member.name)
        if record is None or record.incarnation < incarnation:  # else the process was quicker
            write_record(run, member.name, incarnation, 0)

    def _end(self, name: str) -> None:
        """Kill a container and wait for its end; a paused one must be let run for that."""
        with suppress(EngineError):
            self._engine.post(self._path(name, "unpause"))
        self.kill(name)
        self._engine.post(self._path(name, "wait"), {"condition": "not-running"})

    def stop(self, name: str, seconds: float) -> None:
        """See the port."""
        self._ask_to_end(name, seconds)
        for suffix in ("json", "heart", "next", "lock", "starting"):
            (self._cluster.run_folder / f"{name}.{suffix}").unlink(missing_ok=True)

    def _ask_to_end(self, name: str, seconds: float) -> None:
        if self._condition(name) is not None:
            with suppress(EngineError):
                self._engine.post(self._path(name, "unpause"))
            query = {"t": int(seconds)}
            self._engine.post(self._path(name, "stop"), query, seconds=seconds + 60, fine=(404,))

    def kill(self, name: str) -> bool:
        """See the port."""
        return self._engine.post(self._path(name, "kill"), fine=(404, 409))

    def pause(self, name: str) -> bool:
        """See the port. The engine may fail to freeze one (500): then it runs on, or has ended."""
        return self._engine.post(self._path(name, "pause"), fine=(404, 409, 500))

    def create(self, member: Member) -> None:
        """Create a container like one of the same kind (rule 4)."""
        names = sorted(list_conditions(self._engine, self._prefix))
        pattern = pattern_for(member.kind, names, self._cluster.settings.name)
        answer = self._engine.get(f"/containers/{pattern}/json") if pattern else None
        if not isinstance(answer, dict):
            raise UsageError(
                f"there is no container {self._container(member.name)}, and none of the cluster "
                "that it could be made like: run `docker compose up -d`"
            )
        order = copied(answer, member.name)
        self._engine.post("/containers/create", {"name": self._container(member.name)}, order)

    def remove(self, name: str) -> None:
        """See the port."""
        self._engine.delete(f"/containers/{self._container(name)}", {"force": "true"})

    def record(self, name: str) -> HostRecord | None:
        """See the port."""
        return self._told(name, self._condition(name))

    def records(self, names: Sequence[str], closely: Container[str]) -> list[HostRecord]:
        """See the port. Nothing is asked here: a thread follows the engine's events."""
        if self._watch is None:
            self._watch = ContainerWatch(self._engine, self._prefix)
        known = self._watch.now()
        if known is None:
            return []
        found = (self._told(name, known.get(self._container(name))) for name in names)
        return [one for one in found if one is not None]

    def names(self) -> list[str]:
        """See the port."""
        return sorted(path.stem for path in self._cluster.run_folder.glob("*.json"))

    def log_lines(self, name: str, count: int, *, follow: bool = False) -> Iterator[str]:
        """See the port. The log of a container ends with it and goes on when it is started anew."""
        asked: dict[str, str | int] = {"stdout": 1, "stderr": 1, "follow": int(follow)}
        since: dict[str, str | int] = {"tail": count}
        while True:
            yield from whole_lines(self._engine.log(self._path(name, "logs"), {**asked, **since}))
            if not follow:
                return
            since = {"since": f"{time.time():.3f}"}
            time.sleep(_LOOK_SECONDS)

    def keep_logs_short(self) -> None:
        """See the port. The engine bounds the logs of containers (compose.yaml: logging)."""

    def follow(self, cluster: Cluster) -> None:
        """See the port."""
        self._cluster = cluster

    def trouble(self) -> str:
        """See the port."""
        try:
            known = list_conditions(self._engine, self._prefix)
        except EngineError as error:
            return str(error)
        here = [self._container(one.name) for one in self._cluster.here]
        missing = [name for name in here if name not in known]
        return f"no container {', '.join(missing)}" if missing else ""

    @property
    def _prefix(self) -> str:
        return container_of(self._cluster.settings.name, "")

    def _container(self, name: str) -> str:
        return container_of(self._cluster.settings.name, name)

    def _path(self, name: str, verb: str) -> str:
        return f"/containers/{self._container(name)}/{verb}"

    def _condition(self, name: str) -> Condition | None:
        answer = self._engine.get(f"/containers/{self._container(name)}/json")
        return inspected(answer) if isinstance(answer, dict) else None

    def _told(self, name: str, condition: Condition | None) -> HostRecord | None:
        run = self._cluster.run_folder
        record = read_record(run, name)
        if record is None:
            return None
        return told(name, record, written_at(run, name), condition, time.time())
