"""Queues and their properties: decisions without I/O.

A queue's name is `PREFIX.VERSION.LANE`, e.g. `caudal.1.map-0`. The version is the format of task
messages, which is raised with the format of jobs or plans too: so workers of two versions share a
broker, and each takes only what it can run.
"""

import re
from collections.abc import Mapping

from caudal.formats.keys import Lane
from caudal.formats.message import FORMAT

PREFIX = "caudal"
VERSION = FORMAT
MAP_LANES = (Lane.FIRST, Lane.EARLY, Lane.MIDDLE, Lane.LATE, Lane.SLOW)

# Twice what gateways let in (jobs/ports.py): they look at depths of a moment ago, and merge tasks
# that workers publish must still find room when gateways already refuse.
LANE_LIMIT = 20_000

LAST_SECONDS = 2.0  # a job has gaps between its tasks: only then are the last lanes looked at

Argument = str | int


def queue_name(prefix: str, lane: Lane) -> str:
    return f"{prefix}.{VERSION}.{lane}"


def queue_arguments(lane: Lane, server: str, lane_limit: int) -> dict[str, Argument]:
    """Quorum queues; lanes of map tasks are bounded and refuse, the others are small by nature.

    RabbitMQ 4 drops a message after 20 deliveries unless told otherwise, by -1. Before 4 nothing
    is dropped, and 3.10 takes -1 for "drop at the first redelivery": so it is never said there.
    """
    arguments: dict[str, Argument] = {"x-queue-type": "quorum"}
    if lane in MAP_LANES:
        arguments |= {"x-max-length": lane_limit, "x-overflow": "reject-publish"}
    if major(server) >= 4:
        arguments["x-delivery-limit"] = -1
    return arguments


def earlier_deliveries(headers: Mapping[str, object]) -> int:
    """How often a message was delivered before. From 4.3 on what was handed back or lost with its
    consumer may show in the second count only."""
    counts = (headers.get(name) for name in ("x-delivery-count", "x-acquired-count"))
    return max((count for count in counts if isinstance(count, int)), default=0)


def major(server: str) -> int:
    """The first number of a server's version; 0 if it does not say."""
    found = re.match(r"\d+", server)
    return int(found[0]) if found else 0
