"""One run: processes and their misfortunes, all drawn from a seed."""

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from random import Random
from typing import Any

from caudal.errors import QueryError
from caudal.formats.job import Options, Request, Text
from caudal.formats.keys import Task
from caudal.jobs import loops
from caudal.jobs.interfaces import MayGoOn, NotNowError, StoppedError
from caudal.jobs.janitor import Janitor
from caudal.jobs.job_index import all_ended_marks
from caudal.jobs.ports import Bounds, Ports
from caudal.jobs.reconciler import Reconciler
from caudal.jobs.runs import JobRuns
from caudal.store.memory import MemoryStore
from tests.simulation.adapters import SimulatedBroker, SimulatedStore
from tests.simulation.applications import choose
from tests.simulation.collecting import COLLECTOR
from tests.simulation.coverage import Coverage
from tests.simulation.faults import Aim, Faults, Rates
from tests.simulation.invariants import Truth, ViolationError
from tests.simulation.network import GatewayFace, SimulatedClock
from tests.simulation.remembering import ENDLESS, NEW, Asked, Machine, RememberedCompute
from tests.simulation.scheduler import Crash, Process, Scheduler
from tests.simulation.stories import KINDS, Clients, Story

FOREVER = 1e7
GROUPS = (1, 2, 3, 256)  # batches per group
MOST_STEPS = 60_000  # most are of clients that ask for the status
MOST_SECONDS = 10_000.0  # a client that misses the end of an endless query begins anew, for 600 s
ENDLESS_SECONDS = 600.0  # after which the engine's own limit ends a query
ALONG = ((0, 0.0), (1 << 20, 100.0), (0, 0.0), (1 << 20, 1.0))  # bytes and seconds of taken_along
REST_SECONDS = 150.0  # after the last job has ended: for the janitors


@dataclass(frozen=True)
class Pace:
    """How often the loops of a run look, in seconds: seldom enough to be cheap, often enough to
    notice a silent client within half of its time."""

    reconciler: float
    janitor: float
    idle: float
    pause: float

    @classmethod
    def drawn(cls, chance: Random) -> "Pace":
        pairs = ((8.0, 15.0), (14.0, 28.0), (5.0, 12.0), (4.0, 9.0))
        return cls(*(chance.choice(pair) for pair in pairs))


@dataclass
class Report:
    """What a run came to."""

    seed: int
    aims: tuple[Aim, ...] = ()
    steps: int = 0
    answers: int = 0
    outcomes: Sequence[str] = field(default_factory=list)
    coverage: Coverage = field(default_factory=Coverage)


