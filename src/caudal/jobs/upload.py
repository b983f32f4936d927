"""The client: sends a job's tables to any gateway that answers, and fetches the results.

Rules
1. Whatever was not answered is asked again, of another gateway (jobs/retry.py): every request may
   come twice.
2. A batch is sent only if the gateway does not have it; one that it has with another digest means
   that the file changed, which is an error and never a mixture. A digest is of records only: so one
   batch of each file is sent although it has arrived, and first (resumed_files.py).
3. An answer with another run than the first means that the job began anew: stop.
4. A result is taken as soon as it is there, but only after this client's own end of every table
   that the query reads was confirmed: whatever else was sent under the same id, the result is of
   the data that this client read.
5. A job that is done takes no batches. Its ends still stand, and an end that is equal says that
   the data was the same: so a client that resumes too late, or whose last answer was lost, gets
   its results all the same. An end, too, is of records only. The names of columns can be compared
   no more: the results are those of the names that were sent.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property, partial
from itertools import chain, islice
from typing import Protocol

from caudal.errors import FormatError
from caudal.formats import batch as batch_format
from caudal.formats import frame
from caudal.formats.batch import BatchHeader
from caudal.formats.job import Request
from caudal.formats.keys import REJECTS
from caudal.formats.loads import LOAD, UPKEEP
from caudal.formats.outcomes import End, Outcome, end_of
from caudal.formats.replies import JobStatus, Receipt
from caudal.jobs.interfaces import Clock, ConflictError, GoneError
from caudal.jobs.resumed_files import ResumedFiles

_PAUSE_GROWTH = 1.5

Sendable = bytes | Callable[[], bytes]  # a batch, or what makes it: called by who sends it
Numbered = tuple[int, Sendable]
Packed = tuple[BatchHeader, bytes]
# Like the built-in map: the results are in the order of the items.
Each = Callable[[Callable[[Numbered], BatchHeader], Iterable[Numbered]], Iterable[BatchHeader]]


@dataclass(frozen=True)
class News:
    """What a client waits for: an outcome, or another number of results."""

    results: int
    seconds: float  # at most


class Gateways(Protocol):
    """Any gateway that answers. Methods raise UnreachableError if none does."""

    def create(self, job_id: str, request: Request) -> Receipt: ...

    def put_batch(self, job_id: str, data: bytes, *, only: bool = False) -> Receipt:
        """Send a batch. With `only`, it is the table's only one; the receipt says whether the
        gateway took it as the table's end, too."""

    def put_end(self, job_id: str, table: str, end: End) -> Receipt: ...

    def stored_digest(self, job_id: str, table: str, number: int) -> str | None: ...

    def status(self, job_id: str, news: News | None = None) -> JobStatus:
        """Return the status. With `news`, a gateway may answer only when there are news, or after
        a while, and with small results; whether it does is its own affair."""

    def result(self, job_id: str, query: str, run: str) -> bytes:
        """The result object of that run and of no other (formats/outputs.py), whole and checked."""

    def cancel(self, job_id: str) -> Outcome: ...


class Listener:
    """A listener for the progress of an upload. This base class does nothing."""

    def sent(self, table: str, batch: BatchHeader) -> None:
        """Note that a batch is stored. Any thread may call this, in any order."""

    def ended(self, table: str) -> None: ...

    def saw(self, status: JobStatus) -> None: ...

    def answered(self, query: str, result: bytes) -> None: ...


@dataclass(frozen=True)
class UploadRequest:
    """A request, and the batches of its tables (formats/batch.py), which are iterated once.

    The data of `settled` tables is there already, so that looking for a second batch before the
    first one is sent takes no time. A table that a producer still writes is not among them.
    """

    job_id: str
    request: Request
    batches: Mapping[str, Iterable[Sendable]]
    settled: Collection[str] = ()


@dataclass(frozen=True)
class Uploader:
    """Sends orders. Its gateways ask again what was not answered (jobs/retry.py)."""

    gateways: Gateways
    clock: Clock
    pause_seconds: float = 0.5
    first_pause_seconds: float | None = None  # a client in a hurry looks soon at first
    news_seconds: float = 0.0  # how long a look may wait at a gateway for news
    look_first: bool = field(default=False)  # resume: ask what has arrived before sending
    each: Each = map  # another one may send several batches at once
    listener: Listener = field(default_factory=Listener)

    def run(self, order: UploadRequest) -> tuple[Outcome, dict[str, bytes]]:
        """Send everything, wait, and return the results by name, with the rejects report."""
        errand = self.begin(order)
        for _ in errand.send():
            errand.look()
        outcome = errand.follow()
        return outcome, errand.results if outcome.state == "done" else {}

    def send(self, order: UploadRequest) -> str:
        """Create the job and send its tables; return the run."""
        errand = self.begin(order)
        for _ in errand.send():
            pass
        return errand.run

    def pauses(self) -> Iterator[float]:
        """Yield the pauses between looks at a job. They grow up to `pause_seconds`."""
        pause = self.first_pause_seconds or self.pause_seconds
        while True:
            yield pause
            pause = min(_PAUSE_GROWTH * pause, self.pause_seconds)

    def begin(self, order: UploadRequest) -> "Upload":
        """Create the job, or find it again."""
        request = order.request
        receipt = self.gateways.create(order.job_id, request)
        known = {table.name for table in request.application.tables}
        if strange := set(receipt.tables) - known:
            raise FormatError(
                f"a gateway asks for a table {min(strange)[:40]!r}, which the job does not have"
            )
        errand = Upload(self, order, receipt.run, receipt.tables)
        if self.look_first:
            errand.look()
        return errand


