"""A little cluster in one process: workers on threads, a broker in memory, a bell that wakes them.

Whoever waits does so for a ring of the bell: something was published, or a task was done. So no
stage of a short run waits for the end of a nap.
"""

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from caudal.broker import MemoryBroker
from caudal.broker.port import Consumer, Delivery
from caudal.errors import CaudalError, StoreError
from caudal.formats.job import Job, Request
from caudal.formats.keys import Lane, Message, Task
from caudal.jobs import execute
from caudal.jobs.execute import TurnResult
from caudal.jobs.interfaces import Inputs, MayGoOn, Planned, go_on
from caudal.jobs.ports import Ports
from caudal.worker.compute import LocalCompute

_MAP_LANES = (Lane.FIRST, Lane.EARLY, Lane.MIDDLE, Lane.LATE)
_MOST_HANDED_BACK = (
    20  # in a row, by one worker; then something is wrong that waiting does not mend
)


class Wakeup:
    """Rings may come before anybody waits: what was missed counts as heard at the next wait."""

    def __init__(self) -> None:
        self._rings = 0
        self._rung = threading.Condition()
        self._heard = threading.local()

    def wake(self) -> None:
        with self._rung:
            self._rings += 1
            self._rung.notify_all()

    def wait(self, seconds: float) -> None:
        """Until it rings, or rang since this thread last waited; at most so long."""
        with self._rung:
            if getattr(self._heard, "rings", 0) == self._rings:
                self._rung.wait(seconds)
            self._heard.rings = self._rings


@dataclass(frozen=True)
class WakeupClock:
    """The machine's clock; who sleeps wakes up when the bell rings."""

    wakeup: Wakeup

    def now(self) -> float:
        return time.time()

    def elapsed(self) -> float:
        return time.monotonic()

    def sleep(self, seconds: float) -> None:
        self.wakeup.wait(seconds)


@dataclass(frozen=True)
class WakeupBroker:
    """A broker in memory that rings."""

    wakeup: Wakeup
    memory: MemoryBroker = field(default_factory=MemoryBroker)

    def publish(self, messages: Sequence[Message]) -> None:
        self.memory.publish(messages)
        self.wakeup.wake()

    def depths(self) -> Mapping[Lane, int]:
        return self.memory.depths()

    def consume(self) -> Consumer:
        return _WakeupConsumer(self.memory.consume(), self.wakeup)

    def waiting_maps(self) -> int:
        depths = self.depths()
        return sum(depths[lane] for lane in _MAP_LANES)


@dataclass(frozen=True)
class _WakeupConsumer:
    held: Consumer
    wakeup: Wakeup

    def take(self) -> Delivery | None:
        return self.held.take()

    def acknowledge(self, delivery: Delivery) -> None:
        self.held.acknowledge(delivery)
        self.wakeup.wake()

    def hand_back(self, delivery: Delivery) -> None:
        self.held.hand_back(delivery)

    def close(self) -> None:
        self.held.close()


@dataclass
class _Compute:
    """Remembers what was raised, because an outcome keeps its text only."""

    real: LocalCompute
    raised: list[CaudalError]

    def plan(self, request: Request, moment: float) -> Planned:
        return self.real.plan(request, moment)

    def run(
        self, job: Job, task: Task, inputs: Inputs, deliveries: int, beat: MayGoOn = go_on
    ) -> bytes:
        try:
            return self.real.run(job, task, inputs, deliveries, beat)
        except CaudalError as error:
            self.raised.append(error)
            raise


class WorkerThreads:
    """Some worker threads, each with a compute of its own; stopped at the end of the block."""

    def __init__(
        self, count: int, make_compute: Callable[[], LocalCompute], ports: Callable[..., Ports]
    ) -> None:
        self.raised: list[CaudalError] = []  # by tasks
        self.bugs: list[BaseException] = []  # that ended a thread
        self._stop = threading.Event()
        self._computes = [make_compute() for _ in range(count)]
        self._ports = [ports(_Compute(compute, self.raised)) for compute in self._computes]
        self._threads = [
            threading.Thread(target=self._work, args=(one,), name=f"caudal-worker-{number}")
            for number, one in enumerate(self._ports)
        ]

    def __enter__(self) -> "WorkerThreads":
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        self._stop.set()
        if kind is not None:  # what they still do is in vain
            for compute in self._computes:
                compute.interrupt()
        for one in self._ports:
            if isinstance(one.broker, WakeupBroker):
                one.broker.wakeup.wake()
        for thread in self._threads:
            thread.join()
        for compute in self._computes:
            compute.close()

    def _work(self, ports: Ports) -> None:
        consumer, handed_back = ports.broker.consume(), 0
        try:
            while not self._stop.is_set():
                ending = execute.take_turn(ports, consumer)
                handed_back = handed_back + 1 if ending is TurnResult.HANDED_BACK else 0
                if handed_back > _MOST_HANDED_BACK:
                    raise self._hopeless()
        except BaseException as error:  # whatever it is, the run must not wait for this thread
            self.bugs.append(error)
        finally:
            consumer.close()

    def _hopeless(self) -> CaudalError:
        reason = str(self.raised[-1]) if self.raised else "this machine cannot do them now"
        return StoreError(f"tasks were handed back again and again: {reason}")
