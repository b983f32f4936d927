"""Waits at the start until store and broker answer.

An unreachable service may come back. So a process keeps trying, with growing pauses. It logs once
that it waits, and once that it continues. Other errors do not go away by waiting: a store that
breaks its promises, or a wrong option. They are raised at once.
"""

import logging
import random
from collections.abc import Callable
from typing import TypeVar

from caudal.errors import CaudalError
from caudal.jobs.interfaces import Clock
from caudal.process.logs import fields

Value = TypeVar("Value")

FIRST_SECONDS, MOST_SECONDS = 0.2, 5.0  # of a pause

_log = logging.getLogger(__name__)


def waited_for(
    what: str,
    ask: Callable[[], Value],
    away: type[CaudalError],
    clock: Clock,
    stopping: Callable[[], bool],
    *,
    seconds: float | None = None,
    most_seconds: float = MOST_SECONDS,
) -> Value | None:
    """Call `ask` until it answers, and return the answer; None if the process should stop first.

    After `seconds`, raise the last error of `ask`. Raise an error that is not in `away` at once. No
    pause is longer than `most_seconds`.
    """
    began, pause, said = clock.elapsed(), FIRST_SECONDS, False
    while not stopping():
        try:
            answer = ask()
        except away as error:
            if seconds is not None and clock.elapsed() - began >= seconds:
                raise
            if not said:
                _log.warning(f"waiting for the {what}", extra=fields(reason=str(error)))
                said = True
        else:
            if said:
                _log.info(f"the {what} answers")
            return answer
        clock.sleep(pause * random.uniform(0.5, 1.0))
        pause = min(pause * 2, most_seconds)
    return None
