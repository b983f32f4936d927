"""What must hold, checked outside of simulated time: while a run goes on, and at its end."""

import contextlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache

import pyarrow as pa

from caudal.errors import NotFoundError
from caudal.formats import batch as batch_format
from caudal.formats import frame
from caudal.formats import job as job_format
from caudal.formats import outcomes as ending
from caudal.formats.keys import REJECTS, Keys, Task, job_key
from caudal.formats.outcomes import Outcome, digest_of_digests
from caudal.jobs import objects
from caudal.jobs.job_index import INDEX
from caudal.jobs.preview import Rows
from caudal.jobs.runs import JobRun
from caudal.store.memory import MemoryStore
from caudal.store.port import entries
from tests.fuzz.check import DifferenceError, compare
from tests.simulation.early_rows import EarlyRows
from tests.simulation.remembering import Asked, Tables

_KEPT = ("results", "outcome.json", "tables")


class ViolationError(AssertionError):
    """Something that must never happen."""


@lru_cache(maxsize=2_000)
def table_digest(batches: Sequence[bytes]) -> str:
    return digest_of_digests(
        batch_format.describe(frame.of_bytes(one), "a batch").digest for one in batches
    )


@lru_cache(maxsize=64)
def _opened(data: bytes, job_id: str) -> JobRun:
    return JobRun.of(job_format.decode(data, job_id))


