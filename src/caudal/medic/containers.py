"""What an engine's answers mean for the members of a cluster, as pure functions.

Rules
1. The container of a member is called CLUSTER-MEMBER, such as `caudal-worker-1`.
2. The process in a container takes its incarnation itself: the one that a launcher left for it in
   NAME.next, else the one after the record (`caudal member`). So a container that the engine or a
   person starts is a new incarnation, too.
3. A process on record is gone if its container ended after the record was written. An end before
   that is the end of an earlier incarnation: the engine's answer may be older than the record.
4. A new container is a copy of one of the same kind: the same image, mounts, user and labels, with
   another name and command. So nothing about images stands in cluster.toml, and `docker compose
   down` removes it like the one that it was copied from.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from caudal.cluster.roster import MemberKind
from caudal.process.pulse import HostRecord
from caudal.process.records import ProcessRecord

_ALIVE = frozenset(("running", "paused", "restarting"))
_NUMBER_LABEL = "com.docker.compose.container-number"
_FRACTION = re.compile(r"\.(\d{1,6})\d*")
Json = Mapping[str, Any]


@dataclass(frozen=True)
class Condition:
    """The state of a container. `since` is the engine's time of its last start, end or creation."""

    status: str
    since: float = 0.0

    @property
    def is_alive(self) -> bool:
        return self.status in _ALIVE

    @property
    def is_paused(self) -> bool:
        return self.status == "paused"


def container_of(cluster: str, member: str) -> str:
    """Return the name of a member's container."""
    return f"{cluster}-{member}"


def inspected(answer: Json) -> Condition:
    """Return what `inspect` says."""
    state = answer["State"]
    status = str(state["Status"])
    if status in _ALIVE:
        return Condition(status, seconds_of(state["StartedAt"]))
    return Condition(status, max(seconds_of(state["FinishedAt"]), seconds_of(answer["Created"])))


_EVENTS = {"start": "running", "die": "exited", "pause": "paused", "unpause": "running"}


def happened(event: Json) -> tuple[str, Condition | None] | None:
    """Return the container of an event with its condition, None if it was removed.

    Return None for an event that changes no condition.
    """
    action = str(event.get("Action", ""))
    name = str(event["Actor"]["Attributes"]["name"])
    if action == "destroy":
        return name, None
    if action not in _EVENTS:
        return None
    return name, Condition(_EVENTS[action], int(event["timeNano"]) / 1e9)


def told(
    name: str, record: ProcessRecord, written: float, condition: Condition | None, now: float
) -> HostRecord:
    """Return what is known of a member. `written` is when its record was (rule 3)."""
    gone = condition is None or (not condition.is_alive and condition.since > written)
    is_paused = condition is not None and condition.is_paused
    age = max(0.0, now - written)
    return HostRecord(name, record.incarnation, age, gone, is_paused, record.first)


def pattern_for(kind: MemberKind, names: list[str], cluster: str) -> str | None:
    """Return the container to copy for a new member (rule 4); None if there is none."""
    for wanted in (kind, MemberKind.WORKER, MemberKind.GATEWAY):
        if kind is MemberKind.MEDIC and wanted is not kind:
            return None  # only medics have the engine's socket
        found = [name for name in names if name.startswith(container_of(cluster, f"{wanted}-"))]
        if found:
            return min(found)
    return None


def copied(answer: Json, member: str) -> dict[str, Any]:
    """Return the order to create a container for this member like the inspected one."""
    config = dict(answer["Config"])
    number = member.partition(".")[0].rpartition("-")[2]
    labels = dict(config.get("Labels") or {})
    if _NUMBER_LABEL in labels:
        labels[_NUMBER_LABEL] = number
    for name in ("Hostname", "Domainname"):
        config.pop(name, None)
    return {
        **config,
        "Cmd": ["member", member],
        "Labels": labels,
        "HostConfig": answer["HostConfig"],
    }


def seconds_of(text: str) -> float:
    """Return an engine's time as seconds since 1970; 0 for its way to say never."""
    found = datetime.fromisoformat(_FRACTION.sub(r".\1", text)).timestamp() if text else 0.0
    return max(0.0, found)
