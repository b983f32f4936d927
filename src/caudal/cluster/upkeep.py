"""Operations on a whole cluster: start, look, stop.

Rules
1. `up` starts every process of this host that does not run. So it also serves after a power
   failure, and it is safe to repeat. It checks everything that could prevent a start before the
   first one, so that a refusal leaves nothing behind.
2. `down` stops medics first, so that they do not restart what is being stopped, and the broker
   last.
"""

import asyncio
import contextlib
import os
import shutil
import time
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from caudal.cluster import named_files, open_files, rabbit_node
from caudal.cluster.commands import command
from caudal.cluster.compare_settings import PASSWORD
from caudal.cluster.folder import Cluster
from caudal.cluster.ports import PortProblem, refusals
from caudal.cluster.roster import Member, MemberKind, medics
from caudal.cluster.settings import FILE, PRIVATE
from caudal.cluster.start_note import remove_note, write_note
from caudal.errors import EngineError, UnreachableError, UsageError
from caudal.formats.medic_status import StatusReply
from caudal.medic.docker import DockerLauncher
from caudal.medic.engine import DockerEngine
from caudal.medic.launcher import Launcher, LocalLauncher
from caudal.medic.supervision import State
from caudal.medic.talk import hangs_up
from caudal.medic.visitor import newest_view
from caudal.process.loopback import is_loopback
from caudal.process.privacy import keep_private
from caudal.process.pulse import HostRecord
from caudal.process.wire import Seal, read_secret

GRACE_SECONDS = 15.0
_BROKER_SECONDS = 60.0
_LOOK_SECONDS = 0.25
_LEAVE_SECONDS, _LEAVE_LOOK_SECONDS = 2.0, 0.05  # for a killed process to free its ports
_UNNAMED_SECONDS = 20.0
_FAILING_SECONDS = 40.0  # more than the longest pause between two restarts
_TELL_SECONDS = 15.0  # how often somebody who waits is told for what


def launcher_of(cluster: Cluster) -> Launcher:
    """Return what runs this cluster's members: processes, or containers of the Docker engine."""
    if cluster.settings.launcher == "docker":
        engine = DockerEngine.of(os.environ.get("DOCKER_HOST"))
        return DockerLauncher(cluster, engine, os.environ.get("CAUDAL_IMAGE", ""))
    return LocalLauncher(cluster)


def start_all(cluster: Cluster) -> list[str]:
    """Start every process of this host that does not run. Return the names of those started."""
    refuse_to_split(cluster)
    # Before the records are read: what medics start meanwhile is newer, and is left alone.
    known = _known_elsewhere(cluster)
    missing, launcher = require_startable(cluster), launcher_of(cluster)
    keep_private()
    cluster.lay_out()
    write_note(cluster.run_folder, cluster.settings)
    for member, record in missing.items():
        last = record.incarnation if record else 0
        launcher.start(member, max(last, known.get(member.name, 0)))
    return [member.name for member in missing]


def require_startable(cluster: Cluster) -> dict[Member, HostRecord | None]:
    """Raise UsageError if anything would prevent a start (rule 1). Nothing is changed.

    Return what is to be started, each with its last record.
    """
    refuse_to_split(cluster)
    if cluster.settings.broker == PRIVATE and not rabbit_node.is_installed():
        raise UsageError(
            "the private RabbitMQ that is asked for is not installed: apt-get install "
            'rabbitmq-server, or choose the broker "embedded" (one host only) or the address of a '
            "running one, amqp://user:password@host:5672/"
        )
    open_files.require()
    _require_tokens(cluster)
    named_files.require(cluster)
    launcher = launcher_of(cluster)
    records = {member: launcher.record(member.name) for member in cluster.here}
    missing = {one: record for one, record in records.items() if record is None or record.gone}
    _require_ports(cluster, missing)
    return missing


def _known_elsewhere(cluster: Cluster) -> dict[str, int]:
    """Return the incarnations that medics of other hosts know. This host may have lost its records:
    then its processes must go on from there, or these medics never hear them."""
    if len(cluster.settings.hosts) == 1 or not cluster.secret.exists():
        return {}
    told = look(cluster)
    return {one.name: one.incarnation for one in told.processes} if told else {}


