"""The medics as a gateway sees them: a port, because rooms above know how to reach them."""

from typing import Protocol

from caudal.formats.medic_status import FaultKind, StatusReply


class ClusterView(Protocol):
    """What a gateway asks the medics. Any thread may call it."""

    name: str  # of this gateway

    def look(self) -> StatusReply | None:
        """Return the newest view of all processes; None if no medic answers."""

    def strike(self, name: str, incarnation: int, fault: FaultKind) -> str:
        """Have a process hit; return why not, empty if it was hit."""


class NoMedics:
    """The view of a gateway that was started without medics."""

    def __init__(self, name: str = "gateway") -> None:
        self.name = name

    def look(self) -> StatusReply | None:
        """See ClusterView."""
        return None

    def strike(self, name: str, incarnation: int, fault: FaultKind) -> str:
        """See ClusterView."""
        del name, incarnation, fault
        return "no medic watches this gateway"
