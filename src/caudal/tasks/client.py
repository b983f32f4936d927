"""The client: sends a job's files to whichever gateway answers, and waits for the results.

Rules
1. Whatever was not answered is asked again, of another gateway: every request may come twice.
2. A batch is sent only if the gateway does not have it; one that it has with another digest means
   that the file changed, which is an error and never a mixture.
3. An answer with another run than the first means that the job began anew: stop.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol, TypeVar

from caudal.formats import batch as batch_format
from caudal.formats import frame
from caudal.formats.ending import End, Outcome, digest_of_digests
from caudal.formats.job import Request
from caudal.tasks.gateway import Receipt
from caudal.tasks.ports import BusyError, Clock, ConflictError, GoneError, UnreachableError
from caudal.tasks.status import Status

Answer = TypeVar("Answer")


class Gateways(Protocol):
    """Any gateway that answers. Raises UnreachableError if none does."""

    def create(self, job_id: str, owner: str, request: Request) -> Receipt: ...

    def put_batch(self, job_id: str, owner: str, data: bytes) -> Receipt: ...

    def put_end(self, job_id: str, owner: str, table: str, end: End) -> Receipt: ...

    def stored_digest(self, job_id: str, owner: str, table: str, number: int) -> str | None: ...

    def status(self, job_id: str, owner: str) -> Status: ...

    def result(self, job_id: str, owner: str, query: str) -> bytes: ...

    def cancel(self, job_id: str, owner: str) -> Outcome: ...


@dataclass(frozen=True)
class Order:
    """What to send: a request, and the batches of its tables (formats/batch.py)."""

    job_id: str
    owner: str
    request: Request
    batches: Mapping[str, Sequence[bytes]]


@dataclass(frozen=True)
class Client:
    """Sends orders. `tries` bounds how often one request is asked again."""

    gateways: Gateways
    clock: Clock
    tries: int = 200
    pause_seconds: float = 0.5
    look_first: bool = field(default=False)  # resume: ask what has arrived before sending

    def run(self, order: Order) -> tuple[Outcome, dict[str, bytes]]:
        """Send everything, wait, and fetch the results by name, the rejects report among them."""
        run = self.send(order)
        outcome = self.wait(order, run)
        return outcome, self.results(order, run) if outcome.state == "done" else {}

    def send(self, order: Order) -> str:
        """Create the job and send its tables; gives the run."""
        first = self._ask(lambda: self.gateways.create(order.job_id, order.owner, order.request))
        for table in first.tables:
            digests, size = [], 0
            for number, data in enumerate(order.batches.get(table, ())):
                index = batch_format.describe(frame.of_bytes(data), f"batch {number}")
                digests.append(index.digest)
                size += index.bytes
                self._send_batch(order, first.run, table, number, data)
            end = End(len(digests), size, digest_of_digests(digests))
            self._send_end(order, first.run, table, end)
        return first.run

    def wait(self, order: Order, run: str) -> Outcome:
        """Until the job has ended, however long that takes."""
        while True:
            status = self._ask(lambda: self.gateways.status(order.job_id, order.owner))
            _check_run(order, run, status.run)
            if status.outcome is not None:
                return status.outcome
            self.clock.sleep(self.pause_seconds)

    def results(self, order: Order, run: str) -> dict[str, bytes]:
        status = self._ask(lambda: self.gateways.status(order.job_id, order.owner))
        _check_run(order, run, status.run)
        return {name: self._result(order, name) for name in status.results}

    def _result(self, order: Order, name: str) -> bytes:
        return self._ask(lambda: self.gateways.result(order.job_id, order.owner, name))

    def _send_batch(self, order: Order, run: str, table: str, number: int, data: bytes) -> None:
        if self.look_first and self._has(order, table, number, data):
            return
        receipt = self._ask(lambda: self.gateways.put_batch(order.job_id, order.owner, data))
        _check_run(order, run, receipt.run)

    def _send_end(self, order: Order, run: str, table: str, end: End) -> None:
        receipt = self._ask(lambda: self.gateways.put_end(order.job_id, order.owner, table, end))
        _check_run(order, run, receipt.run)

    def _has(self, order: Order, table: str, number: int, data: bytes) -> bool:
        stored = self._ask(
            lambda: self.gateways.stored_digest(order.job_id, order.owner, table, number)
        )
        if stored is None:
            return False
        if stored != batch_format.describe(frame.of_bytes(data), f"batch {number}").digest:
            raise ConflictError(
                f"batch {number} of table {table} has arrived with other content: the file "
                "changed; send it under a new job"
            )
        return True

    def _ask(self, request: Callable[[], Answer]) -> Answer:
        for _ in range(self.tries - 1):
            try:
                return request()
            except (UnreachableError, BusyError):
                self.clock.sleep(self.pause_seconds)
        return request()


def _check_run(order: Order, expected: str, found: str) -> None:
    if found != expected:
        raise GoneError(f"job {order.job_id} ended and began anew: send it again")