def lay_out_containers(cluster: Cluster) -> None:
    """Create what containers need before their first start, as `start_all` does for processes."""
    refuse_to_split(cluster)
    cluster.lay_out()
    write_note(cluster.run_folder, cluster.settings)


def note_first_start(cluster: Cluster) -> None:
    """Write the note if nothing runs: an engine starts containers after a boot without `init`."""
    if not cluster.strayed and not cluster.is_running:
        write_note(cluster.run_folder, cluster.settings)


def refuse_to_split(cluster: Cluster) -> None:
    """Raise UsageError if what starts now would have other settings, or another secret, than what
    runs."""
    if cluster.strayed:
        raise UsageError(f"{cluster.strayed}: {take_down_first(cluster)}")
    if cluster.is_running and not cluster.secret.exists():
        how = restore_secret(cluster)
        raise UsageError(f"{cluster.secret} is missing, but running processes use it: {how}")
    if cluster.is_running and (words := other_secret(cluster, cluster.here)):
        raise UsageError(words)


def take_down_first(cluster: Cluster) -> str:
    """Return the remedy for a file that differs from what the running processes use."""
    return f"stop the cluster first (`{command(cluster, 'down')}`), or undo the change"


def _require_tokens(cluster: Cluster) -> None:
    """Raise UsageError if a gateway would need tokens, before anything is started."""
    if cluster.settings.tokens:
        return
    for one in cluster.here:
        if one.kind is MemberKind.GATEWAY and not is_loopback(one.address):
            raise UsageError(
                f"{one.address} can be reached from other machines: create a token with "
                f"`{command(cluster, 'token new NAME')}` and write "
                f'tokens = "tokens" into {cluster.folder / FILE}'
            )


def _require_ports(cluster: Cluster, missing: Mapping[Member, HostRecord | None]) -> None:
    is_new = not (cluster.folder / FILE).exists()
    for one in _refused_ports(cluster, missing):
        where = f"{one.where.protocol} port {one.where.port} of {one.where.address}"
        how = "free it, or give another --port" if is_new else one.remedy
        what = f"{where} cannot be used for {one.where.member.name}"
        raise UsageError(f"{what} ({one.reason}): {how}")


def _refused_ports(
    cluster: Cluster, missing: Mapping[Member, HostRecord | None]
) -> list[PortProblem]:
    """Return the ports that cannot be used.

    A process that was killed just now is gone a moment before its last thread, and so its ports
    are: what has run before is given the time to leave.
    """
    deadline = time.monotonic() + _LEAVE_SECONDS
    while found := list(refusals(cluster.settings, missing)):
        is_leaving = all(missing[one.where.member] is not None for one in found)
        if not is_leaving or time.monotonic() > deadline:
            break
        time.sleep(_LEAVE_LOOK_SECONDS)
    return found


def stop_all(cluster: Cluster) -> list[str]:
    """Stop every process of this host. Return the names of those that ran."""
    launcher = launcher_of(cluster)
    running = [name for name in launcher.names() if (one := launcher.record(name)) and not one.gone]
    kinds = {one.name: one.kind for one in cluster.members}
    with ThreadPoolExecutor(32) as pool:
        for wave in (
            (MemberKind.MEDIC,),
            (MemberKind.GATEWAY, MemberKind.WORKER),
            (MemberKind.BROKER,),
        ):
            names = [
                name for name in launcher.names() if kinds.get(name, MemberKind.WORKER) in wave
            ]
            seconds = _BROKER_SECONDS if MemberKind.BROKER in wave else GRACE_SECONDS
            list(pool.map(lambda name, most=seconds: launcher.stop(name, most), names))
    for member in cluster.here:
        if member.kind is MemberKind.BROKER:
            rabbit_node.stop_port_mapper(member.port)
    remove_note(cluster.run_folder)
    return running


def purge(cluster: Cluster) -> None:
    """Remove this host's data: store (if it is a folder of the cluster), broker, logs, records.

    What people wrote stays, and the audit log: who could delete it could hide what was done.
    """
    store = Path(cluster.store)
    if "://" not in cluster.store and store.is_relative_to(cluster.folder):
        shutil.rmtree(store, ignore_errors=True)
    for folder in (cluster.node, cluster.logs, cluster.folder / "run"):
        shutil.rmtree(folder, ignore_errors=True)
    for name in ("secret", PASSWORD):
        (cluster.folder / name).unlink(missing_ok=True)


