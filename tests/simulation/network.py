"""Clock and network of one simulated process."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any
from zlib import crc32

from caudal.errors import CaudalError, UsageError
from caudal.formats.replies import AskReceipt, Question
from caudal.jobs.asking import DatasetQuestions
from caudal.jobs.interfaces import BusyError, ConflictError, JobError, UnreachableError
from caudal.jobs.ports import Ports
from caudal.jobs.preview import Step
from caudal.jobs.retry import Retry, Round
from caudal.jobs.service import JobService
from tests.simulation.faults import Faults
from tests.simulation.scheduler import Actor, Process, Scheduler

Gateways = Callable[[], Sequence[tuple[Process, Any]]]  # those that live now


@dataclass(frozen=True)
class SimulatedClock:
    """The scheduler's time, as one process sees it."""

    scheduler: Scheduler
    process: Process

    def now(self) -> float:
        return self.scheduler.now + self.process.skew

    def elapsed(self) -> float:
        return self.scheduler.now

    def sleep(self, seconds: float) -> None:
        self.scheduler.give_way(self.scheduler.now + seconds)


@dataclass(frozen=True)
class GatewayFace:
    """What a gateway offers: requests about jobs, and questions to datasets."""

    service: JobService
    questions: DatasetQuestions

    @classmethod
    def of(cls, ports: Ports, name: str) -> "GatewayFace":
        service = JobService(ports, name)
        return cls(service, DatasetQuestions(service, ports))

    def __getattr__(self, name: str) -> Any:
        return getattr(self.service, name)

    def ask(self, dataset: str, owner: str, question: Question) -> AskReceipt:
        try:
            return self.questions.ask(owner, self.questions.place(owner, dataset, question))
        except UsageError as error:  # refused for good: asking again would not help
            raise ConflictError(str(error)) from None

    def newest(self, dataset: str, owner: str) -> int:
        return self.questions.watch(owner, dataset).number


@dataclass
class Answer:
    """What a request came to, once its handler is done."""

    waiter: Actor | None  # nobody waits for it any longer: None
    value: Any = None
    error: CaudalError | None = None
    done: bool = False


@dataclass
class PatientNetwork:
    """The way of one owner to the gateways; asks again by the policy that real clients have."""

    network: "SimulatedNetwork"
    retry: Retry
    owner: str

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        request = getattr(self.network, name)

        def ask(job_id: str, *arguments: Any, **named: Any) -> Any:
            if name == "status" and crc32(job_id.encode()) % 2:
                named["small"] = True  # the clients of every second job, as gateways offer it
            again = partial(request, job_id, self.owner, *arguments, **named)
            return self.retry.ask(lambda: _round(again))[0]

        return ask


def _round(request: Callable[[], Any]) -> Round[tuple[Any]]:
    """One request as a round. An answer may be None, so it is wrapped."""
    try:
        return Round((request(),))
    except BusyError:
        return Round(is_busy=True)
    except UnreachableError as error:
        return Round(troubles={"a gateway": str(error)})


@dataclass
class SimulatedNetwork:
    """A client's way to the gateways: requests and answers get lost, doubled, late."""

    faults: Faults
    gateways: Gateways
    timeout: float = 20.0

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return lambda *arguments, **named: self._ask(
            name, lambda one: getattr(one, name)(*arguments, **named)
        )

    def preview(self, job_id: str, owner: str, query: str, number: int) -> Step:
        """One step of a preview, as a gateway's face asks for it."""
        step: Step = self._ask(
            "preview", lambda one: one.preview(job_id, owner, query).step(number)
        )
        return step

    def _ask(self, name: str, request: Callable[[Any], Any]) -> Any:
        def act() -> Answer:
            present = self.gateways()
            if not present:
                raise UnreachableError("no gateway")
            answer = Answer(self.faults.scheduler.current)
            self._start(name, request, present, answer)
            if self.faults.happens("doubled_request"):
                self._start(name, request, present, Answer(None))
            return answer

        scheduler = self.faults.scheduler
        answer = self.faults.effect(f"ask {name}", "", act, UnreachableError, "lost_answer")
        scheduler.give_way(scheduler.now + self.timeout)
        answer.waiter = None
        if not answer.done or self.faults.happens("lost_answer"):
            raise UnreachableError(f"{name}: no answer")
        if answer.error is not None:
            if isinstance(answer.error, JobError):
                raise answer.error
            raise UnreachableError(str(answer.error)) from answer.error
        return answer.value

    def _start(
        self,
        name: str,
        request: Callable[[Any], Any],
        present: Sequence[tuple[Process, Any]],
        answer: Answer,
    ) -> None:
        scheduler = self.faults.scheduler
        process, gateway = scheduler.chance.choice(present)

        def handle() -> None:
            try:
                answer.value = request(gateway)
            except CaudalError as error:
                answer.error = error
            answer.done = True
            if answer.waiter is not None:
                scheduler.wake(answer.waiter)

        scheduler.spawn(process, f"gateway {name}", handle)
