"""Restart of a host's processes one by one, for a new version or changed settings.

Rules
1. Medics come first: whatever ends later is then restarted by the new version. Workers come before
   gateways, which may plan what older workers cannot run. Named processes come in the given order.
2. One process at a time. It is asked to end (SIGTERM: a gateway answers what it has begun, a worker
   hands its task back), started by this program, and healthy for the medics before the next one.
3. If one does not become healthy, or dies three times, the rest is left as it is.
4. Nothing is restarted if this program cannot reach store and broker: what it starts has its
   environment, S3 credentials included, and medics pass theirs on. Nor if a file is missing that
   cluster.toml names, or if this program may open too few files: what it starts has its limit.
5. A private broker is restarted only if it is named: Caudal's version is not its version.
"""

import time
from collections.abc import Callable, Sequence

from caudal.cluster import named_files, open_files
from caudal.cluster.doctor import unreachable
from caudal.cluster.folder import Cluster
from caudal.cluster.roster import Member, MemberKind
from caudal.cluster.upkeep import (
    GRACE_SECONDS,
    last_lines,
    launcher_of,
    look,
    nobody_answers,
    take_down_first,
    wait_until_healthy,
)
from caudal.errors import JobError, UsageError
from caudal.formats.medic_status import ProcessStatus, StatusReply
from caudal.medic.launcher import Launcher
from caudal.medic.supervision import State
from caudal.process.privacy import keep_private

_LOOK_SECONDS = 0.25
_ANSWER_SECONDS = 10.0  # for a medic of a busy machine
_DEATHS = 3
_ORDER = (MemberKind.MEDIC, MemberKind.WORKER, MemberKind.GATEWAY)


def chosen(here: Sequence[Member], names: Sequence[str]) -> list[Member]:
    """Return the members to restart: these, as given; without names all but a broker, in order."""
    known = {one.name: one for one in here}
    if unknown := [name for name in names if name not in known]:
        raise UsageError(f"no process {unknown[0]!r} here: {', '.join(sorted(known))}")
    if names:
        return [known[name] for name in dict.fromkeys(names)]
    return [one for kind in _ORDER for one in here if one.kind is kind]


def restart(
    cluster: Cluster,
    members: Sequence[Member],
    told: Callable[[str], None],
    seconds: float,
) -> None:
    """Restart these one by one. Raise JobError about the first that is not healthy in time."""
    if cluster.strayed:
        raise UsageError(f"{cluster.strayed}: {take_down_first(cluster)}")
    if wait_until_healthy(cluster, _ANSWER_SECONDS, ()) is None:
        raise nobody_answers(cluster)
    for one in unreachable(cluster):
        raise UsageError(
            f"nothing is restarted, since {one.what} is not reached from here: {one.found}; give "
            "this command the environment of the processes"
        )
    open_files.require()
    named_files.require(cluster)
    keep_private()
    launcher = launcher_of(cluster)
    for number, member in enumerate(members):
        left = [one.name for one in members[number + 1 :]]
        incarnation = _replaced(launcher, member, seconds)
        if not _is_back(cluster, member.name, incarnation, seconds):
            raise JobError(_words(cluster, member.name, left))
        told(f"{member.name}: incarnation {incarnation} is healthy")


def _replaced(launcher: Launcher, member: Member, seconds: float) -> int:
    """Return the new incarnation. A medic may be starting the process: wait for that."""
    deadline = time.monotonic() + seconds
    while (incarnation := launcher.replace(member, GRACE_SECONDS)) is None:
        if time.monotonic() > deadline:
            raise JobError(f"{member.name} is being started all the time: see its log")
        time.sleep(_LOOK_SECONDS)
    return incarnation


def _is_back(cluster: Cluster, name: str, incarnation: int, seconds: float) -> bool:
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        told = look(cluster)
        if is_healthy(told, name, incarnation):
            return True
        if is_lost(told, name, incarnation):
            return False
        time.sleep(_LOOK_SECONDS)
    return False


def is_healthy(told: StatusReply | None, name: str, incarnation: int) -> bool:
    """Return whether this incarnation, or a newer one, is healthy for the medic that tells."""
    return any(
        one.state == State.HEALTHY and one.incarnation >= incarnation for one in _told(told, name)
    )


def is_lost(told: StatusReply | None, name: str, incarnation: int) -> bool:
    """Return whether it has died so often since this incarnation that it need not be awaited."""
    return any(one.incarnation >= incarnation + _DEATHS for one in _told(told, name))


def _told(told: StatusReply | None, name: str) -> list[ProcessStatus]:
    return [one for one in told.processes if one.name == name] if told else []


def _words(cluster: Cluster, name: str, left: list[str]) -> str:
    lines = "".join(f"\n  {line}" for line in last_lines(cluster, name))
    rest = f"; not restarted: {', '.join(left)}" if left else ""
    return f"{name} does not become healthy after its restart{rest}{lines}"
