"""Plans, kept in memory: the same question about other files, or about a later version of a
dataset, needs no planning (ADR 60).

Rules
1. A plan follows from the application, the queries, the parameters and the tables of a dataset, and
   from nothing else of a request. A question that may ask the clock is planned each time, and so
   are loads and upkeep. The key is a digest for which nobody can find a second text: else an owner
   could give another one a plan of his own.
2. Only plans are kept, no failures: those may be due to a busy machine.
3. At most `most` plans are kept, each of at most `MOST_BYTES`; the least recently used ones go.

Thread-safe. Two threads with the same question may both plan it.
"""

import hashlib
import threading
from collections import OrderedDict
from collections.abc import Callable

import msgspec

from caudal.formats.job import Request
from caudal.jobs.interfaces import Planned
from caudal.sql.volatile import may_vary

MOST_PLANS = 32
MOST_BYTES = 1 << 20


class KeptPlans:
    """Plans requests, and keeps the plans."""

    def __init__(self, plan: Callable[[Request, float], Planned], most: int = MOST_PLANS) -> None:
        self._plan = plan
        self._most = most
        self._kept: OrderedDict[bytes, Planned] = OrderedDict()
        self._lock = threading.Lock()

    def plan(self, request: Request, moment: float) -> Planned:
        """Return the plan of a request; see the port."""
        key = _key(request)
        if key is None:
            return self._plan(request, moment)
        with self._lock:
            found = self._kept.get(key)
            if found is not None:
                self._kept.move_to_end(key)
                return found
        made = self._plan(request, moment)
        if len(made.plan) <= MOST_BYTES:
            with self._lock:
                self._kept[key] = made
                while len(self._kept) > self._most:
                    self._kept.popitem(last=False)
        return made


def _key(request: Request) -> bytes | None:
    """Return what the plan of a question follows from; None if it is not to be kept."""
    text = request.application
    texts = [*(one.sql for one in text.tables), *(one.sql for one in text.queries)]
    if request.load or request.upkeep or may_vary(texts):
        return None
    tables = request.dataset.tables if request.dataset else None
    content = text, request.queries, request.parameters, tables
    return hashlib.sha256(msgspec.json.encode(content, order="deterministic")).digest()
