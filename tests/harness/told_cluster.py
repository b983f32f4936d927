"""A cluster of one worker and one medic as medics tell it, on a clock that is moved by hand."""

from dataclasses import dataclass, field

from caudal.formats.medic_status import FaultKind, ProcessStatus, StatusReply
from tests.harness.gateway_place import Place


@dataclass
class MovedClock:
    """Time passes when it is told to."""

    at: float = 1_000_000.0

    def now(self) -> float:
        return self.at

    def elapsed(self) -> float:
        return self.at

    def sleep(self, seconds: float) -> None:
        self.at += seconds

    def pass_by(self, seconds: float) -> None:
        self.at += seconds


@dataclass
class ToldCluster:
    """See gateway/cluster_view.py."""

    place: Place
    name: str = "gateway-1"
    progress: int = 0
    clock: MovedClock = field(default_factory=MovedClock)

    def look(self) -> StatusReply | None:
        processes = [self._process("worker-1", "worker"), self._process("medic-1", "medic")]
        return StatusReply("medic-1", "leading", 1, "medic-1", processes)

    def strike(self, name: str, incarnation: int, fault: FaultKind) -> str:
        del name, incarnation, fault
        return "not here"

    def _process(self, name: str, kind: str) -> ProcessStatus:
        return ProcessStatus(
            name, kind, "local", "healthy", 1, 0, 0.1, self.progress, 1, 1, "", "127.0.0.1:1"
        )


class ToldGateways(ToldCluster):
    """A cluster of gateways at some addresses."""

    addresses = ("127.0.0.1:8421", "127.0.0.1:8422", "box-2.lan:8421", "0.0.0.0:1", "x y':2")

    def look(self) -> StatusReply:
        processes = [
            ProcessStatus(
                f"gateway-{n}", "gateway", "h", "healthy", 1, 0, 0.1, 0, 1, 1, "", address
            )
            for n, address in enumerate(self.addresses)
        ]
        return StatusReply("medic-1", "leading", 1, "medic-1", processes)

    def strike(self, name: str, incarnation: int, fault: FaultKind) -> str:
        raise AssertionError
