"""Checks that members can listen on their ports before they are started."""

import errno
import socket
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from caudal.cluster.roster import Member, MemberKind
from caudal.cluster.settings import FILE


@dataclass(frozen=True)
class PortProblem:
    """A member that cannot listen: the reason and the remedy."""

    member: Member
    protocol: str  # TCP or UDP
    reason: str
    remedy: str


def refusals(members: Iterable[Member]) -> Iterator[PortProblem]:
    """Yield the members whose port is in use, or whose address does not belong to this machine."""
    for member in members:
        for protocol in _protocols(member):
            try:
                _probe(member, protocol)
            except OSError as error:
                reason = error.strerror or str(error)
                yield PortProblem(member, protocol, reason, _remedy(member, error))


def _protocols(member: Member) -> tuple[str, ...]:
    """Return a member's protocols. Medics receive heartbeats by UDP on the same port number."""
    if not member.port:
        return ()
    return ("TCP", "UDP") if member.kind is MemberKind.MEDIC else ("TCP",)


def _probe(member: Member, protocol: str) -> None:
    kind = socket.SOCK_STREAM if protocol == "TCP" else socket.SOCK_DGRAM
    with socket.socket(type=kind) as probe:
        if protocol == "TCP":  # a port in TIME_WAIT after an earlier process is usable
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        probe.bind((member.address, member.port))


def _remedy(member: Member, error: OSError) -> str:
    if isinstance(error, socket.gaierror) or error.errno == errno.EADDRNOTAVAIL:
        return f"{member.address} is not local: change `address` of [hosts.{member.host}] in {FILE}"
    return f"free it, or change `port` in {FILE}"
