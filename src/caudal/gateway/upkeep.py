"""The upkeep loops: reconciler, janitor, census, process samples and deleted datasets, each in a
thread.

Rules
1. Pauses are jittered, so that the loops of several gateways do not run in step. After a long
   round a loop pauses twice as long as the round took, so that upkeep never dominates the load.
2. A failed round is logged, whatever its error, and the next round follows as usual.
3. Each loop has its own cache of jobs, so that its scans do not evict what requests need.
"""

import logging
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from threading import Thread

from caudal.broker.port import Broker, Consumer
from caudal.datasets.cluster_place import sweep_all_deleted
from caudal.errors import CaudalError
from caudal.formats.keys import Lane, Message
from caudal.gateway.figures import GatewayMetrics
from caudal.jobs.interfaces import Clock
from caudal.jobs.janitor import Janitor
from caudal.jobs.loops import rounds
from caudal.jobs.ports import Ports
from caudal.jobs.reconciler import Reconciler
from caudal.jobs.runs import JobRuns
from caudal.process.logs import fields
from caudal.store.port import Store

_REST = 2.0  # times the duration of the round before

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Pauses:
    """Approximate seconds between two rounds."""

    reconciler: float = 1.0
    janitor: float = 5.0
    census: float = 5.0
    deleted_datasets: float = 60.0
    samples: float = 5.0


@dataclass
class UnevenClock:
    """A clock with jittered pauses, longer after long rounds (rule 1)."""

    clock: Clock
    chance: random.Random = field(default_factory=random.Random)
    _woke: float | None = None

    def now(self) -> float:
        return self.clock.now()

    def elapsed(self) -> float:
        return self.clock.elapsed()

    def sleep(self, seconds: float) -> None:
        busy = self.clock.elapsed() - self._woke if self._woke is not None else 0.0
        self.clock.sleep(max(seconds, _REST * busy) * self.chance.uniform(0.75, 1.25))
        self._woke = self.clock.elapsed()


@dataclass(frozen=True)
class CountingBroker:
    """A broker that counts what the reconciler publishes, to make a storm of messages visible."""

    broker: Broker
    figures: GatewayMetrics

    def publish(self, messages: Sequence[Message]) -> None:
        self.broker.publish(messages)
        self.figures.published_again.inc(len(messages))

    def depths(self) -> Mapping[Lane, int]:
        return self.broker.depths()

    def consume(self) -> Consumer:
        return self.broker.consume()


def start_upkeep(
    ports: Ports,
    figures: GatewayMetrics,
    stopping: Callable[[], bool],
    pauses: Pauses,
    census: Callable[[], None],
    samples: Callable[[], None] = lambda: None,
) -> list[Thread]:
    """Start all loops. They end when `stopping` is true; the clock's pauses should end then too."""
    counting = replace(
        ports, broker=CountingBroker(ports.broker, figures), job_runs=JobRuns(ports.store)
    )
    reconciler, janitor = (
        Reconciler(counting),
        Janitor(replace(ports, job_runs=JobRuns(ports.store))),
    )
    turns = (
        ("reconciler", pauses.reconciler, reconciler.round),
        ("janitor", pauses.janitor, janitor.round),
        ("census", pauses.census, census),
        ("deleted datasets", pauses.deleted_datasets, partial(_sweep_datasets, ports.store)),
        ("samples", pauses.samples, samples),
    )
    threads = [
        Thread(
            target=rounds,
            args=(UnevenClock(ports.clock), pause, _safely(name, round_, figures), stopping),
            name=name,
            daemon=True,
        )
        for name, pause, round_ in turns
    ]
    for thread in threads:
        thread.start()
    return threads


def _sweep_datasets(store: Store) -> None:
    sweep_all_deleted(store)


def _safely(name: str, round_: Callable[[], None], figures: GatewayMetrics) -> Callable[[], None]:
    def safe_round() -> None:
        try:
            round_()
        except Exception as error:
            known = isinstance(error, CaudalError)
            _log.log(
                logging.WARNING if known else logging.ERROR,
                "a round failed",
                exc_info=None if known else error,
                extra=fields(loop=name, reason=str(error)),
            )
            figures.rounds.labels(name, "failed").inc()
        else:
            figures.rounds.labels(name, "done").inc()

    return safe_round
