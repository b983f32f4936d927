"""Event streams. Opening one counts as a sign of life of the client; keeping it open does not."""

from collections.abc import AsyncIterator

from starlette.responses import Response, StreamingResponse

from caudal.gateway import events
from caudal.gateway.refusals import Refusal
from caudal.gateway.service import RequestCall, Service

EVENTS = "text/event-stream"
_DIGITS = 9


async def job(service: Service, call: RequestCall) -> Response:
    """GET /jobs/{job}/events"""
    life = await service.threads.run(service.gateway.watch, *call.job)
    first = await service.threads.run(service.gateway.look, life)  # refuses before the stream
    return _stream(events.job_events(service, life, first))


async def preview(service: Service, call: RequestCall) -> Response:
    """GET /jobs/{job}/results/{query}/preview"""
    first = _first_batch(call.request.headers.get("last-event-id", ""))
    found = await service.threads.run(service.gateway.preview, *call.job, call.name("query"))
    return _stream(events.preview_events(service, found, first))


def _first_batch(last: str) -> int:
    if not last:
        return 0
    if not last.isascii() or not last.isdecimal() or len(last) > _DIGITS:
        raise Refusal(400, "bad_request", "Last-Event-ID must be the number of a batch")
    return int(last) + 1


def _stream(pieces: AsyncIterator[bytes]) -> Response:
    return StreamingResponse(pieces, media_type=EVENTS, headers={"cache-control": "no-cache"})