def look(cluster: Cluster) -> StatusReply | None:
    """Return the leader's view, or that of any medic that answers; None if none does."""
    return asyncio.run(_look(cluster))


def other_secret(cluster: Cluster, members: Iterable[Member]) -> str:
    """Return the words for medics among these that have another secret; "" if none has."""
    if not cluster.secret.exists():
        return ""
    places = [(one.address, one.port) for one in medics(tuple(members))]
    seal = _seal(cluster)

    async def refused() -> list[bool]:
        return await asyncio.gather(*(hangs_up(*place, seal) for place in places))

    if not any(asyncio.run(refused())):
        return ""
    return (
        f"medics run that have another secret than {cluster.secret}: restore the one that they "
        f"were started with, or stop them (`{command(cluster, 'down')}`) and start anew"
    )


def nobody_answers(cluster: Cluster) -> UnreachableError:
    """Return the error for a cluster in which no medic answers."""
    if words := other_secret(cluster, cluster.members):
        return UnreachableError(words)
    return UnreachableError(
        f"no medic of {cluster.folder} answers; it may be down: `{command(cluster, 'up')}` starts "
        "what does not run"
    )


async def _look(cluster: Cluster) -> StatusReply | None:
    if not cluster.secret.exists() and not cluster.is_running:
        return None
    places = [(one.address, one.port) for one in medics(cluster.members)]
    return await newest_view(places, _seal(cluster))


def _seal(cluster: Cluster) -> Seal:
    try:
        return Seal(read_secret(cluster.secret))
    except UsageError as error:
        raise UsageError(f"{error}; {restore_secret(cluster)}") from error


def restore_secret(cluster: Cluster) -> str:
    """Return the remedy for a secret that cannot be read while processes use it."""
    return f"restore it, or stop the processes with `{command(cluster, 'down')}`"


def wait_until_healthy(
    cluster: Cluster,
    seconds: float,
    names: Iterable[str],
    tell: Callable[[str], None] = lambda line: None,
) -> StatusReply | None:
    """Wait until all these are healthy or the time is over. Return the last view. Now and then
    `tell` gets a line that says what is waited for.

    A leader whose cluster.toml does not name one of them would never start it: then the wait is
    short, long enough for the leader to read a changed file. It is short, too, if one of them is
    failing and does not recover.
    """
    wanted, began = set(names), time.monotonic()
    named = able = began  # when the view last had all of them, and none that was failing
    due = began + _TELL_SECONDS
    while True:
        told, now = look(cluster), time.monotonic()
        if told and not unhealthy(told, wanted):
            return told
        if told is None or wanted <= {one.name for one in told.processes}:
            named = now
        if told is None or not _failing(told, wanted):
            able = now
        is_hopeless = now - named > _UNNAMED_SECONDS or now - able > _FAILING_SECONDS
        if now - began > seconds or is_hopeless:
            return told
        if now >= due:
            tell(_waited_for(cluster, told, wanted))
            due = now + _TELL_SECONDS
        time.sleep(_LOOK_SECONDS)


def _waited_for(cluster: Cluster, told: StatusReply | None, names: Iterable[str]) -> str:
    if told is None:
        return (
            "still no medic answers; if they are frozen, "
            f"`{command(cluster, 'down')}` and `{command(cluster, 'up')}` start them anew"
        )
    ill = ", ".join(unhealthy(told, names))
    return f"still waiting for {ill}: `{command(cluster, 'logs NAME')}` shows what they do"


def _failing(told: StatusReply, names: Iterable[str]) -> list[str]:
    states = {one.name: one.state for one in told.processes}
    return [name for name in names if states.get(name) == State.FAILING]


def unhealthy(told: StatusReply, names: Iterable[str]) -> list[str]:
    """Return the names that this view does not call healthy."""
    states = {one.name: one.state for one in told.processes}
    return sorted(name for name in names if states.get(name) != State.HEALTHY)


def last_lines(cluster: Cluster, name: str, count: int = 5) -> list[str]:
    """Return the newest log lines of a process, which may explain why it died."""
    with contextlib.suppress(EngineError):
        return list(launcher_of(cluster).log_lines(name, count))
    return []
