"""Strikes that a person orders over HTTP: a medic kills or freezes a process of its own host.

Rules
1. Only where cluster.toml says `chaos = true`; the medic reads that itself.
2. Only members of this host, never the medic that executes the order.
3. Only the incarnation that the order names. So an order that comes twice hits once. While it is
   checked and hit, no other incarnation can be started: starts use the same lock.
"""

from caudal.cluster.folder import Cluster
from caudal.cluster.settings import FILE
from caudal.errors import EngineError
from caudal.formats.medic_status import FaultKind
from caudal.medic.launcher import Launcher, locked
from caudal.medic.talk import StrikeOrder


def refusal_of_strike(cluster: Cluster, launcher: Launcher, order: StrikeOrder, medic: str) -> str:
    """Hit the process or the container. Return why it was not hit, empty if it was."""
    if not cluster.settings.chaos:
        return f"this cluster does not allow it: write chaos = true into {FILE}"
    if order.name == medic or order.name not in {one.name for one in cluster.here}:
        return f"{medic} cannot hit {order.name}"
    with locked(cluster.run_folder / f"{order.name}.starting") as mine:
        if not mine:
            return f"{order.name} is being started"
        try:
            return _hit(launcher, order)
        except EngineError as error:
            return str(error)


def _hit(launcher: Launcher, order: StrikeOrder) -> str:
    record = launcher.record(order.name)
    if record is None or record.incarnation != order.incarnation:
        return f"incarnation {order.incarnation} of {order.name} is over"
    hit = launcher.pause if order.fault is FaultKind.FREEZE else launcher.kill
    if record.gone or record.stopped or not hit(order.name):
        return f"{order.name} does not run"
    return ""
