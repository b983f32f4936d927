"""Store and broker of the simulated world: real memory, with faults around."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from random import Random

import msgspec

from caudal.broker.port import BrokerError, Delivery
from caudal.errors import AlreadyExistsError, StoreError
from caudal.formats.keys import Lane, Message, Task
from caudal.jobs.job_index import INDEX
from caudal.store.memory import MemoryStore
from caudal.store.port import PAGE, Page, Store
from tests.simulation.faults import Faults, Value


def kind_of(key: str) -> str:
    """`jobs/J/RUN/mapped/t/000000/001` -> `mapped`: what a crash point is called by."""
    parts = key.split("/")
    if key.startswith(INDEX):
        return f"index of {parts[1]}"
    if parts[0] == "datasets":
        return f"dataset {parts[4]}" if len(parts) > 4 and parts[4] else "datasets"
    if len(parts) < 4 or not parts[3]:
        return parts[2] if len(parts) == 3 and parts[2] else "jobs"
    return parts[3]


@dataclass
class SimulatedStore(Store):
    """A memory store behind faults. `created` is told of every object that came to be."""

    memory: MemoryStore
    faults: Faults
    created: Callable[[str], None] = lambda key: None
    parallel_requests: int = 1

    def create(self, key: str, data: bytes | Path, *, lasting: bool = True) -> None:
        def act() -> None:
            assert isinstance(data, bytes)
            before = self._present(key)
            self.memory.create(key, data, lasting=lasting)
            if before and self._doubts():
                raise AlreadyExistsError(f"{key} is taken (by the same bytes)")
            if not before:
                self.created(key)

        self._effect("create", key, act)

    def _doubts(self) -> bool:
        """Now and then one's own object is reported as taken."""
        faults = self.faults
        return faults.rates.store_error > 0 and faults.scheduler.chance.random() < 0.5

    def _present(self, key: str) -> bool:
        return key in self.memory._objects

    def read(self, key: str, offset: int = 0, length: int | None = None) -> bytes:
        return self._effect("read", key, lambda: self.memory.read(key, offset, length))

    def list(
        self, prefix: str, *, recursive: bool = True, after: str = "", limit: int = PAGE
    ) -> Page:
        def act() -> Page:
            return self.memory.list(prefix, recursive=recursive, after=after, limit=limit)

        return self._effect("list", prefix, act)

    def delete(self, key: str, *, lasting: bool = True) -> None:
        self._effect("delete", key, lambda: self.memory.delete(key, lasting=lasting))

    def replace(self, key: str, data: bytes | Path, *, twin: str | None = None) -> str:
        raise AssertionError("only series replaces")

    def _effect(self, operation: str, key: str, act: Callable[[], Value]) -> Value:
        name = f"{operation} {kind_of(key)}"
        return self.faults.effect(name, key, act, StoreError, "store_error")


@dataclass
class Waiting:
    """A message in a lane."""

    message: Message
    count: int
    visible: float


