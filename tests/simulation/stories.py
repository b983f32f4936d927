"""What clients do: patient and impatient, mistaken, rude, and gone."""

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from functools import partial
from random import Random
from typing import NoReturn, TypeVar

from caudal.formats.job import Request
from caudal.formats.keys import REJECTS
from caudal.formats.outcomes import End
from caudal.jobs.interfaces import (
    BusyError,
    ConflictError,
    GoneError,
    JobError,
    UnknownNameError,
    UnreachableError,
)
from caudal.jobs.preview import Aborted, Complete, Rows
from caudal.jobs.retry import Retry
from caudal.jobs.upload import Listener, Uploader, UploadRequest
from tests.simulation.applications import Choice
from tests.simulation.faults import Faults
from tests.simulation.invariants import Truth, ViolationError, table_digest
from tests.simulation.network import Gateways, PatientNetwork, SimulatedClock, SimulatedNetwork
from tests.simulation.remembering import Tables
from tests.simulation.scheduler import Process

KINDS = (
    *("plain", "plain", "resume", "vanish", "twice", "other", "short"),
    *("rude", "gap", "cancel", "again", "late", "stranger", "curious"),
)
FAR = 1e9
OWNER = "me"
Item = TypeVar("Item")
Outcome = TypeVar("Outcome")


@dataclass(frozen=True)
class Story:
    """One job: what its clients mean to do, and what may become of it."""

    job_id: str
    choice: Choice
    request: Request
    kind: str
    kept: bool
    owner: str = OWNER

    @property
    def alone(self) -> bool:
        """Only one kind of data is ever sent, and nobody cancels."""
        peaceful = ("plain", "resume", "vanish", "twice", "late", "stranger", "curious")
        return self.kind in peaceful and not self.choice.fails

    def order(self, tables: Tables, *, settled: bool) -> UploadRequest:
        return UploadRequest(self.job_id, self.request, tables, tables if settled else ())


@dataclass
class Suspicious(Listener):
    """Checks every result at the moment at which the client is given it."""

    truth: Truth
    job_id: str
    tables: Tables

    def answered(self, query: str, result: bytes) -> None:
        if query != REJECTS:
            self.truth.check_rows(self.job_id, query, self.tables, result)


