"""Strikes that a person orders over HTTP: a medic kills or freezes a process of its own host.

Rules
1. Only where cluster.toml says `chaos = true`; the medic reads that itself.
2. Only members of this host, never the medic that executes the order.
3. Only the incarnation that the order names. So an order that comes twice hits once.
"""

import signal

from caudal.cluster.folder import Cluster
from caudal.cluster.settings import FILE
from caudal.formats.medic_status import FaultKind
from caudal.medic.talk import StrikeOrder
from caudal.process.records import is_frozen, read_record, send_signal

_SIGNALS = {FaultKind.KILL: signal.SIGKILL, FaultKind.FREEZE: signal.SIGSTOP}


def refusal_of_strike(cluster: Cluster, order: StrikeOrder, medic: str) -> str:
    """Hit the process. Return why it was not hit, empty if it was."""
    if not cluster.settings.chaos:
        return f"this cluster does not allow it: write chaos = true into {FILE}"
    if cluster.settings.launcher != "local":
        return "strikes need the local launcher"
    if order.name == medic or order.name not in {one.name for one in cluster.here}:
        return f"{medic} cannot hit {order.name}"
    record = read_record(cluster.run_folder, order.name)
    if record is None or record.incarnation != order.incarnation:
        return f"incarnation {order.incarnation} of {order.name} is over"
    if is_frozen(record) or not send_signal(record, _SIGNALS[order.fault]):
        return f"{order.name} does not run"
    return ""
