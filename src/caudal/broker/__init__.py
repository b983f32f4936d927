"""Task messages: hints that work may be waiting. The store is the truth."""

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