@dataclass
class Truth:
    """Knows all data that any client ever meant to send, by table and digest."""

    memory: MemoryStore
    asked: Mapping[str, Asked]  # by job
    sent: dict[tuple[str, str], Sequence[bytes]] = field(default_factory=dict)
    outcomes: dict[str, list[Outcome]] = field(default_factory=dict)  # job -> how its lives ended
    decided: dict[tuple[str, str], str] = field(default_factory=dict)  # by job and run
    reads: dict[tuple[str, str], set[str]] = field(default_factory=dict)  # tables of a query
    finished: int = 0
    failed: int = 0  # queries of jobs that are done

    @cached_property
    def early(self) -> EarlyRows:
        return EarlyRows(self.memory)

    def learn(self, tables: Tables) -> None:
        for table, batches in tables.items():
            self.sent[table, table_digest(tuple(batches))] = batches

    def created(self, key: str) -> None:
        """Called at the very moment an object comes to be."""
        parts = key.split("/")
        if len(parts) == 5 and parts[3] == "results":
            self._check_result(parts[1], parts[2], parts[4])
        elif len(parts) > 4 and parts[3] == "mapped":
            job_run = self._job_run(parts[1])
            if job_run is not None and job_run.job.run == parts[2]:
                self.early.look(job_run)
        elif parts[-1] == "outcome.json":
            outcome = ending.decode_outcome(self.memory.read(key), key)
            if outcome.state != "done" and not outcome.reason:
                raise ViolationError(f"{parts[1]} is {outcome.state} and nobody says why")
            self._check_decided_once(parts[1], parts[2], outcome)
            self._check_failed(parts[1], parts[2], outcome)
            self.outcomes.setdefault(parts[1], []).append(outcome)

    def _check_decided_once(self, job_id: str, run: str, outcome: Outcome) -> None:
        """A life that has ended never ends again, however much of it is cleaned up."""
        job_run, before = self._job_run(job_id), self.decided.get((job_id, run))
        self.decided.setdefault((job_id, run), outcome.state)
        if before is not None and job_run is not None and job_run.job.run == run:
            raise ViolationError(f"{job_id} was {before} and is {outcome.state} now")

    def _check_failed(self, job_id: str, run: str, outcome: Outcome) -> None:
        """The outcome of a job that is done names the queries whose results hold no rows."""
        job_run, failed = self._job_run(job_id), dict[str, str]()
        if job_run is None or job_run.job.run != run or outcome.state != "done":
            return
        for query in job_run.shape.finishes:
            error = objects.result(self.memory, job_run.keys, query).index.error
            failed |= {query: error} if error else {}
        if outcome.failed != failed:
            raise ViolationError(f"{job_id} says that {outcome.failed} failed, not {failed}")
        self.failed += len(failed)

    def _check_result(self, job_id: str, run: str, query: str) -> None:
        """A result of a living job is the answer to what its client ended with."""
        job_run = self._job_run(job_id)
        if job_run is None or job_run.job.run != run or self._has(job_run.keys.outcome):
            return  # garbage of a late worker
        tables = {}
        for table in sorted(job_run.shape.finishes[query].tables | self._behind(job_run, query)):
            with contextlib.suppress(NotFoundError):
                end = ending.decode_end(self.memory.read(job_run.keys.end(table)), table)
                if (table, end.digest) not in self.sent:
                    raise ViolationError(f"{query} of {job_id} was answered from mixed data")
                tables[table] = self.sent[table, end.digest]
                continue
            raise ViolationError(f"{query} of {job_id} was answered before {table} had ended")
        self.reads[job_id, query] = set(tables)
        if query != REJECTS:
            data = self.memory.read(job_run.keys.output(Task("finish", query)))
            self.check_rows(job_id, query, tables, data)
            ended = {name: len(batches) for name, batches in tables.items()}
            if excess := self.early.excess(job_run, query, data, ended):
                raise ViolationError(f"{query} of {job_id} showed early what it is not: {excess}")
        self.finished += 1

    def check_rows(self, job_id: str, query: str, tables: Tables, result: bytes) -> None:
        """`tables` are those that the query reads, or more."""
        reads = self.reads.get((job_id, query))
        if reads is not None:
            tables = {name: batches for name, batches in tables.items() if name in reads}
        wrong = self.asked[job_id].difference(query, tables, result)
        if wrong is not None:
            raise ViolationError(f"wrong rows for {query} of {job_id}: {wrong}")

    def check_preview(self, job_id: str, query: str, tables: Tables, shown: Sequence[Rows]) -> None:
        """All that was shown, batch by batch, is all that the answer holds."""
        if (job_id, query) not in self.reads or [one.batch for one in shown] != [
            *range(len(shown))
        ]:
            raise ViolationError(f"the preview of {query} of {job_id} was complete too soon")
        wanted = self.asked[job_id].expected(query, tables)
        rows = pa.concat_tables([one.rows for one in shown]) if shown else wanted.slice(0, 0)
        try:
            compare(wanted, rows, ordered=False)
        except DifferenceError as error:
            raise ViolationError(f"the preview of {query} of {job_id}: {error}") from None

    def _behind(self, job_run: JobRun, query: str) -> set[str]:
        """The tables that a query reads through its folds."""
        folds, tables = list(job_run.shape.finishes[query].folds), set[str]()
        while folds:
            step = job_run.shape.folds[folds.pop()]
            tables |= step.tables
            folds += step.folds
        return tables

    def _job_run(self, job_id: str) -> JobRun | None:
        try:
            data = self.memory.read(job_key(job_id))
        except NotFoundError:
            return None
        return _opened(data, job_id)

    def _has(self, key: str) -> bool:
        with contextlib.suppress(NotFoundError):
            self.memory.read(key)
            return True
        return False

    def running(self) -> list[str]:
        """The jobs that have a job.json and no outcome."""
        job_runs = [self._job_run(job_id) for job_id in self.asked]
        return [
            job_run.job.id
            for job_run in job_runs
            if job_run is not None and not self._has(Keys(job_run.job.id, job_run.job.run).outcome)
        ]

    def check_remains(self, kept: set[str]) -> None:
        """Of jobs whose results are kept, job.json, outcome, ends and marks of the index are left;
        nothing else is."""
        for entry in entries(self.memory, INDEX):
            *_, job_id, run = entry.key.rpartition("/")[2].split(".")
            job_run = self._job_run(job_id)
            if job_id not in kept or job_run is None or job_run.job.run != run:
                raise ViolationError(f"left over: {entry.key}")
        for entry in entries(self.memory, "jobs/"):
            _, job_id, *rest = entry.key.split("/")
            job_run = self._job_run(job_id)
            named = job_run is not None and len(rest) > 1 and rest[0] == job_run.job.run
            allowed = rest == ["job.json"] or (named and rest[1] in _KEPT)
            if job_id not in kept or not allowed:
                raise ViolationError(f"left over: {entry.key}")
            if job_run is not None and not self._has(job_run.keys.outcome):
                raise ViolationError(f"{job_id} has a job.json and no outcome")
        for job_id in sorted(kept & self.outcomes.keys()):
            self._check_kept(job_id, self.outcomes[job_id][-1])

    def _check_kept(self, job_id: str, outcome: Outcome) -> None:
        """A job that ended and is kept can still be asked how, and for its results."""
        job_run = self._job_run(job_id)
        if job_run is None:
            raise ViolationError(f"{job_id} was {outcome.state}, is kept, and has no job.json")
        for query in job_run.shape.finishes if outcome.state == "done" else ():
            if not self._has(job_run.keys.output(Task("finish", query))):
                raise ViolationError(f"{job_id} is done and kept, and lacks {query}")