class World:
    """Builds everything from the seed and runs it to its end."""

    def __init__(
        self,
        seed: int,
        kinds: Sequence[str] = KINDS,
        aims: tuple[Aim, ...] = (),
        rates: Rates | None = None,
    ) -> None:
        self.seed = seed
        self.aims = aims
        self.scheduler = Scheduler(seed)
        self.chance: Random = self.scheduler.chance
        self.faults = Faults(self.scheduler, rates or Rates.drawn(self.chance), aims=aims)
        self.memory = MemoryStore()
        asked: dict[str, Asked] = {}
        self.truth = Truth(self.memory, asked)
        self.broker = SimulatedBroker(self.faults)
        self.store = SimulatedStore(self.memory, self.faults, self._created)
        self.gateways: list[tuple[Process, Any]] = []
        self.workers: list[Process] = []
        self.is_calm = False
        self.names = itertools.count()
        self.hashing = NEW  # of processes that start now
        self.libraries: Sequence[str] = ("1",)  # one of these versions is installed
        self.evils: Sequence[str] = ("wipe", "store_error", "broker_error", "lost_answer")
        self.skews: Sequence[float] = (-5.0, 0.0, 3.0)  # of wall clocks, in seconds
        self.sizes = self.chance.choice((1, 1, 2, 3)), self.chance.choice((1, 2, 3))
        self.pace = Pace.drawn(self.chance)
        along_bytes, along_seconds = ALONG[seed % len(ALONG)]
        self.bounds = Bounds(
            nearly_empty=20,
            patience_seconds=9.0,
            patience_most_seconds=40.0,
            retry_seconds=2.0,
            idle_seconds=self.pace.idle,
            mark_seconds=3.0,
            stale_seconds=40.0,
            slice_seconds=5.0,
            jobs_ahead=2,
            rest_seconds=30.0,
            along_bytes=along_bytes,
            along_seconds=along_seconds,
        )
        self.clients = Clients(
            self.faults,
            self.truth,
            self.chance,
            lambda: self.gateways,
            lambda kind, work: self._start(kind, kind, work),
            self.pace.pause,
            settled=along_bytes > 0,
        )
        jobs = range(self.chance.choice((1, 1, 1, 2, 3)))
        self.stories = [self._story(number, self.chance.choice(kinds)) for number in jobs]
        asked |= {story.job_id: story.choice.asked for story in self.stories}

    def _created(self, key: str) -> None:
        """A violation ends the run: workers survive what nobody foresaw, and would swallow it."""
        try:
            self.truth.created(key)
        except Exception as error:
            self.scheduler.errors.append(error)
            raise

    def _story(self, number: int, kind: str) -> Story:
        choice, kept = choose(self.chance, self.seed), self.chance.random() < 0.5
        options = Options(
            partitions=choice.partitions,
            group=self.chance.choice(GROUPS),
            silent_seconds=60.0,
            keep_seconds=FOREVER if kept else self.chance.choice((0.0, 15.0, 40.0)),
        )
        asked = choice.asked
        request = Request(Text.of(asked.app), asked.queries, dict(asked.parameters), options)
        self.truth.learn(asked.data)
        if kind in ("other", "again"):
            self.truth.learn(choice.other)
        owner = self.chance.choice(("me", "you"))
        return Story(f"job{number}", choice, request, kind, kept, owner)

    def run(self) -> Report:
        self._start("nature", "nature", self._nature)
        for story in self.stories:
            self.clients.tell(story)
        self.scheduler.run(self._settled, MOST_STEPS, MOST_SECONDS)
        rest = self.scheduler.now + REST_SECONDS
        self.scheduler.run(lambda: self.scheduler.now > rest, MOST_STEPS, MOST_SECONDS)
        if not self.broker.empty():
            raise ViolationError("messages are left in the broker")
        self._look_at_ended()
        self.truth.check_remains({story.job_id for story in self.stories if story.kept})
        outcomes = [one.state for many in self.truth.outcomes.values() for one in many]
        coverage = self.faults.coverage
        steps = self.scheduler.steps
        return Report(self.seed, self.aims, steps, self.truth.finished, outcomes, coverage)

    def _look_at_ended(self) -> None:
        """Look at ended jobs as a janitor does when their results expire: what a process that was
        frozen added late is deleted then."""
        ports = self.ports(self._process("gateway"))
        janitor = Janitor(replace(ports, store=self.memory, job_runs=JobRuns(self.memory)))
        for mark in list(all_ended_marks(self.memory)):
            janitor._clean(mark)
        self.look_for_unmarked(janitor)

    def look_for_unmarked(self, janitor: Janitor) -> None:
        """Look for jobs without a mark, as a janitor does every hour: what a frozen process added
        when all else was deleted goes then."""
        janitor._look_for_others()

    def _settled(self) -> bool:
        if not self.is_calm or self.clients.present or self.scheduler.thaws > self.scheduler.now:
            return False
        return not self.truth.running()

    def _nature(self) -> None:
        """Starts and replaces processes, breaks what all of them use, and at last grows calm."""
        scheduler, chance = self.scheduler, self.chance
        calm_at = scheduler.now + chance.uniform(20, 150)
        evils = self._evils(scheduler.now)
        while True:
            if not self.is_calm and scheduler.now > calm_at:
                self.is_calm = True
                self.faults.calm()
            while evils and scheduler.now > evils[0][0] and not self.is_calm:
                evils.pop(0)[1]()
            self.gateways = [pair for pair in self.gateways if pair[0].alive]
            self.workers = [one for one in self.workers if one.alive]
            while len(self.gateways) < self.sizes[0]:
                self._start_gateway()
            while len(self.workers) < self.sizes[1]:
                self._start_worker()
            scheduler.give_way(scheduler.now + chance.uniform(1, 12))

    def _evils(self, now: float) -> list[tuple[float, Callable[[], None]]]:
        """What befalls everybody at once, and when."""
        chance = self.chance
        evils = [
            self._wipe if what == "wipe" else partial(self._outage, what)
            for what in self.evils
            for _ in range(2)
            if chance.random() < (0.4 if what == "wipe" else 0.08)
        ]
        timed = [(now + chance.uniform(0, 150), evil) for evil in evils]
        return sorted(timed, key=lambda one: one[0])

    def _wipe(self) -> None:
        self.scheduler.note(self.scheduler.current, "BROKER WIPED")
        self.broker.wipe()

    def _outage(self, what: str) -> None:
        seconds = self.chance.uniform(20, 90)
        self.scheduler.note(self.scheduler.current, "OUTAGE", f"{what} for {seconds:.0f} s")
        self.faults.begin_outage(what, seconds)

    def _start(self, kind: str, label: str, work: Callable[[], None]) -> Process:
        process = self._process(kind)
        self.scheduler.spawn(process, label, work)
        return process

    def _process(self, kind: str) -> Process:
        return Process(f"{kind}-{next(self.names)}", kind, self.chance.choice(self.skews))

    def ports(self, process: Process) -> Ports:
        def kill() -> None:
            self.scheduler.note(self.scheduler.current, "KILLED by its task")
            self.scheduler.kill(process)
            raise Crash

        def compute(task: Task, act: Callable[[], bytes]) -> bytes:
            self.scheduler.give_way(self.scheduler.now + self.chance.uniform(0, 2))
            about = f"{task.kind} {task.name} {task.number}"
            return self.faults.effect(f"compute {task.kind}", about, act, NotNowError, "not_now")

        return Ports(
            store=self.store,
            broker=self.broker,
            compute=RememberedCompute(
                self.chance, Machine(compute, kill, self._last), self.hashing, self._library()
            ),
            clock=SimulatedClock(self.scheduler, process),
            new_id=lambda: f"run{next(self.names)}",
            job_runs=JobRuns(self.store),
            bounds=replace(self.bounds, quick=self.chance.random() < 0.5),
        )

    def _library(self) -> str:
        return self.libraries[0] if len(self.libraries) == 1 else self.chance.choice(self.libraries)

    def _last(self, task: Task, beat: MayGoOn) -> None:
        """Some computations take long; an endless one ends when it is told to, or by its limit."""
        scheduler, endless = self.scheduler, task.kind == "finish" and task.name == ENDLESS
        if not endless and not self.faults.happens("long_task"):
            return
        ends = scheduler.now + (ENDLESS_SECONDS if endless else self.chance.uniform(10, 60))
        while scheduler.now < ends:
            scheduler.give_way(scheduler.now + self.chance.uniform(1, 6))
            if not beat():
                scheduler.note(scheduler.current, "STOPPED", f"{task.kind} {task.name}")
                raise StoppedError("it was stopped")
        if endless:
            raise QueryError("the query took too long (simulated)")

    def _start_worker(self) -> None:
        def work() -> None:
            ports = self.ports(self.scheduler.current.process)
            loops.work(ports, ports.broker.consume(), lambda: False)

        self.workers.append(self._start("worker", "worker", work))

    def _start_gateway(self) -> None:
        process = self._process("gateway")
        ports = self.ports(process)
        reconciler, janitor = Reconciler(ports), Janitor(ports)
        for label, seconds, work in (
            ("reconciler", self.pace.reconciler, reconciler.round),
            ("janitor", self.pace.janitor, janitor.round),
        ):
            self.scheduler.spawn(process, label, self._rounds(ports, seconds, work))
        self.gateways.append((process, GatewayFace.of(ports, process.name)))

    def _rounds(self, ports: Ports, seconds: float, work: Callable[[], None]) -> Callable[[], None]:
        return lambda: loops.rounds(ports.clock, seconds, work, lambda: False)


def simulate(seed: int, kinds: Sequence[str] = KINDS, aims: tuple[Aim, ...] = ()) -> Report:
    """One run; a failure carries the seed and the trace."""
    return finish(lambda: World(seed, kinds, aims))


def finish(make: Callable[[], World]) -> Report:
    """Run a world to its end, and free all that it holds."""
    with COLLECTOR.resting():
        world = make()
        try:
            return world.run()
        except Exception as error:
            name = ", ".join((f"seed {world.seed}", *map(str, world.aims)))
            trace = world.scheduler.readable()
            raise ViolationError(f"{name}: {error!r}\n{trace}\n{name}: {error}") from error
        finally:
            world.scheduler.close()
