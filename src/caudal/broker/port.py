"""The broker port: everything Caudal asks of a message broker.

Rules
1. `publish` returns when the broker has confirmed every message. If it raises BrokerError, nothing
   is known: some, all or none may have arrived, and the caller may publish again.
2. Delivery is at least once, in any order. A message may come twice, and a broker may lose
   everything it holds: the reconciler publishes again what the store says is missing.
3. What was taken and neither acknowledged nor handed back is delivered again when its consumer is
   gone. Acknowledging something that was delivered again in the meantime does no harm.
4. A consumer takes from all lanes in turn, so that small jobs pass big ones.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from caudal.errors import BrokerError as BrokerError
from caudal.formats.keys import Lane, Message


class LaneFullError(BrokerError):
    """A lane holds as much as it may: try again when some of it is done."""


@dataclass(frozen=True)
class Delivery:
    """A message in the hands of one consumer."""

    tag: int  # the consumer's name for it
    message: Message
    count: int = 1  # how often it was delivered: a suspicion, since kills raise it too


class Consumer(Protocol):
    """One taker of messages."""

    def take(self) -> Delivery | None:
        """The next message, or None if there is none now; it may wait for one for a moment."""

    def acknowledge(self, delivery: Delivery) -> None:
        """It is done with: never deliver it again."""

    def hand_back(self, delivery: Delivery) -> None:
        """It could not be done now: deliver it again, to anyone."""

    def close(self) -> None:
        """What is still held is delivered again."""


class Broker(Protocol):
    """Queues of task messages, one per lane."""

    def publish(self, messages: Sequence[Message]) -> None:
        """Put every message into its lane, and wait for the confirmations."""

    def depths(self) -> Mapping[Lane, int]:
        """How many messages wait in each lane, about."""

    def consume(self) -> Consumer:
        """A new consumer."""


class OpenedBroker(Broker, Protocol):
    """A broker as a process opens it for itself, and closes it at its end."""

    @property
    def dropped(self) -> int:
        """How many messages were removed because they could not be read."""

    @property
    def connected(self) -> bool:
        """Whether it could be reached when that was last tried."""

    def consume(self, lanes: Sequence[Lane] = ..., last: Sequence[Lane] = ...) -> Consumer:
        """A new consumer, of these lanes only; of the `last` ones if the others stay empty."""

    def close(self) -> None:
        """End every connection: what consumers still hold is delivered again."""
