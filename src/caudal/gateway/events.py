"""Server-sent events: their encoding, and the streams as polling loops.

A stream polls in threads. It sends a keep-alive after some time without news, so that a closed
connection is noticed. It ends when the gateway stops; the client then opens it again at another
gateway.
"""

import asyncio
from collections.abc import AsyncIterator, Iterator
from functools import partial
from typing import Any

import msgspec

from caudal.broker.port import BrokerError
from caudal.datasets.cluster_place import DatasetNotFoundError
from caudal.errors import FormatError, StoreError
from caudal.formats.outcomes import Outcome
from caudal.formats.replies import JobStatus, SeenVersion
from caudal.gateway.looks import FRESH_SECONDS
from caudal.gateway.service import Service
from caudal.jobs.asking import WatchedDataset
from caudal.jobs.interfaces import BusyError, GoneError
from caudal.jobs.preview import Aborted, Complete, Preview, Rows, Step, Waiting
from caudal.jobs.runs import JobRun
from caudal.results.answers import Result
from caudal.results.values import text

_FIRST_SECONDS = FRESH_SECONDS  # between two polls (looks.py)
_MOST_SECONDS = 1.0  # while there is no news
_ALIVE_SECONDS = 10.0  # without news, until a keep-alive is sent


class AbortedBody(msgspec.Struct, frozen=True):
    reason: str
    outcome: Outcome | None


def event(name: str, content: Any, identity: int | None = None) -> bytes:
    """Return one encoded event. `content` is JSON bytes, or is encoded to JSON.

    >>> event("complete", {"batches": 2}, 7)
    b'id: 7\\nevent: complete\\ndata: {"batches":2}\\n\\n'
    """
    head = b"" if identity is None else b"id: %d\n" % identity
    data = content if isinstance(content, bytes) else msgspec.json.encode(content)
    return head + b"event: " + name.encode() + b"\ndata: " + data + b"\n\n"


class _Pulse:
    """The pause between two polls, with a keep-alive after a while without news."""

    def __init__(self) -> None:
        self._pause = _FIRST_SECONDS
        self._quiet = 0.0

    async def pause(self) -> bytes:
        await asyncio.sleep(self._pause)
        self._quiet += self._pause
        self._pause = min(1.5 * self._pause, _MOST_SECONDS)
        if self._quiet < _ALIVE_SECONDS:
            return b""
        self._quiet = 0.0
        return b": alive\n\n"


async def job_events(service: Service, job_run: JobRun, first: JobStatus) -> AsyncIterator[bytes]:
    """Yield progress when it changes, each query that is done or failed, and the job's outcome."""
    status: JobStatus | None = first
    shown, done, pulse = None, set[str](), _Pulse()
    while not service.stopping():
        if status is not None and status != shown:
            shown, pulse = status, _Pulse()
            for piece in _news(status, done):
                yield piece
            if status.outcome is not None:
                return
        if alive := await pulse.pause():
            yield alive
        try:
            status = await service.threads.run(_look, service, job_run)
        except (GoneError, FormatError):
            return  # the client gets the error when it opens the stream again


async def preview_events(service: Service, preview: Preview, first: int) -> AsyncIterator[bytes]:
    """Yield the rows of batch `first` and of all later batches, each batch once."""
    number, pulse = first, _Pulse()
    while not service.stopping():
        match await service.previewers.run(_step, preview, number):
            case Rows() as step:
                yield await service.previewers.run(_rows_event, step)
                number, pulse = number + 1, _Pulse()
            case Complete() as step:
                yield event("complete", {"batches": step.batches})
                return
            case Aborted() as step:
                yield event("aborted", AbortedBody(step.reason, step.outcome))
                return
            case Waiting():
                if alive := await pulse.pause():
                    yield alive


async def version_events(
    service: Service, owner: str, name: str, last: int
) -> AsyncIterator[bytes]:
    """Yield the number of a dataset's newest version if it is above `last`, then of later ones.

    The stream ends when the dataset is deleted or no longer readable for this owner. That is looked
    at with every keep-alive.
    """
    shown, pulse = last, _Pulse()
    watched: WatchedDataset | None = None
    while not service.stopping():
        try:
            look = partial(service.questions.watch, owner, name, watched)
            watched = await service.threads.run(look)
        except DatasetNotFoundError:
            return
        except (StoreError, FormatError):
            pass  # it does not answer now, or the client is told when it asks
        if watched is not None and watched.number > shown:
            shown, pulse = watched.number, _Pulse()
            yield event("version", SeenVersion(shown, watched.contents.time), shown)
        if alive := await pulse.pause():
            watched = None
            yield alive


def _look(service: Service, job_run: JobRun) -> JobStatus | None:
    """Return None if the store does not answer now."""
    try:
        return service.looks.at(job_run.job.run, lambda: service.gateway.look(job_run))
    except StoreError:
        return None


def _news(status: JobStatus, done: set[str]) -> Iterator[bytes]:
    yield event("progress", status)
    for query in status.results:
        if query not in done:
            done.add(query)
            if why := status.failed.get(query):
                yield event("query-failed", {"query": query, "reason": why})
            else:
                yield event("query-done", {"query": query})
    if status.outcome is not None:
        yield event("outcome", status.outcome)


def _step(preview: Preview, number: int) -> Step:
    """Return the next step; Waiting if the store or broker is unavailable or compute is busy."""
    try:
        return preview.step(number)
    except (StoreError, BrokerError, BusyError):
        return Waiting()


def _rows_event(step: Rows) -> bytes:
    rows = Result("", "", step.rows).rows()
    line = text({"batch": step.batch, "rows": rows})
    return event("rows", line.encode(), step.batch)
