"""Answers so far, looked at while batches are mapped, and compared with the answer at its birth.

It is done outside of simulated time, so it changes no run.
"""

import contextlib
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from random import Random

import pyarrow as pa

from caudal.broker import MemoryBroker
from caudal.errors import FormatError, NotFoundError, QueryError
from caudal.formats import frame, outputs
from caudal.jobs.objects import exists
from caudal.jobs.ports import Ports
from caudal.jobs.runs import JobRun, JobRuns
from caudal.jobs.so_far import GrowingQuery, RowsSoFar
from caudal.jobs.status import growing_queries
from caudal.results.values import python_values
from caudal.store.memory import MemoryStore
from tests.harness.hand_clock import HandClock
from tests.simulation.remembering import SIMULATED, STRANGE, Machine, RememberedCompute


@dataclass
class EarlyRows:
    """What was shown of each query of each run, by job, run and query."""

    memory: MemoryStore
    shown: dict[tuple[str, str, str], list[tuple[RowsSoFar, set[str]]]] = field(
        default_factory=dict
    )  # with the tables that had no end then
    compared: int = 0  # looks with rows

    @cached_property
    def ports(self) -> Ports:
        machine = Machine(lambda task, act: act(), lambda: None, lambda task, beat: None)
        compute = RememberedCompute(Random(0), machine)
        runs = JobRuns(self.memory)
        return Ports(self.memory, MemoryBroker(), compute, HandClock(), lambda: "", runs)

    def look(self, job_run: JobRun) -> None:
        """Look at all growing queries, if the number of their batches is a power of two."""
        for name in (one for one in growing_queries(job_run) if one not in (*SIMULATED, STRANGE)):
            query = GrowingQuery.of(self.ports, job_run, name)
            covered = query.covered({})
            if sum(covered.values()).bit_count() == 1 and not query.is_over():
                with contextlib.suppress(QueryError, NotFoundError, FormatError):
                    seen = self.shown.setdefault((job_run.job.id, job_run.job.run, name), [])
                    keys = job_run.keys
                    open_then = {t for t in covered if not exists(self.memory, keys.end(t))}
                    seen.append((query.rows(covered), open_then))

    def excess(
        self, job_run: JobRun, query: str, result: bytes, ended: Mapping[str, int]
    ) -> str | None:
        """What was shown and is not in the result, if anything is.

        `ended` says how many batches each table has. A look at more of them, while the table had no
        end, is not compared: two clients began alike, and the one that sent less ended the table.
        The other one is refused.
        """
        seen = self.shown.pop((job_run.job.id, job_run.job.run, query), [])
        if not seen or outputs.describe_result(_head(result), query).error:
            return None
        places = job_run.split.plan.finish(query).grows
        answer = _rows(outputs.decode_result(result, query)[1], places)
        for look, open_then in seen:
            if any(look.covered[table] > ended.get(table, sys.maxsize) for table in open_then):
                continue
            found = _rows(look.rows, range(len(places)))
            self.compared += bool(found)
            if not found <= answer:
                return f"{found - answer} after {dict(look.covered)}"
        return None


def _head(result: bytes) -> bytes:
    return frame.read_head(frame.of_bytes(result), outputs.RESULT_MAGIC, "a result")


def _rows(table: pa.Table, places: Sequence[int]) -> Counter[str]:
    columns = [python_values(table.column(place)) for place in places]
    return Counter(repr(row) for row in zip(*columns, strict=True))