class SimulatedBroker:
    """Loses, doubles, delays and reorders; forgets everything when wiped."""

    def __init__(self, faults: Faults) -> None:
        self.faults = faults
        self.lanes: dict[Lane, list[Waiting]] = {lane: [] for lane in Lane}
        self.held: dict[int, Delivery] = {}
        self._tags = count()

    def publish(self, messages: Sequence[Message]) -> None:
        about = _About(messages)
        kept = len(messages)
        if self.faults.happens("broker_error"):
            kept = self.faults.scheduler.chance.randrange(len(messages) + 1)

        def act() -> None:
            for message in messages[:kept]:
                self._arrive(message)

        self.faults.effect("publish", about, act, BrokerError, "broker_error")
        if kept < len(messages):
            raise BrokerError("simulated: only some were confirmed")

    def _arrive(self, message: Message) -> None:
        if self.faults.happens("lost_message"):
            return
        for _ in range(2 if self.faults.happens("doubled_message") else 1):
            self.put(message, 0)
        if self.faults.happens("stray_message"):
            self.put(_astray(message, self.faults.scheduler.chance), 0)

    def put(self, message: Message, delivered: int) -> None:
        delay = 0.0
        if self.faults.happens("late_message"):
            delay = self.faults.scheduler.chance.choice((1.0, 20.0, 100.0))
        visible = self.faults.scheduler.now + delay
        self.lanes[message.lane].append(Waiting(message, delivered, visible))

    def pop(self, lane: Lane) -> Delivery | None:
        now = self.faults.scheduler.now
        visible = [one for one in self.lanes[lane] if one.visible <= now]
        if not visible:
            return None
        chosen = self.faults.scheduler.chance.choice(visible)
        self.lanes[lane].remove(chosen)
        delivery = Delivery(next(self._tags), chosen.message, chosen.count + 1)
        self.held[delivery.tag] = delivery
        return delivery

    def give_back(self, delivery: Delivery) -> None:
        if self.held.pop(delivery.tag, None) is not None:
            self.put(delivery.message, delivery.count)

    def depths(self) -> Mapping[Lane, int]:
        def act() -> Mapping[Lane, int]:
            return {lane: len(waiting) for lane, waiting in self.lanes.items()}

        return self.faults.effect("depths", "", act, BrokerError, "broker_error")

    def consume(self) -> "SimulatedConsumer":
        return SimulatedConsumer(self)

    def wipe(self) -> None:
        """The broker lost all its data."""
        self.held.clear()
        for waiting in self.lanes.values():
            waiting.clear()

    def empty(self) -> bool:
        return not self.held and not any(self.lanes.values())


class SimulatedConsumer:
    """A connection; when its process dies or freezes, the broker delivers again what it held."""

    def __init__(self, broker: SimulatedBroker) -> None:
        self._broker = broker
        self._turns = list(Lane)
        self._mine: list[Delivery] = []
        process = broker.faults.scheduler.current.process
        process.at_death.append(self.close)
        process.at_freeze.append(self.close)

    def take(self) -> Delivery | None:
        return self._effect("take", "", self._take)

    def _take(self) -> Delivery | None:
        for _ in Lane:
            self._turns.append(lane := self._turns.pop(0))
            delivery = self._broker.pop(lane)
            if delivery is not None:
                self._mine.append(delivery)
                return delivery
        return None

    def acknowledge(self, delivery: Delivery) -> None:
        self._effect("acknowledge", _about(delivery), lambda: self._drop(delivery))

    def hand_back(self, delivery: Delivery) -> None:
        self._effect("hand back", _about(delivery), lambda: self._broker.give_back(delivery))

    def close(self) -> None:
        for delivery in self._mine:
            self._broker.give_back(delivery)
        self._mine.clear()

    def _drop(self, delivery: Delivery) -> None:
        self._broker.held.pop(delivery.tag, None)

    def _effect(self, operation: str, about: object, act: Callable[[], Value]) -> Value:
        try:
            return self._broker.faults.effect(operation, about, act, BrokerError, "broker_error")
        except BrokerError:
            self.close()  # a new connection: what the broker did not hear about comes again
            raise


def _astray(message: Message, chance: Random) -> Message:
    """A message that nobody of ours would publish: it names what there is not."""
    task = message.task
    wrong = chance.choice(
        (
            Task(task.kind, "nothing", task.number),
            Task(task.kind, task.name, task.number + 700),
            Task("fold", task.name, task.number),
            Task("finish", task.name),
        )
    )
    return msgspec.structs.replace(message, task=wrong)


class _About:
    """Messages, in words when somebody reads the trace."""

    def __init__(self, messages: Sequence[Message]) -> None:
        self._messages = messages

    def __str__(self) -> str:
        return ", ".join(
            f"{one.task.kind} {one.task.name} {one.task.number} of {one.job}"
            for one in self._messages
        )


def _about(delivery: Delivery) -> _About:
    return _About([delivery.message])
