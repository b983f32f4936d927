"""Rows of filtering queries, shown while their tables are still being sent: one thread per query.

The rows of a batch are shown once, and only after this client's own upload of that batch was
confirmed. So they come from the data that this client read, whatever else was sent under the same
id.
"""

import contextlib
import threading
from collections.abc import Callable, Mapping
from typing import Any

from caudal.client.events import previews
from caudal.client.http import HttpGateways

Show = Callable[[str, list[dict[str, Any]]], None]
_LEAVE_SECONDS = 1.0


class PreviewThreads:
    """Threads that show previews. `queries` maps each query to the one table that it reads."""

    def __init__(
        self, gateways: HttpGateways, job_id: str, queries: Mapping[str, str], show: Show
    ) -> None:
        self._gateways = gateways
        self._job_id = job_id
        self._queries = tuple(queries)
        self._show = show
        self._confirmed: set[tuple[str, int]] = set()  # table and batch
        self._over: set[str] = set()
        self._changed = threading.Condition()
        self._threads = [
            threading.Thread(target=self._follow, args=(query, table), daemon=True)
            for query, table in queries.items()
        ]
        for thread in self._threads:
            thread.start()

    def confirm(self, table: str, number: int) -> None:
        """Note that a batch of a table is stored."""
        with self._changed:
            self._confirmed.add((table, number))
            self._changed.notify_all()

    def finish(self, *queries: str) -> None:
        """Stop the previews of these queries, because their answers are ready."""
        with self._changed:
            self._over.update(queries)
            self._changed.notify_all()

    def close(self) -> None:
        """Stop all threads. A thread in a silent stream ends when the stream is closed."""
        self.finish(*self._queries)
        for thread in self._threads:
            thread.join(_LEAVE_SECONDS)

    def _follow(self, query: str, table: str) -> None:
        def over() -> bool:
            return query in self._over or self._gateways.stop.requested()

        with contextlib.suppress(Exception):  # previews are optional: the answer comes anyway
            for found in previews(self._gateways, self._job_id, query, over):
                if not self._wait(table, found.batch, over):
                    return
                if found.rows:
                    self._show(query, found.rows)

    def _wait(self, table: str, number: int, over: Callable[[], bool]) -> bool:
        """Wait until a batch is confirmed; return False if the preview ends before."""
        with self._changed:
            self._changed.wait_for(lambda: over() or (table, number) in self._confirmed)
            return not over()
