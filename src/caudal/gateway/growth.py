"""Answers so far at one gateway: looked at when somebody asks, seldom, and for all who ask.

Rules
1. A gateway looks only when it is asked, at one query at a time, and computes only if more batches
   are mapped than before. Whoever asks meanwhile gets the last look.
2. After a look that took s seconds, its query rests for REST * s * n seconds, where n queries are
   being asked for. So all looks of a gateway together take at most one part in REST of its time, no
   matter how many people ask.
3. Looks are kept in memory only. A gateway that dies loses them, and the next one looks again.
"""

from dataclasses import dataclass
from functools import cached_property
from threading import Lock

import msgspec

from caudal.errors import FormatError, NotFoundError, QueryError, StoreError
from caudal.formats import mapped
from caudal.formats.replies import ResultColumn, SoFar
from caudal.jobs.interfaces import BusyError, Clock
from caudal.jobs.so_far import GrowingQuery, RowsSoFar
from caudal.results.answers import Result
from caudal.results.values import text

REST = 40
_LEAST_SECONDS = 1.0  # between two looks at one query
_HOPELESS_SECONDS = 60.0  # after a look that failed
_ASKED_SECONDS = 10.0  # a query is being asked for, if it was within that time
_MOST_KEPT = 32


@dataclass(frozen=True)
class Look:
    """Rows so far, as they are sent."""

    found: RowsSoFar

    def reply(self, run: str, after: int, *, as_stream: bool) -> SoFar:
        """Return the reply; without rows if the client has them, from at least as many batches."""
        found = self.found
        columns = tuple(ResultColumn(one.name, str(one.type)) for one in found.rows.schema)
        told = SoFar(run, dict(found.covered), found.total, columns, found.later)
        if found.batches <= after:
            return told
        if as_stream:
            return msgspec.structs.replace(told, stream=self._stream)
        return msgspec.structs.replace(told, rows=self._rows)

    @cached_property
    def _rows(self) -> msgspec.Raw:
        return msgspec.Raw(text(Result("", "", self.found.rows).rows()).encode())

    @cached_property
    def _stream(self) -> bytes:
        return bytes(mapped.stream_of(self.found.rows)[1])


@dataclass
class _Watched:
    asked: float
    due: float = 0.0
    newest: Look | None = None


class Growths:
    """The answers so far of one gateway. Thread-safe."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._watched: dict[tuple[str, str, str], _Watched] = {}
        self._lock = Lock()  # of the dictionary
        self._looking = Lock()

    def is_due(self, query: GrowingQuery) -> bool:
        """Return whether `newest` may look, which takes time."""
        return not self._looking.locked() and self._now() >= self._noted(query).due

    def newest(self, query: GrowingQuery) -> Look | None:
        """Return the newest look, after another one if that is due; None if nothing is known."""
        watched = self._noted(query)
        if self._now() >= watched.due and self._looking.acquire(blocking=False):
            try:
                self._look(query, watched)
            finally:
                self._looking.release()
        return watched.newest

    def _noted(self, query: GrowingQuery) -> _Watched:
        run, now = query.job_run, self._now()
        name = run.job.id, run.job.run, query.query
        with self._lock:
            found = self._watched.pop(name, None) or _Watched(now)
            self._watched[name] = found  # the last one was asked for last
            if len(self._watched) > _MOST_KEPT:
                del self._watched[next(iter(self._watched))]
        found.asked = now
        return found

    def _look(self, query: GrowingQuery, watched: _Watched) -> None:
        began = self._now()
        try:
            self._renew(query, watched)
        except (QueryError, FormatError):  # it fails, or takes too much
            watched.due = self._now() + _HOPELESS_SECONDS
            return
        except (StoreError, BusyError, NotFoundError):
            pass  # later
        rest = REST * (self._now() - began) * self._asked()
        watched.due = self._now() + max(_LEAST_SECONDS, rest)

    def _renew(self, query: GrowingQuery, watched: _Watched) -> None:
        if query.is_over():
            watched.newest = None
            return
        known = watched.newest.found.covered if watched.newest else {}
        covered = query.covered(known)
        if sum(covered.values()) > sum(known.values()):
            watched.newest = Look(query.rows(covered))

    def _asked(self) -> int:
        since = self._now() - _ASKED_SECONDS
        with self._lock:
            return sum(one.asked >= since for one in self._watched.values())

    def _now(self) -> float:
        return self._clock.elapsed()
