"""One run: processes, clients and their misfortunes, all drawn from a seed."""

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from random import Random
from typing import Any

from caudal.core.tasks import REJECTS
from caudal.formats.ending import End
from caudal.formats.job import Options, Request, Text
from caudal.store.memory import MemoryStore
from caudal.tasks import loops
from caudal.tasks.client import Client, Order
from caudal.tasks.gateway import Gateway
from caudal.tasks.janitor import Janitor
from caudal.tasks.life import Lives
from caudal.tasks.ports import BusyError, ConflictError, GoneError, JobError, UnreachableError
from caudal.tasks.reconciler import Reconciler
from caudal.tasks.tools import Bounds, Tools
from tests.simulation.adapters import (
    SimulatedBroker,
    SimulatedClock,
    SimulatedNetwork,
    SimulatedStore,
)
from tests.simulation.applications import Choice, RememberedCompute, Tables, choose
from tests.simulation.faults import Faults, Rates
from tests.simulation.invariants import Truth, ViolationError, table_digest
from tests.simulation.scheduler import Coverage, Process, Scheduler

BOUNDS = Bounds(
    nearly_empty=20,
    patience_seconds=9.0,
    patience_most_seconds=40.0,
    retry_seconds=2.0,
    idle_seconds=4.0,
)
FOREVER = 1e7
KINDS = (
    *("plain", "plain", "resume", "vanish", "twice", "other", "short"),
    *("rude", "gap", "cancel", "again"),
)
MOST_STEPS = 60_000
MOST_SECONDS = 2_500.0  # healthy runs take less than half of it


@dataclass
class Story:
    """One job: what its clients mean to do, and what may become of it."""

    job_id: str
    choice: Choice
    request: Request
    kind: str
    kept: bool

    @property
    def alone(self) -> bool:
        """Only one kind of data is ever sent, and nobody cancels."""
        return self.kind in ("plain", "resume", "vanish", "twice") and not self.choice.fails

    def order(self, tables: Tables) -> Order:
        return Order(self.job_id, "me", self.request, tables)


@dataclass
class Report:
    """What a run came to."""

    seed: int
    steps: int = 0
    answers: int = 0
    outcomes: Sequence[str] = field(default_factory=list)
    coverage: Coverage = field(default_factory=Coverage)


