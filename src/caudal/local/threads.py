"""A cluster in one process: worker threads, a broker in memory, and a wakeup for waiting threads.

A waiting thread is woken when a task is published or has ended, so that short runs lose no time.
"""

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from caudal.broker import MemoryBroker
from caudal.broker.port import Consumer, Delivery
from caudal.errors import CaudalError, StoreError
from caudal.formats import outputs
from caudal.formats.job import Job, Request
from caudal.formats.keys import REJECTS, Lane, Message, Task
from caudal.jobs import execute
from caudal.jobs.execute import TurnResult
from caudal.jobs.interfaces import Compute, Inputs, MayGoOn, Planned, go_on
from caudal.jobs.ports import Ports
from caudal.worker.compute import LocalCompute

_MAP_LANES = (Lane.FIRST, Lane.EARLY, Lane.MIDDLE, Lane.LATE)
_MOST_HANDED_BACK = 20  # in a row, by one worker; after that, waiting will not help
_INTERRUPT_SECONDS = 0.05
_REPORT = Task("finish", REJECTS)


class Wakeup:
    """A signal for waiting threads. A ring before the wait ends the next wait at once."""

    def __init__(self) -> None:
        self._rings = 0
        self._rung = threading.Condition()
        self._heard = threading.local()

    def wake(self) -> None:
        with self._rung:
            self._rings += 1
            self._rung.notify_all()

    def wait(self, seconds: float) -> None:
        """Wait until it rings, or has rung since this thread last waited; at most so long."""
        with self._rung:
            if getattr(self._heard, "rings", 0) == self._rings:
                self._rung.wait(seconds)
            self._heard.rings = self._rings


@dataclass(frozen=True)
class WakeupClock:
    """The clock of one run. Its time stands still, and a sleeping thread can be woken."""

    wakeup: Wakeup
    moment: float = field(default_factory=time.time)  # in seconds since 1970

    def now(self) -> float:
        return self.moment

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
    """Keeps raised errors, since an outcome keeps only their text, and the seconds of each finish.

    A task never asks whether its job still runs: there is only one run, and its end interrupts the
    task. The rejects report stays empty, because table_progress.py counts rejected rows.
    """

    real: LocalCompute
    raised: list[CaudalError]
    seconds: dict[str, float]

    @property
    def versions(self) -> Mapping[str, str]:
        return self.real.versions

    def plan(self, request: Request, moment: float) -> Planned:
        return self.real.plan(request, moment)

    def run(
        self, job: Job, task: Task, inputs: Inputs, deliveries: int, _: MayGoOn = go_on
    ) -> bytes:
        if task == _REPORT:
            whose = outputs.Whose(job.id, job.run, task.name)
            return outputs.encode_result(whose, "", outputs.REPORT.empty_table())
        began = time.perf_counter()
        try:
            return self.real.run(job, task, inputs, deliveries, go_on)
        except CaudalError as error:
            self.raised.append(error)
            raise
        finally:
            if task.kind == "finish":
                self.seconds[task.name] = time.perf_counter() - began


class WorkerThreads:
    """Worker threads, each with its own compute. They stop at the end of the block."""

    def __init__(
        self,
        count: int,
        make_compute: Callable[[], LocalCompute],
        make_ports: Callable[[Compute], Ports],
        wakeup: Wakeup,
    ) -> None:
        self.raised: list[CaudalError] = []  # by tasks
        self.bugs: list[BaseException] = []  # that ended a thread
        self.seconds: dict[str, float] = {}  # that finishes took, by query
        self._stop = threading.Event()
        self._wakeup = wakeup
        self._computes = [make_compute() for _ in range(count)]
        self._threads = [
            threading.Thread(
                target=self._work,
                args=(make_ports(_Compute(compute, self.raised, self.seconds)),),
                name=f"caudal-worker-{number}",
            )
            for number, compute in enumerate(self._computes)
        ]

    def __enter__(self) -> "WorkerThreads":
        return self

    def start(self) -> None:
        """Start the threads; call this inside the block, which ends them if Ctrl-C comes here."""
        for thread in self._threads:
            thread.start()

    def __exit__(self, kind: object, *_: object) -> None:
        self._stop.set()
        self._wakeup.wake()
        for thread, compute in zip(self._threads, self._computes, strict=True):
            while thread.is_alive():
                if kind is not None:  # their results are no longer needed
                    self._interrupt()
                thread.join(_INTERRUPT_SECONDS)
            compute.close()

    def _interrupt(self) -> None:
        """Interrupt repeatedly until the threads have ended: DuckDB may be between two queries."""
        for compute in self._computes:
            compute.interrupt()

    def _work(self, ports: Ports) -> None:
        consumer, handed_back = ports.broker.consume(), 0
        try:
            while not self._stop.is_set():
                ending = execute.take_turn(ports, consumer)
                handed_back = handed_back + 1 if ending is TurnResult.HANDED_BACK else 0
                if handed_back > _MOST_HANDED_BACK:
                    raise self._hopeless()
        except BaseException as error:  # the run must not wait for this thread
            self.bugs.append(error)
        finally:
            consumer.close()

    def _hopeless(self) -> CaudalError:
        reason = str(self.raised[-1]) if self.raised else "this machine cannot do them now"
        return StoreError(f"tasks were handed back again and again: {reason}")