@dataclass
class Upload:
    """One upload in progress. One thread may `send` while another one runs `follow`."""

    client: Uploader
    order: UploadRequest
    run: str
    tables: tuple[str, ...]  # the tables that must be sent
    results: dict[str, bytes] = field(default_factory=dict)
    _sent: dict[str, list[tuple[str, int]]] = field(default_factory=dict)  # digests and sizes
    _ended: frozenset[str] = frozenset()  # tables whose end was confirmed
    _is_done: bool = False  # rule 5
    _resumed: dict[str, ResumedFiles[Packed]] = field(default_factory=dict)  # rule 2

    def send(self) -> Iterator[str]:
        """Send the tables; yield the name of each table after its end was sent."""
        for table in self.tables:
            batches = iter(self.order.batches.get(table, ()))
            first = list(islice(batches, 2 if table in self.order.settled else 0))
            if len(first) == 1 and not self.client.look_first:
                self._put_only(table, first[0])
            else:
                self.put(table, chain(first, batches))
                self.end(table)
            yield table

    def _put_only(self, table: str, made: Sendable) -> None:
        """Send the only batch of a table, which ends the table, too. An end of its own follows if
        the gateway does not know of that, or if the job is done already (rule 5)."""
        batch, receipt = self._put(table, (0, made), only=True)
        self._sent[table] = [(batch.digest, batch.bytes)]
        if receipt is not None and receipt.ended:
            self._note_end(table)
        else:
            self.end(table)

    def nothing_to_send(self) -> None:
        """Note that the job reads a dataset: its tables are not this client's to send."""
        self._ended = frozenset(self.tables)

    def put(self, table: str, batches: Iterable[Sendable]) -> None:
        """Send batches of a table. Their numbers continue those of earlier calls."""
        sent = self._sent.setdefault(table, [])
        if self.client.look_first:
            self._resumed.setdefault(table, ResumedFiles())
        numbered = enumerate(batches, len(sent))
        for batch in self.client.each(partial(self._send_batch, table), numbered):
            sent.append((batch.digest, batch.bytes))
        if self.client.look_first:
            self._deliver_all(self._resumed[table].rest())

    def end(self, table: str) -> None:
        """Send the end of a table."""
        end = end_of(self._sent.get(table, []))
        self._check(self.client.gateways.put_end(self.order.job_id, table, end).run)
        self._note_end(table)

    def _note_end(self, table: str) -> None:
        self._ended |= {table}
        self.client.listener.ended(table)

    def follow(self, stopping: Callable[[], bool] = lambda: False) -> Outcome:
        """Fetch results as they appear until the job has ended; there is no time limit.

        Pauses between two looks are this client's own, unless the gateway waited for news.
        """
        clock, pauses = self.client.clock, {one: self.client.pauses() for one in (False, True)}
        seen: JobStatus | None = None
        while True:
            all_sent = self._ended.issuperset(self.tables)  # must be read before look()
            began, news = clock.elapsed(), self._news(seen)
            seen = self.look(news)
            outcome = seen.outcome
            if outcome is not None and outcome.state != "done":
                return outcome
            if outcome is not None and all_sent:
                self._check_whole(seen)
                return outcome
            if stopping():
                raise GoneError(f"the wait for job {self.order.job_id} was stopped")
            has_waited = news is not None and clock.elapsed() - began >= news.seconds / 2
            if not has_waited and (news is None or len(seen.results) == news.results):
                clock.sleep(next(pauses[all_sent]))

    def _news(self, seen: JobStatus | None) -> News | None:
        """Return what to wait for; None if a result is there that must not be fetched yet."""
        seconds, results = self.client.news_seconds, seen.results if seen else ()
        is_ended = seen is not None and seen.outcome is not None
        if not seconds or is_ended or not self.results.keys() >= set(results):
            return None
        return News(len(results), seconds)

    def look(self, news: News | None = None) -> JobStatus:
        """Ask for the status of the job, and fetch the results that exist (rule 4)."""
        status = self._status(news)
        while fetched := {name: self._fetch(name, status) for name in self._there(status)}:
            self.results |= fetched
            for name, data in fetched.items():
                self.client.listener.answered(name, data)
            if status.outcome is None:  # there may be more by now
                status = self._status()
        self.client.listener.saw(status)
        return status

    def _there(self, status: JobStatus) -> list[str]:
        """Return the results that exist, that this client may fetch, and that it lacks."""
        return [
            name
            for name in status.results
            if name not in self.results
            and (name in self._asked or name == REJECTS)
            and self._ended.issuperset(status.reads.get(name, self.tables))
        ]

    @cached_property
    def _asked(self) -> frozenset[str]:
        """The queries of the request, or its commit."""
        request = self.order.request
        if request.load or request.upkeep:
            return frozenset([LOAD if request.load else UPKEEP])
        return frozenset(request.queries or (one.name for one in request.application.queries))

    def _fetch(self, query: str, status: JobStatus) -> bytes:
        if (small := status.small.get(query)) is not None:
            return small
        return self.client.gateways.result(self.order.job_id, query, self.run)

    def _check_whole(self, status: JobStatus) -> None:
        """Raise GoneError if a done job has a result that could not be fetched."""
        if lost := set(status.reads) - set(self.results):
            raise GoneError(
                f"job {self.order.job_id} is done, but its result of {min(lost)} has been deleted"
            )

    def _send_batch(self, table: str, numbered: Numbered) -> BatchHeader:
        return self._put(table, numbered)[0]

    def _put(
        self, table: str, numbered: Numbered, *, only: bool = False
    ) -> tuple[BatchHeader, Receipt | None]:
        """Send a batch; return no receipt if it was not needed."""
        number, made = numbered
        data = made if isinstance(made, bytes) else made()
        batch = batch_format.describe(frame.of_bytes(data), f"batch {number}")
        if not self.client.look_first:
            return batch, self._deliver(batch, data, only=only)
        try:
            has = self._is_done or self._has(table, batch)
        except GoneError as error:
            has = self._require_done(error)
        self._deliver_all(self._due(table, batch, data, has=has))
        return batch, None

    def _due(self, table: str, batch: BatchHeader, data: bytes, *, has: bool) -> Iterable[Packed]:
        """Return what a client that resumes must send after it has looked for a batch (rule 2)."""
        files = self._resumed[table]
        if self._may_have_another_header(batch):
            if not has:
                return files.missing(batch, (batch, data))
            if not self._is_done and files.must_compare(batch):
                self._deliver(batch, data)
                return files.compared(batch)
        elif not has:
            return [(batch, data)]
        self.client.listener.sent(table, batch)
        return []

    def _may_have_another_header(self, batch: BatchHeader) -> bool:
        """Return whether its header may have changed although its records did not. The id of a load
        follows from whole files, and typed records hold the names of their columns."""
        return not self.order.request.load and batch.records == "csv"

    def _deliver_all(self, batches: Iterable[Packed]) -> None:
        for batch, data in batches:
            self._deliver(batch, data)

    def _deliver(self, batch: BatchHeader, data: bytes, *, only: bool = False) -> Receipt | None:
        """Send a batch, unless the job is done (rule 5)."""
        receipt = None
        try:
            if not self._is_done:
                receipt = self.client.gateways.put_batch(self.order.job_id, data, only=only)
                self._check(receipt.run)
        except GoneError as error:
            self._require_done(error)
        self.client.listener.sent(batch.table, batch)
        return receipt

    def _require_done(self, error: GoneError) -> bool:
        """Return True if the job has ended well; else raise the error."""
        self._note(error.outcome)
        if not self._is_done:
            raise error
        return True

    def _has(self, table: str, batch: BatchHeader) -> bool:
        number = batch.number
        digest = self.client.gateways.stored_digest(self.order.job_id, table, number)
        if digest is not None and digest != batch.digest:
            raise ConflictError(
                f"batch {number} of table {table} has arrived with other content: the file "
                "changed; send it under a new job"
            )
        return digest is not None

    def _status(self, news: News | None = None) -> JobStatus:
        ask, job_id = self.client.gateways.status, self.order.job_id
        status = ask(job_id) if news is None else ask(job_id, news)
        self._check(status.run)
        self._note(status.outcome)
        return status

    def _note(self, outcome: Outcome | None) -> None:
        self._is_done = self._is_done or (outcome is not None and outcome.state == "done")

    def _check(self, run: str) -> None:
        if run != self.run:
            raise GoneError(f"job {self.order.job_id} ended and was started again: send it again")
