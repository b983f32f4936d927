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
5. A container keeps its image for ever. For another image it is made anew, with its own settings
   and those of the new image: what it had from the old image is left out.
6. Compose creates a container's successor as ID_NAME, then stops the container, removes it and
   renames the successor. Until then nobody else starts either, or compose could not remove it. A
   successor that stays for two minutes is one that compose has given up.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from caudal.cluster.roster import MemberKind
from caudal.process.pulse import HostRecord
from caudal.process.records import ProcessRecord

_ALIVE = frozenset(("running", "paused", "restarting"))
_NUMBER_LABEL = "com.docker.compose.container-number"
_IMAGE_LABEL = "com.docker.compose.image"  # else compose makes it anew once more
_SUCCESSOR_SECONDS = 120.0
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


_EVENTS = {
    "start": "running",
    "die": "exited",
    "pause": "paused",
    "unpause": "running",
    "destroy": "removed",
}


def happened(event: Json) -> tuple[str, Condition] | None:
    """Return the container of an event with its condition; None if that has not changed."""
    action = str(event.get("Action", ""))
    name = str(event["Actor"]["Attributes"]["name"])
    if action not in _EVENTS:
        return None
    return name, Condition(_EVENTS[action], int(event["timeNano"]) / 1e9)


def with_event(known: Mapping[str, Condition], event: Json) -> dict[str, Condition]:
    """Return the known conditions after an event, which may be older than what is known.

    A list of containers that was made after the event has seen what came of it: the removal of a
    container must not hide the one that has its name since.
    """
    found = happened(event)
    if found is None:
        return dict(known)
    name, condition = found
    is_news = name not in known or known[name].since <= condition.since
    return {**known, name: condition} if is_news else dict(known)


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


def is_being_replaced(listed: Iterable[Json], container: str, now: float) -> bool:
    """Return whether compose is replacing this container, by the engine's list of all (rule 6)."""
    successor = re.compile(rf"/[0-9a-f]{{12}}_{re.escape(container)}")
    return any(
        one["State"] == "created" and now - float(one["Created"]) < _SUCCESSOR_SECONDS
        for one in listed
        if any(successor.fullmatch(name) for name in one["Names"])
    )


def copied(answer: Json, member: str) -> dict[str, Any]:
    """Return the order to create a container for this member like the inspected one."""
    config = _placed(answer)
    number = member.partition(".")[0].rpartition("-")[2]
    labels = dict(config.get("Labels") or {})
    if _NUMBER_LABEL in labels:
        labels[_NUMBER_LABEL] = number
    return {**config, "Cmd": ["member", member], "Labels": labels}


def renewed(answer: Json, before: Json, name: str, after: Json) -> dict[str, Any]:
    """Return the order to create the inspected container anew from the image of this name.

    `before` and `after`: what the engine says of its image and of the new one (rule 5).
    """
    inherited = before["Config"] or {}
    order = _placed(answer)
    own = {key: value for key, value in order.items() if value != inherited.get(key)}
    variables, labels = inherited.get("Env") or [], inherited.get("Labels") or {}
    own["Env"] = [one for one in order.get("Env") or () if one not in variables]
    own["Labels"] = {
        key: value for key, value in (order.get("Labels") or {}).items() if labels.get(key) != value
    }
    if _IMAGE_LABEL in own["Labels"]:
        own["Labels"][_IMAGE_LABEL] = str(after["Id"])
    return {**own, "Image": name}


def _placed(answer: Json) -> dict[str, Any]:
    """Return the settings of a container and of its place, as an order takes them."""
    config = dict(answer["Config"])
    for name in ("Hostname", "Domainname"):  # of the host's network
        config.pop(name, None)
    return {**config, "HostConfig": answer["HostConfig"]}


def seconds_of(text: str) -> float:
    """Return an engine's time as seconds since 1970; 0 for its way to say never."""
    found = datetime.fromisoformat(_FRACTION.sub(r".\1", text)).timestamp() if text else 0.0
    return max(0.0, found)
