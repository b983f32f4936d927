"""Server-sent events: rows of a query that only filters, while its table still arrives."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import httpx
import msgspec

from caudal.client.http import HttpGateways
from caudal.client.refusals import error_of
from caudal.tasks.ports import UnreachableError


@dataclass(frozen=True)
class Event:
    """One event of a stream."""

    name: str
    id: str
    data: str


class Preview(msgspec.Struct, frozen=True):
    """The rows that one batch gives to a query."""

    batch: int
    rows: list[dict[str, Any]]


class _EndedError(Exception):
    """The stream ended as a gateway wanted it to."""


def parse_events(lines: Iterable[str]) -> Iterator[Event | None]:
    """The events in the lines of a stream; None where there is only a sign of life.

    >>> list(parse_events(["id: 3", "event: rows", "data: {}", "", ": still here"]))
    [Event(name='rows', id='3', data='{}'), None]
    """
    name, number, data = "message", "", list[str]()
    for line in lines:
        field, _, value = line.partition(":")
        value = value.removeprefix(" ")
        if not line:
            if data:
                yield Event(name, number, "\n".join(data))
            name, data = "message", []
        elif not field:
            yield None
        elif field == "event":
            name = value
        elif field == "id":
            number = value
        elif field == "data":
            data.append(value)


def previews(
    gateways: HttpGateways, job_id: str, query: str, stopping: Callable[[], bool]
) -> Iterator[Preview]:
    """The rows of a query, batch by batch, each once, from whichever gateway answers.

    Ends when there are no more, because the answer is there or because the job has ended.
    """
    last, rounds = -1, 0
    path = f"/jobs/{job_id}/results/{query}/preview"
    while not stopping():
        for address in gateways.in_turn():
            headers = {"Accept": "text/event-stream"}
            if last >= 0:
                headers["Last-Event-ID"] = str(last)
            try:
                for preview in _from_one(gateways, path, address, headers, stopping):
                    if preview.batch > last:
                        last, rounds = preview.batch, 0
                        gateways.prefer(address)
                        yield preview
            except _EndedError:
                return
            except (httpx.TransportError, httpx.StreamError, UnreachableError):
                continue
        gateways.pause(rounds)
        rounds += 1


def _from_one(
    gateways: HttpGateways,
    path: str,
    address: str,
    headers: dict[str, str],
    stopping: Callable[[], bool],
) -> Iterator[Preview]:
    answer = gateways.stream(path, address, headers)
    try:
        if not answer.is_success:
            answer.read()
            error = error_of(address, answer.status_code, answer.content)
            if answer.status_code == 429 or answer.status_code >= 500:
                raise UnreachableError(str(error))
            raise error
        for event in parse_events(answer.iter_lines()):
            if stopping():
                raise _EndedError
            if event is None:
                continue
            if event.name != "rows":
                raise _EndedError
            yield msgspec.json.decode(event.data, type=Preview)
    finally:
        answer.close()
