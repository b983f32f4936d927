"""SELECTs over the results of a job: computed beside the gateway, because results are small.

Rules
1. A gateway gives the SELECT to a child process (planners.py): a few hundred bytes of SQL can keep
   DuckDB busy for hours. It has little memory and time, and one runs at a time. Whoever waits too
   long for a turn gets BusyError.
2. Only the results that the SELECT names are read. Together they are bounded, and so is the answer.
   What is larger is for `caudal sql` over a downloaded file.
"""

import re
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from threading import Lock

import pyarrow as pa

from caudal.errors import UsageError
from caudal.gateway.select_rows import SelectedRows
from caudal.jobs.interfaces import BusyError
from caudal.jobs.service import JobService
from caudal.sql.adhoc import bind_values, clean_statement
from caudal.sql.literals import SqlValue

MOST_BYTES = 16 << 20  # of all results that a SELECT names, as stored
HELD_BYTES = 64 << 20  # about what one answer takes in memory
_WAIT_SECONDS = 20.0

Select = Callable[[str, Mapping[str, pa.Table]], SelectedRows]


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
    select: Select
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
            found = self.select(bound, relations)
        finally:
            self._lock.release()
        return ResultAnswer(found.rows, found.cut, time.monotonic() - began)

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
