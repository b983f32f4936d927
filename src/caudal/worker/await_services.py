"""Waiting at the start until store and broker answer.

What is away may come back, so the worker keeps trying, ever less often; it says so once, and once
more when it goes on. A store that breaks its promise, or an option that cannot be right, never
mends itself: those are raised at once.
"""

import logging
import random
from collections.abc import Callable
from typing import TypeVar

from caudal.errors import CaudalError
from caudal.jobs.interfaces import Clock
from caudal.process.logs import fields

Value = TypeVar("Value")

_FIRST_SECONDS, _MOST_SECONDS = 0.2, 5.0

_log = logging.getLogger(__name__)


def waited_for(
    what: str,
    ask: Callable[[], Value],
    away: type[CaudalError],
    clock: Clock,
    stopping: Callable[[], bool],
    *,
    seconds: float | None = None,
) -> Value | None:
    """The answer, once there is one; None if the process should stop before.

    Raises what `ask` raised last if that many seconds have passed, and at once what is not `away`.
    """
    began, pause, said = clock.elapsed(), _FIRST_SECONDS, False
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
                _log.info(f"the {what} is there")
            return answer
        clock.sleep(pause * random.uniform(0.5, 1.0))
        pause = min(pause * 2, _MOST_SECONDS)
    return None
