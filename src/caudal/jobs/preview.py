"""Previews: the rows of a query that only filters, shown batch by batch while its table arrives.

Rules
1. Batch n is shown after batches 0 … n - 1. A preview is asked for one number after the other and
   keeps nothing between two calls. So any gateway can continue what another one began.
2. A mapped object never changes, no matter which worker made it. So the answer contains exactly
   the rows that were shown.
3. A preview is complete when the result exists and as many batches were shown as the end names.
   Only the result proves that the table was compared with its end. If more batches were shown, or
   the data was deleted before it was shown, the preview is aborted. It never claims to be complete
   when it is not.
"""

from dataclasses import dataclass

import pyarrow as pa

from caudal.errors import FormatError, NotFoundError, QueryError
from caudal.formats import outputs
from caudal.formats.keys import Task
from caudal.formats.outcomes import Outcome
from caudal.formats.streams import PARTS
from caudal.jobs import objects
from caudal.jobs.facts import StoreFacts
from caudal.jobs.interfaces import InputPart, UnknownNameError
from caudal.jobs.ports import Ports
from caudal.jobs.runs import JobRun, read_outcome
from caudal.jobs.shared_maps import facts_of, open_mapped
from caudal.results.weight import weight
from caudal.sql.planner import Scan, filtered_scan

_MOST_INPUT_BYTES = 64 << 20  # of a batch's slices, as they are stored
_MOST_WEIGHT = 128 << 20  # bytes of a batch's rows as Python values, from which an event is made


@dataclass(frozen=True)
class Rows:
    """The rows that one batch adds to the answer."""

    batch: int
    rows: pa.Table


@dataclass(frozen=True)
class Waiting:
    """The next batch is not mapped yet, or the result does not exist yet."""


@dataclass(frozen=True)
class Complete:
    """Every row of the answer was shown."""

    batches: int


@dataclass(frozen=True)
class Aborted:
    """No more rows will come."""

    reason: str
    outcome: Outcome | None = None


Step = Rows | Waiting | Complete | Aborted


@dataclass(frozen=True)
class Preview:
    """The preview of one query of one run of a job."""

    ports: Ports
    job_run: JobRun
    query: str
    scan: Scan

    @classmethod
    def of(cls, ports: Ports, job_run: JobRun, query: str) -> "Preview":
        """Create a preview. Raise UnknownNameError if the query does more than filter."""
        known = any(last.query == query for last in job_run.split.plan.finishes)
        scan = filtered_scan(job_run.split.plan, query) if known else None
        if scan is None:
            reason = f"query {query} has no preview: its rows depend on several rows at once"
            raise UnknownNameError("preview", reason)
        return cls(ports, job_run, query, scan)

    def step(self, number: int) -> Step:
        """Return the next step after batches 0 … number - 1 were shown."""
        try:
            return self._step(number)
        except (QueryError, FormatError) as error:
            return Aborted(f"the preview failed: {error}")

    def _step(self, number: int) -> Step:
        store, keys = self.ports.store, self.job_run.keys
        now = self.ports.job_runs.open(self.job_run.job.id)
        if now is None or now.job.run != self.job_run.job.run:
            return Aborted(f"there is no job {self.job_run.job.id}")
        outcome, facts = read_outcome(store, keys), facts_of(store, self.job_run)
        if outcome is not None and outcome.state != "done":
            return Aborted(outcome.reason or outcome.state, outcome)
        end = facts.end(self.scan.table)
        if end is not None and number >= end:
            return self._at_end(number, end, facts)
        try:
            return Rows(number, self._rows(number))
        except NotFoundError:
            if outcome is None:
                return Waiting()
            return Aborted("the job is done, and its batches were deleted", outcome)

    def _at_end(self, number: int, end: int, facts: StoreFacts) -> Step:
        if number > end:
            return Aborted(f"table {self.scan.table} ended with {end} batches: too many were shown")
        if self.query not in facts.finished():
            return Waiting()
        found = objects.result(self.ports.store, self.job_run.keys, self.query)
        return Aborted(found.index.error) if found.index.error else Complete(end)

    def _rows(self, number: int) -> pa.Table:
        """Run the finish on the slices of one batch, which gives rows like those of the answer."""
        found = open_mapped(self.ports.store, self.job_run, self.scan.table, number)
        spans = found.index.stage(self.scan.name, found.key).slices
        if sum(span.length for span in spans) > _MOST_INPUT_BYTES:
            raise QueryError(f"batch {number} is too large for a preview: wait for the answer")
        inputs = {self.scan.name: [InputPart(one) for one in found.streams(self.scan.name)]}
        task = Task("finish", self.query)
        made = self.ports.compute.run(self.job_run.job, task, inputs, 1)
        rows = outputs.decode_result(made, f"the preview of {self.query}", PARTS)[1]
        if sum(weight(part) for column in rows.columns for part in column.chunks) > _MOST_WEIGHT:
            raise QueryError(f"batch {number} gives too much for a preview: wait for the answer")
        return rows
