"""The members of a cluster: every process with its name, host, address and port."""

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from hashlib import blake2b

from caudal.cluster.settings import PRIVATE, ClusterSettings, Host

_GATEWAYS, _MEDICS, _BROKER = 1, 50, 90


class MemberKind(StrEnum):
    """The kind of a process."""

    BROKER = "broker"
    GATEWAY = "gateway"
    WORKER = "worker"
    MEDIC = "medic"


@dataclass(frozen=True)
class Member:
    """One process. `number` is a medic's id in elections; `port` is 0 if it does not listen."""

    name: str
    kind: MemberKind
    host: str
    address: str
    port: int
    number: int


_METRICS = {MemberKind.MEDIC: 0, MemberKind.WORKER: 10}  # after the first; gateways have their own


def roster(settings: ClusterSettings) -> tuple[Member, ...]:
    """Return all members, in the best order to start them."""
    members = [
        member for name, host in settings.hosts.items() for member in _on_host(settings, name, host)
    ]
    order = list(MemberKind)
    return tuple(sorted(members, key=lambda one: order.index(one.kind)))


def digest_of(members: tuple[Member, ...]) -> str:
    """Return a short digest, by which hosts notice that their cluster.toml differ."""
    return blake2b(repr(members).encode(), digest_size=8).hexdigest()


def medics(members: tuple[Member, ...]) -> tuple[Member, ...]:
    return tuple(one for one in members if one.kind is MemberKind.MEDIC)


def metrics_port(settings: ClusterSettings, member: Member) -> int | None:
    """Return the port at which a member serves metrics; None if it has none of its own."""
    first = settings.hosts[member.host].metrics
    if not first or member.kind not in _METRICS:
        return None
    number = int(member.name.partition(".")[0].rpartition("-")[2])
    return first + _METRICS[member.kind] + number - 1


def _on_host(settings: ClusterSettings, name: str, host: Host) -> Iterator[Member]:
    suffix = f".{name}" if len(settings.hosts) > 1 else ""
    if settings.broker == PRIVATE and host.broker:
        yield Member("broker", MemberKind.BROKER, name, host.address, host.port + _BROKER, 0)
    listening = {
        MemberKind.GATEWAY: (host.gateways, _GATEWAYS),
        MemberKind.MEDIC: (host.medics, _MEDICS),
    }
    for kind, (count, first) in listening.items():
        before = _before(settings, name) if kind is MemberKind.MEDIC else 0
        for number in range(1, count + 1):
            port = host.port + first + number - 1
            identity = before + number
            yield Member(f"{kind}-{number}{suffix}", kind, name, host.address, port, identity)
    for number in range(1, host.workers + 1):
        yield Member(f"worker-{number}{suffix}", MemberKind.WORKER, name, host.address, 0, number)


def _before(settings: ClusterSettings, name: str) -> int:
    """Return the number of medics on earlier hosts, so that ids are unique in the cluster."""
    names = list(settings.hosts)
    return sum(settings.hosts[one].medics for one in names[: names.index(name)])
