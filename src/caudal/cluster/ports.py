"""Can the members that are to be started listen where they must?"""

import errno
import socket
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from caudal.cluster.roster import Member
from caudal.cluster.settings import FILE


@dataclass(frozen=True)
class PortProblem:
    """A member that could not listen: why, and what helps."""

    member: Member
    reason: str
    remedy: str


def refusals(members: Iterable[Member]) -> Iterator[PortProblem]:
    """Those whose port is taken, or whose address is none of this machine."""
    for member in members:
        if not member.port:
            continue
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind((member.address, member.port))
            except OSError as error:
                yield PortProblem(member, error.strerror or str(error), _remedy(member, error))


def _remedy(member: Member, error: OSError) -> str:
    if isinstance(error, socket.gaierror) or error.errno == errno.EADDRNOTAVAIL:
        return f"{member.address} is not here: change `address` of [hosts.{member.host}] in {FILE}"
    return f"free it, or change `port` in {FILE}"
