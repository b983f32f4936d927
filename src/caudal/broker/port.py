"""The broker port: everything Caudal needs from a message broker.

Rules
1. `publish` returns when the broker has confirmed every message. If it raises BrokerError, the
   outcome is unknown: some, all or none may have arrived, and the caller may publish again.
2. Delivery is at least once, in any order. A message may be delivered twice, and a broker may lose
   all its messages: the reconciler publishes again what is missing according to the store.
3. A message that was taken but neither acknowledged nor handed back is delivered again when its
   consumer is gone. It is harmless to acknowledge a message that was delivered again meanwhile.
4. A consumer takes from all lanes in turn, so that small jobs overtake big ones.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from caudal.errors import BrokerError as BrokerError
from caudal.formats.keys import Lane, Message


class LaneFullError(BrokerError):
    """A lane is full. Try again when some of its messages are done."""


@dataclass(frozen=True)
class Delivery:
    """A message that one consumer holds."""

    tag: int  # identifies the delivery within its consumer
    message: Message
    count: int = 1  # number of deliveries: only a hint of a bad task, since kills raise it too


class Consumer(Protocol):
    """A consumer of messages."""

    def take(self) -> Delivery | None:
        """Return the next message, or None if there is none now. May wait for one for a moment."""

    def acknowledge(self, delivery: Delivery) -> None:
        """Mark a message as done: never deliver it again."""

    def hand_back(self, delivery: Delivery) -> None:
        """Return a message that could not be done now: deliver it again, to any consumer."""

    def close(self) -> None:
        """Close the consumer. Messages that it still holds are delivered again."""


class Broker(Protocol):
    """Queues of task messages, one per lane."""

    def publish(self, messages: Sequence[Message]) -> None:
        """Put every message into its lane, and wait for the confirmations."""

    def depths(self) -> Mapping[Lane, int]:
        """Return the approximate number of messages that wait in each lane."""

    def consume(self) -> Consumer:
        """Return a new consumer."""


class OpenedBroker(Broker, Protocol):
    """A broker that a process opens for itself and closes when it ends."""

    @property
    def dropped(self) -> int:
        """The number of messages that were removed because they could not be decoded."""

    @property
    def connected(self) -> bool:
        """Whether the last attempt to reach the broker succeeded."""

    def consume(self, lanes: Sequence[Lane] = ..., last: Sequence[Lane] = ...) -> Consumer:
        """Return a new consumer of these lanes.

        It takes from the lanes `last` only if the others stay empty.
        """

    def close(self) -> None:
        """Close every connection. Messages that consumers still hold are delivered again."""
