"""Work at low priority, in a thread of its own: that of a thread cannot be raised again.

Linux gives every thread a priority. Where the system has none for threads, the work runs as usual.
"""

import contextlib
import os
import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import TypeVar

Answer = TypeVar("Answer")

LOWER = 10  # than that of the process: about a tenth of the time where others want it


def gently(work: Callable[[], Answer]) -> Answer:
    """What the work gives, or raises; it, and what it starts, steps back for all others."""
    done: Future[Answer] = Future()

    def run() -> None:
        with contextlib.suppress(OSError):
            own = threading.get_native_id()
            lower = os.getpriority(os.PRIO_PROCESS, own) + LOWER
            os.setpriority(os.PRIO_PROCESS, own, lower)
        try:
            done.set_result(work())
        except BaseException as error:
            done.set_exception(error)

    thread = threading.Thread(target=run, name="gently", daemon=True)
    thread.start()
    thread.join()
    return done.result()
