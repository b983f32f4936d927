"""A job whose rows come from a program instead of files."""

import contextlib
import time
from collections.abc import Iterator, Sequence
from types import TracebackType
from typing import Any

from caudal.client import upload_threads
from caudal.client.batches import BatchCutter, RowWriter
from caudal.client.events import previews
from caudal.client.http import HttpGateways
from caudal.client.results import answers_of, error_of_outcome, result_of
from caudal.client.rows import Rows
from caudal.client.stalled import Noticing
from caudal.client.submit import Submission
from caudal.errors import JobError, UsageError
from caudal.formats.outcomes import Outcome
from caudal.formats.replies import JobStatus
from caudal.jobs.upload import Sendable, UploadRequest
from caudal.results.answers import Answers, Result


class StreamedJob:
    """A job whose rows a program sends; made by `caudal.Client.job`. Not thread-safe.

    As a context manager it cancels the job if the block ends with an error.

    A call of `send` or `end` that fails after it has begun to send breaks the job: nobody knows
    which of its rows have arrived. The job then takes no rows and gives no answers.
    """

    def __init__(self, submission: Submission, gateways: HttpGateways) -> None:
        self._submission = submission
        self._gateways = gateways
        options = submission.options
        cutter = BatchCutter(options.batch_bytes, submission.compress.pays(gateways.addresses))
        self._writers = {
            one.name: RowWriter(one.name, cutter, one.columns) for one in submission.app.tables
        }
        self._open: list[str] = []
        self._broken = ""  # the table whose rows are in doubt
        self._began = time.perf_counter()
        gateways.begin_at(submission.job_id)
        with contextlib.ExitStack() as stack:
            stack.callback(gateways.close)
            order = UploadRequest(submission.job_id, submission.request(options), {})
            self._errand = stack.enter_context(
                upload_threads.opened(gateways, order, Noticing(gateways.tell))
            )
            self._stack = stack.pop_all()
        self._open = list(self._errand.tables)

    @property
    def id(self) -> str:
        """Return the job's id, for `caudal results`, `caudal cancel` and `Client.results`."""
        return self._submission.job_id

    @property
    def tables(self) -> tuple[str, ...]:
        """Return the tables to send, in order: those that the chosen queries read."""
        return self._errand.tables

    def send(self, table: str, rows: Rows, columns: Sequence[str] | None = None) -> None:
        """Send rows: dictionaries, tuples (with `columns`), or any object that holds Arrow data.

        Tuples without `columns` use the columns that the application declares for the table. Rows
        of a table that no chosen query reads are not sent.

        If a row cannot be sent (DataError), no row of this call is: correct it and call again. That
        holds for a list or a tuple of rows, and as long as all rows together are less than a batch.
        If rows of a longer iterator or of Arrow data have been sent by then, the job is broken:
        begin a new one.
        """
        self._require_whole()
        writer = self._writer(table)
        if table in self._errand.tables:
            if table not in self._open:
                raise UsageError(f"table {table} has ended: no rows can follow")
            self._put(table, writer.batches(rows, columns))

    def end(self, *tables: str) -> None:
        """Declare these tables complete; without names, all of them."""
        self._require_whole()
        for table in tables or tuple(self._open):
            writer = self._writer(table)
            if table in self._open:
                self._put(table, writer.rest())
                self._errand.end(table)
                self._open.remove(table)

    def status(self) -> JobStatus:
        """Return the progress of the job."""
        return self._errand.look()

    def result(self, query: str) -> Result:
        """Return one answer when it is computed. The tables that it reads must have ended."""
        self._require_whole()
        while query not in self._errand.results:
            status = self._errand.look()
            if query not in status.reads:
                raise UsageError(f"job {self.id} has no query {query!r}")
            waits = [table for table in status.reads[query] if table in self._open]
            if waits:
                raise UsageError(f"{query} reads table {waits[0]}: call end({waits[0]!r}) first")
            self._check(status.outcome)
            if query not in self._errand.results:
                self._errand.client.clock.sleep(self._errand.client.pause_seconds)
        return result_of(query, self._errand.results[query])

    def results(self) -> Answers:
        """Wait for all answers and return them."""
        self._require_whole()
        if self._open:
            raise UsageError(f"table {self._open[0]} has not ended: call end({self._open[0]!r})")
        self._check(self._errand.follow())
        seconds = time.perf_counter() - self._began
        return answers_of(self._errand.results, self._submission.asked, seconds)

    def preview(self, query: str) -> Iterator[dict[str, Any]]:
        """Yield the rows of a query that only filters, each once, while its table is being sent."""
        stopping = self._gateways.stop.requested
        for one in previews(self._gateways, self.id, query, stopping):
            yield from one.rows

    def cancel(self) -> Outcome:
        """End the job; what it has is deleted."""
        return self._gateways.cancel(self.id)

    def close(self) -> None:
        """Close the connection. The job itself continues."""
        self._stack.close()

    def __enter__(self) -> "StreamedJob":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        try:
            if error is not None or self._broken:
                with contextlib.suppress(Exception):
                    self.cancel()
        finally:
            self.close()

    def _writer(self, table: str) -> RowWriter:
        if table not in self._writers:
            raise UsageError(
                f"{self._submission.app.name} has no table {table!r}; "
                f"its tables are: {', '.join(self._writers)}"
            )
        return self._writers[table]

    def _put(self, table: str, batches: Iterator[Sendable]) -> None:
        """Send batches. After an error the job is broken if any of these was to be sent."""
        begun = False

        def noted() -> Iterator[Sendable]:
            nonlocal begun
            for batch in batches:
                begun = True
                yield batch

        try:
            self._errand.put(table, noted())
        except BaseException:
            if begun:
                self._broken = table
            raise

    def _require_whole(self) -> None:
        if self._broken:
            raise JobError(
                f"job {self.id} is broken: an error came while rows of table {self._broken} were "
                "sent, and some of them have arrived; begin a new job"
            )

    def _check(self, outcome: Outcome | None) -> None:
        if outcome is not None and outcome.state != "done":
            raise error_of_outcome(self.id, outcome)