class World:
    """Builds everything from the seed and runs it to its end."""

    def __init__(self, seed: int, kinds: Sequence[str] = KINDS) -> None:
        self.seed = seed
        self.kinds = kinds
        self.scheduler = Scheduler(seed)
        self.chance: Random = self.scheduler.chance
        self.faults = Faults(self.scheduler, Rates.drawn(self.chance))
        self.memory = MemoryStore()
        self.truth = Truth(self.memory)
        self.broker = SimulatedBroker(self.faults)
        self.store = SimulatedStore(self.memory, self.faults, self.truth.created)
        self.gateways: list[tuple[Process, Any]] = []
        self.workers: list[Process] = []
        self.clients = 0
        self.is_calm = False
        self.names = itertools.count()
        self.sizes = self.chance.choice((1, 2)), self.chance.choice((1, 2, 3))
        self.stories = [self._story(number) for number in range(self.chance.choice((1, 1, 2, 3)))]

    def _story(self, number: int) -> Story:
        choice, kept = choose(self.chance), self.chance.random() < 0.5
        options = Options(
            partitions=self.chance.choice((1, 3)),
            group=self.chance.choice((2, 3)),
            silent_seconds=60.0,
            keep_seconds=FOREVER if kept else 40.0,
        )
        request = Request(Text.of(choice.app), choice.queries, options=options)
        kind = self.chance.choice(self.kinds)
        self.truth.learn(choice.data)
        if kind in ("other", "again"):
            self.truth.learn(choice.other)
        return Story(f"job{number}", choice, request, kind, kept)

    def run(self) -> Report:
        self._start("nature", "nature", self._nature)
        for story in self.stories:
            self._tell(story)
        self.scheduler.run(self._settled, MOST_STEPS, MOST_SECONDS)
        rest = self.scheduler.now + 120
        self.scheduler.run(lambda: self.scheduler.now > rest, MOST_STEPS, MOST_SECONDS)
        if not self.broker.empty():
            raise ViolationError("messages are left in the broker")
        self.truth.check_remains({story.job_id for story in self.stories if story.kept})
        outcomes = [one.state for many in self.truth.outcomes.values() for one in many]
        coverage = self.faults.coverage
        return Report(self.seed, self.scheduler.steps, self.truth.finished, outcomes, coverage)

    def _settled(self) -> bool:
        if not self.is_calm or self.clients or self.scheduler.steps % 20:
            return False
        frozen = max(actor.process.frozen_until for actor in self.scheduler.actors)
        return frozen < self.scheduler.now and not self.truth.running()

    def _nature(self) -> None:
        """Starts and replaces processes, wipes the broker, and at last grows calm."""
        scheduler, chance = self.scheduler, self.chance
        calm_at = scheduler.now + chance.uniform(20, 150)
        wipes = [scheduler.now + chance.uniform(0, 150) for _ in range(chance.choice((0, 0, 1, 2)))]
        while True:
            if not self.is_calm and scheduler.now > calm_at:
                self.is_calm = True
                self.faults.calm()
            if wipes and scheduler.now > wipes[-1] and not self.is_calm:
                wipes.pop()
                scheduler.note(scheduler.current, "BROKER WIPED")
                self.broker.wipe()
            self.gateways = [pair for pair in self.gateways if pair[0].alive]
            self.workers = [one for one in self.workers if one.alive]
            while len(self.gateways) < self.sizes[0]:
                self._start_gateway()
            while len(self.workers) < self.sizes[1]:
                self._start_worker()
            scheduler.give_way(scheduler.now + chance.uniform(1, 12))

    def _start(self, kind: str, label: str, work: Callable[[], None]) -> Process:
        skew = self.chance.choice((-5.0, 0.0, 3.0))
        process = Process(f"{kind}-{next(self.names)}", kind, skew)
        self.scheduler.spawn(process, label, work)
        return process

    def tools(self, process: Process) -> Tools:
        return Tools(
            store=self.store,
            broker=self.broker,
            compute=RememberedCompute(self.chance),
            clock=SimulatedClock(self.scheduler, process),
            new_id=lambda: f"run{next(self.names)}",
            lives=Lives(self.store),
            bounds=BOUNDS,
        )

    def _start_worker(self) -> None:
        def work() -> None:
            tools = self.tools(self.scheduler.current.process)
            loops.work(tools, tools.broker.consume(), lambda: False)

        self.workers.append(self._start("worker", "worker", work))

    def _start_gateway(self) -> None:
        process = Process(f"gateway-{next(self.names)}", "gateway", self.chance.choice((-5.0, 3.0)))
        tools = self.tools(process)
        reconciler, janitor = Reconciler(tools), Janitor(tools)
        for label, seconds, work in (
            ("reconciler", 6.0, reconciler.round),
            ("janitor", 11.0, janitor.round),
        ):
            self.scheduler.spawn(process, label, self._rounds(tools, seconds, work))
        self.gateways.append((process, Gateway(tools, process.name)))

    def _rounds(self, tools: Tools, seconds: float, work: Callable[[], None]) -> Callable[[], None]:
        return lambda: loops.rounds(tools.clock, seconds, work, lambda: False)

    def _tell(self, story: Story) -> None:
        """Start the clients of a job."""
        data, other = story.choice.data, story.choice.other
        start = self._start_client
        match story.kind:
            case "plain":
                start(story, data)
            case "vanish":
                start(story, data, fragile=True)
            case "resume":
                start(story, data, fragile=True)
                start(story, data, after=self.chance.uniform(2, 30), look_first=True, fragile=True)
                start(story, data, after=self.chance.uniform(35, 100), look_first=True)
            case "twice":
                start(story, data)
                start(story, data, after=self.chance.uniform(0, 40))
            case "other":
                start(story, data)
                start(story, other, after=self.chance.uniform(0, 20))
            case "short":
                start(story, data)
                start(story, self._shortened(data), after=self.chance.uniform(0, 20))
            case "rude":
                start(story, data)
                self._start_rude(story, other)
            case "gap":
                self._start_rude(story, data, leaves_out=self.chance.randrange(3))
            case "cancel":
                start(story, data)
                self._start_cancel(story)
            case "again":
                start(story, data, fragile=self.chance.random() < 0.5)
                start(story, other, after=self.chance.uniform(120, 400), insists=True)

    def _shortened(self, data: Tables) -> Tables:
        short = {
            table: batches[: self.chance.randrange(len(batches) + 1)]
            for table, batches in data.items()
        }
        self.truth.learn(short)
        return short

    def _client(self, process: Process, *, look_first: bool = False) -> Client:
        clock = SimulatedClock(self.scheduler, process)
        network = SimulatedNetwork(self.faults, lambda: self.gateways)
        return Client(network, clock, tries=400, pause_seconds=2.0, look_first=look_first)

    def _start_client(
        self,
        story: Story,
        tables: Tables,
        *,
        after: float = 0.0,
        fragile: bool = False,
        look_first: bool = False,
        insists: bool = False,
    ) -> None:
        def work() -> None:
            process = self.scheduler.current.process
            self.scheduler.give_way(self.scheduler.now + after)
            client = self._client(process, look_first=look_first)
            for _ in range(12 if insists else 4):
                if self._attempt(story, client, tables):
                    break
                client.clock.sleep(30.0 if insists else 3.0)
            self.clients -= 1

        self.clients += 1
        process = self._start("client", "client", work)
        if fragile:
            self._make_fragile(process)

    def _make_fragile(self, process: Process) -> None:
        """It may be killed at any request, for good."""

        def left() -> None:
            self.clients -= 1

        self.faults.fragile.add(process.name)
        process.at_death.append(left)

    def _attempt(self, story: Story, client: Client, tables: Tables) -> bool:
        """One try of a client; False if it should begin again."""
        order = story.order(tables)
        try:
            outcome, results = client.run(order)
        except GoneError as error:
            return error.outcome is not None and story.kind != "again"
        except ConflictError as error:
            if story.alone:
                raise ViolationError(f"a conflict with nobody: {error}") from error
            return story.kind != "again"
        except UnreachableError:
            return False
        self.scheduler.note(self.scheduler.current, f"SEES {outcome.state}", outcome.reason)
        if story.alone and outcome.state == "failed":
            raise ViolationError(f"{story.job_id} failed: {outcome.reason}")
        for query, data in results.items():
            if query != REJECTS:
                self.truth.check_rows(story.request, query, tables, data, story.job_id)
        return True

    def _start_rude(self, story: Story, tables: Tables, leaves_out: int | None = None) -> None:
        """Ignores every refusal, may leave out a batch, ends as if all were well, and leaves."""

        def work() -> None:
            client = self._client(self.scheduler.current.process)
            put, end = client.gateways.put_batch, client.gateways.put_end
            self.truth.learn(tables)
            if leaves_out is not None:
                self._insist(partial(client.gateways.create, story.job_id, "me", story.request))
            for table, batches in tables.items():
                for number, data in enumerate(batches):
                    if number != leaves_out:
                        self._insist(partial(put, story.job_id, "me", data))
                last = End(len(batches), 0, table_digest(batches))
                self._insist(partial(end, story.job_id, "me", table, last))
            self.clients -= 1

        self.clients += 1
        self._start("client", "client", work)

    def _insist(self, request: Callable[[], object], tries: int = 30) -> None:
        for _ in range(tries):
            try:
                request()
                return
            except (UnreachableError, BusyError, GoneError):
                self.scheduler.give_way(self.scheduler.now + 2)
            except JobError:
                return

    def _start_cancel(self, story: Story) -> None:
        def work() -> None:
            self.scheduler.give_way(self.scheduler.now + self.chance.uniform(0, 60))
            client = self._client(self.scheduler.current.process)
            self._insist(lambda: client.gateways.cancel(story.job_id, "me"), tries=5)
            self.clients -= 1

        self.clients += 1
        self._make_fragile(self._start("client", "client", work))


def simulate(seed: int, kinds: Sequence[str] = KINDS) -> Report:
    """One run; a failure carries the seed and the trace."""
    world = World(seed, kinds)
    try:
        return world.run()
    except Exception as error:
        text = f"seed {seed}: {error!r}\n{world.scheduler.readable()}\nseed {seed}: {error}"
        raise ViolationError(text) from error
