"""A broker in memory, for tests, the simulation and runs in one process.

It simulates no faults: wrap it for that. It keeps an order that a real broker need not keep.
"""

from collections import deque
from collections.abc import Mapping, Sequence
from itertools import count
from threading import Lock

from caudal.broker.port import Delivery
from caudal.formats.keys import Lane, Message


class MemoryBroker:
    """A broker with one deque per lane."""

    def __init__(self) -> None:
        self._lanes: dict[Lane, deque[tuple[Message, int]]] = {lane: deque() for lane in Lane}
        self._lock = Lock()
        self._consumers: list[MemoryConsumer] = []
        self.connected = True
        self.dropped = 0

    def publish(self, messages: Sequence[Message]) -> None:
        """See the port."""
        with self._lock:
            for message in messages:
                self._lanes[message.lane].append((message, 0))

    def depths(self) -> Mapping[Lane, int]:
        """See the port."""
        with self._lock:
            return {lane: len(waiting) for lane, waiting in self._lanes.items()}

    def consume(
        self, lanes: Sequence[Lane] = tuple(Lane), last: Sequence[Lane] = ()
    ) -> "MemoryConsumer":
        """See the port."""
        consumer = MemoryConsumer(self, lanes, last)
        self._consumers.append(consumer)
        return consumer

    def close(self) -> None:
        """See the port."""
        for consumer in self._consumers:
            consumer.close()

    def wipe(self) -> None:
        """Remove all waiting messages."""
        with self._lock:
            for waiting in self._lanes.values():
                waiting.clear()

    def pop(self, lane: Lane) -> tuple[Message, int] | None:
        with self._lock:
            return self._lanes[lane].popleft() if self._lanes[lane] else None

    def put_back(self, message: Message, count: int) -> None:
        with self._lock:
            self._lanes[message.lane].append((message, count))


class MemoryConsumer:
    """A consumer that takes from its lanes in turn."""

    def __init__(
        self, broker: MemoryBroker, lanes: Sequence[Lane], last: Sequence[Lane] = ()
    ) -> None:
        self._broker = broker
        self._turns = list(lanes)
        self._last = list(last)
        self._tags = count()
        self._held: dict[int, Delivery] = {}

    def take(self) -> Delivery | None:
        """See the port."""
        for lane in (*self._turns, *self._last):
            found = self._broker.pop(lane)
            if lane in self._turns:
                self._turns.append(self._turns.pop(0))
            if found is not None:
                delivery = Delivery(next(self._tags), found[0], found[1] + 1)
                self._held[delivery.tag] = delivery
                return delivery
        return None

    def acknowledge(self, delivery: Delivery) -> None:
        """See the port."""
        self._held.pop(delivery.tag, None)

    def hand_back(self, delivery: Delivery) -> None:
        """See the port."""
        if self._held.pop(delivery.tag, None) is not None:
            self._broker.put_back(delivery.message, delivery.count)

    def close(self) -> None:
        """See the port."""
        for delivery in list(self._held.values()):
            self.hand_back(delivery)
