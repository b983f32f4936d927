"""SELECTs over the results of a job: computed here, because results are small.

Rules
1. The SELECT runs in the sandbox of workers (duck/sandbox.py), with little memory and time, one at
   a time. Whoever waits too long for a turn gets BusyError.
2. Only the results that the SELECT names are read. Together they are bounded, and so is the answer.
   What is larger is for `caudal sql` over a downloaded file.
"""

import re
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from threading import Lock

import pyarrow as pa

from caudal.duck.sandbox import Sandbox, SandboxLimits, Types
from caudal.errors import MemoryExceededError, QueryError, UsageError
from caudal.jobs.interfaces import BusyError
from caudal.jobs.service import JobService
from caudal.sql.adhoc import bind_values, clean_statement
from caudal.sql.literals import SqlValue

MOST_BYTES = 16 << 20  # of all results that a SELECT names, as stored
HELD_BYTES = 64 << 20  # about what one answer takes in memory beside the sandbox
MOST_ROWS = 10_000  # of an answer
MOST_ANSWER_BYTES = 8 << 20
_LIMITS = SandboxLimits(memory_bytes=256 << 20, seconds=10.0)
_WAIT_SECONDS = 20.0


@dataclass(frozen=True)
class ResultAnswer:
    """The rows of a SELECT, whether there were more, and the time that it took."""

    rows: pa.Table
    cut: bool
    seconds: float


@dataclass
class ResultSql:
    """Answers SELECTs over results. Any thread may call it."""

    jobs: JobService
    _lock: Lock = field(default_factory=Lock)

    def answer(
        self, job_id: str, owner: str, sql: str, values: Mapping[str, SqlValue]
    ) -> ResultAnswer:
        """Answer one SELECT. Raise QueryError with the place of a mistake."""
        bound = clean_statement(bind_values(sql, values))
        relations = self._relations(job_id, owner, bound)
        if not self._lock.acquire(timeout=_WAIT_SECONDS):
            raise BusyError("other SELECTs over results are running here: try again in a moment")
        try:
            began = time.monotonic()
            with Sandbox(_LIMITS, types=Types.PLAIN) as sandbox:
                rows = _selected(sandbox, bound, relations)
        finally:
            self._lock.release()
        some = rows.slice(0, MOST_ROWS)
        if some.nbytes > MOST_ANSWER_BYTES:
            raise UsageError(
                f"the answer has more than {MOST_ANSWER_BYTES >> 20} MiB: select fewer columns"
            )
        return ResultAnswer(some, rows.num_rows > MOST_ROWS, time.monotonic() - began)

    def _relations(self, job_id: str, owner: str, sql: str) -> dict[str, pa.Table]:
        """Return the results that the SELECT may read: those whose names are in it."""
        found = {
            name: self.jobs.open_result(job_id, owner, name)
            for name in self.jobs.status(job_id, owner, quiet=True).results
            if re.search(rf"\b{re.escape(name)}\b", sql, re.IGNORECASE)
        }
        if sum(one.index.rows.length for one in found.values() if not one.index.error) > MOST_BYTES:
            raise UsageError(
                f"these results have more than {MOST_BYTES >> 20} MiB: download them as Parquet, "
                "and ask the files with `caudal sql`"
            )
        return {name: one.rows() for name, one in found.items()}


def _selected(sandbox: Sandbox, sql: str, relations: Mapping[str, pa.Table]) -> pa.Table:
    try:
        return sandbox.select(sql, relations)
    except MemoryExceededError:
        raise
    except QueryError as error:
        place = sandbox.place_of_mistake(sql, relations)
        raise QueryError(f"{error}\n{place}".rstrip()) from error
