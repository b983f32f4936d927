"""Requests for the status that wait until there are news of a job.

Rules
1. News are an outcome, or another number of results than the client knows. Both are looked for in
   the store: a gateway keeps no state, and nobody tells it what workers do. Pauses grow with the
   age of the job, so news come late by a small part of the time that the job took. They also grow
   with the number of waits: all of them together look at most `_LOOKS_EACH_SECOND` times, so that
   a crowd of clients leaves its gateway time for their other requests.
2. A wait holds a place for requests all the time. So at most half of the places of a gateway, and
   of an owner, are for waits. A request that finds none is answered at once, and its client pauses
   by itself.
3. A gateway that stops answers at once.
"""

import asyncio
from functools import partial

from caudal.errors import FormatError, StoreError
from caudal.formats.quotas import Quota
from caudal.gateway.service import RequestCall, Service
from caudal.jobs.runs import JobRun

MOST_WAIT_SECONDS = 10.0
_FIRST_SECONDS, _MOST_SECONDS = 0.005, 0.25  # between two looks
_SHARE = 0.1  # of the age of the job: the next pause
_LOOKS_EACH_SECOND = 200  # of all waits


async def await_news(service: Service, call: RequestCall, results: int, seconds: float) -> None:
    """Wait until the job has an outcome or another number of results, at most for `seconds`."""
    owner = call.caller.owner
    places = service.shares.limit(owner, Quota.REQUESTS)
    each_most = (service.limits.requests if places is None else places) // 2
    with service.waits.one(owner, each_most) as is_granted:
        if not is_granted:
            return
        elapsed = asyncio.get_running_loop().time
        began = elapsed()
        job_run, is_over = await service.threads.run(_first_look, service, call, results)
        age = max(service.ports.clock.now() - job_run.job.created, 0.0)  # clocks may differ
        look = partial(_has_news, service, job_run, results)
        while not is_over and not service.stopping():
            waited = elapsed() - began
            if waited >= seconds:
                return
            pause = _pause(age + waited, service.waits.held)
            await asyncio.sleep(min(pause, seconds - waited))
            is_over = await service.threads.run(look)


def _pause(age: float, waits: int) -> float:
    """Return how long to wait before the next look at a job of this age, in seconds.

    >>> [_pause(age, waits=1) for age in (0.01, 1.0, 60.0)]
    [0.005, 0.1, 0.25]
    >>> [_pause(age, waits=20) for age in (0.01, 1.0, 60.0)]
    [0.1, 0.1, 0.25]
    """
    of_age = min(max(_FIRST_SECONDS, _SHARE * age), _MOST_SECONDS)
    return max(of_age, waits / _LOOKS_EACH_SECOND)


def _first_look(service: Service, call: RequestCall, results: int) -> tuple[JobRun, bool]:
    """Return the run of the job, and whether it has news."""
    job_run = service.gateway.watch(*call.job)
    return job_run, _has_news(service, job_run, results)


def _has_news(service: Service, job_run: JobRun, results: int) -> bool:
    """Return whether there are news, or an error to be told."""
    try:
        return service.gateway.has_news(job_run, results)
    except (StoreError, FormatError):
        return True
