"""SELECTs over the results of a job: computed beside the gateway, because results are small.

Rules
1. A gateway gives the SELECT to a child process (planners.py): a few hundred bytes of SQL can keep
   DuckDB busy for hours. It has little memory and time, and one runs at a time. Whoever waits too
   long for a turn gets BusyError.
2. Only the results that the SELECT names are read. Together they are bounded, as stored and as
   unpacked, and so is the answer. What is larger is for `caudal sql` over a downloaded file.
3. A gateway reads the results of one SELECT at a time, and unpacks none of them: the child does.
   They declare their unpacked size. It is checked before: kilobytes can unpack to gigabytes.
"""

import re
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from threading import Lock

import pyarrow as pa

from caudal.errors import FormatError, QueryError, UsageError
from caudal.formats import streams
from caudal.formats.streams import Terms, TooLargeError
from caudal.gateway.select_rows import SelectedRows
from caudal.jobs.interfaces import BusyError
from caudal.jobs.service import JobService
from caudal.jobs.stored_results import StoredResult
from caudal.sql.adhoc import bind_values, clean_statement
from caudal.sql.literals import SqlValue

MOST_BYTES = 16 << 20  # of all results that a SELECT names, as stored
MOST_UNPACKED = 128 << 20  # of the same, unpacked; they stay far below the memory of a child
MOST_UNPACKED_ROWS = 1 << 24  # of the same: a column of nulls has rows without bytes
HELD_BYTES = 64 << 20  # about what one answer takes in memory
_WAIT_SECONDS = 20.0

Select = Callable[[str, Mapping[str, bytes]], SelectedRows]  # over checked Arrow streams


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
        named = self._named(job_id, owner, bound)
        if not self._lock.acquire(timeout=_WAIT_SECONDS):
            raise BusyError("other SELECTs over results are running here: try again in a moment")
        try:
            began = time.monotonic()
            found = self.select(bound, _streams(named))
        finally:
            self._lock.release()
        return ResultAnswer(found.rows, found.cut, time.monotonic() - began)

    def _named(self, job_id: str, owner: str, sql: str) -> dict[str, StoredResult]:
        """Return the results that the SELECT may read, unread: those whose names are in it."""
        found = {
            name: self.jobs.open_result(job_id, owner, name)
            for name in self.jobs.status(job_id, owner, quiet=True).results
            if re.search(rf"\b{re.escape(name)}\b", sql, re.IGNORECASE)
        }
        for one in found.values():
            if one.index.error:
                raise QueryError(one.index.error)
        if sum(one.index.rows.length for one in found.values()) > MOST_BYTES:
            raise _too_large(f"have more than {MOST_BYTES >> 20} MiB")
        return found


def _streams(results: Mapping[str, StoredResult]) -> dict[str, bytes]:
    """Return the rows of results as streams that may be unpacked together (rule 3)."""
    found = {}
    size, rows = MOST_UNPACKED, MOST_UNPACKED_ROWS
    for name, one in results.items():
        stream = b"".join(one.pieces(MOST_BYTES))
        terms = Terms(size, rows, nested=True, compressed=True)
        try:
            held, unpacked = streams.claims(stream, one.key, terms)
        except TooLargeError:
            most = f"{MOST_UNPACKED >> 20} MiB, or have more than {MOST_UNPACKED_ROWS} rows"
            raise _too_large(f"unpack to more than {most}") from None
        if held != one.index.rows.rows:
            raise FormatError(f"{one.key} is damaged: it does not have {one.index.rows.rows} rows")
        found[name] = stream
        size, rows = size - unpacked, rows - held
    return found


def _too_large(how: str) -> UsageError:
    return UsageError(
        f"these results {how}: download them as Parquet, and ask the files with `caudal sql`"
    )
