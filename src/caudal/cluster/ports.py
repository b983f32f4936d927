"""Checks that members can listen on their ports before they are started."""

import errno
import socket
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from caudal.cluster import rabbit_node
from caudal.cluster.roster import Member, MemberKind, metrics_port
from caudal.cluster.settings import FILE, ClusterSettings


@dataclass(frozen=True)
class ListeningPort:
    """A port that a member needs, and the key of cluster.toml that says which one."""

    member: Member
    protocol: str  # TCP or UDP
    address: str
    port: int
    key: str


@dataclass(frozen=True)
class PortProblem:
    """A port that cannot be used: the reason and the remedy."""

    where: ListeningPort
    reason: str
    remedy: str


def refusals(settings: ClusterSettings, members: Iterable[Member]) -> Iterator[PortProblem]:
    """Yield the ports that are in use, or whose address does not belong to this machine."""
    for member in members:
        for where in listening_ports(settings, member):
            try:
                _probe(where)
            except OSError as error:
                yield PortProblem(where, error.strerror or str(error), _remedy(where, error))


def listening_ports(settings: ClusterSettings, member: Member) -> Iterator[ListeningPort]:
    """Yield a member's ports. Medics receive heartbeats by UDP on the same port number.

    A port mapper that outlived a killed broker serves the next one.
    """
    if member.port:
        yield ListeningPort(member, "TCP", member.address, member.port, "port")
    if member.kind is MemberKind.MEDIC:
        yield ListeningPort(member, "UDP", member.address, member.port, "port")
    if member.kind is MemberKind.BROKER:
        own = [rabbit_node.node_port(member.port)]
        if not rabbit_node.has_port_mapper(member.port):
            own.append(rabbit_node.mapper_port(member.port))
        for each in own:
            yield ListeningPort(member, "TCP", rabbit_node.LOOPBACK, each, "port")
    if (port := metrics_port(settings, member)) is not None:
        address = "0.0.0.0" if settings.metrics_token else "127.0.0.1"
        yield ListeningPort(member, "TCP", address, port, "metrics")


def _probe(where: ListeningPort) -> None:
    kind = socket.SOCK_STREAM if where.protocol == "TCP" else socket.SOCK_DGRAM
    with socket.socket(type=kind) as probe:
        if where.protocol == "TCP":  # a port in TIME_WAIT after an earlier process is usable
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        probe.bind((where.address, where.port))


def _remedy(where: ListeningPort, error: OSError) -> str:
    host = f"[hosts.{where.member.host}]"
    if isinstance(error, socket.gaierror) or error.errno == errno.EADDRNOTAVAIL:
        return f"{where.address} is not local: change `address` of {host} in {FILE}"
    return f"free it, or change `{where.key}` of {host} in {FILE}"
