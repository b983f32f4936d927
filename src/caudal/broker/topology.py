"""Queues and their properties: decisions without I/O.

The name of a queue is `PREFIX.VERSION.LANE`, e.g. `caudal.1.map-0`. The version is that of the
format of task messages, which is also raised with the format of jobs or plans. So workers of two
versions can share a broker, and each takes only the tasks that it can run.
"""

import re
from collections.abc import Mapping

from caudal.formats.keys import Lane
from caudal.formats.message import FORMAT

PREFIX = "caudal"
VERSION = FORMAT
MAP_LANES = (Lane.FIRST, Lane.EARLY, Lane.MIDDLE, Lane.LATE, Lane.SLOW)

# Twice the limit of the gateways (jobs/ports.py). Gateways decide by depths that are slightly old,
# and workers must still be able to publish merge tasks when gateways already refuse jobs.
LANE_LIMIT = 20_000

LAST_SECONDS = 2.0  # idle time before the last lanes are used: a job has gaps between its tasks

Argument = str | int


def queue_name(prefix: str, lane: Lane) -> str:
    return f"{prefix}.{VERSION}.{lane}"


def queue_arguments(lane: Lane, server: str, lane_limit: int) -> dict[str, Argument]:
    """Return the arguments of a lane's quorum queue.

    Lanes of map tasks are bounded and refuse messages when full. The others always stay small.

    RabbitMQ 4 drops a message after 20 deliveries unless the limit is -1. Versions before 4 drop
    nothing, and 3.10 takes -1 for "drop at the first redelivery". So -1 is only set from version 4
    on.
    """
    arguments: dict[str, Argument] = {"x-queue-type": "quorum"}
    if lane in MAP_LANES:
        arguments |= {"x-max-length": lane_limit, "x-overflow": "reject-publish"}
    if major(server) >= 4:
        arguments["x-delivery-limit"] = -1
    return arguments


def earlier_deliveries(headers: Mapping[str, object]) -> int:
    """Return how often a message was delivered before.

    From 4.3 on, a message that was handed back, or lost with its consumer, may be counted only in
    the second header.
    """
    counts = (headers.get(name) for name in ("x-delivery-count", "x-acquired-count"))
    return max((count for count in counts if isinstance(count, int)), default=0)


def major(server: str) -> int:
    """Return the first number of a server's version; 0 if it has none."""
    found = re.match(r"\d+", server)
    return int(found[0]) if found else 0
