"""Answers so far of growing queries: one thread asks for them until the answers are there.

Rows are shown only if all batches that they were computed from are batches of which this client's
own upload was confirmed (ADR 12). Asking may fail at any time: the answer comes anyway.
"""

import contextlib
import threading
from collections.abc import Callable, Collection, Iterable, Mapping

import pyarrow as pa

from caudal.client.http import HttpGateways
from caudal.errors import FormatError
from caudal.formats import streams
from caudal.formats.replies import JobStatus, SoFar

_PAUSE_SECONDS = 1.0
_LEAVE_SECONDS = 1.0

Show = Callable[[str, pa.Table], None]


def rows_of(found: SoFar) -> pa.Table:
    """Return the rows of an answer so far. The gateway is not trusted."""
    try:
        rows = streams.read_rows(found.stream or b"", "an answer so far", streams.PARTS)
        rows.validate(full=True)
    except (pa.ArrowException, OSError) as error:
        raise FormatError(f"an answer so far is not a valid table: {error}") from error
    return rows


class GrowingAnswers:
    """Shows answers so far. `sent` are the tables that this client sends; none for a dataset."""

    def __init__(
        self,
        gateways: HttpGateways,
        job_id: str,
        status: JobStatus,
        sent: Collection[str],
        show: Show,
    ) -> None:
        self._gateways = gateways
        self._job_id = job_id
        self._run = status.run
        self._queries = list(status.growing)
        self._known = dict.fromkeys(status.growing, 0)  # batches of the rows that were shown
        self._confirmed: dict[str, set[int]] = {table: set() for table in sent}
        self._show = show
        self._changed = threading.Condition()
        self._thread = threading.Thread(target=self._follow, daemon=True)
        self._thread.start()

    def confirm(self, table: str, number: int) -> None:
        """Note that a batch of a table is stored."""
        with self._changed:
            self._confirmed.setdefault(table, set()).add(number)

    def finish(self, queries: Iterable[str]) -> None:
        """Show nothing more of these queries."""
        with self._changed:
            self._queries = [name for name in self._queries if name not in set(queries)]
            self._changed.notify_all()

    def close(self) -> None:
        """Stop the thread."""
        self.finish(self._known)
        self._thread.join(_LEAVE_SECONDS)

    def _follow(self) -> None:
        while self._queries and not self._gateways.stop.requested():
            for query in self._queries:
                with contextlib.suppress(Exception):
                    self._ask(query)
            with self._changed:
                self._changed.wait_for(lambda: not self._queries, _PAUSE_SECONDS)

    def _ask(self, query: str) -> None:
        found = self._gateways.so_far(self._job_id, query, self._known[query])
        if found.stream is None or found.run != self._run:
            return
        rows = rows_of(found)
        with self._changed:
            if query in self._queries and self._is_own(found.covered):
                self._show(query, rows)
                self._known[query] = sum(found.covered.values())

    def _is_own(self, covered: Mapping[str, int]) -> bool:
        return not self._confirmed or all(
            number in self._confirmed.get(table, ())
            for table, count in covered.items()
            for number in range(count)
        )
