"""Runs work at low priority, in its own thread, because a thread's priority cannot be raised again.

Linux gives every thread a priority. On other systems the work runs at normal priority.
"""

import contextlib
import os
import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import TypeVar

Answer = TypeVar("Answer")

LOWER = 15  # steps below the process: 3% of the CPU time when others need it


def gently(work: Callable[[], Answer]) -> Answer:
    """Run the work, and threads that it starts, at low priority. Return its result or raise."""
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