@dataclass
class Clients:
    """All clients of a run. `present` are those that are not yet done."""

    faults: Faults
    truth: Truth
    chance: Random
    gateways: Gateways
    start: Callable[[str, Callable[[], None]], Process]
    pause_seconds: float
    settled: bool = False  # all data is there, see UploadRequest
    present: set[str] = field(default_factory=set)

    def tell(self, story: Story) -> None:
        """Start the clients of a job."""
        data, other, uniform = story.choice.asked.data, story.choice.other, self.chance.uniform
        start = partial(self._sender, story)
        match story.kind:
            case "plain":
                start(data)
            case "vanish":
                start(data, fragile=True)
            case "resume":
                start(data, fragile=True)
                start(data, after=uniform(2, 30), look_first=True, fragile=True)
                start(data, after=uniform(35, 100), look_first=True)
            case "late":
                start(data)
                start(data, after=uniform(60, 300), look_first=True)
            case "twice":
                start(data)
                start(data, after=uniform(0, 40))
            case "other":
                start(data)
                start(other, after=uniform(0, 20))
            case "short":
                start(data)
                start(self._shortened(data), after=uniform(0, 20))
            case "rude":
                start(data)
                self._rude(story, other)
            case "gap":
                self._rude(story, data, leaves_out=self.chance.randrange(3))
            case "cancel":
                start(data)
                self._canceller(story)
            case "again":
                start(data, fragile=self.chance.random() < 0.5)
                start(other, after=uniform(120, 400), insists=True)
            case "stranger":
                start(data)
                self._stranger(story)
            case "curious":
                start(data)
                self._curious(story)

    def _shortened(self, data: Tables) -> Tables:
        """One table is cut short."""
        cut = self.chance.choice(sorted(data))
        short = {**data, cut: data[cut][: len(data[cut]) // 2]}
        self.truth.learn(short)
        return short

    def _begin(
        self,
        work: Callable[[Uploader], None],
        *,
        fragile: bool = False,
        look_first: bool = False,
    ) -> None:
        """One more client; a fragile one may be killed at any request, for good."""

        def whole() -> None:
            process = self.faults.scheduler.current.process
            work(self._client(process, look_first))
            self.present.discard(process.name)

        process = self.start("client", whole)
        self.present.add(process.name)
        process.at_death.append(lambda: self.present.discard(process.name))  # done before, or not
        if fragile:
            self.faults.fragile.add(process.name)

    def _client(self, process: Process, look_first: bool) -> Uploader:
        clock = SimulatedClock(self.faults.scheduler, process)
        pause = self.pause_seconds
        retry = Retry(
            clock, 400 * pause, first_pause=pause, longest_pause=pause, jitter=lambda: 1.0
        )
        network = PatientNetwork(self._network(), retry, OWNER)
        at_once = self.chance.choice((1, 1, 2, 4))
        return Uploader(
            network,
            clock,
            pause_seconds=self.pause_seconds,
            look_first=look_first,
            each=map if at_once == 1 else partial(self._several, at_once),
        )

    def _network(self) -> SimulatedNetwork:
        """The way to the gateways, without asking again."""
        return SimulatedNetwork(self.faults, self.gateways)

    def _several(
        self, most: int, work: Callable[[Item], Outcome], items: Iterable[Item]
    ) -> Iterator[Outcome]:
        """Like map, with so many actors of this process at work."""
        scheduler = self.faults.scheduler
        parent, started = scheduler.current, deque[list[Callable[[], Outcome]]]()

        def begin(item: Item) -> None:
            outcome: list[Callable[[], Outcome]] = []

            def act() -> None:
                try:
                    value = work(item)
                    outcome.append(lambda: value)
                except Exception as error:
                    outcome.append(_raising(error))
                scheduler.wake(parent)

            started.append(outcome)
            scheduler.spawn(parent.process, parent.label, act)

        def finished() -> Outcome:
            while not started[0]:
                scheduler.give_way(FAR)
            return started.popleft()[0]()

        for item in items:
            if len(started) >= most:
                yield finished()
            begin(item)
        while started:
            yield finished()

    def _sender(
        self,
        story: Story,
        tables: Tables,
        *,
        after: float = 0.0,
        fragile: bool = False,
        look_first: bool = False,
        insists: bool = False,
    ) -> None:
        def work(client: Uploader) -> None:
            client.clock.sleep(after)
            for _ in range(12 if insists else 4):
                if self._attempt(story, client, tables):
                    break
                client.clock.sleep(30.0 if insists else 3.0)

        self._begin(work, fragile=fragile, look_first=look_first)

    def _attempt(self, story: Story, client: Uploader, tables: Tables) -> bool:
        """One try of a client; False if it should begin again."""
        client = replace(client, listener=Suspicious(self.truth, story.job_id, tables))
        try:
            outcome, _ = client.run(story.order(tables, settled=self.settled))
        except GoneError as error:
            return error.outcome is not None and story.kind != "again"
        except ConflictError as error:
            if story.alone:
                raise ViolationError(f"a conflict with nobody: {error}") from error
            return story.kind != "again"
        except UnreachableError:
            return False
        scheduler = self.faults.scheduler
        scheduler.note(scheduler.current, f"SEES {outcome.state}", outcome.reason)
        if story.alone and outcome.state == "failed":
            raise ViolationError(f"{story.job_id} failed: {outcome.reason}")
        return True

    def _rude(self, story: Story, tables: Tables, leaves_out: int | None = None) -> None:
        """Ignores every refusal, may leave out a batch, ends as if all were well, and leaves."""

        def work(client: Uploader) -> None:
            network = self._network()
            put, end = network.put_batch, network.put_end
            self.truth.learn(tables)
            if leaves_out is not None:
                self._insist(partial(network.create, story.job_id, story.owner, story.request))
            for table, batches in tables.items():
                for number, data in enumerate(batches):
                    if number != leaves_out:
                        self._insist(partial(put, story.job_id, story.owner, data))
                last = End(len(batches), 0, table_digest(tuple(batches)))
                self._insist(partial(end, story.job_id, story.owner, table, last))

        self._begin(work)

    def _canceller(self, story: Story) -> None:
        def work(client: Uploader) -> None:
            client.clock.sleep(self.chance.uniform(0, 60))
            self._insist(lambda: self._network().cancel(story.job_id, story.owner), tries=5)

        self._begin(work, fragile=True)

    def _stranger(self, story: Story) -> None:
        """Another owner learns nothing and changes nothing."""

        def work(client: Uploader) -> None:
            gateways, job_id = self._network(), story.job_id
            client.clock.sleep(self.chance.uniform(0, 60))
            query = story.choice.asked.app.queries[0].name
            for request in (
                lambda: gateways.status(job_id, "stranger"),
                lambda: gateways.result(job_id, "stranger", query, ""),
                lambda: gateways.cancel(job_id, "stranger"),
            ):
                if self._insist(request, tries=3):
                    raise ViolationError(f"a stranger was served with {story.job_id}")

        self._begin(work, fragile=True)

    def _curious(self, story: Story) -> None:
        """Looks at rows before their table is complete: what is shown to the end is the answer."""
        asked, job_id = story.choice.asked, story.job_id

        def work(client: Uploader) -> None:
            network = self._network()
            for query in asked.queries or [one.name for one in asked.app.queries]:
                shown: list[Rows] = []
                for _ in range(40):
                    client.clock.sleep(self.pause_seconds)
                    try:
                        step = network.preview(job_id, story.owner, query, len(shown))
                        network.jobs(story.owner)
                    except UnknownNameError:
                        break
                    except JobError:
                        continue
                    if isinstance(step, Rows):
                        shown.append(step)
                    if isinstance(step, Complete):
                        self.truth.check_preview(job_id, query, story.choice.asked.data, shown)
                    if isinstance(step, Complete | Aborted):
                        break

        self._begin(work, fragile=True)

    def _insist(self, request: Callable[[], object], tries: int = 30) -> bool:
        """Whether it was granted at last."""
        scheduler = self.faults.scheduler
        for _ in range(tries):
            try:
                request()
                return True
            except (UnreachableError, BusyError, GoneError):
                scheduler.give_way(scheduler.now + 2)
            except JobError:
                return False
        return False


def _raising(error: Exception) -> Callable[[], NoReturn]:
    def fail() -> NoReturn:
        raise error

    return fail
