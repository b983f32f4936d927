"""Task messages. They are only hints that work may be waiting; the store is authoritative."""

from caudal.broker.memory import MemoryBroker
from caudal.broker.port import (
    Broker,
    BrokerError,
    Consumer,
    Delivery,
    LaneFullError,
    OpenedBroker,
)

__all__ = [
    "Broker",
    "BrokerError",
    "Consumer",
    "Delivery",
    "LaneFullError",
    "MemoryBroker",
    "OpenedBroker",
]
