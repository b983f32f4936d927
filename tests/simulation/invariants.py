"""What must hold, checked outside of simulated time: while a run goes on, and at its end."""

import contextlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import pyarrow as pa

from caudal.core.tasks import REJECTS, Keys, Task, job_key
from caudal.errors import NotFoundError
from caudal.formats import batch as batch_format
from caudal.formats import ending, frame, outputs
from caudal.formats import job as job_format
from caudal.formats.ending import Outcome, digest_of_digests
from caudal.formats.job import Request
from caudal.store.memory import MemoryStore
from caudal.store.port import entries
from caudal.tasks.life import Life
from tests.simulation.applications import Tables, expected


class ViolationError(AssertionError):
    """Something that must never happen."""


def table_digest(batches: Sequence[bytes]) -> str:
    return digest_of_digests(
        batch_format.describe(frame.of_bytes(one), "a batch").digest for one in batches
    )


@dataclass
class Truth:
    """Knows all data that any client ever meant to send, by table and digest."""

    memory: MemoryStore
    sent: dict[tuple[str, str], Sequence[bytes]] = field(default_factory=dict)
    outcomes: dict[str, list[Outcome]] = field(default_factory=dict)  # job -> how its lives ended
    decided: dict[tuple[str, str], str] = field(default_factory=dict)  # by job and run
    finished: int = 0

    def learn(self, tables: Tables) -> None:
        for table, batches in tables.items():
            self.sent[table, table_digest(batches)] = batches

    def created(self, key: str) -> None:
        """Called at the very moment an object comes to be."""
        parts = key.split("/")
        if len(parts) == 5 and parts[3] == "results":
            self._check_result(parts[1], parts[2], parts[4])
        elif parts[-1] == "outcome.json":
            outcome = ending.decode_outcome(self.memory.read(key), key)
            if outcome.state != "done" and not outcome.reason:
                raise ViolationError(f"{parts[1]} is {outcome.state} and nobody says why")
            self._check_decided_once(parts[1], parts[2], outcome)
            self.outcomes.setdefault(parts[1], []).append(outcome)

    def _check_decided_once(self, job_id: str, run: str, outcome: Outcome) -> None:
        """A life that has ended never ends again, however much of it is cleaned up."""
        life, before = self._life(job_id), self.decided.get((job_id, run))
        self.decided.setdefault((job_id, run), outcome.state)
        if before is not None and life is not None and life.job.run == run:
            raise ViolationError(f"{job_id} was {before} and is {outcome.state} now")

    def _check_result(self, job_id: str, run: str, query: str) -> None:
        """A result of a living job is the answer to what its client ended with."""
        life = self._life(job_id)
        if life is None or life.job.run != run or self._has(life.keys.outcome):
            return  # garbage of a late worker
        tables = {}
        for table in sorted(life.shape.finishes[query].tables | self._behind(life, query)):
            with contextlib.suppress(NotFoundError):
                end = ending.decode_end(self.memory.read(life.keys.end(table)), table)
                if (table, end.digest) not in self.sent:
                    raise ViolationError(f"{query} of {job_id} was answered from mixed data")
                tables[table] = self.sent[table, end.digest]
                continue
            raise ViolationError(f"{query} of {job_id} was answered before {table} had ended")
        if query != REJECTS:
            data = self.memory.read(life.keys.output(Task("finish", query)))
            self.check_rows(life.job.request, query, tables, data, job_id)
        self.finished += 1

    def check_rows(
        self,
        request: Request,
        query: str,
        tables: Mapping[str, Sequence[bytes]],
        data: bytes,
        who: str,
    ) -> None:
        wanted = expected(request, query, tables)
        _, rows = outputs.decode_result(data, query)
        if not rows.equals(wanted):
            raise ViolationError(
                f"wrong rows for {query} of {who}: {_shown(rows)}, not {_shown(wanted)}"
            )

    def _behind(self, life: Life, query: str) -> set[str]:
        """The tables that a query reads through its folds."""
        folds, tables = list(life.shape.finishes[query].folds), set[str]()
        while folds:
            step = life.shape.folds[folds.pop()]
            tables |= step.tables
            folds += step.folds
        return tables

    def _life(self, job_id: str) -> Life | None:
        try:
            data = self.memory.read(job_key(job_id))
        except NotFoundError:
            return None
        return Life.of(job_format.decode(data, job_id))

    def _has(self, key: str) -> bool:
        with contextlib.suppress(NotFoundError):
            self.memory.read(key)
            return True
        return False

    def running(self) -> list[str]:
        """The jobs that have a job.json and no outcome."""
        found = []
        for entry in entries(self.memory, "jobs/"):
            if entry.key.endswith("/job.json"):
                job = job_format.decode(self.memory.read(entry.key), entry.key)
                if not self._has(Keys(job.id, job.run).outcome):
                    found.append(job.id)
        return found

    def check_remains(self, kept: set[str]) -> None:
        """Beyond results, job.json and outcome of jobs whose results are kept, nothing is left."""
        for entry in entries(self.memory, ""):
            _, job_id, *rest = entry.key.split("/")
            life = self._life(job_id)
            named = life is not None and len(rest) > 1 and rest[0] == life.job.run
            allowed = rest == ["job.json"] or (named and rest[1] in ("results", "outcome.json"))
            if job_id not in kept or not allowed:
                raise ViolationError(f"left over: {entry.key}")
            if life is not None and not self._has(life.keys.outcome):
                raise ViolationError(f"{job_id} has a job.json and no outcome")


def _shown(rows: pa.Table) -> str:
    return str(rows.slice(0, 5).to_pylist())
