"""Server-sent events: rows of a query that only filters, while its table is still being sent."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import httpx
import msgspec

from caudal.client.bodies import lines_of, take_reply
from caudal.client.http import HttpGateways
from caudal.client.refusals import error_of
from caudal.decoding import decode_json
from caudal.errors import FormatError
from caudal.jobs.interfaces import UnreachableError
from caudal.jobs.retry import WRONG_ROUNDS, told

_MOST_EVENT_BYTES = 256 << 20  # the rows of one batch as JSON


@dataclass(frozen=True)
class Event:
    """One event of a stream."""

    name: str
    id: str
    data: str


class PreviewRows(msgspec.Struct, frozen=True):
    """The rows of a query from one batch."""

    batch: int
    rows: list[dict[str, Any]]


class _EndedError(Exception):
    """The gateway ended the stream on purpose."""


def parse_events(lines: Iterable[str]) -> Iterator[Event | None]:
    """Yield the events in the lines of a stream; None for a keep-alive.

    >>> list(parse_events(["id: 3", "event: rows", "data: {}", "", ": still here"]))
    [Event(name='rows', id='3', data='{}'), None]
    """
    name, number, data, size = "message", "", list[str](), 0
    for line in lines:
        field, _, value = line.partition(":")
        value = value.removeprefix(" ")
        if not line:
            if data:
                yield Event(name, number, "\n".join(data))
            name, data, size = "message", [], 0
        elif not field:
            yield None
        elif field == "event":
            name = value
        elif field == "id":
            number = value
        elif field == "data":
            data.append(value)
            if (size := size + len(value)) > _MOST_EVENT_BYTES:
                raise FormatError(f"sent an event of more than {_MOST_EVENT_BYTES >> 20} MiB")


def previews(
    gateways: HttpGateways, job_id: str, query: str, stopping: Callable[[], bool]
) -> Iterator[PreviewRows]:
    """Yield the rows of a query, batch by batch, each once, from any gateway that answers.

    Ends when there are no more rows, because the answer is ready or the job has ended. After an
    invalid answer the next gateway is asked. If all gateways give invalid answers for several
    rounds in a row, FormatError is raised.
    """
    last, rounds, wrong = -1, 0, 0
    path = f"/jobs/{job_id}/results/{query}/preview"
    while not stopping():
        troubles: dict[str, str] = {}
        for address in gateways.in_turn():
            headers = {"Accept": "text/event-stream"}
            if last >= 0:
                headers["Last-Event-ID"] = str(last)
            try:
                for preview in _from_one(gateways, path, address, headers, stopping):
                    if preview.batch > last:
                        _check_next(preview, last)
                        last, rounds = preview.batch, 0
                        gateways.prefer(address)
                        yield preview
            except _EndedError:
                return
            except FormatError as error:
                troubles[address] = str(error)
            except (httpx.TransportError, httpx.StreamError, UnreachableError):
                continue
        wrong = wrong + 1 if len(troubles) == len(gateways.addresses) else 0
        if wrong == WRONG_ROUNDS:
            raise FormatError(told(troubles))
        gateways.pause(rounds)
        rounds += 1


def _check_next(preview: PreviewRows, last: int) -> None:
    if preview.batch != last + 1:
        raise FormatError(f"sent rows of batch {preview.batch} instead of batch {last + 1}")


def _preview_of(event: Event) -> PreviewRows:
    try:
        return decode_json(event.data, PreviewRows)
    except msgspec.MsgspecError as error:
        raise FormatError(f"sent an event of unknown form: {error}") from None


def _from_one(
    gateways: HttpGateways,
    path: str,
    address: str,
    headers: dict[str, str],
    stopping: Callable[[], bool],
) -> Iterator[PreviewRows]:
    answer = gateways.stream(path, address, headers)
    try:
        if not answer.is_success:
            error = error_of(address, answer.status_code, take_reply(answer))
            if answer.status_code == 429 or answer.status_code >= 500:
                raise UnreachableError(str(error))
            raise error
        for event in parse_events(lines_of(answer, _MOST_EVENT_BYTES)):
            if stopping():
                raise _EndedError
            if event is None:
                continue
            if event.name != "rows":
                raise _EndedError
            yield _preview_of(event)
    finally:
        answer.close()
